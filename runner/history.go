package runner

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"handoff/agents"
)

// A view is what the model of a run sees of its thread. It grows with the
// thread and is made anew only where the past changes: at a handoff with a
// filter or a nested history, and at a compaction. Messages are kept by what
// they say, so that each is encoded once and the beginning of consecutive
// requests stays the same, byte for byte.
type view struct {
	loop     *loop
	run      *RunState
	thread   *Thread
	items    int // of the thread that the messages cover
	marks    int
	messages []*agents.Message // the first is the system prompt
	size     int               // of the others, in bytes
	cache    map[messageKey]*agents.Message
}

// A messageKey names a message: the record that it comes from and, for a
// tool's output, the call.
type messageKey struct {
	seq  int64
	call string
	nest bool
}

// view returns the run's view, up to date.
func (l *loop) view(run *RunState) *view {
	v := l.views[run.ID]
	if v == nil {
		v = &view{
			loop: l, run: run, thread: l.state.thread(run.Thread), marks: -1, cache: map[messageKey]*agents.Message{},
			messages: []*agents.Message{{Role: agents.RoleSystem}},
		}
		l.views[run.ID] = v
	}
	if v.marks != len(v.thread.marks) {
		v.messages, v.size, v.items, v.marks = slices.Clip(v.messages[:1]), 0, 0, len(v.thread.marks)
		v.add(v.shown())
	} else {
		v.add(v.thread.Items[v.items:])
	}
	v.items = len(v.thread.Items)
	return v
}

// under returns the messages under a system prompt, which is the same message
// as long as the text is the same. They share memory with the view and must
// not be changed.
func (v *view) under(text string) []*agents.Message {
	if v.messages[0].Content != text {
		// Who was given the others goes on reading them.
		v.messages = slices.Clone(v.messages)
		v.messages[0] = &agents.Message{Role: agents.RoleSystem, Content: text}
	}
	return slices.Clip(v.messages)
}

// usualPerByte is the usual guess for English text and code: a token is four
// bytes. It holds until a provider has reported a number.
const usualPerByte = 0.25

// tokens guesses how many input tokens so many bytes are for the run's model.
func (run *RunState) tokens(bytes int) int64 {
	perByte := run.perByte
	if perByte == 0 {
		perByte = usualPerByte
	}
	return int64(float64(bytes)*perByte) + 1
}

// shown applies the marks to the thread's items.
func (v *view) shown() []agents.Item {
	var shown []agents.Item
	items, next, limited := v.thread.Items, 0, false
	take := func(upto int) {
		if !limited && upto >= v.run.first {
			shown = append(shown, items[next:v.run.first]...)
			next, limited = v.run.first, true
			shown = lastItems(shown, v.loop.config.HistoryLimit)
		}
		shown = append(shown, items[next:upto]...)
		next = upto
	}
	for _, m := range v.thread.marks {
		take(m.at)
		switch m.kind {
		case markFilter:
			shown = v.filtered(m, shown)
		case markNest:
			shown = nested(shown)
		case markCompaction:
			shown = compacted(shown, items[m.at], m.upto)
			next = m.at + 1
		}
	}
	take(len(items))
	return shown
}

// lastItems keeps the last n items of earlier runs. What that separates, a
// call from its output, is dropped when messages are made (rule R111).
func lastItems(items []agents.Item, n int) []agents.Item {
	return items[max(len(items)-n, 0):]
}

// filtered gives the items to the filter of the handoff, as it is now; a crew
// that lost it shows everything.
func (v *view) filtered(m mark, shown []agents.Item) []agents.Item {
	for _, handoff := range v.loop.Crew[m.from].Handoffs {
		if handoff.Target == m.to && handoff.Filter != nil {
			return handoff.Filter(slices.Clone(shown))
		}
	}
	return shown
}

// nestedKind marks an item that stands for a transcript. It never leaves the
// view.
const nestedKind agents.ItemKind = "nested"

// nested replaces items by one transcript. A transcript among them is taken
// apart, so that none is ever inside another (rule R56).
func nested(items []agents.Item) []agents.Item {
	if len(items) == 0 {
		return nil
	}
	last := items[len(items)-1]
	return []agents.Item{{Seq: last.Seq, Kind: nestedKind, Time: last.Time, Text: transcript(items)}}
}

// historyMark is what stands around a transcript, in any writing.
var historyMark = regexp.MustCompile(`(?i)<(\s*/?\s*)conversation_history`)

// transcript writes items as text in which nothing looks like its end.
func transcript(items []agents.Item) string {
	var lines []string
	for _, item := range items {
		if item.Kind == nestedKind {
			lines = append(lines, item.Text) // a transcript already
			continue
		}
		if line := transcribe(item); line != "" {
			lines = append(lines, historyMark.ReplaceAllString(line, "<${1}conversation history"))
		}
	}
	return strings.Join(lines, "\n")
}

// transcribe writes one item, "" for one that models do not see.
func transcribe(item agents.Item) string {
	switch item.Kind {
	case agents.KindUserMessage:
		return "user: " + item.Text
	case agents.KindMessageOutput:
		return item.Agent + ": " + item.Text
	case agents.KindToolCall, agents.KindHandoffCall:
		return fmt.Sprintf("%s calls %s %s", item.Agent, item.Call.Name, item.Call.Arguments)
	case agents.KindToolCallOutput, agents.KindHandoffOutput:
		return fmt.Sprintf("output of %s: %s", item.Call.Name, item.Text)
	case agents.KindSystemNote, agents.KindCompaction:
		return item.Text
	}
	return ""
}

// compacted replaces the items up to a seq by the summary, but keeps the last
// thing that a person said.
func compacted(items []agents.Item, summary agents.Item, upto int64) []agents.Item {
	kept := []agents.Item{summary}
	var asked *agents.Item
	var rest []agents.Item
	for i, item := range items {
		switch {
		case item.Seq > upto:
			rest = append(rest, item)
		case item.Kind == agents.KindUserMessage:
			asked = &items[i]
		}
	}
	if asked != nil {
		kept = append(kept, *asked)
	}
	return append(kept, rest...)
}

// add makes messages of items. It repairs what a filter or a limit tore apart:
// outputs follow their calls at once, calls without an output and outputs
// without a call are left out (rule R5).
func (v *view) add(items []agents.Item) {
	outputs := map[string]*agents.Item{}
	for i, item := range items {
		if isOutput(item) {
			outputs[item.Call.Key] = &items[i]
		}
	}
	for i := 0; i < len(items); {
		item := items[i]
		if !isResponse(item) {
			if message := v.plain(item); message != nil {
				v.push(message)
			}
			i++
			continue
		}
		end := i + 1
		for end < len(items) && items[end].Seq == item.Seq && isResponse(items[end]) {
			end++
		}
		v.addResponse(items[i:end], outputs)
		i = end
	}
}

func isOutput(item agents.Item) bool {
	return item.Call != nil && (item.Kind == agents.KindToolCallOutput || item.Kind == agents.KindHandoffOutput)
}

func isCall(item agents.Item) bool {
	return item.Call != nil && (item.Kind == agents.KindToolCall || item.Kind == agents.KindHandoffCall)
}

func isResponse(item agents.Item) bool {
	return item.Kind == agents.KindMessageOutput || isCall(item)
}

// plain makes a message of an item that stands for itself, nil for one that
// models do not see.
func (v *view) plain(item agents.Item) *agents.Message {
	role, text := agents.RoleSystem, item.Text
	switch item.Kind {
	case agents.KindUserMessage:
		role = agents.RoleUser
	case agents.KindSystemNote:
	case agents.KindCompaction:
		text = prompt("summary", agents.Variables{"boundary": v.loop.state.Boundary, "summary": v.loop.unmarked(item.Text)})
	case nestedKind:
		role, text = agents.RoleUser, prompt("history", agents.Variables{"transcript": item.Text})
	default:
		return nil
	}
	return v.message(messageKey{seq: item.Seq, nest: item.Kind == nestedKind}, &agents.Message{Role: role, Content: text})
}

// message returns the kept message that says the same as the made one.
func (v *view) message(key messageKey, made *agents.Message) *agents.Message {
	if kept := v.cache[key]; kept != nil && kept.Content == made.Content && len(kept.ToolCalls) == len(made.ToolCalls) {
		return kept
	}
	v.cache[key] = made
	return made
}

// addResponse makes an assistant's message of its items, followed by the
// outputs of its calls.
func (v *view) addResponse(items []agents.Item, outputs map[string]*agents.Item) {
	made := &agents.Message{Role: agents.RoleAssistant}
	var answers []*agents.Item
	whole := 0
	for _, item := range items {
		if !isCall(item) {
			made.Content = item.Text
			whole++
			continue
		}
		output := outputs[item.Call.Key]
		if output == nil {
			continue
		}
		whole++
		call := *item.Call
		call.Name, call.Arguments = replayableName(call.Name), replayable(call.Arguments)
		made.ToolCalls = append(made.ToolCalls, call)
		answers = append(answers, output)
	}
	if made.Content == "" && len(made.ToolCalls) == 0 {
		return
	}
	if info := v.thread.responses[items[0].Seq]; info != nil && info.items == whole {
		made.Raw, made.Provider, made.Model = info.raw, info.provider, info.asked
	}
	v.push(v.message(messageKey{seq: items[0].Seq}, made))
	for _, output := range answers {
		text := output.Text
		if text == "" {
			text = "(no output)"
		}
		v.push(v.message(messageKey{seq: output.Seq, call: output.Call.Key}, &agents.Message{
			Role: agents.RoleTool, Content: text, ToolCallID: output.Call.ID,
		}))
	}
}

// replayable makes arguments that are no JSON object into one. Some providers
// refuse a whole history for one bad call in it; the call's output says what
// was wrong.
func replayable(arguments string) string {
	if isObject(arguments) {
		return arguments
	}
	return "{}"
}

// replayableName does the same for the name of a tool that a model made up:
// one character that providers do not allow, or a name without end, and no
// later request passes.
func replayableName(name string) string {
	if agents.ValidToolName(name) {
		return name
	}
	const longest = 40
	kept := strings.Map(func(r rune) rune {
		if agents.ValidToolName(string(r)) {
			return r
		}
		return '_'
	}, name[:min(len(name), longest)])
	return cmp.Or(kept, "nameless")
}

func (v *view) push(message *agents.Message) {
	v.messages = append(v.messages, message)
	v.size += len(message.Content)
	for _, call := range message.ToolCalls {
		v.size += len(call.Name) + len(call.Arguments)
	}
}
