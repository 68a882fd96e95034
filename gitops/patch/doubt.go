package patch

import "slices"

// A place that fits may still be the wrong one: where the rest of the diff
// speaks against it, the hunk is refused, because a change in the wrong place
// costs more than ten refusals.

// doubt looks for what speaks against the places that were found for a hunk.
// Applied says that the new side is in the file at a stricter level.
func (s *source) doubt(f *finding, applied bool) {
	s.doubtBrackets(f)
	switch {
	case applied && s.newSideThere(*f):
		f.failure = AlreadyApplied
	case f.atStated():
	case applied, s.newSideStated(f.hunk), len(f.places) == 1 && s.newSideElsewhere(f):
		f.failure = AlreadyApplied
	case s.looserAtStated(*f):
		f.failure = Ambiguous
	}
}

// atStated says that one of the places is the stated line.
func (f finding) atStated() bool {
	return slices.ContainsFunc(f.places, func(p place) bool { return p.first()+1 == f.hunk.start })
}

// doubtBrackets adds, for a hunk whose old side is nothing but brackets and
// blanks, the places where it stands at another depth: being the only place at
// this depth proves nothing about a diff that may be indented differently.
func (s *source) doubtBrackets(f *finding) {
	old := f.hunk.old()
	if f.hunk.atEnd || anyWord(old) {
		return
	}
	f.weak = true
	f.strict = len(f.places)
	for _, p := range s.places(old, 2) {
		known := slices.ContainsFunc(f.places[:f.strict], func(q place) bool { return q.first() == p.first() })
		if !known {
			f.places = append(f.places, p)
		}
	}
}

// newSideThere says that the new side stands, more exactly, where the old side
// was found: they differ in white space alone.
func (s *source) newSideThere(f finding) bool {
	return slices.ContainsFunc(s.appliedPlaces(f.hunk, 1), func(p place) bool {
		return slices.ContainsFunc(f.places, func(q place) bool { return p.first() <= q.last() && q.first() <= p.last() })
	})
}

// newSideStated says that the header names the very line on which the new side
// stands: the hunk was applied there, and what was found is a twin.
func (s *source) newSideStated(h hunk) bool {
	side := h.newSide()
	leading, trailing := h.contextEnds()
	added, _ := h.changedLines()
	evidence := anyWord(side) && (added > 0 || leading > 0 && trailing > 0)
	return h.start > 0 && evidence && (s.standsAt(side, h.newStart-1, 1) || s.standsAt(side, h.start-1, 1))
}

// minTwin is how many lines a new side must have to be taken for what a hunk
// of its context became. Shorter ones stand in files by chance.
const minTwin = 5

// newSideElsewhere says that, clear of the only place of the old side, the file
// has the whole new side: of two twins one has been changed, and nothing says
// that the other is meant.
func (s *source) newSideElsewhere(f *finding) bool {
	side := f.hunk.newSide()
	leading, trailing := f.hunk.contextEnds()
	if len(side) < minTwin || leading == 0 || trailing == 0 || meaningful(side) < 2 || s.byHeading(*f) >= 0 {
		return false
	}
	return slices.ContainsFunc(s.places(side, 1), func(p place) bool {
		return p.last() < f.places[0].first() || p.first() > f.places[0].last()
	})
}

// looserAtStated says that the old side stands on the stated line as well, only
// less exactly than where it was found.
func (s *source) looserAtStated(f finding) bool {
	old := f.hunk.old()
	return f.hunk.start > 0 && f.places[0].level < 2 && s.standsAt(old, f.hunk.start-1, 2)
}

// standsAt says whether lines are in the file from a line on, at a level.
func (s *source) standsAt(lines []line, start, level int) bool {
	if start < 0 || len(lines) == 0 || start+len(lines) > len(s.lines) {
		return false
	}
	for i, l := range lines {
		if normal(l.text, level) != normal(s.lines[start+i], level) {
			return false
		}
	}
	if level < 2 {
		return true
	}
	_, ok := s.placeAt(lines, start, level)
	return ok
}

// doubtRepeated refuses equal hunks that ended up in one place though the file
// has others for them: they were meant for different ones.
func (s *source) doubtRepeated(set placements) {
	for i := range set {
		f := &set[i]
		if f.failure != "" || !f.hunk.repeated && !set.repeats(i) || f.hunk.repeated && f.atStated() {
			continue
		}
		if len(s.places(f.hunk.old(), 2)) > 1 || s.isApplied(f.hunk, 1) {
			f.failure = Ambiguous
		}
	}
}

// doubtDistance refuses a hunk that differs from the file in white space and
// stands far from its stated line, when others show that the numbers are right.
func (set placements) doubtDistance() {
	for i := range set {
		f := &set[i]
		if f.failure != "" || f.places[0].level != 2 || f.hunk.start == 0 {
			continue
		}
		exact := slices.ContainsFunc(set, func(other finding) bool {
			return other.failure == "" && other.places[0].level == 0 && other.hunk.start > 1 && other.atStated()
		})
		if exact && abs(f.places[0].first()+1-f.hunk.start) > nearLines {
			f.failure = NoMatch
		}
	}
}
