package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"handoff/agents"
)

// recordVersion is the version of the payloads below. A journal with a higher
// one was written by a newer program and is refused.
const recordVersion = 1

// runCreated opens a run.
type runCreated struct {
	Agent string `json:"agent"`
	// Thread is the conversation that the run continues: "" is the user's,
	// "a->b" that of two agents, a call key an isolated one.
	Thread string `json:"thread,omitempty"`
	// Call is the key of the call that the run answers, "" for a root run.
	Call string `json:"call,omitempty"`
	// Task is what the host repeats to agents that were handed the work.
	Task string `json:"task,omitempty"`
	// Boundary is the session's random mark around agents' words. Only the
	// first run of a session draws one.
	Boundary string `json:"boundary,omitempty"`
	// Variables are the session's variables that the host starts with.
	Variables agents.Variables `json:"variables,omitempty"`
}

// inputAdded is text from outside: the task, or a message to a running crew.
type inputAdded struct {
	ID     string `json:"id,omitempty"`
	Author string `json:"author,omitempty"`
	Text   string `json:"text"`
}

// modelRequest is written before a model is asked, so that an answer lost in a
// crash is still paid for.
type modelRequest struct {
	Agent string `json:"agent"`
	Turn  int    `json:"turn"`
	// Purpose is "" for a turn and "compaction" for a summary.
	Purpose string `json:"purpose,omitempty"`
	Model   string `json:"model,omitempty"`
	// Bytes is the size of the messages, Estimate the guessed number of input
	// tokens.
	Bytes    int64 `json:"bytes,omitempty"`
	Estimate int64 `json:"estimate"`
}

// modelResponse is a model's answer as it came; the fold makes call ids unique.
type modelResponse struct {
	Agent     string            `json:"agent"`
	Turn      int               `json:"turn"`
	Text      string            `json:"text,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"`
	Refusal   string            `json:"refusal,omitempty"`
	Calls     []agents.ToolCall `json:"calls,omitempty"`
	Finish    string            `json:"finish"`
	Raw       json.RawMessage   `json:"raw,omitempty"`
	Provider  string            `json:"provider,omitempty"`
	Asked     string            `json:"asked,omitempty"`
	Model     string            `json:"model,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	Usage     agents.Usage      `json:"usage"`
	// Withheld names the output guardrail that the text tripped; the text
	// itself is then not kept (rule R76). Reason says why it tripped.
	Withheld string `json:"withheld,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Active   int64  `json:"active_ms,omitempty"`
}

// approvalRequested asks for a maintainer's decision on one call.
type approvalRequested struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	Hash string `json:"argument_hash"`
	// Conflict is set when the call was half done before a crash and the
	// outside world contradicts both ends: a person decides (rule R104).
	Conflict string `json:"conflict,omitempty"`
}

// A DecisionKind is how an approval ended.
type DecisionKind string

// The ends of an approval. An expired one counts as rejected (rule R94).
const (
	DecisionApproved DecisionKind = "approved"
	DecisionRejected DecisionKind = "rejected"
	DecisionExpired  DecisionKind = "expired"
)

// A Decision is the payload of approval.decided. It is appended by whoever
// verified the person and the digest; package runner acts on it when the run
// goes on. A decision on a call that is not waiting, or for other arguments,
// changes nothing.
type Decision struct {
	// CallKey and ArgumentHash name the call as [PendingApproval] gave them.
	CallKey      string       `json:"call"`
	ArgumentHash string       `json:"argument_hash"`
	Kind         DecisionKind `json:"decision"`
	// Approval is the id of the approval's row, handed to the tool.
	Approval string `json:"approval,omitempty"`
	// By is who decided: a login, or [ByHost].
	By string `json:"by,omitempty"`
	// Reason is shown to the model when the call was not approved.
	Reason string `json:"reason,omitempty"`
}

// ByHost in [Decision.By] is a refusal by the host's own rules, before anybody
// was asked: the tests failed, or a secret was found.
const ByHost = "host"

// Record returns the journal record that holds the decision.
func (d Decision) Record() (Record, error) {
	return newRecord(RunOfCall(d.CallKey), "", RecordApprovalDecided, d)
}

// toolIntent is written before a call that touches anything runs.
type toolIntent struct {
	Call   string        `json:"call"`
	Intent agents.Intent `json:"intent"`
	// Outbox says that the outbox performs the call and records its outcome.
	Outbox bool `json:"outbox,omitempty"`
}

// The states of a call's effect, in [ToolOutcome.Effect].
const (
	// EffectDone is a call that ran to its end.
	EffectDone = "done"
	// EffectFailed is a call that ran and reported a failure.
	EffectFailed = "failed"
	// EffectReconciled was found to have happened after a crash.
	EffectReconciled = "done_reconciled"
	// EffectUnknown may or may not have happened; it is never tried again.
	EffectUnknown = "unknown"
	// EffectNotRun did not happen: the call was refused or never started.
	EffectNotRun = "not_run"
)

// A ToolOutcome is the payload of tool.outcome: how a call ended. The first
// outcome of a call counts, later ones change nothing.
type ToolOutcome struct {
	// CallKey is the call's key (rule R28).
	CallKey string `json:"call"`
	// Output is what the model reads.
	Output string `json:"output"`
	// Full is the whole output when Output was cut from it, up to a megabyte.
	Full string `json:"full,omitempty"`
	// Size is how many bytes there were when the tool or the runner left some
	// of them out of Output, 0 otherwise.
	Size    int64 `json:"size,omitempty"`
	IsError bool  `json:"is_error,omitempty"`
	// Effect is one of the Effect constants.
	Effect string `json:"effect,omitempty"`
	// Summary is a line for people.
	Summary string `json:"summary,omitempty"`
	// Tree is the workspace's git tree after a workspace call.
	Tree      string           `json:"tree,omitempty"`
	Variables agents.Variables `json:"variables,omitempty"`
	Millis    int64            `json:"duration_ms,omitempty"`
}

// Record returns the journal record that holds the outcome. The outbox appends
// it in the transaction that ends the effect.
func (o ToolOutcome) Record() (Record, error) {
	return newRecord(RunOfCall(o.CallKey), "", RecordToolOutcome, o)
}

// handoffCommitted moves control: the output of the call, the note and the new
// active agent in one record (rules R51 and R107).
type handoffCommitted struct {
	Call    string `json:"call"`
	From    string `json:"from"`
	To      string `json:"to"`
	Reason  string `json:"reason,omitempty"`
	Context string `json:"context,omitempty"`
	Output  string `json:"output"`
	Note    string `json:"note"`
	// Nest and Filter say how the target's view of the history is made.
	Nest   bool `json:"nest,omitempty"`
	Filter bool `json:"filter,omitempty"`
}

// stepCommitted ends a turn.
type stepCommitted struct {
	Step StepKind `json:"step"`
	To   string   `json:"to,omitempty"`
}

// compactionAdded replaces the view of a thread's prefix by a summary.
type compactionAdded struct {
	Summary string `json:"summary"`
	// Upto is the last seq that the summary covers, Items how many entries of
	// the view it stands for.
	Upto  int64        `json:"upto"`
	Items int          `json:"items,omitempty"`
	Usage agents.Usage `json:"usage"`
}

// The reasons for a host's note, in noteAdded.Kind.
const (
	noteBudget = "budget"
	noteLoop   = "loop"
	noteRepair = "repair"
)

// noteAdded is a word from the host to the agent.
type noteAdded struct {
	Kind string `json:"kind"`
	// Budget names the budget of a warning, so that it is given once.
	Budget string `json:"budget,omitempty"`
	Text   string `json:"text"`
}

// The reasons of run.paused.
const (
	pausedApproval = "approval"
	pausedStopped  = "stopped"
)

// runPaused marks a wait. Waiting is not active time.
type runPaused struct {
	Reason string `json:"reason"`
	Active int64  `json:"active_ms,omitempty"`
}

// runEnded is the one terminal record of a run (rule R4).
type runEnded struct {
	// Code is the error's code, "" for a final output.
	Code    agents.Code `json:"code,omitempty"`
	Kind    string      `json:"kind,omitempty"`
	Message string      `json:"message,omitempty"`
	Output  string      `json:"output,omitempty"`
	// Fallback is the code whose fallback value is the output; the value is
	// then added to the history as a message.
	Fallback agents.Code `json:"fallback,omitempty"`
	// Usage is what a failed model call cost.
	Usage  agents.Usage `json:"usage"`
	Active int64        `json:"active_ms,omitempty"`
}

// newRecord encodes a payload. It fails only on values that JSON cannot hold.
func newRecord(run, parent string, kind RecordKind, payload any) (Record, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	return Record{RunID: run, ParentRunID: parent, Version: recordVersion, Kind: kind, Payload: data}, nil
}

// decodePayload returns the record's payload as its own type.
func decodePayload(record Record) (any, error) {
	switch record.Kind {
	case RecordRunCreated:
		return decode[runCreated](record)
	case RecordInputAdded:
		return decode[inputAdded](record)
	case RecordModelRequest:
		return decode[modelRequest](record)
	case RecordModelResponse:
		return decode[modelResponse](record)
	case RecordApprovalRequested:
		return decode[approvalRequested](record)
	case RecordApprovalDecided:
		return decode[Decision](record)
	case RecordToolIntent:
		return decode[toolIntent](record)
	case RecordToolOutcome:
		return decode[ToolOutcome](record)
	case RecordHandoffCommitted:
		return decode[handoffCommitted](record)
	case RecordStepCommitted:
		return decode[stepCommitted](record)
	case RecordCompactionAdded:
		return decode[compactionAdded](record)
	case RecordNoteAdded:
		return decode[noteAdded](record)
	case RecordRunPaused:
		return decode[runPaused](record)
	case RecordRunEnded:
		return decode[runEnded](record)
	case RecordLeaseTaken:
		return leaseTaken{}, nil
	}
	return nil, fmt.Errorf("record %d has the unknown kind %q", record.Seq, record.Kind)
}

// leaseTaken is the store's mark of a new holder; its payload is the store's.
type leaseTaken struct{}

func decode[T any](record Record) (any, error) {
	var payload T
	if err := json.Unmarshal(record.Payload, &payload); err != nil {
		return nil, fmt.Errorf("record %d (%s): %w", record.Seq, record.Kind, err)
	}
	return payload, nil
}

// callKey is the host's name of a call: its run, the seq of the response that
// holds it and its place there (rule R28).
func callKey(run string, seq int64, index int) string {
	return run + "/" + strconv.FormatInt(seq, 10) + "/" + strconv.Itoa(index)
}

// RunOfCall returns the id of the run that made a call.
func RunOfCall(key string) string {
	for range 2 {
		i := strings.LastIndexByte(key, '/')
		if i < 0 {
			return ""
		}
		key = key[:i]
	}
	return key
}

// ArgumentHash is what an approval binds beside the call's key: SHA-256 over
// the tool's name, a zero byte and the arguments exactly as the model sent
// them, in hex.
func ArgumentHash(tool, arguments string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + arguments))
	return hex.EncodeToString(sum[:])
}
