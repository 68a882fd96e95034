package store

import (
	"context"
	"time"
)

// The times of a decision. docs/github.md gives the reasons.
const (
	// ApprovalCooldown is how long a new prompt cannot be approved, so that a
	// switch under somebody's fingers is not.
	ApprovalCooldown = 5 * time.Second
	// ApprovalGrace is how long a decision can be taken back.
	ApprovalGrace = 10 * time.Second
	// MinDigestPrefix is how much of a digest names an approval.
	MinDigestPrefix = 8
)

// Approval returns the approval with that id, or [ErrNotFound].
func (s *Store) Approval(ctx context.Context, id string) (Approval, error) { panic("soon") }

// ApprovalByDigestPrefix returns the issue's approval whose digest begins so. A
// pending one wins over decided ones; two pending ones are [ErrAmbiguous]; a
// prefix shorter than [MinDigestPrefix] or of other than hexadecimal digits
// is [ErrNotFound].
func (s *Store) ApprovalByDigestPrefix(ctx context.Context, repositoryID int64, issue int, prefix string) (Approval, error) {
	panic("soon")
}

// ApprovalsOfSession returns a session's approvals, oldest first.
func (s *Store) ApprovalsOfSession(ctx context.Context, sessionID string) ([]Approval, error) {
	panic("soon")
}

// ApprovalByPrompt returns the approval whose prompt is that comment, or
// [ErrNotFound].
func (s *Store) ApprovalByPrompt(ctx context.Context, repositoryID, commentID int64) (Approval, error) {
	panic("soon")
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

// MarkPrompted notes that the prompt's comment appeared. The first poll is due
// at once.
func (s *Store) MarkPrompted(ctx context.Context, id string, commentID int64, bodyHash string, at time.Time) error {
	panic("soon")
}

// SetCheckRun notes the approval's check run.
func (s *Store) SetCheckRun(ctx context.Context, id string, checkRunID int64) error { panic("soon") }

// DuePolls gives the node pending, prompted approvals whose reactions must be
// read now, at most limit. Each is put off for half a minute, so that no two
// nodes read the same; SetPoll sets the real time.
func (s *Store) DuePolls(ctx context.Context, node *Node, limit int) ([]Approval, error) {
	panic("soon")
}

// SetPoll sets when an approval's reactions are read next, and the ETag.
func (s *Store) SetPoll(ctx context.Context, id string, next time.Time, etag string) error {
	panic("soon")
}

// A Decision is what somebody decided about an approval.
type Decision struct {
	// State is approved, rejected, superseded or expired.
	State ApprovalState
	By    string
	ByID  int64
	// Via is comment, reaction, check_run, terminal or host.
	Via    string
	Reason string
	// ActedAt is when the person acted, where that is known; zero means now. It
	// is compared with the time of the prompt.
	ActedAt time.Time
}

// Decide writes a decision in one conditional update, appends it to the audit
// log and wakes the session. It returns the row as it is then.
//
// An approval needs a pending row, a prompt that appeared [ApprovalCooldown]
// before ([ErrTooEarly]) and time left by the database's clock
// ([ErrApprovalExpired]). A rejection needs a pending row, or an approval given
// less than [ApprovalGrace] ago: reject wins. Superseding needs a pending or
// approved row, expiring a pending one past its time. Otherwise it is
// [ErrAlreadyDecided] with the row that stands.
func (s *Store) Decide(ctx context.Context, id string, decision Decision) (Approval, error) {
	panic("soon")
}

// Reopen makes an approval pending again whose reaction was removed within
// [ApprovalGrace] of the decision, unless it was consumed or expired
// ([ErrAlreadyDecided] with the row that stands).
func (s *Store) Reopen(ctx context.Context, id, by, reason string) (Approval, error) { panic("soon") }

// A Consumption is what is about to be done under an approval. Empty fields are
// not compared.
type Consumption struct {
	Digest         string
	Commit         string
	TargetRef      string
	ExpectedRemote string
	// EffectKey names the effect; the same effect may consume twice, so that a
	// push that a crash cut off can go on.
	EffectKey string
}

// Consume uses an approval up, once. It fails with [ErrStale] when the row is
// for something else, with [ErrApprovalExpired] past its time, and with
// [ErrAlreadyDecided] when it is not approved or was consumed by another
// effect.
func (s *Store) Consume(ctx context.Context, id string, expects Consumption) (Approval, error) {
	panic("soon")
}

// ExpireApprovals expires pending approvals past their time, wakes their
// sessions and returns them, at most limit.
func (s *Store) ExpireApprovals(ctx context.Context, limit int) ([]Approval, error) { panic("soon") }

// SupersedeApprovals supersedes all pending and approved approvals of a session
// and returns how many.
func (s *Store) SupersedeApprovals(ctx context.Context, sessionID, reason string) (int, error) {
	panic("soon")
}

// NewRestoreEpoch is called after a backup was restored: pending and unconsumed
// approvals made before it are void, their sessions woken. It returns the new
// epoch and how many approvals it voided.
func (s *Store) NewRestoreEpoch(ctx context.Context) (epoch int64, voided int, err error) {
	panic("soon")
}
