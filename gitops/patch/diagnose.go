package patch

import "slices"

// diagnose says what kind of misfit a hunk without a place is.
func (s *source) diagnose(h hunk) Code {
	if _, _, found := s.forgottenPlus(h); found {
		return ForgottenPlus
	}
	if _, _, found := s.gapInRemoved(h); found {
		return GapInRemoved
	}
	if s.tooLargeToAlign(h.old()) {
		return TooLarge
	}
	return NoMatch
}

// forgottenPlus looks for a context line beside a change that the file lacks,
// and without which the hunk fits: its + was probably forgotten. It returns the
// line's index in the hunk and the place of the rest.
func (s *source) forgottenPlus(h hunk) (index int, p place, found bool) {
	form := s.form(2)
	missing := 0
	for _, l := range h.old() {
		if form.id(l.text, 2) < 0 {
			missing++
		}
	}
	if missing != 1 {
		return 0, place{}, false // without any one line it would not fit either
	}
	for i, l := range h.lines {
		if l.op != keep || form.id(l.text, 2) >= 0 || h.changes() && !besideChange(h.lines, i) {
			continue
		}
		without := h
		without.lines = slices.Delete(slices.Clone(h.lines), i, i+1)
		for level := range 3 {
			if places := s.places(without.old(), level); len(places) > 0 {
				return i, places[0], true
			}
		}
	}
	return 0, place{}, false
}

// changes says whether the hunk changes anything.
func (h hunk) changes() bool {
	added, removed := h.changedLines()
	return added+removed > 0
}

func besideChange(lines []line, i int) bool {
	return i > 0 && lines[i-1].op != keep || i+1 < len(lines) && lines[i+1].op != keep
}

// maxGap is how far apart removed lines may be to be recognised as a run with
// lines between.
const maxGap = 40

// maxFollowed bounds the lines that are followed in looking for such runs.
const maxFollowed = 4_000_000

// gapInRemoved looks for a run of removed lines that are all in the file, in
// order, with others between. It returns where the run begins and ends.
func (s *source) gapInRemoved(h hunk) (first, last int, found bool) {
	form := s.form(2)
	followed := 0
	for _, run := range removedRuns(h) {
		ids := make([]int32, len(run))
		for i, l := range run {
			ids[i] = form.id(l.text, 2)
		}
		if len(run) < 2 || slices.Contains(ids, -1) {
			continue
		}
		for at, id := range form.ids {
			if id != ids[0] {
				continue
			}
			end, ok := s.followRun(ids, at)
			if ok && end-at >= len(run) {
				return at, end, true
			}
			if followed += end - at + maxGap; followed > maxFollowed {
				return 0, 0, false
			}
		}
	}
	return 0, 0, false
}

// followRun finds the run's lines one after the other from a line on. It
// returns the last line that it found.
func (s *source) followRun(ids []int32, at int) (end int, ok bool) {
	lines := s.forms[2].ids
	for _, id := range ids[1:] {
		next := slices.Index(lines[at+1:min(len(lines), at+1+maxGap)], id)
		if next < 0 {
			return at, false
		}
		at += next + 1
	}
	return at, true
}

// removedRuns returns the hunk's runs of removed lines, in which added lines
// may be mixed.
func removedRuns(h hunk) [][]line {
	var runs [][]line
	open := false
	for _, l := range h.lines {
		switch {
		case l.op == keep:
			open = false
		case l.op == remove && open:
			runs[len(runs)-1] = append(runs[len(runs)-1], l)
		case l.op == remove:
			runs = append(runs, []line{l})
			open = true
		}
	}
	return runs
}
