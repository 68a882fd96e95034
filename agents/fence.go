package agents

import "strings"

// Unfence takes a text out of the Markdown code fence that stands around it.
// Models put fences around JSON although they were asked not to. Text without
// a fence is returned without the space around it.
func Unfence(text string) string {
	text = strings.TrimSpace(text)
	inner, fenced := strings.CutPrefix(text, "```")
	if !fenced {
		return text
	}
	inner, closed := strings.CutSuffix(inner, "```")
	if !closed {
		return text
	}
	if _, body, found := strings.Cut(inner, "\n"); found {
		inner = body
	}
	return strings.TrimSpace(inner)
}
