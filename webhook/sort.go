package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"handoff/runner/store"
)

// A Received is one event as it came, by webhook or from GitHub's log.
type Received struct {
	// GUID and Event are the X-GitHub-Delivery and X-GitHub-Event headers.
	GUID   string
	Event  string
	HookID int64
	Body   []byte
	// Source is "webhook" or "sweeper".
	Source string
	At     time.Time
}

// A Verdict says what became of an event.
type Verdict string

// The verdicts. An event that is not stored leaves no trace.
const (
	// VerdictStored: the delivery and its command are stored.
	VerdictStored Verdict = "stored"
	// VerdictDuplicate: it was stored before.
	VerdictDuplicate Verdict = "duplicate"
	// VerdictEvent: the event or action is not on the list.
	VerdictEvent Verdict = "ignored_event"
	// VerdictBot: a bot did it, or our own App.
	VerdictBot Verdict = "ignored_bot"
	// VerdictNoCommand: the comment is no command.
	VerdictNoCommand Verdict = "ignored_no_command"
	// VerdictForeign: it concerns another App, or no installation of ours.
	VerdictForeign Verdict = "ignored_foreign"
	// VerdictMalformed: the body is not a payload of its event, and never will
	// be.
	VerdictMalformed Verdict = "malformed"
)

// errPayload says that a body is not the event that its header names.
var errPayload = errors.New("the body is not a payload of this event")

// sorters holds the list of events and actions that matter. An action that is
// not here is ignored before its body is read as JSON twice.
var sorters = map[string]map[string]func(sorting) (store.Command, Verdict){
	"issue_comment": {
		"created": sorting.comment,
		"edited":  sorting.commentChanged,
		"deleted": sorting.commentChanged,
	},
	"pull_request_review_comment": {"created": sorting.reviewComment},
	"check_run":                   {"requested_action": sorting.checkAction},
	"issues": {
		"transferred": sorting.issueNotice,
		"deleted":     sorting.issueNotice,
		"locked":      sorting.issueNotice,
		"closed":      sorting.issueNotice,
	},
	"pull_request": {"closed": sorting.pullRequestNotice},
	"repository": {
		"renamed":     sorting.notice,
		"archived":    sorting.notice,
		"transferred": sorting.notice,
		"deleted":     sorting.notice,
		"privatized":  sorting.notice,
	},
	"installation": {
		"deleted":   sorting.notice,
		"suspend":   sorting.notice,
		"unsuspend": sorting.notice,
	},
	"installation_repositories": {"removed": sorting.removedNotice},
}

// Matters says whether an event with this action can become a command.
func Matters(event, action string) bool { return sorters[event][action] != nil }

// sorting is an event on its way to a command.
type sorting struct {
	appID    int64
	received Received
	payload  payload
}

// sort decides what an event becomes. It fails with errPayload when the body
// is not JSON of the right shape.
func sort(appID int64, received Received) (store.Delivery, store.Command, Verdict, error) {
	actions, known := sorters[received.Event]
	if !known {
		return store.Delivery{}, store.Command{}, VerdictEvent, nil
	}
	s := sorting{appID: appID, received: received}
	if err := json.Unmarshal(received.Body, &s.payload); err != nil {
		return store.Delivery{}, store.Command{}, "", fmt.Errorf("%w: %w", errPayload, err)
	}
	sorter := actions[s.payload.Action]
	switch {
	case sorter == nil:
		return store.Delivery{}, store.Command{}, VerdictEvent, nil
	case s.payload.Installation.ID <= 0:
		// A hook of a repository instead of the App's: nothing could be answered.
		return store.Delivery{}, store.Command{}, VerdictForeign, nil
	}
	command, verdict := sorter(s)
	if verdict != VerdictStored {
		return store.Delivery{}, store.Command{}, verdict, nil
	}
	return s.delivery(), command, VerdictStored, nil
}

func (s sorting) delivery() store.Delivery {
	return store.Delivery{
		GUID: s.received.GUID, Event: s.received.Event, Action: s.payload.Action, HookID: s.received.HookID,
		InstallationID: int64(s.payload.Installation.ID), RepositoryID: int64(s.payload.Repository.ID),
		Body: s.received.Body, ReceivedAt: s.received.At, Source: s.received.Source,
	}
}

// command fills in what all commands share.
func (s sorting) command(kind store.CommandKind, key string, detail any) store.Command {
	// The details are plain structs, which always encode.
	encoded, _ := json.Marshal(detail)
	return store.Command{
		Key: key, Kind: kind, DeliveryGUID: s.received.GUID,
		InstallationID: int64(s.payload.Installation.ID), RepositoryID: int64(s.payload.Repository.ID),
		Owner: s.payload.Repository.Owner.Login, Repository: s.payload.Repository.Name,
		ActorID: int64(s.payload.Sender.ID), ActorLogin: s.payload.Sender.Login,
		Detail: encoded,
	}
}

// isPerson says whether a person did it, and not a bot, an App or nobody.
func (a account) isPerson() bool { return a.Type == "User" && a.ID > 0 }

// comment sorts a new comment on an issue or in a pull request's conversation.
func (s sorting) comment() (store.Command, Verdict) {
	p := s.payload
	detail := store.CommentDetail{
		IssueTitle: p.Issue.Title, IssueBody: p.Issue.Body, IssueState: p.Issue.State, IssueLocked: p.Issue.Locked,
		IssueAuthorID: int64(p.Issue.User.ID), IsPullRequest: p.Issue.PullRequest != nil,
	}
	return s.invocation("issue", int64(p.Issue.Number), detail)
}

// reviewComment sorts a new comment on a line of a pull request.
func (s sorting) reviewComment() (store.Command, Verdict) {
	p := s.payload
	detail := store.CommentDetail{
		IssueTitle: p.PullRequest.Title, IssueBody: p.PullRequest.Body, IssueState: p.PullRequest.State, IssueLocked: p.PullRequest.Locked,
		IssueAuthorID: int64(p.PullRequest.User.ID), IsPullRequest: true,
		Path: p.Comment.Path, Line: int(p.Comment.Line), DiffHunk: p.Comment.DiffHunk,
	}
	return s.invocation("review", int64(p.PullRequest.Number), detail)
}

// invocation makes the command of a comment, if it is one: by a person, in the
// person's own name, with the command on its first line.
func (s sorting) invocation(kind string, issue int64, detail store.CommentDetail) (store.Command, Verdict) {
	p := s.payload
	invocation, ok := Parse(p.Comment.Body)
	switch {
	case !ok:
		return store.Command{}, VerdictNoCommand
	case !p.Sender.isPerson(), !p.Comment.User.isPerson(), p.Sender.ID != p.Comment.User.ID:
		return store.Command{}, VerdictBot
	case p.Comment.App != nil && int64(p.Comment.App.ID) == s.appID:
		return store.Command{}, VerdictBot
	case p.Repository.ID <= 0, issue <= 0, p.Comment.ID <= 0:
		return store.Command{}, VerdictForeign
	}
	words := Split(invocation.Text)
	detail.CommentURL, detail.CreatedAt, detail.UpdatedAt = p.Comment.HTMLURL, p.Comment.CreatedAt.Time, p.Comment.UpdatedAt.Time
	detail.Excerpts, detail.Hidden = words.Excerpts, words.Hidden
	detail.OwnerID, detail.Private = int64(p.Repository.Owner.ID), p.Repository.Private
	command := s.command(store.CommandComment, fmt.Sprintf("comment/%s/%d/%d/created", kind, p.Repository.ID, p.Comment.ID), detail)
	command.Issue, command.CommentID, command.CommentKind = int(issue), int64(p.Comment.ID), kind
	command.Verb, command.Text = invocation.Verb, words.Instruction
	return command, VerdictStored
}

// checkAction sorts a click on a button of one of our check runs.
func (s sorting) checkAction() (store.Command, Verdict) {
	p := s.payload
	switch {
	case int64(p.CheckRun.App.ID) != s.appID:
		return store.Command{}, VerdictForeign
	case !p.Sender.isPerson():
		return store.Command{}, VerdictBot
	case p.Repository.ID <= 0, p.CheckRun.ID <= 0:
		return store.Command{}, VerdictForeign
	}
	// A click has no id of its own; the same person may click again after the
	// first click was refused, so the delivery tells them apart.
	return s.command(store.CommandCheckAction, "check_action/"+s.received.GUID, store.CheckActionDetail{
		CheckRunID: int64(p.CheckRun.ID), Identifier: p.RequestedAction.Identifier, ExternalID: p.CheckRun.ExternalID,
		HeadSHA: p.CheckRun.HeadSHA, AppID: int64(p.CheckRun.App.ID),
	}), VerdictStored
}

// commentChanged sorts the edit or deletion of a bot's comment by somebody
// else: it may be one of our prompts. Which bot's is decided when it is routed,
// by the comment's id. Our own edits come as events too and mean nothing, and
// neither do people's: a command counts as it was first written.
func (s sorting) commentChanged() (store.Command, Verdict) {
	p := s.payload
	if p.Comment.User.isPerson() || p.Comment.ID <= 0 || p.Repository.ID <= 0 {
		return store.Command{}, VerdictNoCommand
	}
	if p.Sender.ID == p.Comment.User.ID {
		return store.Command{}, VerdictBot
	}
	command, verdict := s.withDetail(store.NoticeDetail{CommentAuthorID: int64(p.Comment.User.ID)})
	command.Issue, command.CommentID, command.CommentKind = int(p.Issue.Number), int64(p.Comment.ID), "issue"
	return command, verdict
}

func (s sorting) issueNotice() (store.Command, Verdict) {
	command, verdict := s.withDetail(store.NoticeDetail{})
	command.Issue = int(s.payload.Issue.Number)
	return command, verdict
}

func (s sorting) pullRequestNotice() (store.Command, Verdict) {
	p := s.payload.PullRequest
	command, verdict := s.withDetail(store.NoticeDetail{Head: p.Head.Ref, Merged: p.Merged})
	command.Issue = int(p.Number)
	return command, verdict
}

func (s sorting) removedNotice() (store.Command, Verdict) {
	var removed []int64
	for _, one := range s.payload.RepositoriesRemoved {
		removed = append(removed, int64(one.ID))
	}
	return s.withDetail(store.NoticeDetail{Repositories: removed})
}

func (s sorting) notice() (store.Command, Verdict) { return s.withDetail(store.NoticeDetail{}) }

// withDetail makes a notice. It has no verb and no text.
func (s sorting) withDetail(detail store.NoticeDetail) (store.Command, Verdict) {
	detail.Event, detail.Action = s.received.Event, s.payload.Action
	return s.command(store.CommandNotice, "notice/"+s.received.GUID, detail), VerdictStored
}
