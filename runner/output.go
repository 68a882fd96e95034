package runner

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// fullLimit is the most that is kept of an output that was cut, in bytes; a
// journal record must stay something that a database likes to hold.
const fullLimit = 1 << 20

// cut shortens text to about limit bytes: the first half and the last half,
// broken at line ends where there are any nearby and never inside a character.
// It returns the whole text as well when it cut, up to a megabyte of it. Text
// that is not UTF-8 is made so first (rule R29).
func cut(text string, limit int) (short, full string) {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text, ""
	}
	short = headAndTail(text, limit)
	if len(text) > fullLimit {
		text = headAndTail(text, fullLimit)
	}
	return short, text
}

func headAndTail(text string, limit int) string {
	head, tail := text[:headEnd(text, limit/2)], text[tailStart(text, len(text)-limit/2):]
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", strings.TrimSuffix(head, "\n"), len(text)-len(head)-len(tail), tail)
}

// headEnd returns where to cut at or before i: after a line end when one is
// within the last quarter, otherwise before a whole character.
func headEnd(text string, i int) int {
	if line := strings.LastIndexByte(text[:i], '\n'); line >= i-i/4 {
		return line + 1
	}
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// tailStart is headEnd's mirror image, at or after i.
func tailStart(text string, i int) int {
	rest := text[i:]
	if line := strings.IndexByte(rest, '\n'); line >= 0 && line <= len(rest)/4 && line+1 < len(rest) {
		return i + line + 1
	}
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return i
}
