package patch

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
)

// A work is a diff under corruption.
type work struct {
	rng       *rand.Rand
	hunks     []testHunk
	src, want string
}

// eachLine changes the lines for which the operator is one of ops; it says
// whether any changed.
func (w *work) eachLine(ops string, change func(text string) string) bool {
	changed := false
	for i := range w.hunks {
		for j, l := range w.hunks[i].lines {
			if l == "" || !strings.ContainsRune(ops, rune(l[0])) {
				continue
			}
			if text := change(l[1:]); text != l[1:] {
				w.hunks[i].lines[j] = l[:1] + text
				changed = true
			}
		}
	}
	return changed
}

// contextLines returns the indexes of a hunk's context lines.
func contextLines(h testHunk) []int {
	var found []int
	for j, l := range h.lines {
		if strings.HasPrefix(l, " ") {
			found = append(found, j)
		}
	}
	return found
}

// beside says whether a line has a change next to it.
func beside(h testHunk, j int) bool {
	change := func(k int) bool { return k >= 0 && k < len(h.lines) && strings.ContainsAny(h.lines[k][:1], "+-") }
	return change(j-1) || change(j+1)
}

// anchored says whether a hunk keeps three old lines with words in them when
// line j is lost: rule 10 asks for as many, and less must be refused.
func anchored(h testHunk, j int) bool {
	n := 0
	for k, l := range h.lines {
		if k != j && strings.ContainsAny(l[:1], " -") && anchoring(l[1:]) {
			n++
		}
	}
	return n >= minAnchors
}

var word = regexp.MustCompile(`[A-Za-z]{4,}`)

// misremember changes one or two letters of a long line.
func misremember(rng *rand.Rand, text string) (string, bool) {
	places := word.FindAllStringIndex(text, -1)
	if len(places) == 0 || len(strings.TrimSpace(text)) < 12 {
		return text, false
	}
	place := places[rng.IntN(len(places))]
	at := place[0] + rng.IntN(place[1]-place[0])
	letter := byte('a' + rng.IntN(26))
	if text[at] == letter {
		return text, false
	}
	switch rng.IntN(3) {
	case 0:
		return text[:at] + text[at+1:], true
	case 1:
		return text[:at] + string(letter) + text[at:], true
	default:
		return text[:at] + string(letter) + text[at+1:], true
	}
}

func always(change func(string) string) func(*rand.Rand, string) (string, bool) {
	return func(_ *rand.Rand, text string) (string, bool) { return change(text), true }
}

// cutInLastHunk cuts the diff within its last hunk, so that a change is lost or
// torn.
func cutInLastHunk(rng *rand.Rand, diff string) (string, bool) {
	body := strings.LastIndex(diff, "\n@@ ") + 1
	body += strings.Index(diff[body:], "\n") + 1
	lastChange := max(strings.LastIndex(diff, "\n+"), strings.LastIndex(diff, "\n-"))
	if lastChange <= body+1 {
		return "", false
	}
	return strings.TrimSuffix(diff[:body+1+rng.IntN(lastChange-body)], "\n"), true
}

func expandIndent(text string, width int) string {
	indent := indentOf(text)
	return strings.ReplaceAll(indent, "\t", strings.Repeat(" ", width)) + text[len(indent):]
}

func shrinkIndent(text string, width int) string {
	indent := indentOf(text)
	return strings.Repeat("\t", len(indent)/width) + indent[:len(indent)%width] + text[len(indent):]
}

// mixed says whether a line is indented by spaces still.
func mixed(hunks []testHunk) bool {
	for _, h := range hunks {
		for _, l := range h.lines {
			if strings.Contains(indentOf(l[1:]), " ") {
				return true
			}
		}
	}
	return false
}

// dedent removes one tab from every line of a hunk if all with text have one.
func dedent(lines []string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l[1:]) != "" && !strings.HasPrefix(l[1:], "\t") && l[0] != '\\' {
			return false
		}
	}
	for i, l := range lines {
		if l[0] != '\\' {
			lines[i] = l[:1] + strings.TrimPrefix(l[1:], "\t")
		}
	}
	return true
}

// overlapsBefore says whether a hunk ends within n lines before hunk i.
func (w *work) overlapsBefore(i, n int) bool {
	if i == 0 {
		return false
	}
	old, _ := w.hunks[i-1].counts()
	return w.hunks[i-1].oldStart+old+n > w.hunks[i].oldStart
}

// numberContext writes a line number before each context and removed line.
func (w *work) numberContext(format string) bool {
	for i := range w.hunks {
		number := w.hunks[i].oldStart
		for j, l := range w.hunks[i].lines {
			if l[0] == ' ' || l[0] == '-' {
				w.hunks[i].lines[j] = l[:1] + fmt.Sprintf(format, number) + l[1:]
				number++
			}
		}
	}
	return true
}

// eachLineAndShown changes every line. A change that no line of the old side
// shows cannot be undone by anybody, so it makes no case.
func (w *work) eachLineAndShown(change func(string) string) bool {
	shown := w.eachLine(" -", change)
	w.eachLine("+", change)
	return shown
}

// showsEscapes says that a diff's old side has what HTML would escape.
func showsEscapes(diff string) bool {
	for line := range strings.Lines(diff) {
		old := line[0] == ' ' || line[0] == '-' && !strings.HasPrefix(line, "---")
		if old && html.EscapeString(line) != line {
			return true
		}
	}
	return false
}

// hasBlanks says that a text has lines of nothing but white space.
func hasBlanks(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" && strings.TrimSpace(line) == "" {
			return true
		}
	}
	return false
}
