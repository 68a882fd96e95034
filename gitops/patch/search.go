package patch

import (
	"slices"
	"strings"
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
	if s.aligned > maxAlignments {
		return finding{hunk: h, failure: TooLarge}
	}
	s.aligned += min(len(trimmed.lines)*len(s.lines), maxAlignment)
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
		// The new side is longer, so it begins no further in front than its length.
		near, _ := slices.BinarySearchFunc(applied, p.first()-new, func(q place, line int) int { return q.first() - line })
		for _, q := range applied[near:] {
			if q.first() > p.first() {
				break
			}
			if q.first() == p.first() || q.last() >= p.last() {
				return true
			}
		}
		return false
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
