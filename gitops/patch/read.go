package patch

import (
	"fmt"
	"regexp"
	"strings"
)

// A FileDiff is the part of a diff that concerns one file.
type FileDiff struct {
	// OldPath and NewPath are the file's paths before and after, without the
	// prefixes and timestamps of headers; both are "" when the diff names no
	// file, and equal unless it is renamed. They come from the diff and are
	// not to be trusted: they may be absolute or climb out of a directory.
	OldPath, NewPath string
	// Created, Deleted and Renamed say what the headers announce.
	Created, Deleted, Renamed bool

	hunks  []hunk
	binary bool
	// modeOnly is set when a git header changes nothing but the file's mode.
	modeOnly bool
	// whole is set for the envelope's "Delete File", which shows no content.
	whole bool
	// endMissing is set when an envelope was opened and never closed.
	endMissing bool
	// stray are the blocks of lines outside of all hunks that have operators.
	stray [][]string
}

// Path is the file that the diff is applied to, "" when it names none.
func (f FileDiff) Path() string {
	if f.OldPath != "" {
		return f.OldPath
	}
	return f.NewPath
}

// A hunk is one block of a diff.
type hunk struct {
	// number counts the file's hunks from 1.
	number int
	// start and newStart are the stated first old and new line, 0 when the
	// header has no numbers; oldCount and newCount are the stated counts, -1
	// when absent.
	start, newStart, oldCount, newCount int
	// repeated says that the diff has the hunk several times, word for word.
	repeated bool
	// countsStated says that the header has counts, which are 1 where a header
	// with a line number leaves them out.
	countsStated bool
	// headings are the texts beside @@, outermost first.
	headings []string
	lines    []line
	// atEnd says that the hunk reaches the end of the file ("*** End of File").
	atEnd bool
	// oldEnd and newEnd are set by "\ No newline at end of file".
	oldEnd, newEnd bool
	// cut says that the text of the diff ends inside this hunk without a
	// final newline, fence or marker.
	cut bool
}

// An operation is what a line of a hunk does.
type operation byte

const (
	keep   operation = ' '
	remove operation = '-'
	add    operation = '+'
)

// A line is one line of a hunk.
type line struct {
	op   operation
	text string
	// bare says that the operator was missing; text is then the whole line.
	bare bool
	// elision marks a line that stands for lines left out.
	elision bool
	// unended says that a marker denies the line a newline.
	unended bool
}

// old returns the lines that must be in the file.
func (h hunk) old() []line {
	var old []line
	for _, l := range h.lines {
		if l.op != add {
			old = append(old, l)
		}
	}
	return old
}

// counts returns how many lines the hunk has on its old and new side.
func (h hunk) counts() (old, new int) {
	for _, l := range h.lines {
		if l.op != add {
			old++
		}
		if l.op != remove {
			new++
		}
	}
	return old, new
}

// Split takes a diff apart into files, in order; parts of one path become one.
// There is at least one file on success. The error is an [*Error].
func Split(diff string) ([]FileDiff, error) {
	if len(diff) > MaxDiff {
		return nil, refuse(TooLarge, fmt.Sprintf("The diff has %d bytes; at most %d are read. Send it in several smaller diffs.", len(diff), MaxDiff))
	}
	if strings.ContainsRune(diff, 0) {
		return nil, refuse(Binary, "The diff contains a NUL byte, so it is not text. Only text files can be patched.")
	}
	r := newReader(unescapeWhole(diff))
	if err := r.read(); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		r.readHeadless()
	}
	for i := range r.files {
		r.files[i].stray = r.stray
	}
	if len(r.files) == 0 {
		return nil, refuse(NoChange, "The text contains no hunk: no line starts with + or -. Send a unified diff: a line @@, then kept lines with a leading space, removed lines with -, added lines with +.")
	}
	return mergePaths(r.files), nil
}

// A reader walks over the lines of a diff once.
type reader struct {
	lines []string
	// cut says that the last line has no newline.
	cut bool
	at  int

	files []FileDiff
	// open says that files has a last element that takes further hunks.
	open bool
	// fenced, heredoc and envelope say what has been opened around the diff.
	fenced   bool
	heredoc  string
	envelope envelopeState
	// plusOnly says that files are introduced by "+++ path" alone.
	plusOnly bool
	// stray are the blocks of lines with operators that belong to no hunk; block
	// is the one that is being skipped.
	stray [][]string
	block []string
	// proseTo is the line up to which no loose hunk begins.
	proseTo int
}

type envelopeState int

const (
	noEnvelope envelopeState = iota
	envelopeOpen
	envelopeClosed
)

func newReader(diff string) *reader {
	diff = strings.TrimPrefix(diff, "\ufeff")
	lines := strings.Split(diff, "\n")
	cut := true
	if lines[len(lines)-1] == "" {
		lines, cut = lines[:len(lines)-1], false
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, "\r") // several when it was converted twice
	}
	return &reader{lines: lines, cut: cut}
}

// line returns the line at offset from the current one, "" beyond the end.
func (r *reader) line(offset int) string {
	if i := r.at + offset; i < len(r.lines) {
		return r.lines[i]
	}
	return ""
}

// read reads everything between hunks: headers, wrappers, prose.
func (r *reader) read() error {
	for r.at < len(r.lines) {
		text := r.lines[r.at]
		switch {
		case strings.HasPrefix(text, "@@@"):
			return refuse(NoMatch, "This is a combined diff of a merge (@@@); send an ordinary unified diff with two columns.")
		case strings.HasPrefix(text, "@@"):
			r.readHunk()
		case r.readFileHeader():
		case r.open && r.startsBody(text), r.startsLooseHunk():
			r.readBody(hunk{oldCount: -1, newCount: -1})
		default:
			r.readWrapper(text)
			r.skip(text)
			r.at++
			continue
		}
		r.endBlock()
	}
	r.endBlock()
	if r.envelope == envelopeOpen && len(r.files) > 0 {
		r.files[len(r.files)-1].endMissing = true
	}
	return nil
}

var heredocStart = regexp.MustCompile(`<<-?\s*\\?['"]?([A-Za-z_][A-Za-z0-9_]*)['"]?`)

// readWrapper notes what is opened or closed around the diff.
func (r *reader) readWrapper(text string) {
	trimmed := strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
		r.fenced = !r.fenced
		r.open = r.open && r.fenced
	case strings.HasPrefix(trimmed, "*** Begin Patch"):
		r.envelope = envelopeOpen
	case strings.HasPrefix(trimmed, "*** End Patch"):
		r.envelope, r.open = envelopeClosed, false
	case r.heredoc != "" && trimmed == r.heredoc:
		r.heredoc, r.open = "", false
	case r.heredoc == "" && len(r.files) == 0:
		if match := heredocStart.FindStringSubmatch(text); match != nil {
			r.heredoc = match[1]
		}
	}
}

// startsBody says whether a line after a file's header begins a hunk that has
// no @@ of its own.
func (r *reader) startsBody(text string) bool {
	current := &r.files[len(r.files)-1]
	if len(current.hunks) > 0 || current.binary || current.whole || r.isWrapper(text) {
		return false
	}
	if current.Created && r.envelope == envelopeOpen {
		return true // its content, though every line should have a +
	}
	if text == "" {
		return false
	}
	return text[0] == '+' || text[0] == '-' || text[0] == ' '
}

// isWrapper says whether the line belongs to what is around a diff.
func (r *reader) isWrapper(text string) bool {
	trimmed := strings.TrimSpace(text)
	return strings.HasPrefix(text, "*** ") && isEnvelopeMarker(text) ||
		r.heredoc != "" && trimmed == r.heredoc ||
		r.fenced && isFence(trimmed)
}

func isFence(trimmed string) bool {
	return len(trimmed) >= 3 && (strings.Trim(trimmed, "`") == "" || strings.Trim(trimmed, "~") == "")
}

// current returns the file that takes the next hunk, an unnamed one if no
// header came before it.
func (r *reader) current() *FileDiff {
	if !r.open {
		r.files = append(r.files, FileDiff{})
		r.open = true
	}
	return &r.files[len(r.files)-1]
}

func (r *reader) start(f FileDiff) *FileDiff {
	r.files = append(r.files, f)
	r.open = true
	return &r.files[len(r.files)-1]
}

// readHeadless reads a diff without any header: all its lines from the first
// to the last that carry an operator, inside the fence if there is one. What is
// behind the fence stays outside.
func (r *reader) readHeadless() {
	lines, behind, cut := r.withinFence()
	first, last, changes := -1, -1, false
	for i, text := range lines {
		if text == "" || !strings.ContainsRune("+- ", rune(text[0])) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		changes = changes || text[0] != ' '
	}
	if !changes {
		return
	}
	sub := &reader{lines: lines[first : last+1], cut: cut && last == len(lines)-1}
	sub.start(FileDiff{})
	sub.readBody(hunk{oldCount: -1, newCount: -1})
	r.files, r.stray = sub.files, nil
	for _, text := range behind {
		r.skip(text)
	}
	r.endBlock()
}

// withinFence returns the lines of the first fence, those behind it, and whether
// the text is cut off within; without a fence all lines are within.
func (r *reader) withinFence() (lines, behind []string, cut bool) {
	for i, text := range r.lines {
		if !strings.HasPrefix(strings.TrimSpace(text), "```") {
			continue
		}
		rest := r.lines[i+1:]
		for j, closing := range rest {
			if isFence(strings.TrimSpace(closing)) {
				return rest[:j], rest[j+1:], false
			}
		}
		return rest, nil, r.cut
	}
	return r.lines, nil, r.cut
}

// mergePaths joins the parts of one path, whose hunks all refer to the file as
// it was. Parts without a path belong to the part before them, and the first to
// the one behind.
func mergePaths(files []FileDiff) []FileDiff {
	merged := files[:0:0]
	index := map[string]int{}
	if len(files) > 1 && files[0].Path() == "" {
		files[0].OldPath, files[0].NewPath = files[1].OldPath, files[1].NewPath
	}
	for _, f := range files {
		at, known := index[f.Path()]
		if f.Path() == "" && len(merged) > 0 {
			at, known = len(merged)-1, true
		}
		if !known {
			index[f.Path()] = len(merged)
			merged = append(merged, f)
			continue
		}
		into := &merged[at]
		into.hunks = append(into.hunks, f.hunks...)
		into.Created = into.Created || f.Created
		into.Deleted = into.Deleted || f.Deleted
		into.binary = into.binary || f.binary
		into.endMissing = into.endMissing || f.endMissing
		if f.Renamed {
			into.Renamed, into.NewPath = true, f.NewPath
		}
	}
	for i := range merged {
		for j := range merged[i].hunks {
			merged[i].hunks[j].number = j + 1
		}
	}
	return merged
}

// severalFiles refuses a diff of several files where one is meant.
func severalFiles(files []FileDiff) *Error {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path()
	}
	return refuse(Ambiguous, "The diff is about several files: "+strings.Join(paths, ", ")+". Send one diff for each file.")
}
