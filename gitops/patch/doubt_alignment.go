package patch

import (
	"html"
	"slices"
	"strings"
)

// An alignment forgives context that is a little wrong. Here is what tells a
// slip of the pen from a diff that was made for another state of the file, or
// that lost an operator or a line.

// doubtAlignment looks for what speaks against a place of level 3.
func (s *source) doubtAlignment(f *finding) {
	old, p := f.hunk.old(), f.places[0]
	if text, lost := f.lostPlus(); lost {
		f.refuse(ForgottenPlus, "Its line %q is written as context (it starts with a space), but the file does not have it, and by the counts of the header it is an added one. Was its + forgotten? Put + in front if it is new, or leave it out.", text)
		return
	}
	if typed, ok := f.hunk.withTypedOperators(); ok && !slices.Equal(typed.old(), old) {
		f.refuse(NoMatch, "It has a line that begins with a dash, which is no minus. Write - in front of removed lines.")
		return
	}
	if text, escaped := s.slipsByEscape(old, p); escaped {
		f.refuse(NoMatch, "Its line %q is in the file once its escapes are undone. Send the diff as plain text, without escapes of JSON or HTML.", text)
		return
	}
	if q, there := s.alignNewSide(f.hunk); there && (q.last() < p.first() || q.first() > p.last() || removesNothing(f.hunk)) || s.doubles(*f) {
		f.failure = AlreadyApplied
		return
	}
	if f.floats() {
		f.refuse(NoMatch, "Its added lines stand beside blank lines and brackets alone, and between these and the rest of its context the file has more lines. Copy the lines beside the added ones without a gap.")
		return
	}
	if s.lostRemoval(old, p) {
		f.refuse(GapInRemoved, "Beside the lines that it removes the file has one more that is the same. Remove that too, or keep it as context.")
		return
	}
	if at := s.stale(old, p); at >= 0 {
		f.places = append(f.places, place{at: []int{at, at + len(old) - 1}})
		f.refuse(NoMatch, "It nearly fits at line %d, but at line %d all of its context fits and only what it removes differs, as if that had been changed since. Copy the lines of the right place exactly.", p.first()+1, at+1)
	}
}

// lostPlus finds a line at the hunk's edge that the file lacks and that the
// header counts as new.
func (f finding) lostPlus() (text string, lost bool) {
	missing := 0
	for i, l := range f.hunk.old() {
		if f.places[0].at[i] < 0 && !l.elision {
			text = l.text
			missing++
		}
	}
	old, new := f.hunk.counts()
	return text, missing > 0 && f.atStated() && f.hunk.countsStated && f.hunk.oldCount == old-missing && f.hunk.newCount == new
}

// slipsByEscape finds a context line that differs from the file's by nothing but
// escapes: the diff was escaped, its added lines as well.
func (s *source) slipsByEscape(old []line, p place) (text string, escaped bool) {
	for i, l := range old {
		if p.at[i] < 0 || normal(l.text, 2) == normal(s.lines[p.at[i]], 2) {
			continue
		}
		file := normal(s.lines[p.at[i]], 2)
		if normal(jsonEscapes.Replace(l.text), 2) == file || normal(html.UnescapeString(l.text), 2) == file {
			return l.text, true
		}
	}
	return "", false
}

// jsonEscapes undoes what JSON does to a line of text.
var jsonEscapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// alignNewSide finds where the hunk has been applied already, though its context
// is a little wrong: its added lines stand there exactly.
func (s *source) alignNewSide(h hunk) (place, bool) {
	if !addsText(h) {
		return place{}, false
	}
	side := hunk{lines: make([]line, 0, len(h.lines))}
	for _, l := range h.lines {
		switch l.op {
		case keep:
			side.lines = append(side.lines, l)
		case add:
			side.lines = append(side.lines, line{op: remove, text: l.text})
		}
	}
	return s.align(side)
}

func removesNothing(h hunk) bool {
	_, removed := h.changedLines()
	return removed == 0
}

// doubles says that the hunk inserts lines beside the same lines.
func (s *source) doubles(f finding) bool {
	edits, ok := s.edits(f.hunk, f.places[0], 0)
	if !ok {
		return false
	}
	return slices.ContainsFunc(edits, func(e edit) bool {
		n := len(e.added)
		telling := slices.DeleteFunc(slices.Clone(e.added), trivial)
		if e.from < e.to || len(telling) < 2 {
			return false
		}
		same := func(from, to int) bool {
			return from >= 0 && to <= len(s.lines) && slices.Equal(folded(s.lines[from:to]), folded(e.added))
		}
		return same(e.from-n, e.from) || same(e.from, e.from+n)
	})
}

// lostRemoval says that between context and a run of removed lines the place
// leaves out a line that equals the run's nearest: one of several equal lines
// has no operator to go by.
func (s *source) lostRemoval(old []line, p place) bool {
	for i := 1; i < len(old); i++ {
		before, here := p.at[i-1], p.at[i]
		if before < 0 || here-before < 2 {
			continue
		}
		if old[i].op == remove && s.alike(here-1, here) || old[i-1].op == remove && s.alike(before+1, before) {
			return true
		}
	}
	return false
}

// floats says that lines are added where nothing shows that it is there: on
// neither side is there a telling line without a gap between.
func (f finding) floats() bool {
	old, at := f.hunk.old(), f.places[0].at
	tied := func(from, step int) bool {
		for i := from; i >= 0 && i < len(old) && at[i] >= 0; i += step {
			if i != from && at[i]-at[i-step] != step {
				return false
			}
			if anchoring(old[i].text) {
				return true
			}
		}
		return false
	}
	next := 0 // the old line behind
	for i, l := range f.hunk.lines {
		if l.op != add {
			next++
			continue
		}
		replaces := i > 0 && f.hunk.lines[i-1].op == remove || f.hunk.nextRemoves(i)
		if !replaces && !tied(next-1, -1) && !tied(next, 1) {
			return true
		}
	}
	return false
}

// alike says that two lines of the file are equal, white space aside.
func (s *source) alike(i, j int) bool { return s.form(2).ids[i] == s.form(2).ids[j] }

// stale finds a place other than p where all of the context stands, but not what
// is removed; -1 for none.
func (s *source) stale(old []line, p place) int {
	form := s.form(2)
	ids := make([]int32, len(old))
	anchors := 0
	for i, l := range old {
		ids[i] = form.id(l.text, 2)
		if l.op == keep && (l.elision || ids[i] < 0) {
			return -1
		}
		if l.op == keep && anchoring(l.text) {
			anchors++
		}
	}
	if anchors < minAnchors {
		return -1
	}
	for start := range len(form.ids) - len(old) + 1 {
		if start != p.first() && contextStands(old, ids, form.ids[start:]) {
			return start
		}
	}
	return -1
}

func contextStands(old []line, ids, file []int32) bool {
	for i, l := range old {
		if l.op == keep && ids[i] != file[i] {
			return false
		}
	}
	return true
}
