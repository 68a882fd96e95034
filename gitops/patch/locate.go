package patch

import (
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

// places finds where the lines stand together in the file at a level from 0
// to 2. More than maxPlaces are cut off.
func (s *source) places(old []line, level int) []place {
	if len(old) == 0 || len(old) > len(s.lines) {
		return nil
	}
	f := s.form(level)
	ids := make([]int32, len(old))
	rarest := 0
	for i, l := range old {
		ids[i] = f.id(l.text, level)
		if ids[i] < 0 {
			return nil
		}
		if f.counts[ids[i]] < f.counts[ids[rarest]] {
			rarest = i
		}
	}
	var found []place
	equal := 0 // places where the lines are equal, whatever their indentation
	for at := rarest; at < len(f.ids)-len(old)+1+rarest && len(found) <= maxPlaces; at++ {
		if f.ids[at] != ids[rarest] || !equalIDs(f.ids[at-rarest:], ids) {
			continue
		}
		equal++
		if p, ok := s.placeAt(old, at-rarest, level); ok {
			found = append(found, p)
		}
	}
	if len(found) == 1 && found[0].indent.shifts() && (!anyWord(old) || equal > 1 && meaningful(old) < 2) {
		return nil // brackets alone, at another depth: could be anywhere
	}
	return found
}

func equalIDs(file, hunk []int32) bool {
	for i, id := range hunk {
		if file[i] != id {
			return false
		}
	}
	return true
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
