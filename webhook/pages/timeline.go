package pages

import (
	"cmp"
	"encoding/json"
	"time"

	"handoff/runner"
	"handoff/runner/report"
)

// The kinds of entries, which are also classes of the style sheet.
const (
	kindPerson   = "person"
	kindMessage  = "message"
	kindCall     = "call"
	kindHandoff  = "handoff"
	kindApproval = "approval"
	kindHost     = "host"
	kindEnd      = "end"
)

// An entry is one line of a timeline.
type entry struct {
	Seq    int64
	Time   time.Time
	Kind   string
	Nested bool
	Failed bool
	// Pending marks a call that has no outcome yet.
	Pending bool
	Who     string
	// What is one line, Text somebody's Markdown, Detail a longer plain text
	// that is folded in, under the words of Fold.
	What     string
	Text     string
	Fold     string
	Detail   string
	Duration time.Duration
}

// A timeline is what happened, oldest first.
type timeline struct {
	Entries []entry
	// Earlier counts entries that are left out because the page would become
	// too long; the journal has them.
	Earlier int
}

// maxEntries bounds a page; a session of the usual limits stays well below.
const maxEntries = 2_000

// maxDetail is how many bytes of an output are folded in.
const maxDetail = 16 << 10

// outputs are the texts of calls' outcomes, by the seq of their records: events
// have only a line of them.
func outputs(records []runner.Record) map[int64]string {
	texts := map[int64]string{}
	for _, record := range records {
		var outcome runner.ToolOutcome
		if record.Kind == runner.RecordToolOutcome && json.Unmarshal(record.Payload, &outcome) == nil {
			texts[record.Seq] = outcome.Output
		}
	}
	return texts
}

// newTimeline makes entries of events: a call and its outcome are one.
func newTimeline(events []runner.Event, outputs map[int64]string, names names) timeline {
	b := timelineBuilder{outputs: outputs, names: names, calls: map[string]int{}}
	for _, event := range events {
		b.add(event)
	}
	earlier := max(0, len(b.entries)-maxEntries)
	return timeline{Entries: b.entries[earlier:], Earlier: earlier}
}

// pending is the newest call without an outcome, "" for none.
func (t timeline) pending() string {
	for i := len(t.Entries) - 1; i >= 0; i-- {
		if entry := t.Entries[i]; entry.Pending {
			return entry.What
		}
	}
	return ""
}

type timelineBuilder struct {
	entries []entry
	outputs map[int64]string
	names   names
	calls   map[string]int // where a call's entry is
	started bool           // the first input, the task, was seen
}

func (b *timelineBuilder) add(event runner.Event) {
	e := entry{Seq: event.Seq, Time: event.Time, Nested: event.Nested, Who: b.names.of(event.Agent)}
	switch event.Kind {
	case runner.EventUserMessage:
		b.said(e, event)
		return
	case runner.EventMessageOutput:
		e.Kind, e.Text = kindMessage, event.Text
	case runner.EventReasoning:
		e.Kind, e.What, e.Fold, e.Detail = kindMessage, "thinks", "reasoning", cut(event.Text)
	case runner.EventToolCalled, runner.EventHandoffRequested:
		e.Kind, e.Pending, e.What = kindCall, true, report.DescribeCall(event.Tool, event.Arguments)
		b.calls[event.CallKey] = len(b.entries)
	case runner.EventToolOutput:
		b.outcome(e, event)
		return
	case runner.EventHandoffOccurred:
		b.handsOver(e, event)
		return
	case runner.EventApproval:
		e.Kind, e.What, e.Text = kindApproval, "asks a maintainer about "+label(event.Tool), event.Text
	case runner.EventDecision:
		e.Kind, e.Who, e.What = kindApproval, cmp.Or(event.From, "nobody"), event.Text+" ("+label(event.Tool)+")"
	case runner.EventNote:
		e.Kind, e.What, e.Fold, e.Detail = kindHost, cmp.Or(report.Unseen(event), "is told by the host"), "note", cut(event.Text)
	case runner.EventCompaction:
		e.Kind, e.What, e.Fold, e.Detail = kindHost, report.Unseen(event), "summary", cut(event.Text)
	case runner.EventPaused:
		e.Kind, e.Who, e.What = kindHost, runner.ByHost, "paused: "+label(event.Text)
	case runner.EventRunEnded:
		b.ended(e, event)
		return
	default:
		return
	}
	b.entries = append(b.entries, e)
}

// said adds what a person or another agent wrote. The first input is the task
// with all that the host put around it, so it is folded.
func (b *timelineBuilder) said(e entry, event runner.Event) {
	e.Kind = kindPerson
	if e.Nested {
		e.Kind = kindMessage
	}
	if b.started {
		e.Text = event.Text
	} else {
		e.What, e.Fold, e.Detail = "asked the crew", "what the crew was told", cut(event.Text)
	}
	b.started = true
	b.entries = append(b.entries, e)
}

// outcome completes the entry of a call.
func (b *timelineBuilder) outcome(e entry, event runner.Event) {
	place, known := b.calls[event.CallKey]
	if !known {
		e.Kind, e.What = kindCall, report.DescribeCall(event.Tool, event.Arguments)
		place, b.entries = len(b.entries), append(b.entries, e)
	}
	call := &b.entries[place]
	call.Pending, call.Duration = false, event.Duration.Round(time.Second)
	call.Failed = report.CallFailed(event.Tool, event.Text, event.IsError)
	if event.Text != "" {
		call.What += " – " + event.Text
	}
	if unseen := report.Unseen(event); unseen != "" {
		call.What += " (" + unseen + ")"
	}
	if full := b.outputs[event.Seq]; full != "" && full != event.Text {
		call.Fold, call.Detail = "output", cut(full)
	}
}

// handsOver turns the call that asked for a handoff into the handoff.
func (b *timelineBuilder) handsOver(e entry, event runner.Event) {
	e.Kind, e.Who = kindHandoff, b.names.of(event.From)
	e.What, e.Text = "hands over to "+b.names.of(event.To), event.Text
	for i := len(b.entries) - 1; i >= 0; i-- {
		if last := b.entries[i]; last.Pending && last.Kind == kindCall && last.Who == e.Who {
			b.entries[i] = e
			return
		}
	}
	b.entries = append(b.entries, e)
}

// ended adds how a run ended. What an agent answered to another is in that
// one's call already, and the answer to the user has a place of its own.
func (b *timelineBuilder) ended(e entry, event runner.Event) {
	if e.Nested && !event.IsError {
		return
	}
	e.Kind, e.What = kindEnd, "finished"
	if event.IsError {
		e.Failed, e.What = true, "ended early: "+event.Text
	}
	b.entries = append(b.entries, e)
}

// cut shortens a text that is folded in.
func cut(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return text[:maxDetail] + "\n… (the journal has the rest)"
}
