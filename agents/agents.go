// Package agents says who works: agents, the tools they may use, the items
// they produce and the one question that is put to a language model.
//
// The idea is that an agent is data. It is a name, instructions, a model, a
// list of allowed tools and a list of agents it may hand over to. Nothing in
// this package runs anything: package runner turns the crank, package
// agents/tools holds what tools do, package agents/llm talks to providers.
// All of them meet in the types here, which is why this package imports no
// other package of the project.
//
// The parts:
//
//   - [Agent] is one member of a crew, [Crew] the embedded crew that handoff
//     ships, read from the Markdown files in crew/.
//   - [Tool] is something an agent can do, with the facts that the loop needs
//     to be safe: what it touches ([Effect]), how a half-done call is settled
//     after a crash ([Reconcile]), whether a maintainer must approve it.
//   - [Item] is one thing that happened in a session.
//   - [Model] is asked for the next [Response]. It is the only interface
//     between the loop and the world of language models.
//   - [Error] is the one error type that the loop, the tools and the models
//     share: a stable code, a cause, and a sentence for a person.
//
// Values of these types are plain data and safe to copy; a [Message] caches its
// encoded form and must be shared by pointer.
package agents

import (
	"context"
	"encoding/json"
	"time"
)

// An Agent is one member of a crew. Agents are stored in the database and
// edited as Markdown, so every field but the functions survives a round trip.
type Agent struct {
	// ID is the slug that handoffs, the journal and tapes use: lower case
	// letters, digits and hyphens, unique within a crew.
	ID string
	// Name is what people see.
	Name string
	// Role is the agent's job in a word or two ("Engineer").
	Role string
	// Instructions is the system prompt. It may refer to session variables as
	// {{.name}}; an unknown variable is an error at run time, never an empty
	// string.
	Instructions string
	// InstructionsFunc replaces Instructions when set. It must be
	// deterministic in its arguments, because a resumed session calls it again.
	InstructionsFunc func(context.Context, Variables) (string, error)
	// Model names the model; the zero value means the session's default.
	Model ModelRef
	// Settings are sent with every request of this agent.
	Settings ModelSettings
	// Tools lists the names of the tools the agent is offered. A call to any
	// other tool is answered with "not found".
	Tools []string
	// Handoffs lists the agents it may hand over to.
	Handoffs []Handoff
	// PathScope limits what the agent may change, as slash-separated globs
	// relative to the repository ("**/*_test.go"). Empty means everything.
	PathScope []string
	// ToolUseBehavior says what happens after tools have run.
	ToolUseBehavior ToolUseBehavior
	// KeepToolChoice keeps Settings.ToolChoice after a tool was used. The
	// default is to reset it, so that a forced tool cannot loop for ever.
	KeepToolChoice bool
	// Output, when set, is the JSON schema of the agent's final answer.
	Output *OutputSchema
	// InputGuardrails run on the input before the first model call, for the
	// first agent of a run only.
	InputGuardrails []Guardrail
	// OutputGuardrails run on the final output.
	OutputGuardrails []Guardrail
}

// A Handoff is a permission to pass control to another agent.
type Handoff struct {
	// Target is the other agent's ID.
	Target string
	// Nest replaces the history that the target sees by one summary message.
	Nest bool
	// Filter, when set, chooses what the target sees of the history. The
	// journal keeps everything; orphaned outputs are dropped by the runner.
	Filter func([]Item) []Item
	// Disabled hides the target and refuses calls to it.
	Disabled bool
}

// Variables is the persisted map of a session that instructions can refer to.
// Values are scalars that the host validated, never an agent's free text.
type Variables map[string]string

// A ModelRef names a model of a provider. The zero value means the default.
type ModelRef struct {
	Provider string `json:"provider,omitempty"`
	ID       string `json:"id,omitempty"`
}

// ModelSettings are the knobs of a request. A nil pointer means that the field
// is not sent and the provider's default holds.
type ModelSettings struct {
	Temperature       *float64 `json:"temperature,omitempty"`
	MaxTokens         int      `json:"max_tokens,omitempty"`
	ReasoningEffort   string   `json:"reasoning_effort,omitempty"`
	ParallelToolCalls *bool    `json:"parallel_tool_calls,omitempty"`
	// ToolChoice is "", "auto", "none", "required" or a tool's name.
	ToolChoice string `json:"tool_choice,omitempty"`
}

// An OutputSchema asks for a final answer of a given JSON shape.
type OutputSchema struct {
	Name   string
	Schema json.RawMessage
	// Lenient asks for valid JSON only, where a provider cannot hold a schema.
	Lenient bool
}

// ToolUseBehavior says when a tool's output ends the run (rule R40).
type ToolUseBehavior struct {
	// Kind is "" or "run_llm_again", "stop_on_first_tool" or
	// "stop_at_tool_names".
	Kind string
	// Names are the tools of "stop_at_tool_names".
	Names []string
	// Func decides freely when set; done=false asks the model again.
	Func func(context.Context, []Item) (output string, done bool, err error)
}

// A Guardrail looks at text before it is used. It is a name and a function
// that returns a reason when the text must not pass.
type Guardrail struct {
	Name string
	// Parallel lets an input guardrail run beside the first model call instead
	// of before it. That saves time and may cost a call in vain; what the model
	// answered is still neither kept nor acted on when the text trips.
	Parallel bool
	Check    func(ctx context.Context, text string) (reason string, tripped bool, err error)
}

// Usage counts what model calls cost. Tokens are the provider's own numbers
// where it gave any, otherwise estimates, marked in Entries.
type Usage struct {
	Requests  int   `json:"requests"`
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Total     int64 `json:"total"`
	Cached    int64 `json:"cached,omitempty"`
	Reasoning int64 `json:"reasoning,omitempty"`
	// CostMicros is the price in millionths of a US dollar.
	CostMicros int64 `json:"cost_micros,omitempty"`
	// CostUnknown is set when any of the calls had no known price; CostMicros
	// is then a lower bound.
	CostUnknown bool `json:"cost_unknown,omitempty"`
	// Entries has one entry for each attempt, failed ones included.
	Entries []UsageEntry `json:"entries,omitempty"`
}

// A UsageEntry is the usage of one attempt at a model call.
type UsageEntry struct {
	Attempt    int    `json:"attempt"`
	Agent      string `json:"agent,omitempty"`
	Model      string `json:"model,omitempty"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	Total      int64  `json:"total"`
	Cached     int64  `json:"cached,omitempty"`
	Reasoning  int64  `json:"reasoning,omitempty"`
	CostMicros int64  `json:"cost_micros,omitempty"`
	// CostUnknown says that no price is known for the model.
	CostUnknown bool `json:"cost_unknown,omitempty"`
	// Estimated says that the provider reported nothing and we counted.
	Estimated bool `json:"estimated,omitempty"`
}

// Add adds v to u, entries included.
func (u *Usage) Add(v Usage) {
	u.Requests += v.Requests
	u.Input += v.Input
	u.Output += v.Output
	u.Total += v.Total
	u.Cached += v.Cached
	u.Reasoning += v.Reasoning
	u.CostMicros += v.CostMicros
	u.CostUnknown = u.CostUnknown || v.CostUnknown
	u.Entries = append(u.Entries, v.Entries...)
}

// An ItemKind tells what an [Item] is.
type ItemKind string

// The kinds of items. They are the words of the journal, the pages and the
// tapes; they never change meaning.
const (
	KindUserMessage    ItemKind = "user_message"
	KindMessageOutput  ItemKind = "message_output"
	KindReasoning      ItemKind = "reasoning"
	KindToolCall       ItemKind = "tool_call"
	KindToolCallOutput ItemKind = "tool_call_output"
	KindHandoffCall    ItemKind = "handoff_call"
	KindHandoffOutput  ItemKind = "handoff_output"
	KindSystemNote     ItemKind = "system_note"
	KindToolApproval   ItemKind = "tool_approval"
	KindCompaction     ItemKind = "compaction"
)

// An Item is one thing that happened in a session, as computed from the
// journal. Items are never edited.
type Item struct {
	Seq   int64     `json:"seq"`
	Kind  ItemKind  `json:"kind"`
	Agent string    `json:"agent,omitempty"`
	Time  time.Time `json:"time"`
	// Text is the message, the tool's output, the note or the summary.
	Text string `json:"text,omitempty"`
	// Call is set for calls, outputs and approvals.
	Call *ToolCall `json:"call,omitempty"`
	// IsError marks an output that reports a failure.
	IsError bool `json:"is_error,omitempty"`
	// EffectState is what became of a call, "" for an item that is no output:
	// done, failed, done_reconciled (found to have happened after a crash),
	// unknown (it may or may not have happened) or not_run.
	EffectState string `json:"effect_state,omitempty"`
	// From and To are set for handoffs.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// A ToolCall is a model's wish to use a tool.
type ToolCall struct {
	// Key is the host's own name of the call, unique in the session and stable
	// across crashes: run, response and index. Wire ids are not trusted.
	Key string `json:"key,omitempty"`
	// ID is the id on the wire, made unique by the runner.
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}
