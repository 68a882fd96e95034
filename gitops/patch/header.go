package patch

import (
	"regexp"
	"strconv"
	"strings"
)

// readFileHeader reads whatever introduces a file and says whether there was
// such a thing at the current line.
func (r *reader) readFileHeader() bool {
	text := r.lines[r.at]
	switch {
	case strings.HasPrefix(text, "diff --git "):
		r.readGitHeader()
	case isEnvelopeMarker(text):
		return r.readEnvelopeMarker(text)
	case strings.HasPrefix(text, "--- ") && strings.HasPrefix(r.line(1), "+++ "):
		r.nameFile(headerPath(text[4:]), headerPath(r.line(1)[4:]))
		r.at += 2
	case strings.HasPrefix(text, "+++ ") && looksLikePath(text[4:]):
		r.plusOnly = r.plusOnly || len(r.files) == 0
		r.nameFile("", headerPath(text[4:]))
		r.at++
	case strings.HasPrefix(text, "--- ") && looksLikePath(text[4:]) && strings.HasPrefix(r.line(1), "@@"):
		r.nameFile(headerPath(text[4:]), "")
		r.at++
	case r.open && (strings.HasPrefix(text, "Binary files ") || text == "GIT binary patch"):
		r.current().binary = true
		r.at++
	case strings.HasPrefix(text, "Binary files ") && strings.HasSuffix(text, " differ"):
		r.start(FileDiff{binary: true})
		r.at++
	default:
		return false
	}
	return true
}

var gitHeaderPaths = regexp.MustCompile(`^diff --git (?:"?a/)?(.+?)"? (?:"?b/)?(.+?)"?$`)

// readGitHeader reads "diff --git" and the extended lines below it.
func (r *reader) readGitHeader() {
	file := FileDiff{}
	if path, ok := samePath(strings.TrimPrefix(r.lines[r.at], "diff --git ")); ok {
		file.OldPath, file.NewPath = path, path
	} else if match := gitHeaderPaths.FindStringSubmatch(r.lines[r.at]); match != nil {
		file.OldPath, file.NewPath = match[1], match[2]
	}
	mode := false
	for r.at++; r.at < len(r.lines); r.at++ {
		text := r.lines[r.at]
		switch {
		case strings.HasPrefix(text, "new file mode "):
			file.Created = true
		case strings.HasPrefix(text, "deleted file mode "):
			file.Deleted = true
		case strings.HasPrefix(text, "rename from "):
			file.OldPath, file.Renamed = unquote(text[len("rename from "):]), true
		case strings.HasPrefix(text, "rename to "):
			file.NewPath, file.Renamed = unquote(text[len("rename to "):]), true
		case strings.HasPrefix(text, "old mode "), strings.HasPrefix(text, "new mode "):
			mode = true
		case strings.HasPrefix(text, "index "), strings.HasPrefix(text, "similarity index "), strings.HasPrefix(text, "dissimilarity index "):
		default:
			file.modeOnly = mode && !file.Renamed
			r.start(file)
			return
		}
	}
	file.modeOnly = mode && !file.Renamed
	r.start(file)
}

// samePath takes "a/x b/x" apart, where x may contain spaces.
func samePath(pair string) (string, bool) {
	half := len(pair) / 2
	if len(pair)%2 == 0 || pair[half] != ' ' {
		return "", false
	}
	old, new := pair[:half], pair[half+1:]
	if strings.HasPrefix(old, "a/") && strings.HasPrefix(new, "b/") {
		old, new = old[2:], new[2:]
	}
	return old, old == new
}

// The markers of the "*** Begin Patch" envelope.
const (
	markerBegin  = "*** Begin Patch"
	markerEnd    = "*** End Patch"
	markerUpdate = "*** Update File: "
	markerAdd    = "*** Add File: "
	markerDelete = "*** Delete File: "
	markerMove   = "*** Move to: "
	markerEOF    = "*** End of File"
)

func isEnvelopeMarker(text string) bool {
	for _, marker := range []string{markerBegin, markerEnd, markerUpdate, markerAdd, markerDelete, markerMove, markerEOF} {
		if strings.HasPrefix(text, marker) {
			return true
		}
	}
	return false
}

// readEnvelopeMarker reads the markers that name files; the others are
// wrappers and are left to readWrapper.
func (r *reader) readEnvelopeMarker(text string) bool {
	path := func(marker string) string { return unquote(strings.TrimSpace(text[len(marker):])) }
	switch {
	case strings.HasPrefix(text, markerUpdate):
		r.start(FileDiff{OldPath: path(markerUpdate), NewPath: path(markerUpdate)})
	case strings.HasPrefix(text, markerAdd):
		r.start(FileDiff{OldPath: path(markerAdd), NewPath: path(markerAdd), Created: true})
	case strings.HasPrefix(text, markerDelete):
		r.start(FileDiff{OldPath: path(markerDelete), NewPath: path(markerDelete), Deleted: true, whole: true})
	case strings.HasPrefix(text, markerMove) && r.open:
		file := r.current()
		file.Renamed, file.NewPath = true, path(markerMove)
	default:
		return false
	}
	r.at++
	return true
}

// nameFile applies a ---/+++ pair, of which one may be missing, to the section
// that a git header opened, or opens a new one.
func (r *reader) nameFile(old, new string) {
	var file *FileDiff
	if r.open && len(r.current().hunks) == 0 && !r.current().whole {
		file = r.current()
	} else {
		file = r.start(FileDiff{})
	}
	old, new = stripPrefixes(old, new)
	switch {
	case old == devNull && new == devNull:
	case old == devNull:
		file.Created = true
		old = new
	case new == devNull:
		file.Deleted = true
		new = old
	case old == "":
		old = new
	}
	if file.Renamed {
		return // the extended header is the more precise one
	}
	if file.OldPath == "" || file.OldPath != new {
		// Two names without a rename header are an original and its copy
		// ("x.go.orig"); the new side names the file.
		if new == "" {
			new = old
		}
		file.OldPath, file.NewPath = new, new
	}
}

const devNull = "/dev/null"

// stripPrefixes removes a/ and b/ (or git's mnemonic i/ w/ c/ o/) where the
// other side shows that they are prefixes and not folders.
func stripPrefixes(old, new string) (string, string) {
	oldLetter, newLetter := prefixLetter(old), prefixLetter(new)
	differ := oldLetter != 0 && newLetter != 0 && oldLetter != newLetter
	alone := oldLetter != 0 && (new == "" || new == devNull) || newLetter != 0 && (old == "" || old == devNull)
	if differ || alone {
		if oldLetter != 0 {
			old = old[2:]
		}
		if newLetter != 0 {
			new = new[2:]
		}
	}
	return strings.TrimSuffix(old, ".orig"), new
}

func prefixLetter(path string) byte {
	if len(path) > 2 && path[1] == '/' && strings.IndexByte("abiwco", path[0]) >= 0 {
		return path[0]
	}
	return 0
}

// timestamp is what diff prints behind a path when it separates it by spaces.
var timestamp = regexp.MustCompile(`\s+(\d{4}-\d\d-\d\d|(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b).*$`)

// headerPath is the path in a --- or +++ line.
func headerPath(text string) string {
	if tab := strings.IndexByte(text, '\t'); tab >= 0 {
		text = text[:tab]
	}
	return unquote(strings.TrimSpace(timestamp.ReplaceAllString(text, "")))
}

// unquote undoes git's quoting of unusual paths.
func unquote(path string) string {
	if len(path) >= 2 && path[0] == '"' && path[len(path)-1] == '"' {
		if plain, err := strconv.Unquote(path); err == nil {
			return plain
		}
	}
	return path
}

// looksLikePath keeps prose and code from being taken for a header that
// stands alone.
func looksLikePath(text string) bool {
	path := headerPath(text)
	return path != "" && !strings.ContainsAny(path, " \t;(){}=") && strings.ContainsAny(path, "/.")
}

// numbers matches the ranges of a hunk header, whose counts are optional.
var numbers = regexp.MustCompile(`^@@+\s*-(\d+)(?:,(\d+))?\s+\+(\d+)(?:,(\d+))?\s*(?:@@+)?(.*)$`)

// readHunk reads a line @@ (or several: the envelope nests headings) and the
// body below it.
func (r *reader) readHunk() {
	h := hunk{oldCount: -1, newCount: -1}
	for strings.HasPrefix(r.line(0), "@@") {
		header := r.line(0)
		if match := numbers.FindStringSubmatch(header); match != nil {
			h.start, h.newStart = smallNumber(match[1]), smallNumber(match[3])
			h.oldCount, h.newCount = count(match[2]), count(match[4])
			h.countsStated = match[2] != "" || match[4] != ""
			header = match[5]
		} else if match := placeholder.FindStringSubmatch(header); match != nil {
			header = match[1]
		} else {
			header = strings.Trim(header, "@")
		}
		if heading := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(header), "@@")); isHeading(heading) {
			h.headings = append(h.headings, heading)
		}
		r.at++
	}
	r.skipLateHeader()
	r.readBody(h)
}

// skipLateHeader skips the header of the file where it follows the hunk's.
func (r *reader) skipLateHeader() {
	old, oldOK := strings.CutPrefix(r.line(0), "--- ")
	new, newOK := strings.CutPrefix(r.line(1), "+++ ")
	if oldOK && newOK && strings.HasPrefix(old, "a/") && strings.HasPrefix(new, "b/") {
		if r.current().Path() == "" {
			r.nameFile(headerPath(old), headerPath(new))
		}
		r.at += 2
	}
}

// placeholder is what stands for the numbers of a header that its writer did not
// know.
var placeholder = regexp.MustCompile(`^@@ *(?:\.\.\.|…|[-+][^\s@]*(?: +[-+][^\s@]*)*) *@@(.*)$`)

// count reads an optional count of a header, which is 1 when left out.
func count(digits string) int {
	if digits == "" {
		return 1
	}
	return smallNumber(digits)
}

// smallNumber reads digits; what exceeds any file's lines is cut, so that
// arithmetic on invented numbers cannot overflow.
func smallNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n > MaxFile {
		return MaxFile
	}
	return n
}

// isHeading keeps placeholders such as "..." and "-XXX" from being looked for.
func isHeading(heading string) bool {
	return heading != "" && heading[0] != '-' && strings.Trim(heading, ".… ") != ""
}
