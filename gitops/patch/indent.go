package patch

import "strings"

// An indentation is the one map between the indentation of a hunk and that of
// the file (rule 9). The zero value changes nothing.
type indentation struct {
	// add is put in front of every line, drop is taken away.
	add, drop string
	// width is the number of spaces for a tab; toTabs says which way.
	width  int
	toTabs bool
}

func (m indentation) same() bool { return m == indentation{} }

// shifts says that the map moves the hunk in or out.
func (m indentation) shifts() bool { return m.add != "" || m.drop != "" }

// maxTabWidth is the widest tab that anybody uses.
const maxTabWidth = 8

// A pairing is the indentation of one line in the diff and in the file.
type pairing struct{ diff, file string }

// inferIndentation finds the map that explains all pairs. There is none when
// the lines disagree, and then the place is none.
func inferIndentation(pairs []pairing) (indentation, bool) {
	if fits(pairs, func(p pairing) bool { return p.diff == p.file }) {
		return indentation{}, true
	}
	first := pairs[0]
	if prefix, ok := strings.CutSuffix(first.file, first.diff); ok && prefix != "" &&
		fits(pairs, func(p pairing) bool { return p.file == prefix+p.diff }) {
		return indentation{add: prefix}, true
	}
	if prefix, ok := strings.CutSuffix(first.diff, first.file); ok && prefix != "" &&
		fits(pairs, func(p pairing) bool { return p.diff == prefix+p.file }) {
		return indentation{drop: prefix}, true
	}
	toTabs := fits(pairs, func(p pairing) bool { return !strings.Contains(p.diff, "\t") })
	toSpaces := fits(pairs, func(p pairing) bool { return !strings.Contains(p.file, "\t") })
	if !toTabs && !toSpaces {
		return indentation{}, false
	}
	for width := 1; width <= maxTabWidth; width++ {
		if fits(pairs, func(p pairing) bool { return columns(p.diff, width) == columns(p.file, width) }) {
			return indentation{width: width, toTabs: toTabs}, true
		}
	}
	return indentation{}, false
}

func fits(pairs []pairing, holds func(pairing) bool) bool {
	for _, p := range pairs {
		if !holds(p) {
			return false
		}
	}
	return true
}

// columns measures an indentation in spaces.
func columns(indent string, width int) int {
	return len(indent) + (width-1)*strings.Count(indent, "\t")
}

// indentOf returns the white space that a line starts with.
func indentOf(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// apply maps an added line; ok is false when the line cannot be mapped, which
// shows that the map is wrong for this hunk.
func (m indentation) apply(text string) (mapped string, ok bool) {
	indent := indentOf(text)
	rest := text[len(indent):]
	switch blank := strings.TrimSpace(text) == ""; {
	case m.same() || blank && m.width == 0:
		return text, true
	case m.add != "":
		return m.add + text, true
	case m.drop != "":
		return strings.CutPrefix(text, m.drop)
	case m.toTabs:
		if strings.Contains(indent, "\t") {
			return text, true // uses the file's kind already
		}
		over := len(indent) % m.width
		if over > 0 && !strings.HasPrefix(rest, "*") {
			return "", false // neither so many tabs nor the style of a block comment
		}
		return strings.Repeat("\t", len(indent)/m.width) + indent[:over] + rest, true
	default:
		return strings.ReplaceAll(indent, "\t", strings.Repeat(" ", m.width)) + rest, true
	}
}

// shareIndentation gives the map of tabs and spaces that one hunk shows to the
// hunks whose own context is not indented and so shows nothing: a diff is
// written with one kind of indentation. Where no hunk shows anything and added
// lines use another kind than the whole file, nothing is certain; nor is it for
// a hunk of brackets in a diff that is moved in or out.
func (s *source) shareIndentation(set placements) {
	var shared indentation
	shifted := false
	for _, f := range set {
		if f.failure == "" && f.places[0].indent.width > 0 {
			shared = f.places[0].indent
		}
		shifted = shifted || f.failure == "" && f.places[0].indent.shifts()
	}
	for i := range set {
		f := &set[i]
		if shifted && f.failure == "" && f.weak && f.places[0].indent.same() {
			f.failure = Ambiguous // brackets at a depth that the rest of the diff shows to be wrong
			continue
		}
		if f.failure != "" || !f.places[0].indent.same() || f.hunk.showsIndentation() || !s.foreignIndentation(f.hunk) {
			continue
		}
		if shared.same() {
			f.failure = NoMatch
			f.foreign = true
			continue
		}
		f.places[0].indent = shared
	}
}

// showsIndentation says whether the hunk's old side has an indented line, so
// that it was matched with its indentation.
func (h hunk) showsIndentation() bool {
	for _, l := range h.lines {
		if l.op != add && indentOf(l.text) != "" && strings.TrimSpace(l.text) != "" {
			return true
		}
	}
	return false
}

// foreignIndentation says whether the hunk's added lines are all indented by
// spaces in a file that uses nothing but tabs, or the other way round.
func (s *source) foreignIndentation(h hunk) bool {
	tabs, spaces := 0, 0
	for _, l := range h.lines {
		if l.op == add {
			countIndentation(l.text, &tabs, &spaces)
		}
	}
	if tabs+spaces == 0 || tabs > 0 && spaces > 0 {
		return false
	}
	fileTabs, fileSpaces := 0, 0
	for _, text := range s.lines {
		countIndentation(text, &fileTabs, &fileSpaces)
	}
	return spaces > 0 && fileTabs > 0 && fileSpaces == 0 ||
		tabs > 0 && fileSpaces > 0 && fileTabs == 0
}

// countIndentation counts a line by what it is indented with. A single space
// is the style of comments and no indentation.
func countIndentation(text string, tabs, spaces *int) {
	switch {
	case strings.HasPrefix(text, "\t"):
		*tabs++
	case strings.HasPrefix(text, "  ") && strings.TrimSpace(text) != "":
		*spaces++
	}
}
