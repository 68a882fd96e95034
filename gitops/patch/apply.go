package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// checkKind refuses what cannot be patched as text, before any hunk is looked at.
func (f FileDiff) checkKind(src []byte) error {
	switch {
	case f.binary:
		return refuse(Binary, "The diff is a binary patch; only text files can be patched.")
	case len(src) > MaxFile:
		return refuse(TooLarge, fmt.Sprintf("The file has %d bytes; at most %d are patched. Change it with a command.", len(src), MaxFile))
	case bytes.IndexByte(src, 0) >= 0:
		return refuse(Binary, "The file is binary (it contains NUL bytes); only text files can be patched.")
	case f.Created && src != nil:
		return explainExists(src)
	case src == nil && !f.createsWithoutSaying():
		return refuse(Missing, "The file does not exist, and the diff has lines that it should contain. Check the path with list_files; to create the file, send added lines only.")
	}
	return nil
}

// createsWithoutSaying says whether the diff can stand for a new file: it says
// so, or it has hunks of added lines only.
func (f FileDiff) createsWithoutSaying() bool {
	if f.Created {
		return true
	}
	if f.Deleted || f.Renamed || len(f.hunks) == 0 {
		return false
	}
	for _, h := range f.hunks {
		if len(h.meantOld()) > 0 {
			return false
		}
	}
	return true
}

// meantOld is the old side without blank lines that the layout of the diff
// may have left behind.
func (h hunk) meantOld() []line {
	trimmed, _ := h.trimmed()
	return trimmed.old()
}

// noHunk refuses a diff that says nothing about content.
func (f FileDiff) noHunk() *Error {
	if f.modeOnly {
		return refuse(NoChange, "The diff changes only the file's mode, which a patch cannot do here.")
	}
	return refuse(NoChange, "The diff has a header but no hunk. After the header send a line @@, then kept lines with a leading space, removed lines with -, added lines with +.")
}

// applyDeletion deletes the file if the hunks show all of it.
func (f FileDiff) applyDeletion(src []byte) (Result, error) {
	if f.whole || len(src) == 0 && len(f.hunks) == 0 {
		return Result{Deleted: true}, nil
	}
	if len(f.hunks) == 0 {
		return Result{}, refuse(NoChange, "The diff deletes a file that has content, without showing it. Remove every line with -, or delete the file by its own tool.")
	}
	result, err := f.applyHunks(src)
	if err != nil {
		return Result{}, err
	}
	if len(result.Text) > 0 {
		return Result{}, refuse(NoMatch, fmt.Sprintf("The diff deletes the file, but %d of its lines are not among the removed ones. Read the whole file first, or delete it by its own tool.", len(newSource(result.Text).lines)))
	}
	result.Text, result.Deleted = nil, true
	return result, nil
}

// applyHunks places all hunks in the original text and writes it anew.
func (f FileDiff) applyHunks(src []byte) (Result, error) {
	if f.endMissing {
		return Result{}, refuse(Truncated, "The patch was opened with \"*** Begin Patch\" and never closed: it seems to be cut off. Send it again whole, in smaller pieces if it is long, and end it with \"*** End Patch\".")
	}
	s := newSource(src)
	if text, lost := s.looksLost(f.stray); lost {
		return Result{}, refuse(NoMatch, fmt.Sprintf("Outside of its hunks the diff has lines that seem to be one: %q. Put a line @@ before each hunk, and begin no other line with - or +.", text))
	}
	hunks := unique(f.hunks)
	if len(hunks) > maxHunks || len(hunks)*len(s.lines) > maxSearch {
		return Result{}, refuse(TooLarge, fmt.Sprintf("The diff has %d hunks and the file %d lines, which is too much to search at once. Send it in several smaller diffs.", len(hunks), len(s.lines)))
	}
	set := s.settleEscapes(hunks, s.placeAll(hunks))
	if failure := set.firstFailure(); failure >= 0 {
		return Result{}, s.explain(set, failure)
	}
	edits, err := s.collect(set)
	if err != nil {
		return Result{}, err
	}
	text := s.splice(edits)
	if bytes.Equal(text, src) && src != nil {
		return Result{}, s.explainNoChange(set)
	}
	if len(text) > MaxFile {
		return Result{}, refuse(TooLarge, fmt.Sprintf("The file would grow to %d bytes; at most %d are written.", len(text), MaxFile))
	}
	return Result{Text: text, Hunks: set.report(edits)}, nil
}

// unique drops hunks that are repeated word for word (rule 14). Equal changes
// under different headers are meant for different places.
func unique(hunks []hunk) []hunk {
	type key struct {
		body, headings string
		start          int
	}
	index := map[key]int{}
	var kept []hunk
	for _, h := range hunks {
		k := key{h.body(), strings.Join(h.headings, "\n"), h.start}
		if at, known := index[k]; known {
			kept[at].repeated = true
			continue
		}
		index[k] = len(kept)
		kept = append(kept, h)
	}
	return kept
}

// collect turns the placed hunks into sorted edits that do not touch.
func (s *source) collect(set placements) ([]edit, error) {
	var all []edit
	for i, found := range set {
		if i > 0 && set.repeats(i) {
			continue
		}
		edits, ok := s.edits(found.hunk, found.places[0], i)
		if !ok {
			return nil, s.explainIndentation(set, i)
		}
		all = append(all, edits...)
	}
	if first, second, collide := sortEdits(all); collide {
		return nil, s.explainOverlap(set, first, second)
	}
	return all, nil
}

// repeats says that hunk i changes what an earlier, equal hunk changes.
func (set placements) repeats(i int) bool {
	for _, earlier := range set[:i] {
		if earlier.failure == "" && slices.Equal(earlier.places[0].at, set[i].places[0].at) && earlier.hunk.sameLines(set[i].hunk) {
			return true
		}
	}
	return false
}

// report says where each hunk's first change is in the new text.
func (set placements) report(edits []edit) []Placed {
	placed := make([]Placed, len(set))
	for i, found := range set {
		added, removed := found.hunk.changedLines()
		placed[i] = Placed{Added: added, Removed: removed, Level: found.places[0].level, Notes: found.notes()}
	}
	shift := 0
	for _, e := range edits {
		if placed[e.hunk].Line == 0 {
			placed[e.hunk].Line = e.from + shift + 1
		}
		shift += len(e.added) - (e.to - e.from)
	}
	return placed
}
