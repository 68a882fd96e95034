package patch

import (
	"fmt"
	"strings"
)

// trace walks the best path back and completes the place.
func (a *alignment) trace(end [2]int) (place, bool) {
	p := place{at: make([]int, len(a.old)), level: 3}
	for i := range p.at {
		p.at[i] = -1
	}
	anchors := 0
	for i, j := end[0], end[1]; i >= 0; {
		p.at[i] = j
		if a.match(i, j) > 0 {
			p.notes = append(p.notes, fmt.Sprintf("context line %q was taken for %q", strings.TrimSpace(a.old[i].text), strings.TrimSpace(a.s.lines[j])))
		} else if anchoring(a.old[i].text) {
			anchors++
		}
		i, j = a.previous(i, j)
	}
	if anchors < minAnchors || a.farFetched(p) || !a.oneMap(p) {
		return place{}, false
	}
	p.notes = append(p.notes, "context lines differed from the file's; it was kept as it is")
	p.indent = a.indent
	return p, true
}

// oneMap says that the lines that differ in nothing but indentation do not show
// another map than the alignment's: one line may have slipped, beside others
// that are indented as in the file.
func (a *alignment) oneMap(p place) bool {
	fit, differ, removes := 0, 0, false
	for i, at := range p.at {
		if at < 0 || normal(a.old[i].text, 2) != normal(a.s.lines[at], 2) {
			continue
		}
		mapped, ok := a.indent.apply(a.old[i].text)
		switch indent := indentOf(a.s.lines[at]); {
		case strings.TrimSpace(a.s.lines[at]) == "":
		case !ok || indentOf(mapped) != indent:
			differ++
		case indent != "":
			fit++
			removes = removes || a.old[i].op == remove
		}
	}
	if a.indent.add == " " && !removes {
		return false // or the context lacks its operators, and what is added nothing
	}
	return differ == 0 || a.indent.same() && differ < fit
}

// maxLeftOut is how many lines of the file a hunk may leave out without saying
// so. Who leaves out more writes an elision.
const maxLeftOut = 4

// farFetched says that a place needs too much imagination: many lines left out,
// or several, and a line invented besides.
func (a *alignment) farFetched(p place) bool {
	leftOut, invented := 0, false
	for i, at := range p.at {
		switch {
		case at < 0:
			invented = invented || !a.old[i].elision
		case i > 0 && p.at[i-1] >= 0:
			leftOut += at - p.at[i-1] - 1
		}
	}
	return leftOut > maxLeftOut || leftOut > 1 && invented
}

// previous is the cell that the best path came from, row -1 for its start.
func (a *alignment) previous(i, j int) (int, int) {
	arrived := int(a.forward[i][j]) - a.match(i, j)
	for skipped := 0; i > 0 && (skipped == 0 || a.gapAllowed(i)); skipped++ {
		from := j - 1 - skipped
		if from < 0 || skipped*costLeftOut > arrived {
			break
		}
		if int(a.forward[i-1][from])+skipped*costLeftOut == arrived {
			return i - 1, from
		}
	}
	for from := j - 1; from >= 0 && i >= 2 && a.jumps(i-1); from-- {
		if int(a.forward[i-2][from])+costElision == arrived {
			return i - 2, from
		}
	}
	return -1, -1
}
