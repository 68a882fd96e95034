package patch

import (
	"bytes"
	"slices"
	"strings"
)

// An edit replaces the file's lines [from, to) by added ones.
type edit struct {
	from, to int
	added    []string
	// hunk is the index of the hunk that wants it.
	hunk int
	// newEnd and oldEnd carry the hunk's "\ No newline" markers.
	oldEnd, newEnd bool
}

// edits turns a placed hunk into replacements. ok is false when an added line
// cannot be mapped to the file's indentation, or when the hunk may be meant to
// change the very white space that is not exact.
func (s *source) edits(h hunk, p place, index int) (edits []edit, ok bool) {
	edits, ok = h.edits(p, index)
	if !ok || p.indent.same() {
		return edits, ok
	}
	unsure := p.filledBlanks && h.addsBlank() || h.changesSpace() && !s.repeats(h, edits)
	return edits, !unsure
}

// edits turns a placed hunk into replacements, if its added lines can be mapped.
func (h hunk) edits(p place, index int) (edits []edit, ok bool) {
	oldAt := -1   // index into p.at of the last old line seen
	var run *edit // the run of changes being collected
	for i, l := range h.lines {
		if l.op != add {
			oldAt++
		}
		if l.op == keep {
			run = nil
			continue
		}
		if run == nil {
			edits = append(edits, edit{from: -1, hunk: index, oldEnd: h.oldEnd, newEnd: h.newEnd})
			run = &edits[len(edits)-1]
		}
		if l.op == remove {
			if run.from < 0 {
				run.from = p.at[oldAt]
			}
			run.to = p.at[oldAt] + 1
			continue
		}
		text, mapped := p.indent.apply(l.text)
		if !mapped {
			return nil, false
		}
		run.added = append(run.added, text)
		if run.from < 0 && !h.nextRemoves(i) {
			run.from = insertionPoint(p, oldAt)
			run.to = run.from
		}
	}
	return edits, true
}

// addsBlank says that the hunk adds a line of nothing or white space.
func (h hunk) addsBlank() bool {
	return slices.ContainsFunc(h.lines, func(l line) bool { return l.op == add && strings.TrimSpace(l.text) == "" })
}

// changesSpace says that a run of the hunk adds, in order, most of the lines
// that it removes, so that their white space is meant to change.
func (h hunk) changesSpace() bool {
	var removed, added []string
	for _, l := range append(slices.Clip(h.lines), line{op: keep, text: "end"}) {
		switch {
		case l.op == remove && hasWord(l.text):
			removed = append(removed, l.text)
		case l.op == add && hasWord(l.text):
			added = append(added, l.text)
		case l.op == keep:
			if again := inOrder(removed, added); again > 0 && 3*again >= 2*len(removed) {
				return true
			}
			removed, added = removed[:0], added[:0]
		}
	}
	return false
}

// repeats says that a hunk which adds most of what it removes only repeats it,
// for ease of writing: it changes more than that, what it repeats comes out as
// it is in the file, and it keeps indented lines, which who changes the
// indentation of a file does not.
func (s *source) repeats(h hunk, edits []edit) bool {
	keepsIndented := slices.ContainsFunc(h.lines, func(l line) bool {
		return l.op == keep && hasWord(l.text) && indentOf(l.text) != ""
	})
	return keepsIndented && !slices.ContainsFunc(edits, func(e edit) bool {
		removed := s.lines[e.from:e.to]
		same := inOrder(removed, e.added)
		return same == max(len(removed), len(e.added)) || inOrder(folded(removed), folded(e.added)) > same
	})
}

// folded are lines with white space aside.
func folded(lines []string) []string {
	list := make([]string, len(lines))
	for i, text := range lines {
		list[i] = normal(text, 2)
	}
	return list
}

// inOrder counts the lines of part that are in whole, one after the other.
func inOrder(part, whole []string) int {
	where := map[string][]int{} // both may be as long as a diff
	for at, text := range whole {
		where[text] = append(where[text], at)
	}
	n, from := 0, 0
	for _, text := range part {
		places := where[text]
		if next, _ := slices.BinarySearch(places, from); next < len(places) {
			from = places[next] + 1
			n++
		}
	}
	return n
}

// nextRemoves says whether the run that a line at index i belongs to goes on
// with a removed line, which then says where the run is.
func (h hunk) nextRemoves(i int) bool {
	for i < len(h.lines) && h.lines[i].op == add {
		i++
	}
	return i < len(h.lines) && h.lines[i].op == remove
}

// insertionPoint is where lines go that replace nothing: behind the old line
// before them, or in front of the one after them at the hunk's edge.
func insertionPoint(p place, oldAt int) int {
	if oldAt >= 0 && p.at[oldAt] >= 0 {
		return p.at[oldAt] + 1
	}
	if oldAt+1 < len(p.at) && p.at[oldAt+1] >= 0 {
		return p.at[oldAt+1]
	}
	return 0
}

// splice writes the file anew. The edits must be sorted and disjoint.
func (s *source) splice(edits []edit) []byte {
	var out bytes.Buffer
	out.Grow(len(s.text) + 256)
	at := 0
	for _, e := range edits {
		out.Write(s.text[s.offsets[at]:s.offsets[e.from]])
		s.writeAdded(&out, e)
		at = e.to
	}
	out.Write(s.text[s.offsets[at]:])
	if at == len(s.lines) && len(edits) > 0 && len(edits[len(edits)-1].added) == 0 {
		s.keepEnd(&out, edits[len(edits)-1])
	}
	return out.Bytes()
}

// keepEnd leaves a file without a final newline without one when its last lines
// were removed (rule 15).
func (s *source) keepEnd(out *bytes.Buffer, e edit) {
	if s.endsWithNewline(e) || out.Len() == 0 {
		return
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), []byte{'\r'})
	if len(text) > 0 && text[len(text)-1] != '\n' { // an empty line is nothing but its ending
		out.Truncate(len(text))
	}
}

// writeAdded writes an edit's lines with the line ending of their
// surroundings, and keeps the end of the file as it was (rule 15).
func (s *source) writeAdded(out *bytes.Buffer, e edit) {
	if len(e.added) == 0 {
		return
	}
	ending := s.endingAround(e)
	if e.from == len(s.lines) && e.from > 0 && s.ending(e.from-1) == "" {
		out.WriteString(ending) // the line that was last needs one now
	}
	for i, text := range e.added {
		out.WriteString(text)
		if i < len(e.added)-1 || e.to < len(s.lines) || s.endsWithNewline(e) {
			out.WriteString(ending)
		}
	}
}

// endsWithNewline decides about the last line of a file whose end is touched.
func (s *source) endsWithNewline(e edit) bool {
	switch {
	case e.newEnd:
		return false
	case e.oldEnd, len(s.lines) == 0:
		return true
	default:
		return s.ending(len(s.lines)-1) != ""
	}
}

// endingAround is the line ending of the nearest line that has one: a removed
// line, the line before, the line after.
func (s *source) endingAround(e edit) string {
	near := []int{e.from, e.from - 1, e.to}
	if e.from == e.to {
		near = near[1:] // it removes none
	}
	for _, i := range near {
		if i >= 0 && i < len(s.lines) && s.ending(i) != "" {
			return s.ending(i)
		}
	}
	if bytes.Contains(s.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// sortEdits orders edits by place and returns the hunks of two that collide.
func sortEdits(edits []edit) (first, second int, collide bool) {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.to - b.to
	})
	for i := 1; i < len(edits); i++ {
		a, b := edits[i-1], edits[i]
		touch := a.to == b.from && a.hunk != b.hunk && (a.from == a.to || b.from == b.to)
		if b.from < a.to || touch {
			return a.hunk, b.hunk, true
		}
	}
	return 0, 0, false
}

// changedLines counts what a hunk adds and removes.
func (h hunk) changedLines() (added, removed int) {
	for _, l := range h.lines {
		switch l.op {
		case add:
			added++
		case remove:
			removed++
		}
	}
	return added, removed
}

// sameLines says that two hunks do the same: their bodies are equal.
func (h hunk) sameLines(other hunk) bool {
	return slices.EqualFunc(h.lines, other.lines, func(a, b line) bool { return a.op == b.op && a.text == b.text })
}

// body is the hunk's text, by which duplicates are recognised.
func (h hunk) body() string {
	var b strings.Builder
	for _, l := range h.lines {
		b.WriteByte(byte(l.op))
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}
