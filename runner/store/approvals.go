package store

import (
	"cmp"
	"context"
	"strings"
	"time"
)

var (
	insertApproval     = named("insert_approval")
	approvalByID       = named("approval_by_id")
	approvalsOfSession = named("approvals_of_session")
	approvalByPrompt   = named("approval_by_prompt")
	approvalsByDigest  = named("approvals_by_digest")
	supersedeCall      = named("supersede_call")
	supersedeSession   = named("supersede_session")
	markPrompted       = named("mark_prompted")
	duePolls           = named("due_polls")
	setPoll            = named("set_poll")
)

// MinDigestPrefix is how many digits of a digest name an approval.
const MinDigestPrefix = 8

// pollClaim is how long an approval handed out by DuePolls is kept from others.
const pollClaim = 30 * time.Second

// putApproval asks for an approval of the session's, in place of an earlier one
// for the same call.
func (g *guarded) putApproval(ctx context.Context, a Approval) error {
	s := g.session
	if _, err := g.exec(ctx, supersedeCall, s.ID, a.CallKey); err != nil {
		return err
	}
	a.ID = cmp.Or(a.ID, NewID())
	g.tell(TopicApprovals)
	_, err := g.exec(ctx, insertApproval, a.ID, s.ID, s.InstallationID, s.RepositoryID, s.Owner, s.Repository, s.Issue,
		a.CallKey, a.Kind, strings.ToLower(a.Digest), a.Nonce, a.Record, a.Base, a.BaseRef, a.Commit, a.Tree, a.TargetRef,
		a.ExpectedRemote, a.Title, a.Body, a.ConfigHash, a.RoleNeeded, cmp.Or(a.RequesterID, s.RequesterID),
		cmp.Or(a.RequesterLogin, s.RequesterLogin), a.ExpiresAt)
	if err != nil {
		return err
	}
	g.audit(AuditEntry{InstallationID: s.InstallationID, RepositoryID: s.RepositoryID, SessionID: s.ID,
		Actor: "host", Action: "approval.requested", Subject: a.ID,
		Detail: detail("kind", a.Kind, "digest", a.Digest, "commit", a.Commit, "target", a.TargetRef)})
	return nil
}

// Approval returns the approval with that id, or [ErrNotFound].
func (s *Store) Approval(ctx context.Context, id string) (Approval, error) {
	return one(ctx, s.reader(), scanApproval, approvalByID, id)
}

// ApprovalByDigestPrefix returns the issue's approval whose digest begins so. A
// pending one wins over decided ones, of which the newest counts; two pending
// ones are [ErrAmbiguous]. A prefix shorter than [MinDigestPrefix] or of other
// than hexadecimal digits is [ErrNotFound].
func (s *Store) ApprovalByDigestPrefix(ctx context.Context, repositoryID int64, issue int, prefix string) (Approval, error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) < MinDigestPrefix || strings.Trim(prefix, "0123456789abcdef") != "" {
		return Approval{}, ErrNotFound
	}
	found, err := all(ctx, s.reader(), scanApproval, approvalsByDigest, repositoryID, issue, prefix)
	switch {
	case err != nil:
		return Approval{}, err
	case len(found) == 0:
		return Approval{}, ErrNotFound
	case len(found) == 2 && found[1].State == ApprovalPending:
		return Approval{}, ErrAmbiguous
	}
	return found[0], nil
}

// ApprovalsOfSession returns a session's approvals, oldest first.
func (s *Store) ApprovalsOfSession(ctx context.Context, sessionID string) ([]Approval, error) {
	return all(ctx, s.reader(), scanApproval, approvalsOfSession, sessionID)
}

// ApprovalByPrompt returns the approval whose prompt is that comment, or
// [ErrNotFound].
func (s *Store) ApprovalByPrompt(ctx context.Context, repositoryID, commentID int64) (Approval, error) {
	return one(ctx, s.reader(), scanApproval, approvalByPrompt, repositoryID, commentID)
}

// An ApprovalPrompt says where and when an approval's prompt appeared. Zero
// fields change nothing.
type ApprovalPrompt struct {
	ID         string
	CommentID  int64
	BodyHash   string
	CheckRunID int64
	// At is when the comment appeared; zero with a CommentID means now.
	At time.Time
}

// MarkPrompted notes that the prompt's comment appeared; a zero time means now.
// The first poll is due at once.
func (s *Store) MarkPrompted(ctx context.Context, id string, commentID int64, bodyHash string, when time.Time) error {
	return s.transact(ctx, func(t *tx) error {
		return t.markPrompted(ctx, ApprovalPrompt{ID: id, CommentID: commentID, BodyHash: bodyHash, At: when})
	})
}

// SetCheckRun notes the approval's check run.
func (s *Store) SetCheckRun(ctx context.Context, id string, checkRunID int64) error {
	return s.transact(ctx, func(t *tx) error {
		return t.markPrompted(ctx, ApprovalPrompt{ID: id, CheckRunID: checkRunID})
	})
}

func (t *tx) markPrompted(ctx context.Context, p ApprovalPrompt) error {
	t.tell(TopicApprovals)
	return onlyOne(t.exec(ctx, markPrompted, p.ID, p.CommentID, p.BodyHash, p.CheckRunID, p.At))(ErrNotFound)
}

// DuePolls gives the node pending, prompted approvals whose reactions must be
// read now, at most limit. Each is put off for half a minute, so that no two
// nodes read the same; SetPolls sets the real time.
func (s *Store) DuePolls(ctx context.Context, node *Node, limit int) ([]Approval, error) {
	var due []Approval
	err := s.transact(ctx, func(t *tx) (err error) {
		if err := node.mayTake(ctx, t); err != nil {
			return err
		}
		due, err = all(ctx, t.conn, scanApproval, duePolls, pollClaim.Milliseconds(), limit)
		return err
	})
	return due, err
}

// A Poll says when an approval's reactions are read next, and which ETag the
// last answer had.
type Poll struct {
	Approval string
	Next     time.Time
	ETag     string
}

// SetPolls sets them all in one transaction. An approval that is unknown is
// passed over.
func (s *Store) SetPolls(ctx context.Context, polls []Poll) error {
	return s.transact(ctx, func(t *tx) error {
		for _, poll := range polls {
			if _, err := t.exec(ctx, setPoll, poll.Approval, poll.Next, poll.ETag); err != nil {
				return err
			}
		}
		return nil
	})
}

func scanApproval(row scanner) (Approval, error) {
	var a Approval
	err := row.Scan(&a.ID, &a.SessionID, &a.InstallationID, &a.RepositoryID, &a.Owner, &a.Repository, &a.Issue, &a.CallKey,
		&a.Kind, &a.Digest, &a.Nonce, text(&a.Record), &a.Base, &a.BaseRef, &a.Commit, &a.Tree, &a.TargetRef,
		&a.ExpectedRemote, &a.Title, &a.Body, &a.ConfigHash, &a.RoleNeeded, &a.RequesterID, &a.RequesterLogin,
		&a.PromptCommentID, &a.PromptBodyHash, &a.CheckRunID, at(&a.PromptedAt), &a.State, &a.DecidedBy, &a.DecidedByID,
		&a.DecidedVia, &a.Reason, at(&a.DecidedAt), at(&a.ConsumedAt), &a.ConsumedBy, at(&a.ExpiresAt), at(&a.NextPollAt),
		&a.PollETag, &a.RestoreEpoch, at(&a.CreatedAt))
	return a, err
}
