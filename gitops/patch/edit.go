package patch

import (
	"bytes"
	"fmt"
	"strings"
)

// Edit replaces old by new in src. Old must be there exactly expect times (0
// means once), unless replaceAll says that every occurrence is meant.
//
// It is looked for as it stands, within lines too; if it is nowhere, as whole
// lines at levels 1 and 2 of the package's ladder, where the file's
// indentation is kept. The error is an [*Error] and names every place.
func Edit(src []byte, old, new string, expect int, replaceAll bool) (Result, error) {
	if err := checkEdit(src, old, new); err != nil {
		return Result{}, err
	}
	expect = max(expect, 1)
	if bytes.Contains(src, []byte("\r\n")) && !strings.Contains(old, "\r\n") {
		old, new = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(new, "\n", "\r\n")
	}
	s := newSource(src)
	if offsets := occurrences(src, old); len(offsets) > 0 {
		if !replaceAll && len(offsets) != expect {
			return Result{}, s.explainCount(offsets, expect)
		}
		return s.replaceExact(offsets, old, new)
	}
	return s.editLines(old, new, expect, replaceAll)
}

func checkEdit(src []byte, old, new string) error {
	switch {
	case src == nil:
		return refuse(Missing, "The file does not exist. Check the path with list_files, or create it with write_file.")
	case len(src) > MaxFile || len(old) > MaxDiff || len(new) > MaxDiff:
		return refuse(TooLarge, "The file or the text is too large to be edited; change it with a command.")
	case bytes.IndexByte(src, 0) >= 0 || strings.ContainsRune(old+new, 0):
		return refuse(Binary, "The file or the text is binary; only text can be edited.")
	case old == "":
		return refuse(NoMatch, "The old text is empty, so nothing says where the new one goes. Give the line before it as old, and the same line with your text as new.")
	case old == new:
		return refuse(NoChange, "Old and new text are the same.")
	}
	return nil
}

// occurrences returns where old stands in src, without overlaps.
func occurrences(src []byte, old string) []int {
	var offsets []int
	for at := 0; ; {
		i := bytes.Index(src[at:], []byte(old))
		if i < 0 {
			return offsets
		}
		offsets = append(offsets, at+i)
		at += i + len(old)
	}
}

func (s *source) replaceExact(offsets []int, old, new string) (Result, error) {
	var out bytes.Buffer
	out.Grow(len(s.text) + len(new)) // so that an empty text is not nil
	result := Result{}
	at := 0
	for _, offset := range offsets {
		out.Write(s.text[at:offset])
		line := bytes.Count(out.Bytes(), []byte{'\n'}) + 1
		result.Hunks = append(result.Hunks, Placed{
			Line: line, Added: strings.Count(new, "\n") + 1, Removed: strings.Count(old, "\n") + 1,
		})
		out.WriteString(new)
		at = offset + len(old)
	}
	out.Write(s.text[at:])
	if out.Len() > MaxFile {
		return Result{}, refuse(TooLarge, fmt.Sprintf("The file would grow to %d bytes; at most %d are written.", out.Len(), MaxFile))
	}
	result.Text = out.Bytes()
	return result, nil
}

// editLines replaces whole lines that equal old's at level 1 or 2.
func (s *source) editLines(old, new string, expect int, replaceAll bool) (Result, error) {
	h := replacement(old, new)
	for level := 1; level <= 2; level++ {
		places := disjoint(s.places(h.old(), level))
		if len(places) == 0 {
			continue
		}
		if !replaceAll && len(places) != expect {
			return Result{}, s.explainCount(s.offsetsOf(places), expect)
		}
		return s.replaceLines(h, places)
	}
	f := finding{hunk: h, failure: NoMatch}
	if s.isApplied(h, 0) || s.isApplied(h, 1) {
		f.failure = AlreadyApplied
	}
	return Result{}, s.explain(placements{f}, 0)
}

// replacement writes old and new as a hunk.
func replacement(old, new string) hunk {
	h := hunk{number: 1, oldCount: -1, newCount: -1}
	for _, side := range []struct {
		op   operation
		text string
	}{{remove, old}, {add, new}} {
		if side.text == "" {
			continue
		}
		for text := range strings.SplitSeq(strings.TrimSuffix(side.text, "\n"), "\n") {
			h.lines = append(h.lines, line{op: side.op, text: strings.TrimSuffix(text, "\r")})
		}
	}
	return h
}

// disjoint drops places that overlap the one before.
func disjoint(places []place) []place {
	var kept []place
	for _, p := range places {
		if len(kept) == 0 || p.first() > kept[len(kept)-1].last() {
			kept = append(kept, p)
		}
	}
	return kept
}

func (s *source) offsetsOf(places []place) []int {
	offsets := make([]int, len(places))
	for i, p := range places {
		offsets[i] = s.offsets[p.first()]
	}
	return offsets
}

func (s *source) replaceLines(h hunk, places []place) (Result, error) {
	set := make(placements, len(places))
	for i, p := range places {
		set[i] = finding{hunk: h, places: []place{p}}
	}
	edits, err := s.collect(set)
	if err != nil {
		return Result{}, err
	}
	text := s.splice(edits)
	if bytes.Equal(text, s.text) {
		return Result{}, refuse(NoChange, "The file says that already; only white space differs.")
	}
	return Result{Text: text, Hunks: set.report(edits)}, nil
}

// explainCount refuses an edit whose old text is there too often or too rarely.
func (s *source) explainCount(offsets []int, expect int) *Error {
	var b strings.Builder
	b.WriteString(nothingChanged)
	fmt.Fprintf(&b, "The old text is in the file %d times, and %d was expected. Give more of the lines around the right one as old, or say replace_all if every one is meant. The places:\n", len(offsets), expect)
	starts := make([]int, len(offsets))
	at := 0
	for i, offset := range offsets {
		for at+1 < len(s.lines) && s.offsets[at+1] <= offset {
			at++
		}
		starts[i] = at
	}
	s.showPlaces(&b, starts, starts)
	e := &Error{Code: Ambiguous, Line: starts[0] + 1}
	e.Text = limitLines(b.String())
	return e
}
