package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner/outbox"
)

// A localSource is a repository of this machine as a session sees it: one
// commit to start from, and a new branch at the end. It implements
// session.Source and session.Deliver.
type localSource struct {
	local *git.Local
	// base is the commit that the crew starts from.
	base string
}

// Fetch returns the base, whatever the branch has become meanwhile.
func (s localSource) Fetch(ctx context.Context, remote git.Remote, _ string) (string, error) {
	return s.base, s.FetchCommit(ctx, remote, s.base)
}

// FetchCommit makes sure that the commit is still there.
func (s localSource) FetchCommit(ctx context.Context, _ git.Remote, commit string) error {
	_, err := s.local.Commit(ctx, commit)
	return err
}

// FetchHistory makes sure that the commit is there; its history is where it is.
func (s localSource) FetchHistory(ctx context.Context, remote git.Remote, commit string, _ int) error {
	return s.FetchCommit(ctx, remote, commit)
}

// Tags are the names of the tags that stand for a commit.
func (s localSource) Tags(ctx context.Context, _ git.Remote, commit string) ([]string, error) {
	return s.local.Tags(ctx, commit)
}

// Repository returns the repository, of which a session only reads.
func (s localSource) Repository(git.Remote) (*git.Repository, error) { return s.local.Repository, nil }

// deliver makes the branch of an approved commit. A branch that is there is
// never moved, not even one that this session made: somebody may have checked
// it out.
func (s localSource) deliver(ctx context.Context, workspace *git.Workspace, _ git.Remote, request git.PushRequest, sealed git.Sealed) (git.PushResult, error) {
	if request.Old != "" {
		return git.PushResult{}, &outbox.Refusal{Reason: "the branch of this session was made already, and a local branch is never moved; finish here"}
	}
	if err := s.local.CreateBranch(ctx, workspace, sealed, request.Ref); err != nil {
		return git.PushResult{}, &outbox.Refusal{Reason: err.Error(), Err: err}
	}
	return git.PushResult{}, nil
}

// A desk stands in GitHub's place when the crew works for the person at this
// terminal. That person may do everything. What would be comments and check
// runs is taken and forgotten, because the terminal shows the same things
// live. It implements session.Repository, session.Tokens and
// outbox.Repository, and is safe for concurrent use.
type desk struct {
	repository github.Repository
	person     github.User
	path       string
	papers     atomic.Int64
}

// Repository describes the repository as GitHub would.
func (d *desk) Repository(context.Context) (github.Repository, error) { return d.repository, nil }

// GitURL returns where the repository is.
func (d *desk) GitURL(context.Context) (string, error) { return d.path, nil }

// Permission says that the person at the terminal owns the repository, and
// knows nobody else.
func (d *desk) Permission(_ context.Context, userID int64, login string) (github.Permission, error) {
	if userID != d.person.ID {
		return github.Permission{}, &github.Error{Code: github.CodeNotFound, Message: fmt.Sprintf("%s is not the person at this terminal.", login)}
	}
	return github.Permission{User: d.person, Role: "admin", Base: "admin"}, nil
}

// Issue is always open: the task was given at this terminal.
func (d *desk) Issue(_ context.Context, number int) (github.Issue, error) {
	return github.Issue{Number: number, State: "open"}, nil
}

// Contains says that the history is as it was: the base is a commit of this
// repository, and the branch that it came from may be any.
func (d *desk) Contains(context.Context, string, string) (bool, error) { return true, nil }

// ListReactions lists none: the person at the terminal says yes or no.
func (d *desk) ListReactions(context.Context, int64, string) (github.Reactions, error) {
	return github.Reactions{}, nil
}

// FindPullRequestByHead finds none: there are no pull requests here.
func (d *desk) FindPullRequestByHead(context.Context, string) (github.PullRequest, bool, error) {
	return github.PullRequest{}, false, nil
}

// Token returns none: nothing leaves this machine.
func (d *desk) Token(context.Context, bool) (github.Token, error) { return github.Token{}, nil }

// DropToken has nothing to drop.
func (d *desk) DropToken(github.Token) {}

// Bot is who writes the papers on the desk.
func (d *desk) Bot(context.Context) (github.User, error) {
	return github.User{ID: localBot, Login: "handoff", Type: "Bot"}, nil
}

// CreateComment takes a comment and gives it a number.
func (d *desk) CreateComment(_ context.Context, _ int, body string) (github.Comment, error) {
	return d.EditComment(context.Background(), d.papers.Add(1), body)
}

// EditComment takes the new text.
func (d *desk) EditComment(_ context.Context, id int64, body string) (github.Comment, error) {
	now := time.Now()
	return github.Comment{ID: id, Body: body, CreatedAt: now, UpdatedAt: now}, nil
}

// ListComments lists none: what was taken is forgotten, so a comment that an
// interrupted run wrote is written again, for nobody.
func (d *desk) ListComments(context.Context, int, time.Time) ([]github.Comment, error) {
	return nil, nil
}

// CreateReaction takes a reaction.
func (d *desk) CreateReaction(_ context.Context, _ int64, content string) (github.Reaction, error) {
	return github.Reaction{ID: d.papers.Add(1), Content: content}, nil
}

// CreateReviewReaction fails: there are no reviews here.
func (d *desk) CreateReviewReaction(context.Context, int64, string) (github.Reaction, error) {
	return github.Reaction{}, errors.ErrUnsupported
}

// CreateCheckRun takes a check run and gives it a number.
func (d *desk) CreateCheckRun(_ context.Context, request github.CheckRunRequest) (github.CheckRun, error) {
	return d.UpdateCheckRun(context.Background(), d.papers.Add(1), request)
}

// UpdateCheckRun takes the new state.
func (d *desk) UpdateCheckRun(_ context.Context, id int64, request github.CheckRunRequest) (github.CheckRun, error) {
	return github.CheckRun{ID: id, Name: request.Name, ExternalID: request.ExternalID, HeadSHA: request.HeadSHA}, nil
}

// ListCheckRunsForRef lists none, as ListComments does.
func (d *desk) ListCheckRunsForRef(context.Context, string) ([]github.CheckRun, error) {
	return nil, nil
}

// CreatePullRequest fails: an approved commit ends as a branch.
func (d *desk) CreatePullRequest(context.Context, github.PullRequestRequest) (github.PullRequest, error) {
	return github.PullRequest{}, errors.ErrUnsupported
}

// UpdatePullRequest fails for the same reason.
func (d *desk) UpdatePullRequest(context.Context, int, github.PullRequestRequest) (github.PullRequest, error) {
	return github.PullRequest{}, errors.ErrUnsupported
}
