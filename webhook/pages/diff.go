package pages

import (
	"regexp"
	"strconv"
	"strings"
)

// A diff is a patch as the page shows it.
type diff struct {
	Files     []diffFile
	Additions int
	Deletions int
	// Cut says that lines are missing because the patch is too long for a page.
	Cut bool
}

// A diffFile is what a patch does to one file.
type diffFile struct {
	Path string
	// Notes are the patch's words about the file: new, deleted, renamed, its
	// mode, that it is binary.
	Notes     []string
	Lines     []diffLine
	Additions int
	Deletions int
}

// Long says whether the file is better folded in.
func (f diffFile) Long() bool { return len(f.Lines) > 400 }

// A diffLine is one line. Kind is a class of the style sheet; a number that is 0
// does not exist.
type diffLine struct {
	Kind string
	Old  int
	New  int
	Text string
}

// maxDiffLines bounds a page.
const maxDiffLines = 10_000

// hunkHeader is @@ -a,b +c,d @@.
var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// A diffReader reads what git writes. The counts of a hunk's header say where
// it ends, so that no line of a file can pass for a header.
type diffReader struct {
	diff
	old, new         int // numbers of the next lines
	oldLeft, newLeft int // lines that the hunk still has
	lines            int
}

// parseDiff reads a unified diff as git writes it. What it does not understand
// it shows as a note.
func parseDiff(text string) diff {
	var r diffReader
	for line := range strings.Lines(text) {
		if r.lines == maxDiffLines {
			r.Cut = true
			break
		}
		r.lines++
		r.read(strings.TrimSuffix(line, "\n"))
	}
	return r.diff
}

func (r *diffReader) read(line string) {
	inHunk := r.oldLeft > 0 || r.newLeft > 0
	hunk := hunkHeader.FindStringSubmatch(line)
	switch {
	case inHunk || strings.HasPrefix(line, `\ `):
		r.content(line)
	case strings.HasPrefix(line, "diff --git "):
		r.Files = append(r.Files, diffFile{Path: pathOf(line)})
	case hunk != nil:
		r.old, r.oldLeft = number(hunk[1], 0), number(hunk[2], 1)
		r.new, r.newLeft = number(hunk[3], 0), number(hunk[4], 1)
		r.add(diffLine{Kind: "hunk", Text: line})
	case strings.HasPrefix(line, "+++ "):
		if path, ok := strings.CutPrefix(strings.TrimRight(line, "\t\r"), "+++ b/"); ok {
			r.file().Path = path
		}
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "index "), line == "":
	default:
		r.file().Notes = append(r.file().Notes, line)
	}
}

// content reads a line of a hunk.
func (r *diffReader) content(line string) {
	shown := diffLine{Kind: "same", Text: line}
	switch {
	case strings.HasPrefix(line, "+"):
		shown.Kind, shown.New, shown.Text = "add", r.new, line[1:]
		r.Additions++
		r.file().Additions++
	case strings.HasPrefix(line, "-"):
		shown.Kind, shown.Old, shown.Text = "del", r.old, line[1:]
		r.Deletions++
		r.file().Deletions++
	case strings.HasPrefix(line, `\`):
		shown.Kind = "hunk"
	default:
		shown.Old, shown.New, shown.Text = r.old, r.new, strings.TrimPrefix(line, " ")
	}
	if shown.Kind == "add" || shown.Kind == "same" {
		r.new, r.newLeft = r.new+1, r.newLeft-1
	}
	if shown.Kind == "del" || shown.Kind == "same" {
		r.old, r.oldLeft = r.old+1, r.oldLeft-1
	}
	r.add(shown)
}

// file is the one that is being read.
func (r *diffReader) file() *diffFile {
	if len(r.Files) == 0 {
		r.Files = append(r.Files, diffFile{})
	}
	return &r.Files[len(r.Files)-1]
}

func (r *diffReader) add(line diffLine) { r.file().Lines = append(r.file().Lines, line) }

// pathOf takes the name out of "diff --git a/x b/x"; names with odd characters
// are quoted there and stay so.
func pathOf(header string) string {
	names := strings.TrimPrefix(header, "diff --git ")
	if _, after, found := strings.Cut(names, " b/"); found {
		return after
	}
	return names
}

func number(digits string, otherwise int) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return otherwise
	}
	return n
}
