package patch

import (
	"slices"
	"strings"
)

// The costs of what level 3 forgives in context lines, and the limits of rule
// 10. A line with one slip of the pen costs less than a line left out.
const (
	costSlip     = 1 // for each edit in a line
	costLeftOut  = 2 // for each line of the file that the hunk skips
	costInvented = 2 // for each line at the hunk's edge that the file lacks
	costElision  = 1
	maxCost      = 12
	minMargin    = 3
	minAnchors   = 3
	// impossible is above every limit and leaves room for sums.
	impossible = 100
)

// An alignment looks for the place of one hunk at level 3: a path through the
// table of old lines × file lines in which removed lines match exactly and in
// order without gaps, and context lines may be a little wrong.
//
// Forward holds the cost of the best path that ends at a cell, backward that of
// the rest of it, so that their sum is the cost of the best path through the
// cell. From these sums follows, for each run of changes, how much better the
// best place is than any other: the certainty that rule 10 asks for.
type alignment struct {
	s   *source
	old []line
	// indent maps the hunk's indentation; lines are compared with it.
	indent indentation
	// inserts[i] says that lines are added in front of old line i.
	inserts []bool
	slips   []map[int32]int
	ids     []int32
	budget  int
	forward [][]uint8
	// skipRow is the backward row two below, for elisions.
	skipRow []uint8
}

// align finds the hunk's place at level 3, if it is certain.
func (s *source) align(h hunk) (place, bool) {
	old := h.old()
	if s.tooLargeToAlign(old) || len(old) < minAnchors {
		return place{}, false
	}
	a := &alignment{s: s, old: old, inserts: h.insertions(), budget: min(maxCost, 3+len(old)*3/2)}
	a.indent = s.likelyIndentation(old)
	a.compare()
	a.runForward()
	best, end := a.bestEnd()
	if best > a.budget || !a.certain(h, best) {
		return place{}, false
	}
	return a.trace(end)
}

// tooLargeToAlign says that an alignment would take too long (rule 19).
func (s *source) tooLargeToAlign(old []line) bool {
	return len(old)*len(s.lines) > maxAlignment
}

// insertions says before which old lines something is added; the last element
// is the end of the hunk.
func (h hunk) insertions() []bool {
	inserts := make([]bool, 1, len(h.lines)+1)
	for _, l := range h.lines {
		if l.op == add {
			inserts[len(inserts)-1] = true
		} else {
			inserts = append(inserts, false)
		}
	}
	return inserts
}

// likelyIndentation infers the map from the old lines that stand in the file
// exactly once, their indentation aside. Without a common map it is none.
func (s *source) likelyIndentation(old []line) indentation {
	f := s.form(2)
	var pairs []pairing
	for _, l := range old {
		id := f.id(l.text, 2)
		if id >= 0 && f.counts[id] == 1 && strings.TrimSpace(l.text) != "" {
			at := slices.Index(f.ids, id)
			pairs = append(pairs, pairing{indentOf(l.text), indentOf(s.lines[at])})
		}
	}
	if len(pairs) == 0 {
		return indentation{}
	}
	indent, ok := inferIndentation(pairs)
	if !ok {
		return indentation{}
	}
	return indent
}

// compare finds, for each old line, which lines of the file it equals and
// which it resembles. Resemblance is worked out once per distinct line.
func (a *alignment) compare() {
	form := a.s.form(indented)
	a.ids = make([]int32, len(a.old))
	a.slips = make([]map[int32]int, len(a.old))
	texts := make([]string, len(form.counts))
	sets := make([]letters, len(form.counts))
	for text, id := range form.byText {
		texts[id], sets[id] = text, lettersOf(text)
	}
	for i, l := range a.old {
		mapped, ok := a.indent.apply(l.text)
		if !ok {
			mapped = l.text
		}
		a.ids[i] = form.id(mapped, indented)
		text := normal(mapped, indented)
		allowed := min(maxSlips, len(strings.TrimSpace(text))/4)
		if a.ids[i] >= 0 || l.op != keep || allowed == 0 {
			continue // a line that the file has is no slip of another
		}
		set := lettersOf(text)
		for id, other := range texts {
			if !mayResemble(text, other, set, sets[id], allowed) {
				continue
			}
			if edits := distance(text, other, allowed); edits <= allowed {
				if a.slips[i] == nil {
					a.slips[i] = map[int32]int{}
				}
				a.slips[i][int32(id)] = edits
			}
		}
	}
}

// match is the cost of taking old line i for line j of the file.
func (a *alignment) match(i, j int) int {
	id := a.s.forms[indented].ids[j]
	if id == a.ids[i] {
		return 0
	}
	if edits, ok := a.slips[i][id]; ok {
		return edits * costSlip
	}
	return impossible
}

// gapAllowed says whether lines of the file may be left out between old lines
// i-1 and i: neither within a removed run nor where something is inserted.
func (a *alignment) gapAllowed(i int) bool {
	return !a.inserts[i] && (a.old[i-1].op == keep || a.old[i].op == keep)
}

// jumps says whether old line i stands for lines that the diff leaves out: it
// is an elision between two context lines.
func (a *alignment) jumps(i int) bool {
	return a.old[i].elision && i > 0 && i < len(a.old)-1 &&
		a.old[i-1].op == keep && a.old[i+1].op == keep && !a.inserts[i] && !a.inserts[i+1]
}

// startCost is the cost of a path that begins with old line i: 0 for the
// first; the second may be, when the first is an invented context line at the
// hunk's edge that stands beside no change.
func (a *alignment) startCost(i int) int {
	switch {
	case i == 0:
		return 0
	case i == 1 && a.lacks(0) && a.old[1].op == keep && !a.inserts[0] && !a.inserts[1]:
		return costInvented
	}
	return impossible
}

// lacks says that old line i is a context line that the file has nowhere, so
// that it may have been invented.
func (a *alignment) lacks(i int) bool {
	return a.old[i].op == keep && a.s.form(2).id(a.old[i].text, 2) < 0
}

// endCost is the cost of a path that ends with old line i, in the same way.
func (a *alignment) endCost(i int) int {
	last := len(a.old) - 1
	switch {
	case i == last:
		return 0
	case i == last-1 && a.lacks(last) && a.old[i].op == keep && !a.inserts[last] && !a.inserts[last+1]:
		return costInvented
	}
	return impossible
}

// runForward fills the table from the first old line to the last.
func (a *alignment) runForward() {
	n, m := len(a.old), len(a.s.lines)
	a.forward = make([][]uint8, n)
	cells := make([]uint8, n*m)
	for i := range n {
		a.forward[i] = cells[i*m : (i+1)*m]
		start := a.startCost(i)
		step := a.stepInto(i)
		for j := range m {
			cost := min(start, step(j)) + a.match(i, j)
			a.forward[i][j] = uint8(min(cost, impossible))
		}
	}
}

// stepInto returns, for old line i, the cost of arriving at each line of the
// file in turn; it must be called with j = 0, 1, 2….
func (a *alignment) stepInto(i int) func(j int) int {
	if i == 0 {
		return func(int) int { return impossible }
	}
	above := a.forward[i-1]
	gap, jump := impossible, impossible
	withGap := a.gapAllowed(i)
	var beforeJump []uint8
	if i >= 2 && a.jumps(i-1) {
		beforeJump = a.forward[i-2]
	}
	return func(j int) int {
		if j == 0 {
			return impossible
		}
		direct := int(above[j-1])
		if withGap {
			direct, gap = min(direct, gap), min(direct, gap)+costLeftOut
		}
		if beforeJump != nil {
			jump = min(jump, int(beforeJump[j-1])+costElision)
			direct = min(direct, jump)
		}
		return direct
	}
}

// bestEnd finds the cheapest complete path.
func (a *alignment) bestEnd() (cost int, end [2]int) {
	cost = impossible
	for i := len(a.old) - 1; i >= max(0, len(a.old)-2); i-- {
		tail := a.endCost(i)
		for j, c := range a.forward[i] {
			if total := int(c) + tail; total < cost {
				cost, end = total, [2]int{i, j}
			}
		}
	}
	return cost, end
}

// certain says whether every run of changes has one place that is better than
// any other by the margin.
func (a *alignment) certain(h hunk, best int) bool {
	anchors := a.changeRows(h)
	if len(anchors) == 0 {
		return false // a hunk that changes nothing has no place to be certain of
	}
	backward := make([]uint8, len(a.s.lines)) // of the row below the current
	for i := len(a.old) - 1; i >= 0; i-- {
		backward = a.backwardRow(i, backward)
		if !anchors[i] {
			continue
		}
		close := 0
		for j, c := range a.forward[i] {
			if int(c)+int(backward[j]) < best+minMargin {
				close++
			}
		}
		if close != 1 {
			return false
		}
	}
	return true
}

// backwardRow computes, for old line i matched at each line of the file, the
// cost of the best way to go on to the hunk's end, from the row below.
func (a *alignment) backwardRow(i int, below []uint8) []uint8 {
	m := len(a.s.lines)
	row := make([]uint8, m)
	tail := a.endCost(i)
	last := i == len(a.old)-1
	gap, jump := impossible, impossible
	for j := m - 1; j >= 0; j-- {
		best := tail
		if !last && j+1 < m {
			next := int(below[j+1]) + a.match(i+1, j+1)
			if a.gapAllowed(i + 1) {
				next, gap = min(next, gap), min(next, gap)+costLeftOut
			}
			best = min(best, next)
		}
		if !last && a.jumps(i+1) && j+1 < m {
			jump = min(jump, int(a.skipRow[j+1])+a.match(i+2, j+1)+costElision)
			best = min(best, jump)
		}
		row[j] = uint8(min(best, impossible))
	}
	a.skipRow = below
	return row
}

// changeRows marks the old lines by which changes are placed: each removed
// line, and the neighbours of each insertion.
func (a *alignment) changeRows(h hunk) map[int]bool {
	rows := map[int]bool{}
	at := -1
	for _, l := range h.lines {
		switch l.op {
		case keep:
			at++
		case remove:
			at++
			rows[at] = true
		case add:
			rows[max(at, 0)] = true
		}
	}
	return rows
}
