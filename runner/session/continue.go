package session

import (
	"context"
	"strings"

	"handoff/runner"
	"handoff/runner/store"
)

// earlier is how many of an issue's sessions are looked at for one to go on
// from.
const earlier = 20

// continuePullRequest goes on from the pull request that an earlier session of
// the issue opened, while it is open and its branch is where we left it.
func (h *hold) continuePullRequest(ctx context.Context) (bool, error) {
	past, err := h.Store.Sessions(ctx, store.SessionFilter{RepositoryID: h.session.RepositoryID, Issue: h.session.Issue}, earlier)
	if err != nil {
		return false, err
	}
	for _, session := range past {
		branch, pushed := session.Variables[varBranch], session.Variables[varPushedCommit]
		if session.ID == h.session.ID || session.InstallationID != h.session.InstallationID || branch == "" || pushed == "" {
			continue
		}
		pull, found, err := h.host.FindPullRequestByHead(ctx, branch)
		if err != nil {
			return false, hostFault(err)
		}
		if !found || pull.State != "open" || pull.HeadSHA != pushed {
			return false, nil
		}
		if err := h.Cache.FetchCommit(ctx, h.base.remote, pushed); err != nil {
			return false, gitFault(err)
		}
		h.base.commit, h.base.branch = pushed, pull.Base
		h.base.target, h.base.pushed, h.base.pull = branch, pushed, session.Variables[varPullRequest]
		return true, nil
	}
	return false, nil
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
