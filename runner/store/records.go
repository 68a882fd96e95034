package store

import (
	"encoding/json"
	"time"

	"handoff/agents"
)

// A Delivery is one webhook request of GitHub's, stored as it came.
type Delivery struct {
	// GUID is GitHub's X-GitHub-Delivery; unique.
	GUID           string
	Event          string
	Action         string
	HookID         int64
	InstallationID int64
	RepositoryID   int64
	// Body is the request's body, byte for byte.
	Body       []byte
	ReceivedAt time.Time
	// Source is "webhook" or "sweeper".
	Source string
}

// A CommandKind tells which webhook a command came from.
type CommandKind string

// The sources of commands.
const (
	// CommandComment is a first line that starts with /copilot.
	CommandComment CommandKind = "comment"
	// CommandCheckAction is a click on one of our check run's buttons.
	CommandCheckAction CommandKind = "check_action"
	// CommandNotice is something that happened to what we wait for or hold: an
	// edited or deleted prompt, a removed installation, a renamed repository…
	CommandNotice CommandKind = "notice"
)

// A Command is what somebody asked, stored in the same transaction as its
// delivery and routed afterwards by package runner/intake.
type Command struct {
	ID string
	// Key is unique: the same comment under two deliveries is one command.
	Key            string
	Kind           CommandKind
	DeliveryGUID   string
	InstallationID int64
	RepositoryID   int64
	// Owner and Repository are the names at that time; ids decide.
	Owner      string
	Repository string
	Issue      int
	// CommentID and CommentKind ("issue", "review") name the comment.
	CommentID   int64
	CommentKind string
	ActorID     int64
	ActorLogin  string
	// Verb is the word after /copilot in lower case when it is one of the
	// reserved ones (approve, reject, stop…), otherwise "task".
	Verb string
	// Text is what follows: the task, the digest, the reason.
	Text string
	// Detail is kind-specific JSON: the check run's id and identifier, the
	// notice's facts, the issue's title and body at that time.
	Detail    json.RawMessage
	CreatedAt time.Time
	// State is new, routed or refused; Outcome says what became of it.
	State    string
	Outcome  string
	Attempts int
}

// A SessionState is where a session is in its life.
type SessionState string

// The states of a session, the same in code, tables, pages and docs.
const (
	StateQueued           SessionState = "queued"
	StatePreparing        SessionState = "preparing"
	StateRunning          SessionState = "running"
	StateAwaitingApproval SessionState = "awaiting_approval"
	StatePublishing       SessionState = "publishing"
	StateSuspended        SessionState = "suspended"
	StateCompleted        SessionState = "completed"
	StateFailed           SessionState = "failed"
	StateCancelled        SessionState = "cancelled"
	StateExpired          SessionState = "expired"
)

// Ended says whether a session in this state is over.
func (s SessionState) Ended() bool {
	switch s {
	case StateCompleted, StateFailed, StateCancelled, StateExpired:
		return true
	}
	return false
}

// A Session is one task from its command to its end.
type Session struct {
	ID             string
	InstallationID int64
	RepositoryID   int64
	Owner          string
	Repository     string
	Issue          int
	// CommandID is the command that started it.
	CommandID      string
	RequesterID    int64
	RequesterLogin string
	// Task is the command's text, IssueTitle and IssueBody the issue as it was
	// when the command came.
	Task       string
	IssueTitle string
	IssueBody  string

	State SessionState
	// Reason says in a sentence why it is in this state, "" for the usual.
	Reason string
	// Code is the error's code when the session failed.
	Code string

	ActiveAgent string
	Variables   agents.Variables
	Usage       agents.Usage
	// ActiveMillis is the time spent working, waiting not counted.
	ActiveMillis int64

	// Node and Fence are the lease: who holds it and its epoch.
	Node  string
	Fence int64
	// NextSeq is the sequence number of the next journal record.
	NextSeq int64
	// WakeAt is when a waiting session must be looked at, zero for never.
	WakeAt time.Time
	// CancelRequested is set by /copilot stop; CancelBy by whom.
	CancelRequested bool
	CancelBy        string
	// Attempts counts how often it was acquired since its journal last grew or it
	// was last paused.
	Attempts int
	// AgentVersions says which version of each agent it uses, by slug.
	AgentVersions map[string]string

	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time
}

// A Message is text for a running session, taken by its holder between turns.
type Message struct {
	ID        string
	SessionID string
	CommandID string
	ActorID   int64
	Actor     string
	Text      string
	CreatedAt time.Time
	// TakenSeq is the journal record that holds it, 0 while it waits.
	TakenSeq int64
}

// An EffectState is where an effect is on its way to GitHub.
type EffectState string

// The states of an effect.
const (
	EffectPending EffectState = "pending"
	// EffectSending means that the request may have left: after a crash GitHub
	// is looked at before anything is sent again.
	EffectSending EffectState = "sending"
	EffectDone    EffectState = "done"
	EffectFailed  EffectState = "failed"
	// EffectUnknown means that the outcome cannot be known.
	EffectUnknown EffectState = "unknown"
	// EffectSuperseded means that it was replaced or is no longer wanted.
	EffectSuperseded EffectState = "superseded"
)

// An Effect is one change of the outside world, performed once.
type Effect struct {
	ID int64
	// Key is unique for ever.
	Key string
	// Kind is the outbox's word: comment.create, comment.update, reaction,
	// check_run.create, check_run.update, push, pull_request.
	Kind           string
	InstallationID int64
	RepositoryID   int64
	Owner          string
	Repository     string
	// SessionID or CommandID names the owner of the effect.
	SessionID string
	CommandID string
	// CallKey is the tool call whose outcome the effect decides, "" for none.
	CallKey string
	// After is the key of an effect that must be done before.
	After string
	// Priority: 0 is first (reactions, decisions), 1 results, 2 progress.
	Priority int
	Payload  json.RawMessage
	State    EffectState
	// Result is what GitHub answered (ids, urls), Error why it failed.
	Result    json.RawMessage
	Error     string
	Attempts  int
	NotBefore time.Time
	Node      string
	// Version counts replacements of a coalesced effect's payload.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// An ApprovalState is where an approval is in its life.
type ApprovalState string

// The states of an approval.
const (
	ApprovalPending    ApprovalState = "pending"
	ApprovalApproved   ApprovalState = "approved"
	ApprovalRejected   ApprovalState = "rejected"
	ApprovalExpired    ApprovalState = "expired"
	ApprovalSuperseded ApprovalState = "superseded"
	ApprovalConsumed   ApprovalState = "consumed"
)

// An Approval is a maintainer's decision on one exact, hashed action.
type Approval struct {
	ID             string
	SessionID      string
	InstallationID int64
	RepositoryID   int64
	Owner          string
	Repository     string
	Issue          int
	// CallKey is the tool call that waits for it; Kind is its tool's name.
	CallKey string
	Kind    string
	// Digest names what is approved, Nonce is drawn by the host, Record is the
	// canonical JSON that was hashed.
	Digest string
	Nonce  string
	Record json.RawMessage

	Base           string
	BaseRef        string
	Commit         string
	Tree           string
	TargetRef      string
	ExpectedRemote string
	Title          string
	Body           string
	ConfigHash     string

	RoleNeeded     string
	RequesterID    int64
	RequesterLogin string

	// PromptCommentID, PromptBodyHash and CheckRunID are known once the
	// prompt's effects are done; PromptedAt is when the prompt appeared.
	PromptCommentID int64
	PromptBodyHash  string
	CheckRunID      int64
	PromptedAt      time.Time

	State       ApprovalState
	DecidedBy   string
	DecidedByID int64
	DecidedVia  string
	Reason      string
	DecidedAt   time.Time
	ConsumedAt  time.Time
	// ConsumedBy is the key of the effect that used the approval up.
	ConsumedBy   string
	ExpiresAt    time.Time
	NextPollAt   time.Time
	PollETag     string
	RestoreEpoch int64
	CreatedAt    time.Time
}

// An AgentRow is one agent as stored: its Markdown and the version's hash.
type AgentRow struct {
	ID      string
	Version string
	// Source is the Markdown with front matter.
	Source string
	// Edited says that it differs from what seed wrote.
	Edited    bool
	UpdatedAt time.Time
}
