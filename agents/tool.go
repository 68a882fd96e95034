package agents

import (
	"context"
	"encoding/json"
	"time"
)

// An Effect says what a tool touches. The loop decides by it what may run in
// parallel and what may run again after a crash.
type Effect string

// The effects, from harmless to irrevocable.
const (
	// EffectNone only reads; it may run in parallel and again.
	EffectNone Effect = "none"
	// EffectWorkspace changes files of the workspace and nothing else.
	EffectWorkspace Effect = "workspace"
	// EffectExternal can be seen by the outside world.
	EffectExternal Effect = "external"
)

// Reconcile says how a call is settled whose intent was recorded and whose
// outcome was not (rules R103–R105).
type Reconcile string

// The ways to settle a half-done call.
const (
	// ReconcileNone cannot tell; the outcome of an external call is unknown.
	ReconcileNone Reconcile = "none"
	// ReconcileHash compares the workspace with the recorded hashes.
	ReconcileHash Reconcile = "hash"
	// ReconcileQuery asks the outside world through [Tool.Query].
	ReconcileQuery Reconcile = "query"
)

// A Tool is something an agent can do. The function fields must be safe for
// concurrent use when Effect is [EffectNone].
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments; the runner checks arguments
	// against it before Run sees them.
	Schema    json.RawMessage
	Effect    Effect
	Reconcile Reconcile
	// NeedsApproval, when set and true for a call, suspends the session until
	// a maintainer has decided.
	NeedsApproval func(context.Context, Call) (bool, error)
	// Timeout bounds Run; 0 means the runner's default.
	Timeout time.Duration
	// RaiseErrors ends the run with TOOL_ERROR (or TOOL_TIMEOUT) instead of
	// telling the model.
	RaiseErrors bool
	// InputGuardrail, when set, may answer a call in place of Run.
	InputGuardrail func(context.Context, Call) (message string, rejected bool, err error)
	// Prepare, when set, runs before the intent of a workspace call is
	// recorded and returns the hashes that settle the call after a crash.
	Prepare func(context.Context, Call) (Intent, error)
	// Run does the work. An error is shown to the model as text unless
	// RaiseErrors; write it for a model to act on.
	Run func(context.Context, Call) (Result, error)
	// Query settles a half-done call of a tool with [ReconcileQuery] or
	// [ReconcileHash]: done with its result, not done, or a conflict (error).
	Query func(context.Context, Call, Intent) (result Result, done bool, err error)
	// Effects, when set, makes Run unnecessary: the call's work is done by the
	// outbox. It returns the effects to be recorded in one transaction with
	// the intent; the outbox records the outcome.
	Effects func(context.Context, Call) ([]EffectRequest, error)
}

// A Call is one use of a tool, as the tool sees it.
type Call struct {
	ToolCall
	Session string
	Agent   string
	// PathScope limits what may be changed; empty means everything.
	PathScope []string
	// IdempotencyKey is the same for every attempt at this call.
	IdempotencyKey string
	// Args are the checked arguments.
	Args json.RawMessage
	// Approval is the id of the approval that allowed the call, if one did.
	Approval string
	// Variables are the session's, to be read only.
	Variables Variables
}

// An Intent is what is recorded before a call runs, so that its end can be
// found out after a crash. Fields are tool-specific hashes, never secrets.
type Intent struct {
	Path   string `json:"path,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Tree   string `json:"tree,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// A Result is what a tool gives back.
type Result struct {
	// Output is the text for the model. The runner cuts it to its cap.
	Output string
	// Omitted is how many bytes the tool itself left out of Output.
	Omitted int64
	// IsError marks an output that reports a failure to the model.
	IsError bool
	// Summary is one line for people ("12 tests passed"), "" for none.
	Summary string
	// Variables are merged into the session's variables with the outcome.
	Variables Variables
}

// An EffectRequest asks the outbox for one effect on the outside world.
type EffectRequest struct {
	// Key is unique for ever; the same key is performed once.
	Key string
	// Kind is the outbox's word for the effect ("push").
	Kind string
	// Payload is the effect's own record, without secrets.
	Payload json.RawMessage
	// After names an effect that must have succeeded before.
	After string
}
