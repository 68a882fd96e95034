package patch

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// otherReadings are the hunk's texts under other assumptions about how it was
// written: context without operators, or with line numbers in front.
func (s *source) otherReadings(h hunk) []attempt {
	var list []attempt
	const noOperators = "context lines were read without a leading space"
	if raw, ok := h.withoutOperators(); ok {
		list = append(list, attempt{hunk: raw, note: noOperators})
	}
	if raw, ok := s.withoutSomeOperators(h); ok {
		list = append(list, attempt{hunk: raw, note: noOperators})
	}
	if typed, ok := h.withTypedOperators(); ok {
		list = append(list, attempt{hunk: typed, note: "a dash in front of a line was read as a minus"})
	}
	if plain, ok := h.withoutNumbers(); ok {
		list = append(list, attempt{hunk: plain, note: "line numbers in front of the lines were left out"})
	}
	return list
}

// withoutOperators reads every context line as a whole, as if its leading
// space belonged to it.
func (h hunk) withoutOperators() (hunk, bool) {
	changed := false
	stars, flush := false, false
	lines := make([]line, len(h.lines))
	for i, l := range h.lines {
		if l.op == keep && !l.bare {
			l = l.withoutOperator()
			changed = true
			stars = stars || strings.HasPrefix(l.text, " *")
		}
		if l.op == add && strings.HasPrefix(l.text, "*") {
			flush = true
		}
		lines[i] = l
	}
	h.lines = lines
	return h, changed && !(stars && flush) // or a block comment was moved by a space
}

func (l line) withoutOperator() line {
	l.text, l.bare = " "+l.text, true
	return l
}

// withoutSomeOperators reads those context lines as a whole that the file has
// as a whole and not otherwise. Another line must be in the file as it was
// read, or all of them may have been moved by a space.
func (s *source) withoutSomeOperators(h hunk) (hunk, bool) {
	changed, as := false, false
	lines := make([]line, len(h.lines))
	for i, l := range h.lines {
		lines[i] = l
		if l.op == add || strings.TrimSpace(l.text) == "" {
			continue
		}
		switch {
		case s.has(l.text):
			as = as || !l.bare
		case l.op == keep && !l.bare && s.has(" "+l.text):
			lines[i] = l.withoutOperator()
			changed = true
		default:
			return h, false
		}
	}
	h.lines = lines
	return h, changed && as
}

// has says whether the file has a line, trailing white space aside.
func (s *source) has(text string) bool { return s.form(1).id(text, 1) >= 0 }

// withTypedOperators reads a dash that a word processor made of a minus as one.
func (h hunk) withTypedOperators() (hunk, bool) {
	changed := false
	lines := slices.Clone(h.lines)
	for i, l := range lines {
		if c, size := utf8.DecodeRuneInString(l.text); l.bare && typographic[c] == "-" {
			lines[i] = line{op: remove, text: l.text[size:], unended: l.unended}
			changed = true
		}
	}
	h.lines = lines
	h.settleEnds()
	return h, changed
}

// withoutNumbers strips "12 | " or "12<tab>" from the lines if every context
// line with text carries one. The removed lines must all carry one or none.
func (h hunk) withoutNumbers() (hunk, bool) {
	lines := slices.Clone(h.lines)
	stripped := map[operation]int{}
	left := map[operation]int{}
	old := 0
	for i, l := range lines {
		number, text, ok := cutNumber(l.text)
		if l.op != add {
			old++
		}
		switch {
		case ok:
			if l.op == keep && stripped[keep] == 0 {
				h.start, h.countsStated = max(0, number-old+1), false // better than the header's
			}
			stripped[l.op]++
			lines[i].text = text
		case strings.TrimSpace(l.text) != "":
			left[l.op]++
		}
		if l.bare {
			lines[i].elision = false
		}
	}
	if left[keep] > 0 || stripped[keep]+stripped[remove] == 0 || stripped[remove] > 0 && left[remove] > 0 {
		return h, false
	}
	if left[add] > 0 {
		for i, l := range h.lines {
			if l.op == add {
				lines[i].text = l.text
			}
		}
	}
	h.lines = lines
	return h, true
}

// cutNumber takes a line number, as read_file and others print it, from a line.
func cutNumber(text string) (number int, rest string, ok bool) {
	rest = strings.TrimLeft(text, " ")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 {
		return 0, text, false
	}
	number, rest = smallNumber(rest[:digits]), rest[digits:]
	if after, ok := strings.CutPrefix(rest, "\t"); ok {
		return number, after, true
	}
	if after, ok := strings.CutPrefix(rest, " | "); ok {
		return number, after, true
	}
	if rest == " |" {
		return number, "", true
	}
	return 0, text, false
}
