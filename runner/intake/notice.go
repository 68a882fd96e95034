package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"handoff/runner/store"
)

// sessionsPerNotice bounds how many sessions one notice looks at; the rest
// find out by themselves, when their next request is refused.
const sessionsPerNotice = 500

// notice routes something that happened to what sessions stand on. Nobody is
// answered.
func (r *Router) notice(ctx context.Context, command store.Command) (store.Routing, error) {
	routed := store.Routing{State: store.CommandRouted, Outcome: outcomeNoticed}
	var detail store.NoticeDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		return refused("the notice's details cannot be read"), nil
	}
	var err error
	switch detail.Event {
	case "issue_comment":
		reason := fmt.Sprintf("the prompt was %s by %s", detail.Action, command.ActorLogin)
		err = r.decisions.VoidPrompt(ctx, command.RepositoryID, command.CommentID, reason)
	case "issues":
		err = r.endIssue(ctx, command, detail.Action)
	case "pull_request":
		err = r.pullRequestClosed(ctx, command, detail)
	case "repository":
		err = r.repositoryChanged(ctx, command, detail.Action)
	case "installation":
		err = r.installationChanged(ctx, command, detail.Action)
	case "installation_repositories":
		for _, repository := range detail.Repositories {
			if err = r.endAll(ctx, store.SessionFilter{RepositoryID: repository, Live: true}, "the App lost access to the repository"); err != nil {
				break
			}
		}
	}
	return routed, err
}

// endIssue ends the sessions of an issue that was closed, locked, deleted or
// moved: there is nobody to talk to there any more.
func (r *Router) endIssue(ctx context.Context, command store.Command, action string) error {
	reason := fmt.Sprintf("%s (the issue was %s)", command.ActorLogin, action)
	return r.endAll(ctx, store.SessionFilter{RepositoryID: command.RepositoryID, Issue: command.Issue, Live: true}, reason)
}

// pullRequestClosed voids what waits for approval to be pushed to a pull
// request that was closed or merged. The session goes on and asks again, for a
// new branch.
func (r *Router) pullRequestClosed(ctx context.Context, command store.Command, detail store.NoticeDetail) error {
	lane := laneOf(detail.Head, 0, true)
	if lane == 0 {
		return nil
	}
	active, err := r.store.ActiveSession(ctx, command.RepositoryID, lane)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = r.store.SupersedeApprovals(ctx, active.ID, fmt.Sprintf("pull request #%d was closed", command.Issue))
	return err
}

func (r *Router) repositoryChanged(ctx context.Context, command store.Command, action string) error {
	r.forget(command.InstallationID)
	switch action {
	case "archived", "deleted", "transferred":
		return r.endAll(ctx, store.SessionFilter{RepositoryID: command.RepositoryID, Live: true}, "the repository was "+action)
	}
	// A rename changes nothing: everything goes by the repository's id.
	return nil
}

func (r *Router) installationChanged(ctx context.Context, command store.Command, action string) error {
	r.forget(command.InstallationID)
	switch action {
	case "deleted":
		return r.endAll(ctx, store.SessionFilter{InstallationID: command.InstallationID, Live: true}, "the App was uninstalled")
	case "suspend":
		return r.endAll(ctx, store.SessionFilter{InstallationID: command.InstallationID, Live: true}, "the App was suspended")
	}
	return nil
}

// endAll voids the open approvals of sessions and asks the sessions to end;
// they keep their work.
func (r *Router) endAll(ctx context.Context, filter store.SessionFilter, reason string) error {
	sessions, err := r.store.Sessions(ctx, filter, sessionsPerNotice)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if _, err := r.store.SupersedeApprovals(ctx, session.ID, reason); err != nil {
			return err
		}
		if _, err := r.store.Cancel(ctx, session.ID, reason); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
