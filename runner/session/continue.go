package session

import (
	"context"
	"strings"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

// earlier is how many of an issue's sessions are looked at for one to go on
// from.
const earlier = 20

// continueSession goes on from where the session began that this one retries,
// so that its work still fits.
func (h *hold) continueSession(ctx context.Context) (bool, error) {
	from := h.session.Variables[varRetryOf]
	if from == "" {
		return false, nil
	}
	past, err := h.Store.Session(ctx, from)
	if err != nil {
		return false, err
	}
	commit := past.Variables[varBaseCommit]
	if commit == "" || past.RepositoryID != h.session.RepositoryID || past.InstallationID != h.session.InstallationID {
		return false, nil // it ended before it began
	}
	switch err := h.Cache.FetchCommit(ctx, h.base.remote, commit); {
	case git.CodeOf(err) == git.CodeNotFound:
		return false, nil // the branch was rewritten; its patch is still there
	case err != nil:
		return false, gitFault(err)
	}
	h.base.commit, h.base.branch = commit, past.Variables[varBaseBranch]
	if _, open, err := h.openPull(ctx, past); err != nil || !open {
		return true, err
	}
	h.onto(past)
	return true, nil
}

// continuePullRequest goes on from the pull request that an earlier session of
// the issue opened, while it is open and its branch is where we left it.
func (h *hold) continuePullRequest(ctx context.Context) (bool, error) {
	past, err := h.Store.Sessions(ctx, store.SessionFilter{RepositoryID: h.session.RepositoryID, Issue: h.session.Issue}, earlier)
	if err != nil {
		return false, err
	}
	for _, session := range past {
		if session.ID == h.session.ID || session.InstallationID != h.session.InstallationID || session.Variables[varPushedCommit] == "" {
			continue
		}
		pull, open, err := h.openPull(ctx, session)
		if err != nil || !open {
			return false, err
		}
		if err := h.Cache.FetchCommit(ctx, h.base.remote, pull.HeadSHA); err != nil {
			return false, gitFault(err)
		}
		h.base.commit, h.base.branch = pull.HeadSHA, pull.Base
		h.onto(session)
		return true, nil
	}
	return false, nil
}

// openPull returns the pull request of an earlier session if it is open and at
// the commit that was pushed last.
func (h *hold) openPull(ctx context.Context, past store.Session) (github.PullRequest, bool, error) {
	branch, pushed := past.Variables[varBranch], past.Variables[varPushedCommit]
	if branch == "" || pushed == "" {
		return github.PullRequest{}, false, nil
	}
	pull, found, err := h.host.FindPullRequestByHead(ctx, branch)
	if err != nil {
		return pull, false, hostFault(err)
	}
	return pull, found && pull.State == "open" && pull.HeadSHA == pushed, nil
}

// onto makes the session push to the branch of an earlier one.
func (h *hold) onto(past store.Session) {
	h.base.target, h.base.pushed = past.Variables[varBranch], past.Variables[varPushedCommit]
	h.base.pull = past.Variables[varPullRequest]
}

// inherited returns the work of the session that this one was started to
// retry, if its base is the same.
func (h *hold) inherited(ctx context.Context) (*runner.Checkpoint, error) {
	from := h.session.Variables[varRetryOf]
	if from == "" {
		return nil, nil
	}
	checkpoint, err := h.Store.Checkpoint(ctx, from)
	if err != nil || checkpoint == nil || checkpoint.Base != h.base.commit {
		return nil, err
	}
	return checkpoint, nil
}

// sentence returns an error's text without the code at its beginning.
func sentence(err error) string {
	text := err.Error()
	if code, rest, found := strings.Cut(text, ": "); found && !strings.Contains(code, " ") {
		return rest
	}
	return text
}
