package session

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"handoff/agents"
	"handoff/agents/tools"
	"handoff/gitops/git"
	"handoff/runner"
	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
	"handoff/sandbox"
)

// toolbox makes the session's tools on the bench.
func (h *hold) toolbox(ctx context.Context, b *bench) (*agents.Registry, error) {
	config := tools.Config{
		Tree:           tools.NewTree(b.workspace.Tree()),
		Guard:          &guard{workspace: b.workspace},
		TestCommand:    strings.Join(h.config.Test, " && "),
		CommandTimeout: h.config.Timeout,
		WhyNoCommands:  b.limits,
		Ignored:        (&listing{workspace: b.workspace}).ignored,
		Agents:         slices.Sorted(maps.Keys(h.crew)),
		History:        &past{hold: h},
		Publishing:     &tools.Publishing{Effects: h.pushEffects},
	}
	if b.box != nil {
		config.Commander = commander{hold: h, box: b.box, cache: b.cache}
	}
	toolbox, err := tools.New(config)
	if err != nil {
		return nil, err
	}
	records, err := h.lease.Load(ctx, 1)
	if err != nil {
		return nil, err
	}
	state, err := runner.Fold(records)
	if err != nil {
		return nil, err
	}
	toolbox.Restore(state.Items())
	return toolbox.Registry()
}

// A commander runs agents' commands in the session's sandbox.
type commander struct {
	*hold
	box   sandbox.Sandbox
	cache string
}

// Run implements [tools.Commander].
func (c commander) Run(ctx context.Context, command tools.Command) (tools.Completed, error) {
	result, err := c.box.Exec(ctx, sandbox.Command{
		Shell: command.Shell, Dir: command.Dir, Env: environment(c.box, c.cache),
		Limits: sandbox.Limits{Wall: command.Timeout},
	})
	if err != nil {
		return tools.Completed{}, err
	}
	return tools.Completed{
		ExitCode: result.ExitCode, Reason: string(result.Reason), Signal: result.Signal,
		Output: c.redact(c.box.Normalize(result.Output)), OmittedBytes: result.OmittedBytes,
		Duration: result.Duration, Blocked: result.Blocked,
	}, nil
}

// A guard keeps the commands of agents with a path scope within it.
type guard struct {
	workspace *git.Workspace
	before    git.Checkpoint
}

// Snapshot implements [tools.Guard].
func (g *guard) Snapshot(ctx context.Context) (err error) {
	g.before, err = g.workspace.Checkpoint(ctx, nil)
	return err
}

// RevertOutside implements [tools.Guard].
func (g *guard) RevertOutside(ctx context.Context, inScope func(path string) bool) ([]string, error) {
	return g.workspace.RevertOutside(ctx, g.before, inScope)
}

// pushEffects returns what the outbox does for an approved push: the push
// itself and, after it, the pull request, with the words that were approved.
func (h *hold) pushEffects(ctx context.Context, call agents.Call, _ tools.PushArgs) ([]agents.EffectRequest, error) {
	row, err := h.Store.Approval(ctx, call.Approval)
	if err != nil {
		return nil, fmt.Errorf("the approval of the push: %w", err)
	}
	s, err := h.loadSeal(ctx, row)
	if err != nil {
		return nil, err
	}
	key := "session:" + h.session.ID + ":" + row.ID
	push, err := json.Marshal(outbox.Push{ApprovalID: row.ID, BranchOnly: h.BranchOnly})
	if err != nil {
		return nil, err
	}
	effects := []agents.EffectRequest{{Key: key + ":push", Kind: outbox.KindPush, Payload: push}}
	if h.BranchOnly {
		return effects, nil
	}
	body, err := h.pullBody(row, s)
	if err != nil {
		return nil, err
	}
	pull, err := json.Marshal(outbox.PullRequest{
		ApprovalID: row.ID, Title: row.Title, Body: body, Base: s.BaseBranch,
		Head: strings.TrimPrefix(s.Ref, "refs/heads/"), Commit: s.Sealed.Commit,
	})
	if err != nil {
		return nil, err
	}
	return append(effects, agents.EffectRequest{
		Key: key + ":pull", Kind: outbox.KindPullRequest, Payload: pull, After: key + ":push",
	}), nil
}

// pullBody is the text of the pull request: the crew's words, disarmed, and
// what the host has to say.
func (h *hold) pullBody(row store.Approval, s seal) (string, error) {
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, "pull.txt", map[string]any{
		"Body": report.Neutral(row.Body, 50_000), "Issue": row.Issue, "Requester": h.session.RequesterLogin,
		"Approver": row.DecidedBy, "Commit": s.Sealed.Commit, "Tree": s.Sealed.Tree, "Verified": s.Verified, "SessionURL": h.sessionURL(),
	})
	return b.String(), err
}
