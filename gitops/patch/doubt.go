package patch

import (
	"fmt"
	"slices"
	"strings"
)

// A place that fits may still be the wrong one: where the rest of the diff
// speaks against it, the hunk is refused, because a change in the wrong place
// costs more than ten refusals.

// doubt looks for what speaks against the places that were found for a hunk.
// Applied says that the new side is in the file at a stricter level.
func (s *source) doubt(f *finding, applied bool) {
	s.doubtBrackets(f)
	first := f.places[0].first() + 1
	switch {
	case applied && s.newSideThere(*f):
		f.failure = AlreadyApplied
	case f.atStated():
	case s.newSideStated(f.hunk, max(1, f.places[0].level)):
		f.refuse(AlreadyApplied, "Its new text is in the file already, on the very line that its header names; its old text is at line %d. It seems to have been applied before. If line %d is meant, say so in the header (@@ -%d,… @@).", first, first, first)
	case applied, len(f.places) == 1 && s.newSideElsewhere(f):
		f.refuse(AlreadyApplied, "Its new text, context included, is in the file already; lines like its old text are at line %d as well. It seems to have been applied before. If line %d is meant, copy its lines exactly and say its number in the header (@@ -%d,… @@).", first, first, first)
	case s.outsideHeading(*f):
		f.refuse(Ambiguous, "It fits at line %d alone, and that is not in the block that its header names (%q). Copy the lines of the right place exactly, or leave the name out.", first, f.hunk.headings[len(f.hunk.headings)-1])
	case s.looserAtStated(*f):
		f.refuse(Ambiguous, "It fits at line %d, but on line %d, which its header names, the file has nearly the same. Copy the lines of the right place exactly.", first, f.hunk.start)
	}
}

// refuse notes why a hunk that fits is not applied.
func (f *finding) refuse(code Code, format string, values ...any) {
	f.failure, f.doubt = code, fmt.Sprintf(format, values...)
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
	f.places = append(f.places, s.otherPlaces(*f, s.places(old, 2))...)
	f.alone = len(f.places) == 1
}

// newSideThere says that the new side stands, more exactly, where the old side
// was found: they differ in white space alone.
func (s *source) newSideThere(f finding) bool {
	return slices.ContainsFunc(s.appliedPlaces(f.hunk, 1), func(p place) bool {
		return slices.ContainsFunc(f.places, func(q place) bool { return p.first() <= q.last() && q.first() <= p.last() })
	})
}

// newSideStated says that the header names the very line on which the new side
// stands, at a level: the hunk was applied there, and what was found is a twin.
func (s *source) newSideStated(h hunk, level int) bool {
	side := h.newSide()
	leading, trailing := h.contextEnds()
	added, _ := h.changedLines()
	evidence := anyWord(side) && (added > 0 || leading > 0 && trailing > 0)
	return h.start > 0 && evidence && (s.standsAt(side, h.newStart-1, level) || s.standsAt(side, h.start-1, level))
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
	return slices.ContainsFunc(s.places(side, max(1, f.places[0].level)), func(p place) bool {
		return p.last() < f.places[0].first() || p.first() > f.places[0].last()
	})
}

// looserAtStated says that the old side stands on the stated line as well, only
// less exactly than where it was found: but for white space, or for a slip or
// two in its context.
func (s *source) looserAtStated(f finding) bool {
	old, start := f.hunk.old(), f.hunk.start-1
	if start < 0 || f.places[0].level > 1 || len(old) == 0 || start+len(old) > len(s.lines) {
		return false
	}
	slips := 0
	for i, l := range old {
		mine, file := normal(l.text, 2), normal(s.lines[start+i], 2)
		if mine == file {
			continue
		}
		slips++
		if allowed := min(maxSlips, len(mine)/4); l.op != keep || distance(mine, file, allowed) > allowed {
			return false
		}
	}
	if slips > 0 {
		return slips <= maxSlips && len(old)-slips >= minAnchors
	}
	_, ok := s.placeAt(old, start, 2)
	return ok
}

// outsideHeading says that the only place is in front of the line that the
// header names, or behind another of its kind.
func (s *source) outsideHeading(f finding) bool {
	heading := s.heading(f.hunk)
	if heading < 0 || len(f.places) != 1 || len(f.places[0].at) == 0 {
		return false
	}
	if f.places[0].last() < heading {
		return true
	}
	text := s.lines[heading]
	kind, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	opens := indentOf(text) + kind + " "
	for i := heading + 1; i < f.places[0].first(); i++ {
		if strings.HasPrefix(s.lines[i], opens) && s.literals()[i] == noLiteral {
			return true
		}
	}
	return false
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
		if all := s.places(f.hunk.old(), 2); len(all) > 1 || s.isApplied(f.hunk, 1) {
			f.places = append(f.places, s.otherPlaces(*f, all)...)
			f.refuse(Ambiguous, "The diff has the same change several times, and nothing says which place each is for. Say the line numbers in the headers (@@ -N,… @@), or leave out what is done already.")
		}
	}
}

// otherPlaces are those of a list that a finding does not have.
func (s *source) otherPlaces(f finding, all []place) []place {
	known := map[int]bool{}
	for _, p := range f.places {
		known[p.first()] = true
	}
	return slices.DeleteFunc(all, func(p place) bool { return known[p.first()] })
}

// doubtOrder refuses a hunk that is out of the order in which the diff goes
// through the file, when the file has the same but for white space elsewhere.
// Hunks may come in any order, but one that differs from its twin in white
// space alone and stands in the wrong one is most likely the twin's.
func (s *source) doubtOrder(set placements) {
	for i := range set {
		f := &set[i]
		if f.failure != "" || f.atStated() || set.inOrder(i) {
			continue
		}
		if others := s.otherPlaces(*f, s.places(f.hunk.old(), 2)); len(others) > 0 {
			f.places = append(f.places, others...)
			f.refuse(Ambiguous, "It fits at line %d, out of order with the other hunks, and the file has the same but for white space elsewhere. Say the line number in the header (@@ -N,… @@).", f.places[0].first()+1)
		}
	}
}

// inOrder says that a hunk stands behind those before it and before those
// behind it.
func (set placements) inOrder(i int) bool {
	here := set[i].places[0].first()
	for j, other := range set {
		if other.failure == "" && len(other.places) == 1 && len(other.places[0].at) > 0 && j != i && (j < i) != (other.places[0].first() <= here) {
			return false
		}
	}
	return true
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
			f.refuse(NoMatch, "Its header names line %d, where it does not fit; but for white space it would fit at line %d, which is far from there. Copy the lines of the right place exactly.", f.hunk.start, f.places[0].first()+1)
		}
	}
}

// explainDoubt shows the places that were found, and the stated line.
func (s *source) explainDoubt(b *strings.Builder, e *Error, f finding) {
	if f.hunk.start > 0 && f.hunk.start <= len(s.lines) && !f.atStated() {
		first := f.hunk.start - 1
		f.places = append(f.places, place{at: []int{first, min(first+len(f.hunk.old()), len(s.lines)) - 1}})
	}
	b.WriteString(f.doubt + " The places:\n")
	s.showFound(b, e, f)
}
