package runner

import (
	"cmp"
	"context"
	"time"

	"handoff/agents"
)

// A RunConfig bounds a run. In every field 0 means the default and a negative
// value means no limit (for OutputRepairs: none). All limits but
// MaxToolConcurrency are of the whole run, pauses and nested runs included.
type RunConfig struct {
	// MaxTurns is the number of model calls, default 40.
	MaxTurns int
	// MaxHandoffs is the number of handoffs, default 12.
	MaxHandoffs int
	// MaxTotalTokens counts input and output, default 2 million.
	MaxTotalTokens int64
	// MaxCostMicros is in millionths of a US dollar, default 5 dollars. Calls
	// of unknown price do not count here; the token limit holds for them.
	MaxCostMicros int64
	// RunTimeout is active time, waiting not counted; default 60 minutes.
	RunTimeout time.Duration
	// ToolTimeout bounds a call of a tool without a timeout of its own,
	// default 10 minutes.
	ToolTimeout time.Duration
	// MaxToolConcurrency is how many calls without effect run at once,
	// default 4.
	MaxToolConcurrency int
	// LoopAfter is how often the same call may be made in a row before the
	// model is told, default 5; one more ends the run.
	LoopAfter int
	// OutputRepairs is how often a model may try again when its final answer
	// does not fit the schema, default 2.
	OutputRepairs int
	// OutputCap is the longest tool output that a model sees, in bytes,
	// default 16 KiB: the head and the tail of what is longer.
	OutputCap int
	// CompactAt is the size of a history, in bytes, from which on its
	// beginning is replaced by a summary; default 400,000.
	CompactAt int
	// CompactAtTokens is the same in tokens, estimated from what the provider
	// reported so far; default 100,000. For an agent whose model's context is
	// known it is never more than three quarters of that ([RunRequest.Model]).
	CompactAtTokens int64
	// HistoryLimit is how many items of earlier runs of the thread a new run
	// sees, default all.
	HistoryLimit int
	// NestHistory gives the target of every handoff one transcript in place
	// of the messages.
	NestHistory bool
	// Fallbacks are final outputs in place of errors: LIMIT_TURNS,
	// MODEL_REFUSAL and INVALID_OUTPUT can have one.
	Fallbacks map[agents.Code]string
	// InputGuardrails and OutputGuardrails run beside the agents' own.
	InputGuardrails  []agents.Guardrail
	OutputGuardrails []agents.Guardrail
}

// withDefaults replaces zero values. "No limit" becomes the largest value.
func (c RunConfig) withDefaults() RunConfig {
	const most = 1<<31 - 1
	orDefault(&c.MaxTurns, 40, most)
	orDefault(&c.MaxHandoffs, 12, most)
	orDefault(&c.MaxTotalTokens, 2_000_000, 1<<62)
	orDefault(&c.MaxCostMicros, 5_000_000, 1<<62)
	orDefault(&c.RunTimeout, time.Hour, 100*365*24*time.Hour)
	orDefault(&c.ToolTimeout, 10*time.Minute, 100*365*24*time.Hour)
	orDefault(&c.MaxToolConcurrency, 4, most)
	orDefault(&c.LoopAfter, 5, most)
	orDefault(&c.OutputRepairs, 2, 0)
	orDefault(&c.OutputCap, 16<<10, most)
	orDefault(&c.CompactAt, 400_000, most)
	orDefault(&c.CompactAtTokens, 100_000, 1<<62)
	orDefault(&c.HistoryLimit, most, most)
	return c
}

func orDefault[T int | int64 | time.Duration](value *T, standard, unlimited T) {
	switch {
	case *value == 0:
		*value = standard
	case *value < 0:
		*value = unlimited
	}
}

// An Input is text from a person.
type Input struct {
	// ID makes giving the same input again harmless: an input whose id the
	// journal holds is not added twice. It may be "" where that cannot happen.
	ID string
	// Author is who wrote it, for people.
	Author string
	// Text is what the model sees as the user's message.
	Text string
	// Task is what the host repeats to agents that are handed the work; ""
	// means Text.
	Task string
	// Message is the id of the waiting message that this input is, "" for
	// none; it goes to [Batch.TakeMessages].
	Message string
}

// id is by what the journal knows the input.
func (i Input) id() string { return cmp.Or(i.ID, i.Message) }

// Effects performs calls of tools whose work is done by the outbox.
//
// Contract: the runner has recorded the intent together with the effects in
// one transaction. Await returns when the call's effects have ended, or with
// ctx's error. The outbox records tool.outcome itself in the transaction that
// ends the effect; where it does not, the runner records what Await returned:
// a result and one of the Effect constants. After a crash Await is called
// again for the same key; it never performs anything by itself. The time that
// it takes is not active time.
type Effects interface {
	Await(ctx context.Context, callKey string) (result agents.Result, state string, err error)
}

// A Workspace is the session's copy of the repository, as far as the runner
// must keep it in step with the journal.
//
// Contract: Snapshot records the files as they are and is cheap when nothing
// changed. Reset puts them back to a tree that Snapshot returned, "" for the
// base. Neither runs beside a tool call. Files of which no record can be kept are
// no fault of the workspace: Snapshot then puts back those of the tree before and
// returns an [*Unkept].
type Workspace interface {
	Snapshot(ctx context.Context) (*Checkpoint, error)
	Reset(ctx context.Context, tree string) error
}

// Unkept says why the files that a call left could not be recorded. The call
// counts as failed, and the model is told.
type Unkept struct {
	// Reason is one sentence, without its full stop.
	Reason string
}

// Error implements error.
func (u *Unkept) Error() string { return u.Reason }

// Hooks connect a run to its surroundings. All are optional.
type Hooks struct {
	// OnEvent is told what happens, in order, from one goroutine at a time;
	// it must not block. Events of recorded things carry their seq.
	OnEvent func(Event)
	// PendingInput returns messages that wait for the crew. It is asked
	// between turns, and again before a run ends with a final output.
	PendingInput func(ctx context.Context) ([]Input, error)
	// SoftStop says that the run shall pause after the current turn.
	SoftStop func() bool
	// Redact takes secrets out of text before it is recorded.
	Redact func(text string) string
	// RedactCall takes the host's own secrets out of each text that a model
	// puts into a call, before the call is recorded or made. It must leave
	// alone what only looks like a secret: files may hold that on purpose.
	RedactCall func(text string) string
	// Effects performs the calls of tools with effects on the outside world.
	Effects Effects
	// Workspace ties workspace calls to checkpoints.
	Workspace Workspace
}

// An AgentTool offers an agent as a tool: an isolated run that sees its input
// only and whose answer is the tool's output (rule R60).
type AgentTool struct {
	Agent       string
	Description string
}

// A RunRequest is what [Run] needs. Everything but Journal, Crew, Model and
// the first Input has a sensible zero value.
type RunRequest struct {
	// Session names the session: in idempotency keys and to tapes.
	Session string
	Journal Journal
	// Crew holds the agents by id.
	Crew map[string]agents.Agent
	// Start is the agent of the first run, and of later ones when set;
	// otherwise a later run starts at the session's active agent.
	Start string
	// Tools are the tools that agents name.
	Tools *agents.Registry
	// AgentTools are agents offered as tools, by the tool's name.
	AgentTools map[string]AgentTool
	// Chart says who may send messages to whom with send_message.
	Chart map[string][]string
	// Model answers. One that also has ContextTokens(agents.ModelRef) int64
	// tells how much each agent's model can hold, 0 where that is not known.
	Model  agents.Model
	Config RunConfig
	// Input opens a run when none is open. An open run goes on without it.
	Input Input
	// Variables are merged into the session's variables with a new run.
	Variables agents.Variables
	Hooks     Hooks
}

// A Status is how [Run] returned.
type Status string

// The ways in which Run returns without an error.
const (
	// StatusFinal: the run ended with an answer.
	StatusFinal Status = "final"
	// StatusInterrupted: calls wait for decisions; nothing else is to be done.
	StatusInterrupted Status = "interrupted"
	// StatusStopped: a soft stop; the run can go on.
	StatusStopped Status = "stopped"
	// StatusEnded: the run ended with an error, in Err.
	StatusEnded Status = "ended"
)

// An Outcome is where a run stands when [Run] returns.
type Outcome struct {
	Status Status
	// Run is the run's id.
	Run string
	// Output is the answer of a final run.
	Output string
	// Agent is the active agent.
	Agent string
	// Approvals are the calls that wait, those of nested runs included.
	Approvals []PendingApproval
	// Err says why an ended run ended.
	Err *agents.Error
	// Usage and Turns are the run's; Active is its active time.
	Usage  agents.Usage
	Turns  int
	Active time.Duration
	// State is the folded journal.
	State *State
}
