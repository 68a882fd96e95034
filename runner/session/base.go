package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"handoff/agents"
	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner/intake"
	"handoff/runner/outbox"
	"handoff/runner/repoconfig"
)

// The session variables that name what a session started from.
const (
	VariableBaseBranch = "base_branch"
	VariableBaseCommit = "base_commit"
)

// The session variables that the conductor sets and relies on.
const (
	varRepository   = "repository"
	varIssue        = "issue"
	varIssueTitle   = "issue_title"
	varBaseBranch   = VariableBaseBranch
	varBaseCommit   = VariableBaseCommit
	varRulesCommit  = "rules_commit"
	varBaseTags     = "base_tags"
	varSetupCommand = "setup_command"
	varTestCommand  = "test_command"
	varBranch       = outbox.VariableBranch
	varPushedCommit = outbox.VariablePushedCommit
	varPullRequest  = outbox.VariablePullRequest
	// varRetryOf is set by package intake to the session that this one goes on
	// from.
	varRetryOf = intake.VariableRetryOf
)

// A base is what a session works on; it is found once and then pinned.
type base struct {
	repository *git.Repository
	remote     git.Remote
	// branch is the default branch, commit what the workspace was checked out
	// from.
	branch string
	commit string
	// rules is the commit of the default branch that configuration and
	// instructions are read from: never a pull request's head.
	rules string
	// fetched says that rules is the tip of the branch as it is now.
	fetched bool
	// tags are the tags of commit, where commands see a made-up .git.
	tags []string
	// target is the branch of an earlier session of the issue that this one
	// continues, pushed the commit that it is at; both "" for a new branch.
	target string
	pushed string
	pull   string
}

// findBase fetches the commit that the session works on: the pinned one, or
// the tip of the default branch the first time.
func (h *hold) findBase(ctx context.Context) error {
	repository, err := h.host.Repository(ctx)
	if err != nil {
		return hostFault(err)
	}
	if repository.Archived || repository.Disabled {
		return &fault{code: "ARCHIVED", message: "The repository is archived, so nothing can be pushed to it.", next: "Unarchive it and comment `/copilot retry`."}
	}
	address, err := h.host.GitURL(ctx)
	if err != nil {
		return hostFault(err)
	}
	h.base.remote = git.Remote{
		Host: h.Host, InstallationID: h.session.InstallationID, RepositoryID: h.session.RepositoryID, URL: address,
		Auth: tokenFrom(h.host, false),
	}
	variables := h.session.Variables
	h.base.branch = repository.DefaultBranch
	h.base.target, h.base.pushed, h.base.pull = variables[varBranch], variables[varPushedCommit], variables[varPullRequest]
	if pinned := variables[varBaseCommit]; pinned != "" {
		h.base.commit, h.base.branch, h.base.rules = pinned, variables[varBaseBranch], variables[varRulesCommit]
		for _, commit := range []string{h.base.rules, pinned} {
			if err := h.Cache.FetchCommit(ctx, h.base.remote, commit); err != nil {
				return gitFault(err)
			}
		}
	} else if err := h.fetchFirst(ctx); err != nil {
		return err
	}
	h.base.repository, err = h.Cache.Repository(h.base.remote)
	return gitFault(err)
}

// fetchFirst chooses the commit to start from: where the session began that
// this one retries, the head of the issue's open pull request if an earlier
// session left one, otherwise the tip of the default branch.
func (h *hold) fetchFirst(ctx context.Context) (err error) {
	if h.base.rules, err = h.Cache.Fetch(ctx, h.base.remote, h.base.branch); err != nil {
		return gitFault(err)
	}
	h.base.fetched = true
	for _, choose := range []func(context.Context) (bool, error){h.continueSession, h.continuePullRequest} {
		if chosen, err := choose(ctx); err != nil || chosen {
			return err
		}
	}
	h.base.commit = h.base.rules
	return nil
}

// tokenFrom returns the function with which the git layer asks for a token. A
// token that was refused is dropped, so that the second question is answered
// with a new one.
func tokenFrom(tokens Tokens, write bool) func(context.Context) (string, error) {
	var last github.Token
	return func(ctx context.Context) (string, error) {
		if last.Value != "" {
			tokens.DropToken(last)
		}
		token, err := tokens.Token(ctx, write)
		last = token
		return token.Value, err
	}
}

// loadConfig reads the repository's rules from its default branch, and what they
// ask for.
func (h *hold) loadConfig(ctx context.Context) error {
	content, err := h.base.repository.ReadFile(ctx, h.base.rules, repoconfig.Path, 1<<20)
	var file *repoconfig.File
	switch {
	case git.CodeOf(err) == git.CodeNotFound:
	case err != nil:
		return gitFault(err)
	default:
		parsed, faults := repoconfig.Parse(content)
		if len(faults) > 0 {
			return configFault(faults)
		}
		file = parsed
	}
	config, wishes := h.Operator.Resolve(file)
	for _, wish := range wishes {
		h.notices = append(h.notices, repoconfig.Path+", "+wish.String())
	}
	h.config = config
	return h.findTags(ctx)
}

func configFault(faults []repoconfig.Fault) *fault {
	lines := make([]string, len(faults))
	for i, one := range faults {
		lines[i] = "- " + one.String()
	}
	return &fault{
		code:    "CONFIG",
		message: fmt.Sprintf("%s has faults, so the crew did not start:\n\n%s", repoconfig.Path, strings.Join(lines, "\n")),
		next:    "Correct the file on the default branch and comment `/copilot retry`.",
	}
}

// noCommand is what instructions read where a repository names no command.
const noCommand = "(none configured)"

// variables are what instructions can refer to.
func (h *hold) variables() agents.Variables {
	return agents.Variables{
		varRepository:   h.session.Owner + "/" + h.session.Repository,
		varIssue:        fmt.Sprint(h.session.Issue),
		varIssueTitle:   h.session.IssueTitle,
		varBaseBranch:   h.base.branch,
		varBaseCommit:   h.base.commit,
		varRulesCommit:  h.base.rules,
		varBaseTags:     strings.Join(h.base.tags, " "),
		varSetupCommand: cmp.Or(strings.Join(h.config.Setup, " && "), noCommand),
		varTestCommand:  cmp.Or(strings.Join(h.config.Test, " && "), noCommand),
		varBranch:       h.base.target,
		varPushedCommit: h.base.pushed,
		varPullRequest:  h.base.pull,
	}
}

// hostFault ends a session for what GitHub says, where time will not mend it.
func hostFault(err error) error {
	switch github.CodeOf(err) {
	case "":
		return err
	case github.CodeNotFound, github.CodeGone, github.CodeForbidden, github.CodeNotInstalled, github.CodeValidation:
		return &fault{code: "GITHUB", message: err.Error(), next: "Check that the App is installed on this repository with the permissions of its settings page.", err: err}
	}
	return err
}

// gitFault ends a session for what the repository is like.
func gitFault(err error) error {
	code := git.CodeOf(err)
	next := ""
	switch code {
	case git.CodeEmpty:
		next = "Push a first commit and comment `/copilot retry`."
	case git.CodeTooLarge:
		next = "Ask the operator to raise the limit."
	case git.CodeRefused, git.CodeInvalid:
		next = "Rename what is named here and comment `/copilot retry`."
	case git.CodeNotFound, git.CodeRedirect:
		next = "If the branch was rewritten, start anew with a `/copilot` comment."
	default:
		return err
	}
	return &fault{code: "GIT_" + strings.ToUpper(string(code)), message: sentence(err), next: next, err: err}
}
