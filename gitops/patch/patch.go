// Package patch applies unified diffs as language models write them.
//
// A model writes a diff from memory: line numbers are invented, counts are
// off, a context line is misremembered, the whole thing is wrapped in prose, a
// code fence or an envelope. A strict tool refuses most of that, and a lenient
// one puts changes where nobody wanted them, which is worse. The idea here is
// to be tolerant in reading and certain in writing: everything that a diff
// says about WHERE is a hint, everything that it says about WHAT must be
// found in the file, and where two readings remain the patch is refused with
// the lines from which a right one can be written.
//
// How the parts move:
//
//   - Reading (read.go, header.go, body.go): [Split] takes the text apart into
//     files and hunks. It accepts fences, prose, CRLF, every common header and
//     the "*** Begin Patch" envelope. What looks like a hunk among the prose is
//     read as one or refused, never left out (loose.go). Readings that change the
//     text itself (escaped lines, line numbers in front) are tried only when the
//     plain one does not fit (readings.go, escaped.go).
//   - Locating (search.go, locate.go, indent.go): each hunk's old side is looked
//     for in the original file on a ladder of levels. 0: the same bytes. 1:
//     trailing white space and line endings aside. 2: white space and
//     typographic punctuation aside, with one map of the indentation for the
//     whole hunk. 3: an alignment (align.go, trace.go, slips.go) that forgives
//     slips in context lines only. A level counts only if no stricter one has any place.
//   - Choosing (choose.go): several places are settled by the stated line, if
//     the rest of the diff shows that its numbers can be trusted, or by the
//     heading, or not at all.
//   - Doubting (doubt.go, doubt_alignment.go, kind.go, literal.go): a place that
//     fits is given up where the rest of the diff or of the file speaks against
//     it: the new text is there already, the stated line nearly fits, the diff was
//     made for another state of the file, or nobody can tell tabs from spaces.
//   - Writing (apply.go, splice.go): only removed lines leave the file and only
//     added lines enter it. A context line of the diff is never written, so
//     every line that is kept stays as it was, byte for byte.
//   - Saying no (failure.go, diagnose.go, explain.go): the error is what the
//     model learns from. It says that nothing was changed, which hunks fit,
//     where the failing one diverges, and shows the file's own lines there.
//
// [Edit] replaces an exact piece of text by the same locator, [ServeJSONL]
// offers the package to programs.
//
// A patch is atomic: all hunks of all files or nothing. The package is pure:
// no files, no clock, no randomness; the same input gives the same output.
// Nothing panics, whatever the input; the fuzz targets hold it to that.
// Everything is safe for concurrent use.
package patch

// The limits of what is looked at. Whatever is larger is refused with words.
const (
	// MaxDiff is the largest diff in bytes.
	MaxDiff = 1 << 20
	// MaxFile is the largest file in bytes, before and after.
	MaxFile = 10 << 20
	// maxAlignment bounds hunk lines × file lines of an alignment, which costs
	// about that many steps.
	maxAlignment = 20_000_000
	// maxAlignments bounds the steps of all alignments of a diff together.
	maxAlignments = 10 * maxAlignment
	// maxHunks bounds the hunks of one file, which are compared with each other.
	maxHunks = 4096
	// maxSearch bounds hunks × file lines, which is what looking for every
	// hunk costs. Real diffs stay below it by orders of magnitude.
	maxSearch = 100_000_000
)

// A Result is a patched file.
type Result struct {
	// Text is the file's new content; nil when it was deleted.
	Text []byte
	// Created and Deleted say that the file came into being or went away.
	Created, Deleted bool
	// NewPath is the file's new path when the diff renames it, otherwise "".
	NewPath string
	// Hunks says where each hunk went, in the order of the diff.
	Hunks []Placed
}

// A Placed is a hunk that found its place.
type Placed struct {
	// Line is the first changed line in the new text, counted from 1.
	Line int
	// Added and Removed count lines.
	Added, Removed int
	// Level is how exactly the hunk matched, from 0 (bytes) to 3 (alignment).
	Level int
	// Notes say what was forgiven, one sentence each, for the model.
	Notes []string
}

// Apply applies the diff of one file to its content. A nil src means that the
// file does not exist, which is not the same as an empty one. The diff may be
// of several sections as long as they concern one path.
//
// The error is always an [*Error]; nothing was changed then.
func Apply(src []byte, diff string) (Result, error) {
	files, err := Split(diff)
	if err != nil {
		return Result{}, err
	}
	if len(files) > 1 {
		return Result{}, severalFiles(files)
	}
	return files[0].Apply(src)
}

// Apply applies the file's part of the diff to its content, as the function
// [Apply] does.
func (f FileDiff) Apply(src []byte) (Result, error) {
	if err := f.checkKind(src); err != nil {
		return Result{}, err
	}
	switch {
	case f.Deleted:
		return f.applyDeletion(src)
	case len(f.hunks) == 0 && f.Renamed:
		return Result{Text: src, NewPath: f.NewPath}, nil
	case len(f.hunks) == 0 && f.Created:
		return Result{Text: []byte{}, Created: true}, nil
	case len(f.hunks) == 0:
		return Result{}, f.noHunk()
	}
	result, err := f.applyHunks(src)
	if err != nil {
		return Result{}, err
	}
	result.Created = src == nil
	if f.Renamed {
		result.NewPath = f.NewPath
	}
	return result, nil
}
