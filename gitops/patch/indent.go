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
	case m.same() || text == "":
		return text, true
	case blank && m.drop != "":
		return strings.TrimPrefix(text, m.drop), true // editors strip what is blank
	case blank && m.add != "":
		return text, true
	case m.add != "":
		return m.add + text, true
	case m.drop != "":
		return strings.CutPrefix(text, m.drop)
	case m.toTabs:
		if strings.Contains(indent, "\t") {
			return text, indent[0] == '\t' // uses the file's kind already
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
