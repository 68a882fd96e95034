package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"handoff/agents"
)

// An EventKind tells what an [Event] is.
type EventKind string

// The kinds of events. The first four and the two of handoffs have the names
// that agent frameworks use.
const (
	EventAgentUpdated     EventKind = "agent_updated"
	EventToolCalled       EventKind = "tool_called"
	EventToolOutput       EventKind = "tool_output"
	EventMessageOutput    EventKind = "message_output"
	EventHandoffRequested EventKind = "handoff_requested"
	EventHandoffOccurred  EventKind = "handoff_occurred"
	EventReasoning        EventKind = "reasoning"
	EventUserMessage      EventKind = "user_message"
	EventNote             EventKind = "system_note"
	EventCompaction       EventKind = "compaction"
	EventApproval         EventKind = "approval_requested"
	EventDecision         EventKind = "approval_decided"
	EventUsage            EventKind = "usage"
	EventPaused           EventKind = "paused"
	EventRunEnded         EventKind = "run_ended"
	// EventDelta is a piece of text in the making. It is not recorded: its Seq
	// is that of the request it answers.
	EventDelta EventKind = "delta"
	// EventDeltaRestart voids the pieces of text since the last request.
	EventDeltaRestart EventKind = "delta_restart"
)

// An Event is something that happened, for people who watch. Events other than
// deltas are computed from records ([Replay]), so that watching live and
// reading later show the same; Seq and Index order them.
type Event struct {
	Seq   int64     `json:"seq"`
	Index int       `json:"index"`
	Time  time.Time `json:"time"`
	Kind  EventKind `json:"kind"`
	Run   string    `json:"run"`
	// Nested is set for runs of agents that another agent asked.
	Nested bool   `json:"nested,omitempty"`
	Agent  string `json:"agent,omitempty"`
	// Text is the message, the note, the output's summary, the reason, or the
	// piece of text.
	Text string `json:"text,omitempty"`
	// Tool, CallKey and Arguments (shortened) are set for calls and outputs.
	Tool      string `json:"tool,omitempty"`
	CallKey   string `json:"call,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`
	// Effect is one of the Effect constants, Duration how long the call ran.
	Effect   string        `json:"effect,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// CutFrom is the length in bytes of an output of which the agent reads the
	// beginning and the end only, 0 when it reads all. The journal has more.
	CutFrom int64 `json:"cut_from,omitempty"`
	// Replaced is how many entries of the history a compaction's summary, in
	// Text, stands for.
	Replaced int `json:"replaced,omitempty"`
	// Budget names the budget of a note that warns that it is nearly used up.
	Budget string `json:"budget,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	// Code is set when a run ended with an error.
	Code agents.Code `json:"code,omitempty"`
	// Usage is the run's so far, without entries; Turn the number of calls.
	Usage agents.Usage `json:"usage,omitzero"`
	Turn  int          `json:"turn,omitempty"`
}

// A Replayer turns records into the events that [Hooks.OnEvent] was told of
// them, deltas apart. It must be given all records of a journal, in order. The
// zero value begins with the first. It is not safe for concurrent use.
type Replayer struct {
	state State
}

// Next returns the events of the next record. After an error the Replayer must
// not be used.
func (r *Replayer) Next(record Record) ([]Event, error) {
	payload, err := decodePayload(record)
	if err != nil {
		return nil, err
	}
	if err := r.state.apply(record, payload); err != nil {
		return nil, err
	}
	return eventsOf(&r.state, record, payload), nil
}

// Replay returns the events of a journal's records from a seq on. The records
// must be all of them. Nothing is left out: whoever has seen the events before
// seq n and reads those from n on has seen all (rule R115).
func Replay(records []Record, from int64) ([]Event, error) {
	var replayer Replayer
	var events []Event
	for _, record := range records {
		next, err := replayer.Next(record)
		if err != nil {
			return nil, err
		}
		if record.Seq >= from {
			events = append(events, next...)
		}
	}
	return events, nil
}

// eventsOf computes the events of a record that was just applied.
func eventsOf(state *State, record Record, payload any) []Event {
	run := state.Runs[record.RunID]
	base := Event{Seq: record.Seq, Time: record.Time, Run: record.RunID}
	if run != nil {
		base.Agent, base.Nested = run.Agent, run.Parent != ""
	}
	events := payloadEvents(state, run, base, payload)
	for i := range events {
		events[i].Index = i
	}
	return events
}

func payloadEvents(state *State, run *RunState, e Event, payload any) []Event {
	switch p := payload.(type) {
	case runCreated:
		e.Kind, e.To = EventAgentUpdated, p.Agent
	case inputAdded:
		e.Kind, e.Agent, e.Text = EventUserMessage, p.Author, p.Text
	case modelResponse:
		return responseEvents(run, e, p)
	case approvalRequested:
		e.Kind = EventApproval
		e.ofCall(state.calls[p.Call])
		e.Text = p.Conflict
	case Decision:
		e.Kind, e.Text, e.From = EventDecision, string(p.Kind), p.By
		if p.Reason != "" {
			e.Text += ": " + p.Reason
		}
		e.ofCall(state.calls[p.CallKey])
	case ToolOutcome:
		return outcomeEvents(state, e, p)
	case handoffCommitted:
		e.Agent, e.From, e.To, e.Text = p.From, p.From, p.To, p.Context
		e.Kind = EventHandoffOccurred
		next := e
		next.Kind, next.Agent, next.Text = EventAgentUpdated, p.To, ""
		return []Event{e, next}
	case compactionAdded:
		e.Kind, e.Text, e.Replaced = EventCompaction, p.Summary, p.Items
	case noteAdded:
		e.Kind, e.Text, e.Budget = EventNote, p.Text, p.Budget
	case runPaused:
		e.Kind, e.Text = EventPaused, p.Reason
	case runEnded:
		e.Kind, e.Text, e.Code = EventRunEnded, p.Output, p.Code
		if p.Code != "" {
			e.Text, e.IsError = p.Message, true
		}
		e.ofUsage(run)
	default:
		return nil
	}
	return []Event{e}
}

func responseEvents(run *RunState, e Event, p modelResponse) []Event {
	e.Agent = p.Agent
	var events []Event
	add := func(kind EventKind, text string) {
		next := e
		next.Kind, next.Text = kind, text
		events = append(events, next)
	}
	if p.Reasoning != "" {
		add(EventReasoning, p.Reasoning)
	}
	if p.Text != "" {
		add(EventMessageOutput, p.Text)
	}
	for _, call := range run.Pending.Calls {
		add(EventToolCalled, "")
		last := &events[len(events)-1]
		if call.Name == HandoffTool {
			last.Kind = EventHandoffRequested
		}
		last.ofCall(call)
	}
	add(EventUsage, "")
	events[len(events)-1].ofUsage(run)
	return events
}

// outcomeEvents gives the event of an outcome that counted; a late second one
// is none.
func outcomeEvents(state *State, e Event, p ToolOutcome) []Event {
	call := state.calls[p.CallKey]
	if call == nil || call.Outcome == nil || call.outcomeSeq != e.Seq {
		return nil
	}
	e.Kind, e.Text, e.IsError, e.Effect = EventToolOutput, firstLine(p.Summary), p.IsError, p.Effect
	e.Duration = time.Duration(p.Millis) * time.Millisecond
	e.CutFrom = p.Size
	if e.Text == "" {
		e.Text = firstLine(p.Output)
	}
	e.ofCall(call)
	return []Event{e}
}

func (e *Event) ofCall(call *CallState) {
	if call == nil {
		return
	}
	e.Tool, e.CallKey, e.Agent, e.Arguments = call.Name, call.Key, call.Agent, ShortArguments(call.Arguments)
}

func (e *Event) ofUsage(run *RunState) {
	e.Usage, e.Turn = run.Usage, run.Turn
	e.Usage.Entries = nil
}

// lineLimit is the longest line that people are shown of an output, in bytes.
const lineLimit = 160

// firstLine shortens text to a line that is safe to show: what agents and
// tools write may carry terminal escapes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(line, lineLimit)
}

// clip shortens text at a character's border and takes control and other
// invisible characters out.
func clip(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text[:min(len(text), 4*limit)])
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:headEnd(text, limit)], "") + "…"
}

// ShortArguments shows the arguments of a call in a line: its short values, in
// the order of their names.
func ShortArguments(arguments string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return firstLine(arguments)
	}
	var parts []string
	for name, value := range fields {
		text := fmt.Sprint(value)
		if strings.Contains(text, "\n") {
			text = fmt.Sprintf("(%d lines)", strings.Count(text, "\n")+1)
		}
		parts = append(parts, name+"="+clip(text, lineLimit/2))
	}
	slices.Sort(parts)
	return clip(strings.Join(parts, " "), lineLimit)
}

func (l *loop) emit(event Event) {
	l.events.Lock()
	defer l.events.Unlock()
	l.Hooks.OnEvent(event)
}

// deltas passes pieces of text on while the model speaks.
func (l *loop) deltas(run *RunState) func(agents.Delta) {
	if l.Hooks.OnEvent == nil {
		return nil
	}
	event := Event{Seq: l.state.Seq, Kind: EventDelta, Run: run.ID, Nested: run.Parent != "", Agent: run.Agent, Turn: run.Turn + 1}
	return func(delta agents.Delta) {
		piece := event
		if delta.Restart {
			piece.Kind = EventDeltaRestart
		} else if delta.Text == "" {
			return
		}
		piece.Time, piece.Text = time.Now(), delta.Text
		l.emit(piece)
	}
}
