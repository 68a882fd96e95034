package patch

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A finding is what was found for one hunk.
type finding struct {
	// hunk is the hunk as it was read in the end, which may be another
	// reading than the plain one.
	hunk hunk
	// places are all places at the level used; one when it is settled.
	places []place
	// reading names an unusual reading, "" for the plain one.
	reading string
	// failure is set when there is no place, or several.
	failure Code
	// doubt says in a sentence why a hunk that fits was refused all the same.
	doubt string
	// foreign says that the hunk fits but its added lines may use another kind
	// of indentation than the file.
	foreign bool
	// escaped says that the hunk fits but added lines may be HTML-escaped.
	escaped bool
	// weak says that the old side is brackets and blanks only: then nothing
	// but an exact line or a heading decides, and only among the strict first
	// places. The others are those at another depth.
	weak   bool
	strict int
	// alone says that it has one place, at whatever depth.
	alone bool
}

// notes says for the model what was forgiven.
func (f finding) notes() []string {
	notes := slices.Clone(f.places[0].notes)
	if f.reading != "" {
		notes = append(notes, f.reading)
	}
	switch p := f.places[0]; {
	case !p.indent.same():
		notes = append(notes, "the indentation was adapted to the file's")
	case p.level == 2:
		notes = append(notes, "white space or punctuation differed from the file's")
	case p.level == 1:
		notes = append(notes, "trailing white space differed from the file's")
	}
	return notes
}

// placements are the findings of all hunks, in the order of the diff.
type placements []finding

// firstFailure is the index of the first hunk that was not placed, or -1.
func (set placements) firstFailure() int {
	return slices.IndexFunc(set, func(f finding) bool { return f.failure != "" })
}

// placeAll finds a place for every hunk, then settles those that have several
// by what the settled ones show about the stated line numbers.
func (s *source) placeAll(hunks []hunk) placements {
	set := make(placements, len(hunks))
	for i, h := range hunks {
		set[i] = s.search(h)
	}
	astray := set.astray()
	for i := range set {
		if len(set[i].places) > 1 && set[i].failure == "" {
			s.settle(set, i, astray)
		}
	}
	s.doubtRepeated(set)
	s.doubtOrder(set)
	set.doubtDistance()
	last := &set[len(set)-1]
	if last.failure == "" && s.breaksOff(*last) {
		last.failure = Truncated
	}
	s.settleIndentation(set)
	return set
}

// settle applies rule 8 to hunk i. Astray says that the headers' numbers do not
// fit together.
func (s *source) settle(set placements, i int, astray bool) {
	f := &set[i]
	if tooMany(len(f.places), len(f.hunk.old())) {
		f.failure = Ambiguous
		return
	}
	chosen := -1
	stated := f.byNumber(set.drift(i, astray))
	heading := s.byHeading(*f)
	switch {
	case heading >= 0 && (stated >= 0 && stated != heading || f.nearerThan(heading)):
		// number and heading contradict each other
	case stated >= 0:
		chosen = stated
	case heading >= 0:
		chosen = heading
	case s.sameResult(*f):
		chosen = 0
	}
	if chosen < 0 || f.weak && chosen >= f.strict {
		f.failure = Ambiguous
		return
	}
	f.places = []place{f.places[chosen]}
}

// A drift says how far the stated numbers are off, as far as the other hunks
// show it.
type drift struct {
	lines int
	// agree counts the hunks that show it; unknown is set when they contradict
	// each other, and the numbers are worth nothing.
	agree   int
	unknown bool
	// countsWrong says that a header of the diff has wrong counts, so that its
	// line numbers may be invented too.
	countsWrong bool
	// astray says that the new lines' numbers do not follow from the old ones'.
	astray bool
}

// proven says that other hunks bear the stated numbers out: one that is exact,
// or two that are off by the same.
func (d drift) proven() bool { return d.agree > 0 && (d.lines == 0 || d.agree > 1) }

// drift compares the stated with the true lines of the settled hunks.
func (set placements) drift(except int, astray bool) drift {
	d := drift{astray: astray}
	for i, f := range set {
		d.countsWrong = d.countsWrong || !f.countsHold()
		if i == except || len(f.places) != 1 || f.failure != "" || f.hunk.start == 0 {
			continue
		}
		off := f.places[0].first() + 1 - f.hunk.start
		if d.agree > 0 && off != d.lines {
			return drift{unknown: true}
		}
		d.lines = off
		d.agree++
	}
	return d
}

// astray says that the headers' numbers do not fit together: from hunk to hunk
// the new lines move against the old ones by what the hunks between add. Such
// numbers were invented.
func (set placements) astray() bool {
	hunks := make([]hunk, 0, len(set))
	for _, f := range set {
		if f.hunk.start > 0 && f.hunk.newStart > 0 {
			hunks = append(hunks, f.hunk)
		}
	}
	slices.SortStableFunc(hunks, func(a, b hunk) int { return a.start - b.start })
	for i := 1; i < len(hunks); i++ {
		added, removed := hunks[i-1].changedLines()
		before, here := hunks[i-1].newStart-hunks[i-1].start, hunks[i].newStart-hunks[i].start
		if here-before != added-removed {
			return true
		}
	}
	return false
}

// nearerThan says that the stated line speaks for another place than the chosen
// one: it is at or beside that other.
func (f finding) nearerThan(chosen int) bool {
	if f.hunk.start == 0 {
		return false
	}
	off := func(p place) int { return abs(p.first() + 1 - f.hunk.start) }
	return slices.ContainsFunc(f.places, func(p place) bool {
		return off(p) <= nearLines && off(p) < off(f.places[chosen])
	})
}

// The limits within which a number decides between places (rule 8).
const (
	nearLines  = 10
	nearFactor = 8
	// nearWeak is the limit for a hunk whose old side is brackets and blanks.
	nearWeak = 2
)

// byNumber chooses the place at the stated line, or the one so near that no
// other can be meant; -1 for none.
func (f finding) byNumber(d drift) int {
	if f.hunk.start == 0 || d.unknown {
		return -1
	}
	wanted := f.hunk.start - 1 + d.lines
	best, next := -1, -1
	distance := func(i int) int { return abs(f.places[i].first() - wanted) }
	for i := range f.places {
		switch {
		case best < 0 || distance(i) < distance(best):
			best, next = i, best
		case next < 0 || distance(i) < distance(next):
			next = i
		}
	}
	trusted := (!d.countsWrong || d.proven() && !f.weak) && (!d.astray || d.lines == 0 || d.proven())
	near := (!f.weak || distance(best) <= nearWeak) && !d.astray && (d.lines == 0 || d.proven()) && distance(best) <= nearLines && distance(next) >= nearFactor*distance(best)
	if trusted && (distance(best) == 0 || near) {
		return best
	}
	return -1
}

// countsHold says that the header's counts, as far as it gives any, are right,
// so that its line number was not invented either.
func (f finding) countsHold() bool {
	old, new := f.hunk.counts()
	return !f.hunk.countsStated || f.hunk.oldCount == old && f.hunk.newCount == new
}

// byHeading chooses the one place in the block of the hunk's heading; -1 when
// the heading is not unique or its block holds none or several.
func (s *source) byHeading(f finding) int {
	heading := s.heading(f.hunk)
	if heading < 0 {
		return -1
	}
	chosen := -1
	for i, p := range f.places {
		if !s.inBlock(p, heading) {
			continue
		}
		if chosen >= 0 {
			return -1
		}
		chosen = i
	}
	return chosen
}

// maxHeadings bounds the headings of a hunk that are looked for. Nobody nests so
// many blocks.
const maxHeadings = 8

// heading is the line that the innermost of the hunk's headings names, -1 for
// none or several.
func (s *source) heading(h hunk) int {
	if len(h.headings) > maxHeadings {
		return -1
	}
	heading := -1
	for _, text := range h.headings {
		if heading = s.findHeading(text, heading+1); heading < 0 {
			return -1
		}
	}
	return heading
}

// findHeading finds the one line from from on that starts with the text, or,
// if no line does, the one that contains it; -1 when there are several.
func (s *source) findHeading(text string, from int) int {
	text = normal(text, 2)
	for _, holds := range []func(string, string) bool{strings.HasPrefix, strings.Contains} {
		// Lines that are equal are looked at once.
		wanted := map[int32]bool{}
		for other, id := range s.form(2).byText {
			if holds(other, text) {
				wanted[id] = true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		found := -1
		for i := from; i < len(s.lines); i++ {
			if !wanted[s.forms[2].ids[i]] {
				continue
			}
			if found >= 0 {
				return -1
			}
			found = i
		}
		if found >= 0 {
			return found
		}
	}
	return -1
}

// inBlock says whether a place belongs to the heading's block: it contains the
// heading, or follows it without another line that would be a heading too.
func (s *source) inBlock(p place, heading int) bool {
	first, last := p.first(), p.last()
	if heading >= first {
		return heading <= last
	}
	depth := len(indentOf(s.lines[heading]))
	braces := strings.HasSuffix(strings.TrimSpace(s.lines[heading]), "{")
	for _, text := range s.lines[heading+1 : first] {
		if strings.TrimSpace(text) == "" {
			continue
		}
		indent := len(indentOf(text))
		if indent < depth || indent == depth && startsName(text[indent:]) && !(braces && label.MatchString(text)) {
			return false
		}
	}
	return true
}

// label is a place to jump to, which stands at the depth of the block that it is in.
var label = regexp.MustCompile(`^\s*\w+:$`)

// startsName says whether a line could open a block of its own.
func startsName(text string) bool {
	c := text[0]
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// maxCompared bounds for how many places the results are compared.
const maxCompared = 16

// sameResult says whether the hunk gives the same text at all its places.
func (s *source) sameResult(f finding) bool {
	if len(f.places) > maxCompared {
		return false
	}
	var first []byte
	for i, p := range f.places {
		edits, ok := s.edits(f.hunk, p, 0)
		if !ok {
			return false
		}
		text := s.splice(edits)
		if i == 0 {
			first = text
		} else if !bytes.Equal(first, text) {
			return false
		}
	}
	return true
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
