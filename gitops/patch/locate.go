package patch

import (
	"iter"
	"slices"
	"strings"
)

// A place is where a hunk fits.
type place struct {
	// at holds the file's line, counted from 0, for each old line of the
	// hunk; -1 for a line of the hunk that the file lacks.
	at     []int
	level  int
	indent indentation
	// filledBlanks says that a blank line there consists of white space, so
	// that an added one may be meant to.
	filledBlanks bool
	notes        []string
}

// first is the file's line that the hunk's first old line stands on.
func (p place) first() int {
	for _, at := range p.at {
		if at >= 0 {
			return at
		}
	}
	return 0
}

// last is the file's line that the hunk's last old line stands on, -1 for a
// hunk without old lines.
func (p place) last() int {
	for i := len(p.at) - 1; i >= 0; i-- {
		if p.at[i] >= 0 {
			return p.at[i]
		}
	}
	return -1
}

// maxPlaces bounds how many places are compared; a hunk with more is as
// ambiguous as it gets, whatever its header says.
const maxPlaces = 4096

// tooMany says that places of so many lines are more than are compared, either
// by their number or by the lines that they hold together.
func tooMany(places, lines int) bool {
	return places > maxPlaces || places > 1 && places*lines > maxSpread
}

// maxSpread bounds the lines of all places of a hunk together.
const maxSpread = 1 << 20

// places finds where the lines stand together in the file at a level from 0
// to 2. What is too many is cut off.
func (s *source) places(old []line, level int) []place {
	if len(old) == 0 || len(old) > len(s.lines) {
		return nil
	}
	f := s.form(level)
	ids := make([]int32, len(old))
	for i, l := range old {
		ids[i] = f.id(l.text, level)
		if ids[i] < 0 {
			return nil
		}
	}
	var found []place
	equal := 0 // places where the lines are equal, whatever their indentation
	for start := range f.occurrences(ids) {
		equal++
		if p, ok := s.placeAt(old, start, level); ok {
			found = append(found, p)
		}
		if tooMany(len(found), len(old)) {
			break
		}
	}
	if len(found) == 1 && found[0].indent.shifts() && (!anyWord(old) || equal > 1 && meaningful(old) < 2) {
		return nil // brackets alone, at another depth: could be anywhere
	}
	return found
}

// linearFrom is how many comparisons are worth preparing for.
const linearFrom = 1 << 20

// occurrences yields where a run of lines stands in the file. It goes from one
// occurrence of the rarest line to the next, or, where that would take long
// because everything is alike, in linear time.
func (f *form) occurrences(run []int32) iter.Seq[int] {
	rarest := 0
	for i, id := range run {
		if f.counts[id] < f.counts[run[rarest]] {
			rarest = i
		}
	}
	if int(f.counts[run[rarest]])*len(run) > linearFrom {
		return f.occurrencesOfAlike(run)
	}
	return func(yield func(int) bool) {
		for at := rarest; at < len(f.ids)-len(run)+1+rarest; at++ {
			if f.ids[at] == run[rarest] && slices.Equal(f.ids[at-rarest:at-rarest+len(run)], run) && !yield(at-rarest) {
				return
			}
		}
	}
}

// occurrencesOfAlike is the search of Knuth, Morris and Pratt.
func (f *form) occurrencesOfAlike(run []int32) iter.Seq[int] {
	border := make([]int, len(run)+1) // of each prefix, the longest that also ends it
	for i, n := 1, 0; i < len(run); i++ {
		for n > 0 && run[i] != run[n] {
			n = border[n]
		}
		if run[i] == run[n] {
			n++
		}
		border[i+1] = n
	}
	return func(yield func(int) bool) {
		n := 0
		for at, id := range f.ids {
			for n > 0 && (n == len(run) || id != run[n]) {
				n = border[n]
			}
			if id == run[n] {
				n++
			}
			if n == len(run) && !yield(at-n+1) {
				return
			}
		}
	}
}

// placeAt completes a place whose lines are known to be equal.
func (s *source) placeAt(old []line, start, level int) (place, bool) {
	p := place{at: make([]int, len(old)), level: level}
	for i := range old {
		p.at[i] = start + i
	}
	if level < 2 {
		return p, true
	}
	var ok bool
	p.indent, ok = s.indentationOf(old, p.at)
	p.filledBlanks = slices.ContainsFunc(s.lines[start:start+len(old)], func(text string) bool {
		return text != "" && strings.TrimSpace(text) == ""
	})
	return p, ok
}

// anyWord says that one of the lines has more than brackets.
func anyWord(lines []line) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return hasWord(l.text) })
}

// meaningful counts the lines that show where a hunk belongs.
func meaningful(old []line) int {
	n := 0
	for _, l := range old {
		if !trivial(l.text) {
			n++
		}
	}
	return n
}

// indentationOf infers the map from the lines of a place.
func (s *source) indentationOf(old []line, at []int) (indentation, bool) {
	var pairs []pairing
	for i, l := range old {
		if at[i] >= 0 && strings.TrimSpace(l.text) != "" {
			pairs = append(pairs, pairing{indentOf(l.text), indentOf(s.lines[at[i]])})
		}
	}
	return inferIndentation(pairs)
}
