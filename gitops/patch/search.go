package patch

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// An attempt is one reading of a hunk at one level.
type attempt struct {
	hunk  hunk
	level int
	note  string
	// thenNew says that, the old side not being there, the new side is looked
	// for at this level (rule 12).
	thenNew bool
}

// search looks for a hunk's places, strictest first.
func (s *source) search(h hunk) finding {
	if len(h.lines) == 0 {
		return finding{hunk: h, places: []place{{}}, failure: Truncated}
	}
	if len(h.meantOld()) == 0 {
		return s.searchWithoutContext(h)
	}
	applied := false // the new side is there, and the old one not at so strict a level
	for _, a := range s.attempts(h) {
		places := s.places(a.hunk.old(), a.level)
		if a.hunk.atEnd {
			places = s.preferEnd(places)
		}
		if s.alreadyThere(a.hunk, places, a.level) {
			return finding{hunk: h, failure: AlreadyApplied}
		}
		if len(places) == 0 {
			applied = applied || a.thenNew && s.isApplied(h, a.level)
			continue
		}
		f := finding{hunk: a.hunk, places: places, reading: a.note}
		s.doubt(&f, applied)
		return f
	}
	if applied {
		return finding{hunk: h, failure: AlreadyApplied}
	}
	trimmed, _ := h.trimmed()
	if p, ok := s.align(trimmed); ok {
		f := finding{hunk: trimmed, places: []place{p}}
		s.doubtAlignment(&f)
		return f
	}
	if _, there := s.alignNewSide(trimmed); there {
		return finding{hunk: h, failure: AlreadyApplied}
	}
	return finding{hunk: h, failure: s.diagnose(trimmed)}
}

// attempts lists the readings of a hunk in the order of their strictness. A
// reading that changes the hunk's text counts at levels 0 and 1 only.
func (s *source) attempts(h hunk) []attempt {
	trimmed, shorter := h.trimmed()
	plain := []attempt{{hunk: h}}
	if shorter {
		plain = append(plain, attempt{hunk: trimmed})
	}
	var list []attempt
	at := func(level int, from []attempt) {
		for _, a := range from {
			a.level = level
			list = append(list, a)
		}
	}
	other := s.otherReadings(trimmed)
	for level := range 2 {
		at(level, plain)
		list[len(list)-1].thenNew = true
	}
	at(0, other)
	at(1, other)
	at(2, plain)
	list[len(list)-1].thenNew = true
	return list
}

// searchWithoutContext places a hunk that has added lines only: that is
// certain in an empty or new file and nowhere else (rule 11).
func (s *source) searchWithoutContext(h hunk) finding {
	if len(s.lines) == 0 {
		trimmed, _ := h.trimmed()
		return finding{hunk: trimmed, places: []place{{}}}
	}
	return finding{hunk: h, failure: NoMatch}
}

// trimmed is the hunk without the blank lines at its end that carry no
// operator: they may be context or the layout of the text around the diff.
func (h hunk) trimmed() (hunk, bool) {
	end := len(h.lines)
	for end > 0 && h.lines[end-1].bare && h.lines[end-1].text == "" {
		end--
	}
	shorter := end < len(h.lines)
	h.lines = h.lines[:end]
	return h, shorter
}

// preferEnd keeps the places at the end of the file if there are any.
func (s *source) preferEnd(places []place) []place {
	for _, p := range places {
		if p.last() == len(s.lines)-1 {
			return []place{p}
		}
	}
	return places
}

// newSide is what the file says after the hunk.
func (h hunk) newSide() []line {
	var lines []line
	for _, l := range h.lines {
		if l.op != remove {
			lines = append(lines, l)
		}
	}
	return lines
}

// isApplied says whether the new side is in the file at a level at which the
// old one is not: rule 12.
func (s *source) isApplied(h hunk, level int) bool {
	return len(s.appliedPlaces(h, level)) > 0
}

// appliedPlaces finds where the new side stands as evidence. Of a hunk that
// removes lines at its edge the new side is context alone, which stands there
// before as after; only the edge of the file shows that the lines are gone.
func (s *source) appliedPlaces(h hunk, level int) []place {
	h, _ = h.trimmed()
	side := h.newSide()
	if !anyWord(side) {
		return nil
	}
	places := s.places(side, level)
	leading, trailing := h.contextEnds()
	if added, _ := h.changedLines(); added > 0 || leading > 0 && trailing > 0 {
		return places
	}
	return slices.DeleteFunc(places, func(p place) bool {
		return trailing == 0 && p.last() != len(s.lines)-1 || leading == 0 && p.first() != 0
	})
}

// alreadyThere finds a hunk that was applied before although its old side still
// fits: it adds lines at its edge, or lines that repeat its context. The new
// side is then at the same place. Only an exact line number speaks for another.
func (s *source) alreadyThere(h hunk, places []place, level int) bool {
	old, new := h.counts()
	if len(places) == 0 || new <= old || !addsText(h) {
		return false
	}
	applied := s.places(h.newSide(), level)
	there := func(p place) bool {
		return slices.ContainsFunc(applied, func(q place) bool {
			return q.first() == p.first() || q.last() == p.last() || q.first() < p.first() && p.last() < q.last()
		})
	}
	stated := slices.ContainsFunc(places, func(p place) bool { return p.first()+1 == h.start && !there(p) })
	return !stated && slices.ContainsFunc(places, there)
}

func addsText(h hunk) bool {
	for _, l := range h.lines {
		if l.op == add && strings.TrimSpace(l.text) != "" {
			return true
		}
	}
	return false
}

// contextEnds counts the context lines at the hunk's two ends.
func (h hunk) contextEnds() (leading, trailing int) {
	for leading < len(h.lines) && h.lines[leading].op == keep {
		leading++
	}
	for trailing < len(h.lines) && h.lines[len(h.lines)-1-trailing].op == keep {
		trailing++
	}
	return leading, trailing
}

// fullContext is the number of context lines that diff tools write.
const fullContext = 3

// breaksOff says whether the diff ends too early (rule 13): its text stops
// without a newline while its header declares more. Wrong counts alone are so
// common that they prove nothing; there must be a second sign.
func (s *source) breaksOff(f finding) bool {
	h := f.hunk
	if h.cut && (!h.changes() || s.tornLine(f)) {
		return true // the change was still to come
	}
	old, new := h.counts()
	if !h.cut || h.oldCount <= old && h.newCount <= new {
		return false
	}
	leading, trailing := h.contextEnds()
	if len(f.places[0].at) == 0 {
		return trailing == 0 // a new file
	}
	exact := f.places[0].first()+1 == h.start
	if f.places[0].last() == len(s.lines)-1 {
		return exact && trailing == 0
	}
	missing := min(h.oldCount-old, h.newCount-new)
	if exact && missing > 0 && trailing < fullContext && h.oldCount-old != h.newCount-new {
		return true // what is missing has a change
	}
	return trailing < fullContext && trailing < leading || trailing == 0 || exact && missing >= fullContext
}

// tornLine says whether the hunk's last line is the beginning of the line that
// the file has there.
func (s *source) tornLine(f finding) bool {
	last := f.hunk.lines[len(f.hunk.lines)-1]
	p := f.places[0]
	if last.op != keep || p.last() < 0 || last.text == "" {
		return false
	}
	at := p.last()
	if p.at[len(p.at)-1] < 0 {
		at++ // the last line was taken for an invented one
	}
	return at < len(s.lines) && len(last.text) < len(strings.TrimRight(s.lines[at], " \t")) && strings.HasPrefix(s.lines[at], last.text)
}

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
