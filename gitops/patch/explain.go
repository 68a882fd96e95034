package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// explain writes the error for a hunk that has no place, or several.
func (s *source) explain(set placements, failing int) *Error {
	f := set[failing]
	e := &Error{Code: f.failure, Hunk: failing + 1}
	var b strings.Builder
	b.WriteString(nothingChanged)
	b.WriteString(set.overview(failing))
	switch code := f.failure; {
	case f.doubt != "":
		s.explainDoubt(&b, e, f)
	case f.foreign:
		s.explainForeign(&b, e, f)
	case code == Ambiguous:
		s.explainAmbiguous(&b, e, f)
	case code == AlreadyApplied:
		s.explainApplied(&b, e, f)
	case code == Truncated:
		s.explainTruncated(&b, e, f)
	case code == ForgottenPlus:
		s.explainForgottenPlus(&b, e, f)
	case code == GapInRemoved:
		s.explainGap(&b, e, f)
	default:
		s.explainNoMatch(&b, e, f)
	}
	e.Text = limitLines(b.String())
	return e
}

// overview says which hunks fit and which does not.
func (set placements) overview(failing int) string {
	if len(set) == 1 {
		return ""
	}
	var fit, unfit []string
	for i, f := range set {
		if f.failure == "" {
			fit = append(fit, fmt.Sprint(i+1))
		} else {
			unfit = append(unfit, fmt.Sprint(i+1))
		}
	}
	text := fmt.Sprintf("Of %d hunks, not placed: %s", len(set), strings.Join(unfit, ", "))
	if len(fit) > 0 {
		text += "; these fit: " + strings.Join(fit, ", ")
	}
	return text + fmt.Sprintf(". Hunk %d: ", failing+1)
}

func (s *source) explainTruncated(b *strings.Builder, e *Error, f finding) {
	b.WriteString("The diff breaks off in its last hunk: ")
	if old, new := f.hunk.counts(); f.hunk.oldCount >= 0 {
		fmt.Fprintf(b, "the header declares %d old and %d new lines, %d and %d came, and the text ends without a newline. ", f.hunk.oldCount, f.hunk.newCount, old, new)
	} else {
		b.WriteString("it has no change yet, and the text ends without a newline. ")
	}
	b.WriteString("Send the diff again whole, in smaller pieces if it is long.\n")
	p := f.places[0]
	if p.last() < 0 {
		return
	}
	e.Line = p.first() + 1
	b.WriteString("The file from there on:\n")
	s.show(b, p.first(), p.last()+20)
}

func (s *source) explainApplied(b *strings.Builder, e *Error, f finding) {
	b.WriteString("Its new text is in the file already and its old text is not: it seems to have been applied before. Leave it out")
	p, found := s.newSideAt(f.hunk)
	if !found {
		b.WriteString(".\n")
		return
	}
	e.Line = p.first() + 1
	b.WriteString(", or change what is there now:\n")
	s.show(b, p.first()-fullContext, p.last()+fullContext)
}

// newSideAt is where the hunk's new side stands, as exactly as possible.
func (s *source) newSideAt(h hunk) (place, bool) {
	h, _ = h.trimmed()
	for level := range 3 {
		if places := s.places(h.newSide(), level); len(places) > 0 {
			return places[0], true
		}
	}
	return s.alignNewSide(h)
}

func (s *source) explainForgottenPlus(b *strings.Builder, e *Error, f finding) {
	hunk, _ := f.hunk.trimmed()
	i, p, _ := s.forgottenPlus(hunk)
	e.Line = p.first() + 1
	fmt.Fprintf(b, "Its line %q is written as context (it starts with a space), but the file does not have it; without it the hunk fits at line %d. Was its + forgotten? Put + in front if it is new, or leave it out. The file there:\n",
		hunk.lines[i].text, e.Line)
	s.show(b, p.first()-fullContext, p.last()+fullContext)
}

func (s *source) explainGap(b *strings.Builder, e *Error, f finding) {
	hunk, _ := f.hunk.trimmed()
	first, last, _ := s.gapInRemoved(hunk)
	e.Line = first + 1
	fmt.Fprintf(b, "Its removed lines are in the file from line %d to %d, but not together: the file has other lines between them, which the hunk does not show. Remove those too, keep them as context, or use two hunks. The file there:\n", first+1, last+1)
	s.show(b, first-fullContext, last+fullContext)
}

// shownPlaces is how many of several places are shown with their lines; of the
// others the line numbers are named.
const shownPlaces = 8

func (s *source) explainAmbiguous(b *strings.Builder, e *Error, f finding) {
	fmt.Fprintf(b, "The old lines of the hunk are in the file at %d places and nothing decides between them. Add context lines that only the right place has, or the line number in @@ -N,… @@. The places:\n", len(f.places))
	s.showFound(b, e, f)
}

// showFound shows the places of a finding.
func (s *source) showFound(b *strings.Builder, e *Error, f finding) {
	e.Line = f.places[0].first() + 1
	starts := make([]int, len(f.places))
	lasts := make([]int, len(f.places))
	for i, p := range f.places {
		starts[i], lasts[i] = p.first(), p.last()
	}
	s.showPlaces(b, starts, lasts)
}

// showPlaces shows what distinguishes places: the lines around each.
func (s *source) showPlaces(b *strings.Builder, starts, lasts []int) {
	shown := min(len(starts), shownPlaces)
	each := (maxErrorLines-4)/shown - 1
	for i := range shown {
		first, last := starts[i], lasts[i]
		fmt.Fprintf(b, "at line %d%s:\n", first+1, s.enclosing(first))
		around := max(1, (each-(last-first+1))/2)
		s.show(b, first-around, min(last+around, first-around+each-1))
	}
	if shown == len(starts) {
		return
	}
	var more []string
	for _, start := range starts[shown:] {
		more = append(more, strconv.Itoa(start+1))
	}
	fmt.Fprintf(b, "and at line %s\n", strings.Join(more, ", "))
}

// enclosing names the nearest line above that opens a block at the margin.
func (s *source) enclosing(at int) string {
	for i := min(at, len(s.lines)-1); i >= 0; i-- {
		if text := s.lines[i]; text != "" && startsName(text) {
			return ", in " + strings.TrimRight(text, " {")
		}
	}
	return ""
}

func (s *source) explainNoMatch(b *strings.Builder, e *Error, f finding) {
	if f.escaped {
		e.Line = f.places[0].first() + 1
		b.WriteString("It fits, but its added lines contain &lt;, &gt; or &amp; where the file writes <, > and & as they are. Send the diff without HTML escapes; if they are meant, use write_file or edit. The file there:\n")
		s.show(b, f.places[0].first(), f.places[0].last())
		return
	}
	old := f.hunk.meantOld()
	if len(old) == 0 {
		b.WriteString("The hunk has added lines only, so nothing shows where they go. Add two or three lines of context, copied from the file, before and after them.\n")
		s.show(b, 0, min(len(s.lines), 20)-1)
		return
	}
	if f.failure == TooLarge {
		b.WriteString("The hunk does not fit exactly, and hunk and file are too large to look for a place that nearly fits. Send smaller hunks with context copied exactly. ")
	}
	start, matching := s.closest(f.hunk, old)
	e.Line = start + 1
	fmt.Fprintf(b, "Its old lines are not in the file. They come closest at line %d, where %d of %d match. ", start+1, matching, len(old))
	if i := s.diverging(old, start); i >= 0 {
		fmt.Fprintf(b, "The first that differs:\n  your line %d of the old side: %q\n", i+1, old[i].text)
		if start+i < len(s.lines) {
			fmt.Fprintf(b, "  line %d of the file:        %q\n", start+i+1, s.lines[start+i])
		} else {
			b.WriteString("  the file ends before it\n")
		}
	}
	b.WriteString("The file there, to copy the context from:\n")
	s.show(b, start-3, start+len(old)+3)
}

// headShown is how much of a file is shown that was thought not to exist.
const headShown = 40

func explainExists(src []byte) *Error {
	s := newSource(src)
	var b strings.Builder
	b.WriteString(nothingChanged)
	fmt.Fprintf(&b, "The diff creates the file, but it exists with %d lines. Send a diff against what it says:\n", len(s.lines))
	s.show(&b, 0, headShown-1)
	return &Error{Code: Exists, Line: 1, Text: limitLines(b.String())}
}

func (s *source) explainNoChange(set placements) *Error {
	var b strings.Builder
	b.WriteString(nothingChanged)
	b.WriteString("Applying the diff would leave the file exactly as it is: its added lines equal its removed ones, or it has none. The file there:\n")
	p := set[0].places[0]
	s.show(&b, p.first(), p.last())
	return &Error{Code: NoChange, Hunk: 1, Line: p.first() + 1, Text: limitLines(b.String())}
}

// maxVotes is how often a line may be in the file to say anything about where a
// hunk belongs.
const maxVotes = 64

// closest finds the offset at which most of the old lines stand in the file.
func (s *source) closest(h hunk, old []line) (start, matching int) {
	f := s.form(2)
	voters := map[int32][]int{} // the old lines, by what they equal in the file
	for i, l := range old {
		if id := f.id(l.text, 2); id >= 0 && f.counts[id] <= maxVotes {
			voters[id] = append(voters[id], i)
		}
	}
	votes := map[int]int{}
	for at, id := range f.ids {
		for _, i := range voters[id] {
			if trivial(old[i].text) {
				votes[at-i]++
			} else {
				votes[at-i] += 3
			}
		}
	}
	best := max(0, min(h.start-1, len(s.lines)-1))
	for offset, n := range votes {
		if n > votes[best] || n == votes[best] && abs(offset-h.start+1) < abs(best-h.start+1) ||
			n == votes[best] && abs(offset-h.start+1) == abs(best-h.start+1) && offset < best {
			best = offset
		}
	}
	for i, l := range old {
		if at := best + i; at >= 0 && at < len(f.ids) && f.ids[at] == f.id(l.text, 2) {
			matching++
		}
	}
	return max(0, best), matching
}

// diverging is the first old line that differs from the file's at an offset.
func (s *source) diverging(old []line, start int) int {
	for i, l := range old {
		if start+i >= len(s.lines) || normal(l.text, 1) != normal(s.lines[start+i], 1) {
			return i
		}
	}
	return -1
}

// show writes the file's lines from first to last, numbered from 1, with their
// tabs as they are so that they can be copied.
func (s *source) show(b *strings.Builder, first, last int) {
	for i := max(0, first); i <= min(last, len(s.lines)-1); i++ {
		fmt.Fprintf(b, "%6d\t%s\n", i+1, s.lines[i])
	}
}

func (s *source) explainOverlap(set placements, first, second int) *Error {
	var b strings.Builder
	b.WriteString(nothingChanged)
	fmt.Fprintf(&b, "Hunks %d and %d change the same lines. All hunks refer to the file as it is now; join the two into one. The file there:\n", first+1, second+1)
	p, q := set[first].places[0], set[second].places[0]
	low := min(p.first(), q.first())
	s.show(&b, low, max(p.last(), q.last()))
	return &Error{Code: Overlap, Hunk: second + 1, Line: low + 1, Text: limitLines(b.String())}
}

func (s *source) explainIndentation(set placements, i int) *Error {
	var b strings.Builder
	b.WriteString(nothingChanged)
	fmt.Fprintf(&b, "Hunk %d fits only with another indentation, and its added lines do not follow the same change. Copy the context exactly. The file there:\n", i+1)
	p := set[i].places[0]
	s.show(&b, p.first(), p.last())
	return &Error{Code: NoMatch, Hunk: i + 1, Line: p.first() + 1, Text: limitLines(b.String())}
}

// maxShownWidth bounds a shown line, so that one minified line does not fill
// the model's window.
const maxShownWidth = 400

// limitLines keeps an explanation within its bounds.
func limitLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > maxErrorLines {
		lines = append(lines[:maxErrorLines-1], "[… more lines left out; read the file around the lines above]")
	}
	for i, l := range lines {
		if len(l) > maxShownWidth {
			lines[i] = strings.ToValidUTF8(l[:maxShownWidth], "") + " […]"
		}
	}
	return strings.Join(lines, "\n")
}
