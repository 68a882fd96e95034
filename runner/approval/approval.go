// Package approval asks maintainers and takes their answer. Nothing leaves the
// sandbox for a repository without a row that this package made, and that one
// person with the right to do so has approved.
//
// What is asked is an [Action]: the exact sealed commit, where it goes, the
// words of the pull request, and a random nonce. Its SHA-256 is the digest, and
// everything that a maintainer sees or types names the digest. [Question] turns
// an action into the three things that one transaction records: the approval's
// row, the prompt (a new comment, never edited while it waits) and the check
// run with its buttons.
//
// There are three ways to answer and one row that takes the answer:
//
//   - a comment, /copilot approve <digest>: [Service.DecideByComment];
//   - a button of the check run: [Service.DecideByCheckRun];
//   - a reaction to the prompt, which GitHub tells nobody about, so that
//     [Poller] reads the reactions, often at first and seldom later.
//
// Each way ends in the same checks: the person is a person, has the role now,
// as GitHub's API says, and is another than the requester where the rules want
// that; the prompt is still what the bot wrote. Then one conditional update
// decides. An error of GitHub's API never means yes.
//
// A prompt that was touched is void: its approval becomes superseded, and the
// session, which is woken by every decision, asks again with a new digest.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"handoff/gitops/github"
	"handoff/runner/outbox"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// Store is what this package needs of the database; *store.Store implements it.
type Store interface {
	Approval(ctx context.Context, id string) (store.Approval, error)
	ApprovalByDigestPrefix(ctx context.Context, repositoryID int64, issue int, prefix string) (store.Approval, error)
	ApprovalByPrompt(ctx context.Context, repositoryID, commentID int64) (store.Approval, error)
	Decide(ctx context.Context, id string, decision store.Decision) (store.Approval, error)
	DuePolls(ctx context.Context, node *store.Node, limit int) ([]store.Approval, error)
	SetPolls(ctx context.Context, polls []store.Poll) error
	ExpireApprovals(ctx context.Context, limit int) ([]store.Approval, error)
	Notify(topics ...store.Topic) (changed <-chan struct{}, stop func())
	// Now is the database's time, by which approvals expire and polls are due.
	Now() time.Time
}

// Repository is what this package needs of GitHub; *github.Client implements it.
type Repository interface {
	Permission(ctx context.Context, userID int64, login string) (github.Permission, error)
	GetComment(ctx context.Context, id int64) (github.Comment, error)
	ListReactions(ctx context.Context, comment int64, etag string) (github.Reactions, error)
}

// A Service takes decisions. It is safe for concurrent use.
type Service struct {
	store      Store
	repository func(installation, repository int64) Repository
	log        *slog.Logger
}

// NewService returns a service; repository gives access to GitHub.
func NewService(database Store, repository func(installation, repository int64) Repository, log *slog.Logger) *Service {
	return &Service{store: database, repository: repository, log: log}
}

// A Verdict is yes or no.
type Verdict bool

// The verdicts.
const (
	Approve Verdict = true
	Reject  Verdict = false
)

// An Answer is how somebody answered a question.
type Answer struct {
	Verdict Verdict
	// By and ByID are who answered; the id decides who that is.
	By   string
	ByID int64
	// Via is comment, reaction or check_run.
	Via    string
	Reason string
}

// A Refused is an answer that does not count. It is no fault of the program's:
// its text is one sentence for the person who answered.
type Refused struct{ Reason string }

// Error returns the sentence.
func (r *Refused) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// DecideByComment takes /copilot approve or reject with a digest. A *[Refused]
// is to be told to the person; store.ErrTooEarly and any other error mean that
// the same answer may be taken later.
func (s *Service) DecideByComment(ctx context.Context, repositoryID int64, issue int, digest string, answer Answer) (store.Approval, error) {
	prefix, ok := ParsePrefix(digest)
	if !ok {
		return store.Approval{}, refuse("Name the digest of the request, at least its first eight digits, as its prompt shows it.")
	}
	approval, err := s.store.ApprovalByDigestPrefix(ctx, repositoryID, issue, prefix)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return approval, refuse("No request on this issue has the digest %s. Look at the newest prompt.", Short(prefix))
	case errors.Is(err, store.ErrAmbiguous):
		return approval, refuse("More than one request starts with %s. Type more of the digest.", prefix)
	case err != nil:
		return approval, err
	}
	answer.Via = "comment"
	return s.decide(ctx, approval, answer)
}

// A Click is a press on a button of a check run, as GitHub reports it.
type Click struct {
	ApprovalID string
	CheckRunID int64
	HeadSHA    string
	Identifier string
}

// The identifiers of the check run's buttons.
const (
	ActionApprove = "approve"
	ActionReject  = "reject"
)

// DecideByCheckRun takes a click on a button. Clicks on a check run that is not
// the approval's own are refused.
func (s *Service) DecideByCheckRun(ctx context.Context, repositoryID int64, click Click, answer Answer) (store.Approval, error) {
	approval, err := s.store.Approval(ctx, click.ApprovalID)
	if errors.Is(err, store.ErrNotFound) {
		return approval, refuse("This check run does not belong to a request that is known here.")
	}
	if err != nil {
		return approval, err
	}
	if approval.RepositoryID == repositoryID && approval.CheckRunID == 0 {
		// The check run is there, but that it is ours is not recorded yet.
		return approval, store.ErrTooEarly
	}
	if approval.RepositoryID != repositoryID || approval.CheckRunID != click.CheckRunID {
		return approval, refuse("This button belongs to another request; use the newest prompt.")
	}
	switch click.Identifier {
	case ActionApprove:
		answer.Verdict = Approve
	case ActionReject:
		answer.Verdict = Reject
	default:
		return approval, refuse("The button %q is not one of this request's.", click.Identifier)
	}
	answer.Via = "check_run"
	return s.decide(ctx, approval, answer)
}

// VoidPrompt supersedes the approval whose prompt somebody edited or deleted,
// if there is one that waits.
func (s *Service) VoidPrompt(ctx context.Context, repositoryID, commentID int64, reason string) error {
	approval, err := s.store.ApprovalByPrompt(ctx, repositoryID, commentID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.void(ctx, approval, reason)
}

func (s *Service) void(ctx context.Context, approval store.Approval, reason string) error {
	_, err := s.store.Decide(ctx, approval.ID, store.Decision{State: store.ApprovalSuperseded, By: "host", Via: "host", Reason: reason})
	if errors.Is(err, store.ErrAlreadyDecided) {
		return nil
	}
	return err
}

// decide makes the checks that every way to answer ends in, and decides.
func (s *Service) decide(ctx context.Context, approval store.Approval, answer Answer) (store.Approval, error) {
	if err := s.mayDecide(ctx, approval, answer); err != nil {
		return approval, err
	}
	if answer.Verdict == Approve {
		if err := s.checkPrompt(ctx, approval); err != nil {
			return approval, err
		}
	}
	state := store.ApprovalRejected
	if answer.Verdict == Approve {
		state = store.ApprovalApproved
	}
	decided, err := s.store.Decide(ctx, approval.ID, store.Decision{
		State: state, By: answer.By, ByID: answer.ByID, Via: answer.Via, Reason: answer.Reason,
	})
	switch {
	case errors.Is(err, store.ErrAlreadyDecided):
		return decided, refuse("This request is %s already; nothing has changed.", decided.State)
	case errors.Is(err, store.ErrApprovalExpired):
		return decided, refuse("This request has expired. Comment `/copilot renew` to be asked again.")
	case err != nil:
		return decided, err
	}
	s.log.Info("a request was decided", "approval", approval.ID, "session", approval.SessionID,
		"state", decided.State, "by", answer.By, "via", answer.Via)
	return decided, nil
}

// mayDecide says whether the person may answer, by GitHub's word of this moment.
func (s *Service) mayDecide(ctx context.Context, approval store.Approval, answer Answer) error {
	action, err := ActionOf(approval)
	if err != nil {
		return err
	}
	if action.RequireOther && answer.ByID == approval.RequesterID && answer.Verdict == Approve {
		return refuse("The rules of this repository ask for somebody else than %s to approve.", approval.RequesterLogin)
	}
	return CheckRole(ctx, s.repository(approval.InstallationID, approval.RepositoryID), answer.ByID, answer.By, repoconfig.Role(action.RoleNeeded))
}

// CheckRole returns nil if the person is one and has at least the role now, a
// *[Refused] if not, and another error if GitHub cannot tell.
func CheckRole(ctx context.Context, repository Repository, id int64, login string, needed repoconfig.Role) error {
	if !needed.AtLeast(repoconfig.RoleWrite) {
		// No rule asks for less; a row that does was not written by us.
		return refuse("Nobody may decide here: the role %q is none that can be asked for.", needed)
	}
	permission, err := repository.Permission(ctx, id, login)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeConflict:
		return refuse("%s may not decide here: the role %s is needed.", login, needed)
	case err != nil:
		return err
	}
	if permission.User.Type != "User" {
		return refuse("%s is not a person, and only people may decide.", login)
	}
	if permission.User.ID != id || !(repoconfig.Role(permission.Role).AtLeast(needed) || repoconfig.Role(permission.Base).AtLeast(needed)) {
		return refuse("%s may not decide here: the role %s is needed.", login, needed)
	}
	return nil
}

// checkPrompt voids an approval whose prompt is not what the bot wrote.
func (s *Service) checkPrompt(ctx context.Context, approval store.Approval) error {
	if approval.PromptCommentID == 0 {
		return store.ErrTooEarly
	}
	comment, err := s.repository(approval.InstallationID, approval.RepositoryID).GetComment(ctx, approval.PromptCommentID)
	reason := ""
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeGone:
		reason = "the prompt was deleted"
	case err != nil:
		return err
	case outbox.BodyHash(comment.Body) != approval.PromptBodyHash || comment.UpdatedAt.After(comment.CreatedAt):
		reason = "the prompt was edited"
	default:
		return nil
	}
	if err := s.void(ctx, approval, reason); err != nil {
		return err
	}
	return refuse("This request is void because %s; a new prompt follows.", reason)
}

// ActionOf decodes what an approval is about from its row, and makes sure that
// the row and its digest belong together.
func ActionOf(approval store.Approval) (Action, error) {
	var action Action
	if err := json.Unmarshal(approval.Record, &action); err != nil {
		return action, fmt.Errorf("the record of approval %s cannot be read: %w", approval.ID, err)
	}
	if digest, _ := action.Digest(); digest != approval.Digest {
		return action, fmt.Errorf("the record of approval %s does not fit its digest", approval.ID)
	}
	return action, nil
}
