package store

import (
	"context"
	"sync"
	"time"

	"handoff/runner"
)

// A Lease is a node's hold on a session. It is the session's [runner.Journal].
// All writes fail with [runner.ErrFenced] once the session was taken over,
// suspended or ended, or the node's own lease is gone. It is safe for
// concurrent use.
type Lease struct {
	store *Store
	node  *Node

	mutex   sync.Mutex
	session Session
}

var _ runner.Journal = (*Lease)(nil)

// Session returns the session as the lease knows it: as acquired, with the
// lease's own writes since. Flags that others set are read by the methods below.
func (l *Lease) Session() Session { panic("soon") }

// Exhausted says that the session was attempted more than [MaxAttempts] times:
// the holder tells people and finishes it, and does nothing that could bring
// the process down again.
func (l *Lease) Exhausted() bool { panic("soon") }

// Append writes a batch in one transaction: records, outbox rows (owned by the
// session, with the call key of the batch's tool.intent record), checkpoint and
// blobs, active agent, variables, usage and its ledger entries, messages taken.
// An effect whose key exists with the same content is left alone, with another
// content the append fails with [ErrDuplicate]. It returns the sequence number
// of the first record. Numbers are gapless, but the outbox may have written an
// outcome in between: whoever finds first higher than expected loads the rest.
func (l *Lease) Append(ctx context.Context, batch runner.Batch) (first int64, err error) {
	panic("soon")
}

// Load returns the session's records from seq on, in order.
func (l *Lease) Load(ctx context.Context, from int64) ([]runner.Record, error) { panic("soon") }

// SetState tells people what the session is doing: preparing, running or
// publishing.
func (l *Lease) SetState(ctx context.Context, state SessionState, reason string) error {
	panic("soon")
}

// RecordAgents remembers which version of each agent the session uses.
func (l *Lease) RecordAgents(ctx context.Context, versions map[string]string) error { panic("soon") }

// PutEffects puts effects of the session into the outbox, where the owner,
// installation and repository are filled in. A key that exists with the same
// content is left alone; with another content it is [ErrDuplicate].
func (l *Lease) PutEffects(ctx context.Context, effects []Effect) error { panic("soon") }

// PutLatest is [Store.PutLatest] under the lease.
func (l *Lease) PutLatest(ctx context.Context, effect Effect) error { panic("soon") }

// PendingMessages returns what people wrote to the session and no batch has
// taken yet, oldest first.
func (l *Lease) PendingMessages(ctx context.Context) ([]Message, error) { panic("soon") }

// CancelRequested says whether somebody asked the session to stop, and who.
func (l *Lease) CancelRequested(ctx context.Context) (requested bool, by string, err error) {
	panic("soon")
}

// Checkpoint returns the last checkpoint without its blobs, nil when there is
// none. Blob loads the contents.
func (l *Lease) Checkpoint(ctx context.Context) (*runner.Checkpoint, error) { panic("soon") }

// Blob returns the contents with that git blob id, or [ErrNotFound].
func (l *Lease) Blob(ctx context.Context, id string) ([]byte, error) { panic("soon") }

// MissingBlobs returns which of the git blob ids the store lacks in the
// session's installation.
func (l *Lease) MissingBlobs(ctx context.Context, ids []string) ([]string, error) { panic("soon") }

// PutArtifact keeps a file that belongs to the session: a patch, the full text
// of a long output. The same name replaces. It returns the artifact's id.
func (l *Lease) PutArtifact(ctx context.Context, artifact Artifact) (id string, err error) {
	panic("soon")
}

// A Suspension is a pause: everything in it is one transaction.
type Suspension struct {
	// State is awaiting_approval or suspended.
	State  SessionState
	Reason string
	// WakeAt is when the session must be looked at again, zero for never. It is
	// never later than the expiry of an approval that is asked for.
	WakeAt time.Time
	// Batch is appended to the journal first.
	Batch runner.Batch
	// Approvals are asked for; owner and repository are filled in. One open
	// approval for each call: an earlier pending one is superseded.
	Approvals []Approval
	// Effects are prompts and notices.
	Effects []Effect
}

// Suspend gives the session up until it is woken or WakeAt has come. It keeps
// its lane and frees its slot. If it was woken, cancelled or written to while
// it was held, it is ready again at once. The attempts start anew.
func (l *Lease) Suspend(ctx context.Context, suspension Suspension) error { panic("soon") }

// Retry gives the session back after a fault of ours, to be taken again at that
// time by any node. The attempt counts. The state stays.
func (l *Lease) Retry(ctx context.Context, at time.Time, reason string) error { panic("soon") }

// An Ending is the end of a session: everything in it is one transaction.
type Ending struct {
	// State is completed, failed, cancelled or expired.
	State  SessionState
	Code   string
	Reason string
	// Batch is appended to the journal first.
	Batch   runner.Batch
	Effects []Effect
}

// Finish ends the session: pending approvals are superseded, the lane is freed
// and its next session becomes ready.
func (l *Lease) Finish(ctx context.Context, ending Ending) error { panic("soon") }
