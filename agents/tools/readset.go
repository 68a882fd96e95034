package tools

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"handoff/agents"
)

// A readSet remembers which files a session has seen, and in which version, so
// that none is overwritten unseen. It is memory only: the first line of every
// output that shows or changes a file names path, lines and hash, from which
// restore computes the same set after a restart.
type readSet struct {
	mu     sync.Mutex
	byPath map[string]*seenFile
}

// A seenFile is what was seen of one version of a file.
type seenFile struct {
	hash string // as shown: the first hashShown digits
	// lines[i] is set once line i+1 was shown; whole once all were.
	lines []bool
	whole bool
}

// hashShown is how many hex digits of a hash outputs show: enough to tell
// versions apart, few enough not to cost.
const hashShown = 16

func shortHash(hash string) string { return hash[:min(len(hash), hashShown)] }

// saw notes that lines first to last of total were shown.
func (r *readSet) saw(path, hash string, first, last, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.entry(path, shortHash(hash))
	if len(seen.lines) != total {
		seen.lines = make([]bool, total)
	}
	for i := max(first, 1); i <= min(last, total); i++ {
		seen.lines[i-1] = true
	}
	for _, shown := range seen.lines {
		if !shown {
			return
		}
	}
	seen.whole = true
}

// wrote notes that a tool gave the file a content that the session knows.
func (r *readSet) wrote(path, hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry(path, shortHash(hash)).whole = true
}

// patched notes a change of a part: what was known of the file stays known.
func (r *readSet) patched(path, before, after string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byPath[path]
	whole := known != nil && known.whole && known.hash == shortHash(before)
	r.entry(path, shortHash(after)).whole = whole
}

// entry returns the file's record for this version, a fresh one if the
// version is another. The lock must be held.
func (r *readSet) entry(path, hash string) *seenFile {
	if r.byPath == nil {
		r.byPath = map[string]*seenFile{}
	}
	seen := r.byPath[path]
	if seen == nil || seen.hash != hash {
		seen = &seenFile{hash: hash}
		r.byPath[path] = seen
	}
	return seen
}

// mayOverwrite says why a file of this hash must not be overwritten yet, "" if
// it may.
func (r *readSet) mayOverwrite(path, hash string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.byPath[path]
	switch {
	case seen == nil:
		return "it exists and was not read in this session. Read it with read_file first, then write it or, better for small changes, patch it"
	case seen.hash != shortHash(hash):
		return "it was changed since it was last read, for instance by a command. Read it again first"
	case !seen.whole:
		return "only a part of it was read in this session. Read the rest first, or change only the part you know with a patch"
	}
	return ""
}

// fileLine is the first line of an output about a file's version:
//
//	PATH: lines 1-20 of 300, sha256 0123456789abcdef
//	PATH: written, 300 lines, sha256 0123456789abcdef
//	PATH: changed, 300 lines, sha256 0123456789abcdef, before 0123456789abcdef
var fileLine = regexp.MustCompile(`(?m)^(.+): (?:lines (\d+)-(\d+) of (\d+)( \(some cut\))?|(written|changed), \d+ lines?), sha256 ([0-9a-f]{16})(?:, before ([0-9a-f]{16}))?$`)

func shownLine(path string, first, last, total int, cut bool, hash string) string {
	note := ""
	if cut {
		note = " (some cut)"
	}
	return fmt.Sprintf("%s: lines %d-%d of %d%s, sha256 %s", path, first, last, total, note, shortHash(hash))
}

func writtenLine(path string, lines int, hash string) string {
	return fmt.Sprintf("%s: written, %s, sha256 %s", path, plural(lines, "line"), shortHash(hash))
}

func changedLine(path string, lines int, hash, before string) string {
	text := fmt.Sprintf("%s: changed, %s, sha256 %s", path, plural(lines, "line"), shortHash(hash))
	if before != "" {
		text += ", before " + shortHash(before)
	}
	return text
}

// restore repeats what an earlier call did to the set. Only the host's own
// lines count: the first of an output, and for a patch of several files the
// first of each part; the content of a file follows numbered, so it can never
// look like one.
func (r *readSet) restore(item agents.Item) {
	switch item.Call.Name {
	case "read_file", "write_file", "apply_patch", "edit":
	default:
		return
	}
	if item.IsError {
		return
	}
	for _, match := range fileLine.FindAllStringSubmatch(item.Text, -1) {
		path, hash := match[1], match[7]
		switch {
		case match[6] == "written":
			r.wrote(path, hash)
		case match[6] == "changed" && match[8] != "":
			r.patched(path, match[8], hash)
		case match[6] == "changed":
			r.wrote(path, hash)
		case match[5] == "":
			first, _ := strconv.Atoi(match[2]) // the pattern admits digits only
			last, _ := strconv.Atoi(match[3])
			total, _ := strconv.Atoi(match[4])
			r.saw(path, hash, first, min(last, MaxFile), min(total, MaxFile))
		}
		if item.Call.Name != "apply_patch" {
			return
		}
	}
}
