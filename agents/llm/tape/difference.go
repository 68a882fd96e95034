package tape

import (
	"fmt"
	"slices"
	"strings"
)

// difference says in a few lines where a request differs from the one that a
// line was made with. It names the first difference only: the others follow
// from it more often than not.
func difference(want, got *Request) string {
	if want == nil {
		return "the line knows a hash but no request; update the tape"
	}
	if textOf(want.System) != textOf(got.System) {
		return "the system prompt differs:\n" + differentText(textOf(want.System), textOf(got.System))
	}
	if text := differentTools(want.Tools, got.Tools); text != "" {
		return text
	}
	for i := range min(len(want.Messages), len(got.Messages)) {
		if text := differentMessage(want.Messages[i], got.Messages[i]); text != "" {
			return fmt.Sprintf("message %d of %d differs: %s", i+1, len(got.Messages), text)
		}
	}
	switch {
	case len(want.Messages) > len(got.Messages):
		return "the request ends early; the tape goes on with\n- " + describe(want.Messages[len(got.Messages)])
	case len(want.Messages) < len(got.Messages):
		return "the request goes on where the tape's ends:\n+ " + describe(got.Messages[len(want.Messages)])
	default:
		return "the requests are the same, but not the hash; update the tape"
	}
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func differentTools(want, got []Tool) string {
	for _, tool := range want {
		if !slices.ContainsFunc(got, func(other Tool) bool { return other.Name == tool.Name }) {
			return "the tool " + tool.Name + " is offered no more"
		}
	}
	for i, tool := range got {
		at := slices.IndexFunc(want, func(other Tool) bool { return other.Name == tool.Name })
		switch {
		case at < 0:
			return "the tool " + tool.Name + " is new"
		case want[at].Description != tool.Description:
			return "the description of the tool " + tool.Name + " differs:\n" + differentText(want[at].Description, tool.Description)
		case !sameTool(want[at], tool):
			return "the schema of the tool " + tool.Name + " differs:\n" + differentText(string(want[at].Parameters), string(tool.Parameters))
		case at != i:
			return "the tools are in another order"
		}
	}
	return ""
}

func differentMessage(want, got Message) string {
	switch {
	case sameMessage(want, got):
		return ""
	case want.Role != got.Role:
		return "another role\n- " + describe(want) + "\n+ " + describe(got)
	case want.Content != got.Content:
		return "the text of the " + got.Role + "\n" + differentText(want.Content, got.Content)
	case want.Answers != got.Answers:
		return fmt.Sprintf("it answers call %d, not call %d", got.Answers, want.Answers)
	default:
		return "the calls\n- " + describe(want) + "\n+ " + describe(got)
	}
}

func describe(m Message) string {
	parts := []string{m.Role + ":"}
	if m.Content != "" {
		parts = append(parts, excerpt(m.Content, 0))
	}
	for _, call := range m.Calls {
		parts = append(parts, call.Name+excerpt(string(call.Arguments), 0))
	}
	return strings.Join(parts, " ")
}

// differentText shows the first line that differs, around the first character
// that does.
func differentText(want, got string) string {
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		var w, g string
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if w == g && i < len(wantLines) && i < len(gotLines) {
			continue
		}
		at := common(w, g)
		return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, excerpt(w, at), excerpt(g, at))
	}
	return "white space at the end"
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// excerpt returns at most 160 characters of a line around a place.
func excerpt(text string, at int) string {
	const width = 160
	start := max(0, at-40)
	shown := strings.ToValidUTF8(text[min(start, len(text)):min(len(text), start+width)], "")
	shown = strings.ReplaceAll(shown, "\n", "⏎")
	if start > 0 {
		shown = "…" + shown
	}
	if start+width < len(text) {
		shown += "…"
	}
	return shown
}
