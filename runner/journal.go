package runner

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"handoff/agents"
)

// A RecordKind tells what a [Record] is.
type RecordKind string

// The kinds of journal records. They are versioned by Record.Version and never
// change meaning.
const (
	RecordRunCreated        RecordKind = "run.created"
	RecordInputAdded        RecordKind = "input.added"
	RecordModelRequest      RecordKind = "model.request"
	RecordModelResponse     RecordKind = "model.response"
	RecordApprovalRequested RecordKind = "approval.requested"
	RecordApprovalDecided   RecordKind = "approval.decided"
	RecordToolIntent        RecordKind = "tool.intent"
	RecordToolOutcome       RecordKind = "tool.outcome"
	RecordHandoffCommitted  RecordKind = "handoff.committed"
	RecordStepCommitted     RecordKind = "step.committed"
	RecordCompactionAdded   RecordKind = "compaction.added"
	RecordNoteAdded         RecordKind = "note.added"
	RecordRunPaused         RecordKind = "run.paused"
	RecordRunEnded          RecordKind = "run.ended"
	RecordLeaseTaken        RecordKind = "lease.taken"
)

// A Record is one line of a session's journal. Seq is gapless per session and
// given by the store; so are Epoch (the lease's fence) and Time.
type Record struct {
	Seq         int64           `json:"seq"`
	RunID       string          `json:"run_id"`
	ParentRunID string          `json:"parent_run_id,omitempty"`
	Epoch       int64           `json:"epoch"`
	Time        time.Time       `json:"ts"`
	Version     int             `json:"version"`
	Kind        RecordKind      `json:"kind"`
	Payload     json.RawMessage `json:"payload"`
}

// A Batch is what one append writes: all of it or nothing, in one transaction.
type Batch struct {
	Records []Record
	// Effects are outbox rows that belong to the records (rule R102).
	Effects []agents.EffectRequest
	// Checkpoint is the workspace after the records, nil when it did not change.
	Checkpoint *Checkpoint
	// ActiveAgent, when not empty, becomes the session's active agent.
	ActiveAgent string
	// Variables are merged into the session's variables.
	Variables agents.Variables
	// Usage is added to the session's usage; its entries go to the ledger.
	Usage agents.Usage
	// TakeMessages are the ids of the waiting messages that the batch's
	// input.added records hold: the store marks them taken in the same
	// transaction, so that a message is read exactly once.
	TakeMessages []string
}

// A Checkpoint is the workspace as base commit plus changed files, enough to
// rebuild it on another machine.
type Checkpoint struct {
	// Base is the commit that the changes are relative to.
	Base string `json:"base"`
	// Tree is the git tree id of the whole workspace.
	Tree string `json:"tree"`
	// Changes name every path that differs from the base.
	Changes []CheckpointChange `json:"changes"`
	// Blobs holds the contents by git blob id that the store may lack; the
	// store keeps each once per installation.
	Blobs map[string][]byte `json:"-"`
}

// A CheckpointChange is one changed path.
type CheckpointChange struct {
	Path string `json:"path"`
	// Mode is git's file mode in octal ("100644"), "" for a deleted path.
	Mode string `json:"mode,omitempty"`
	// Blob is the git blob id, "" for a deleted path.
	Blob string `json:"blob,omitempty"`
}

// A Journal is the append-only list of records of one session, held under a
// lease. Package runner/store implements it; the in-memory one of tests passes
// the same conformance suite.
//
// Contract: Append is atomic and durable before it returns, gives gapless
// sequence numbers in the order of the records, and fails with [ErrFenced]
// (wrapped) once another node has taken the lease or the session was ended;
// nothing is written then. Load returns the records from seq on, in order.
// Both are safe for concurrent use.
type Journal interface {
	Append(ctx context.Context, batch Batch) (first int64, err error)
	Load(ctx context.Context, from int64) ([]Record, error)
}

// ErrFenced says that the lease on the session is lost: whoever sees it stops
// at once, without any further effect.
var ErrFenced = errors.New("the lease on this session was taken by another node")
