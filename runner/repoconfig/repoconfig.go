// Package repoconfig says by which rules a session works: the operator's
// floor, tightened by the repository's own .github/handoff.yml.
//
// The file is read from the default branch, never from a pull request's head,
// so that a change to the rules is itself under the rules. It may only
// tighten what the operator set (promise P11): a higher role, fewer turns, a
// shorter expiry. A wish to loosen is reported and the operator's value
// stands.
//
// The two steps are pure. [Parse] turns bytes into a [File] and reports every
// fault with its line; [Operator.Resolve] lays the file over the operator's
// values and gives the [Config] that a session keeps for its whole life. A
// file that Parse faults is never half used: the session ends before any model
// call and the faults are shown on the issue. A wish that Resolve faults is
// shown as well, and the session goes on under the operator's rules.
package repoconfig

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Path is where a repository keeps its configuration.
const Path = ".github/handoff.yml"

// A Role is what a person may do with a repository, as GitHub names it.
type Role string

// The roles that may decide, from the lowest to the highest.
const (
	RoleWrite    Role = "write"
	RoleMaintain Role = "maintain"
	RoleAdmin    Role = "admin"
)

var ranks = map[Role]int{"none": 0, "read": 1, "triage": 2, RoleWrite: 3, RoleMaintain: 4, RoleAdmin: 5}

// AtLeast says whether r is the role other or a higher one. Unknown roles are
// below every known one.
func (r Role) AtLeast(other Role) bool {
	rank, known := ranks[r]
	return known && rank >= ranks[other]
}

// Limits bound one session. A zero means that there is no such limit.
type Limits struct {
	Turns      int           `json:"turns"`
	Handoffs   int           `json:"handoffs"`
	Tokens     int64         `json:"tokens"`
	CostMicros int64         `json:"cost_micros"`
	ActiveTime time.Duration `json:"active_time"`
}

// Approval says who may approve a push, and for how long it may wait.
type Approval struct {
	Role Role `json:"role"`
	// RequireOther keeps the requester from approving their own task.
	RequireOther bool          `json:"require_other"`
	Expires      time.Duration `json:"expires"`
	// CheckRun is "auto", "always" or "never".
	CheckRun string `json:"check_run"`
}

// A Config is the set of rules of one session.
type Config struct {
	// Setup and Test are shell commands, run in this order in the sandbox.
	Setup []string `json:"setup,omitempty"`
	Test  []string `json:"test,omitempty"`
	// Timeout bounds each command.
	Timeout  time.Duration `json:"timeout"`
	Limits   Limits        `json:"limits"`
	Approval Approval      `json:"approval"`
	// Models names a model per agent slug, "" for the default.
	Models map[string]string `json:"models,omitempty"`
	// Instructions are files that agents are given as the project's customs.
	Instructions []string `json:"instructions,omitempty"`
	Git          Git      `json:"git"`
	Commit       Commit   `json:"commit"`
}

// Hash names the configuration: equal rules have equal hashes.
func (c Config) Hash() string {
	encoded, err := json.Marshal(c)
	if err != nil {
		panic("repoconfig: a configuration is always encodable: " + err.Error())
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// An Operator is the floor: what whoever runs handoff allows at most.
type Operator struct {
	Role    Role
	Limits  Limits
	Expires time.Duration
	Timeout time.Duration
	// Verified makes GitHub sign every commit, in every repository.
	Verified bool
}

// DefaultOperator is the floor that an operator who says nothing gets; the
// limits are those of the design: 40 turns, 60 minutes, 2 million tokens,
// 5 US dollars.
func DefaultOperator() Operator {
	return Operator{
		Role: RoleWrite,
		Limits: Limits{
			Turns:      40,
			Handoffs:   12,
			Tokens:     2_000_000,
			CostMicros: 5_000_000,
			ActiveTime: time.Hour,
		},
		Expires: 72 * time.Hour,
		Timeout: 10 * time.Minute,
	}
}

// defaultInstructions are read where a repository names none.
var defaultInstructions = []string{"AGENTS.md", ".github/copilot-instructions.md", "CLAUDE.md"}

// Resolve lays the file over the operator's floor. The faults tell which
// wishes would have loosened it; a nil file means the floor itself.
func (o Operator) Resolve(file *File) (Config, []Fault) {
	config := Config{
		Timeout:      o.Timeout,
		Limits:       o.Limits,
		Approval:     Approval{Role: o.Role, Expires: o.Expires, CheckRun: "auto"},
		Instructions: defaultInstructions,
		Git:          GitNone,
		Commit:       Commit{Author: AuthorBot, CoAuthor: true, Verified: o.Verified},
	}
	if file == nil {
		return config, nil
	}
	t := tightener{file: file}
	config.Setup, config.Test, config.Models = file.Setup, file.Test, file.Models
	if file.Instructions != nil {
		config.Instructions = file.Instructions
	}
	config.Timeout = lower(&t, "timeout", o.Timeout, file.Timeout)
	config.Limits = Limits{
		Turns:      lower(&t, "limits.turns", o.Limits.Turns, file.Limits.Turns),
		Handoffs:   lower(&t, "limits.handoffs", o.Limits.Handoffs, file.Limits.Handoffs),
		Tokens:     lower(&t, "limits.tokens", o.Limits.Tokens, file.Limits.Tokens),
		CostMicros: lower(&t, "limits.cost_usd", o.Limits.CostMicros, file.Limits.CostMicros),
		ActiveTime: lower(&t, "limits.minutes", o.Limits.ActiveTime, file.Limits.ActiveTime),
	}
	config.Approval.Expires = lower(&t, "approval.expires", o.Expires, file.Approval.Expires)
	config.Git = cmp.Or(file.Git, config.Git)
	config.Commit = t.commit(config.Commit, file.Commit)
	config.Approval.RequireOther = file.Approval.RequireOther
	if file.Approval.CheckRun != "" {
		config.Approval.CheckRun = file.Approval.CheckRun
	}
	if role := file.Approval.Role; role != "" {
		if role.AtLeast(o.Role) {
			config.Approval.Role = role
		} else {
			t.fault("approval.role", fmt.Sprintf("is %q, but the operator asks for %q at least; name a higher role or none", role, o.Role))
		}
	}
	return config, t.faults
}

type tightener struct {
	file   *File
	faults []Fault
}

func (t *tightener) fault(field, reason string) {
	t.faults = append(t.faults, Fault{Line: t.file.lines[field], Field: field, Reason: reason})
}

// lower takes the file's value where it is set and not above the operator's.
func lower[N int | int64 | time.Duration](t *tightener, field string, operator, file N) N {
	switch {
	case file == 0:
		return operator
	case operator != 0 && file > operator:
		t.fault(field, "is above what the operator allows; lower it or leave it out")
		return operator
	}
	return file
}
