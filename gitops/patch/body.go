package patch

import (
	"regexp"
	"strings"
)

// readBody reads the lines of a hunk up to the next header, fence or marker.
// Counts do not end a body; they only help where a line could be both a
// header and a change.
func (r *reader) readBody(h hunk) {
	for ; r.at < len(r.lines) && !r.endsBody(h); r.at++ {
		if !r.repeatsHeader() {
			r.addLine(&h, r.lines[r.at])
		}
	}
	h.cut = r.at == len(r.lines) && r.cut
	if strings.HasPrefix(r.line(0), markerEOF) {
		h.atEnd = true
		r.at++
	}
	dropProse(&h)
	h.settleEnds()
	file := r.current()
	if file.Created {
		allAdded(&h)
	}
	if len(h.lines) > 0 || r.at == len(r.lines) && r.cut {
		file.hunks = append(file.hunks, h) // an empty one at the end is reported as cut off
	}
}

// endsBody says whether the current line belongs to no hunk or the next one.
func (r *reader) endsBody(h hunk) bool {
	text := r.lines[r.at]
	switch {
	case strings.HasPrefix(text, "@@"), strings.HasPrefix(text, "diff --git "), isEnvelopeMarker(text):
		return true
	case r.fenced && isFence(strings.TrimRight(text, " \t")):
		return true
	case !r.fenced && isFence(text) && r.nothingFollows():
		return true
	case r.heredoc != "" && text == r.heredoc:
		return true
	case strings.HasPrefix(text, "Index: ") && strings.HasPrefix(r.line(1), "===="):
		return true
	case (text == "-- " || text == "--") && gitVersion.MatchString(r.line(1)):
		return true // the signature of git format-patch
	}
	return r.isFileHeader(h)
}

var gitVersion = regexp.MustCompile(`^\d+\.\d+[.\w ()-]*$`)

// isFileHeader tells "--- a/x" and "+++ b/x" from a removed "-- a/x" and an
// added "++ b/x": a header names paths, and the counts of a body that is still
// running out-vote it.
func (r *reader) isFileHeader(h hunk) bool {
	text, next := r.lines[r.at], r.line(1)
	switch {
	case strings.HasPrefix(text, "--- ") && strings.HasPrefix(next, "+++ "):
		prefixed := strings.HasPrefix(text, "--- a/") && strings.HasPrefix(next, "+++ b/")
		return (prefixed || looksLikePath(text[4:]) && looksLikePath(next[4:])) && !r.runsOn(h)
	case r.plusOnly && strings.HasPrefix(text, "+++ ") && strings.HasPrefix(next, "@@"):
		return looksLikePath(text[4:]) && !r.runsOn(h)
	}
	return false
}

// runsOn says that by its counts the hunk goes on at the current line, which
// looks like a file's header.
func (r *reader) runsOn(h hunk) bool {
	old, new := h.counts()
	if strings.HasPrefix(r.line(2), "@@") {
		// A header is followed by a hunk. So is the end of this one, if its
		// counts say that it ends here.
		return old+1 == h.oldCount && new+1 == h.newCount
	}
	return old < h.oldCount && new < h.newCount
}

// repeatsHeader says that the current line is not an added "++ b/x" but names
// the file once more.
func (r *reader) repeatsHeader() bool {
	name, ok := strings.CutPrefix(r.lines[r.at], "+++ ")
	if !ok {
		return false
	}
	name, prefixed := strings.CutPrefix(headerPath(name), "b/")
	path := r.current().Path()
	return name == path && path != "" || prefixed && path == "" && looksLikePath(name)
}

// nothingFollows says whether only blank lines come after the current one.
func (r *reader) nothingFollows() bool {
	for _, text := range r.lines[r.at+1:] {
		if strings.TrimSpace(text) != "" {
			return false
		}
	}
	return true
}

// addLine adds one line of the body.
func (r *reader) addLine(h *hunk, text string) {
	switch {
	case text == "":
		h.lines = append(h.lines, line{op: keep, bare: true})
	case noNewline.MatchString(text):
		h.markEnd()
	case text[0] == '+' || text[0] == '-' || text[0] == ' ':
		l := line{op: operation(text[0]), text: text[1:]}
		l.elision = l.op == keep && isElision(l.text)
		h.lines = append(h.lines, l)
	default:
		h.lines = append(h.lines, line{op: keep, text: text, bare: true, elision: isElision(text)})
	}
}

// noNewline is the marker for a missing newline, which may have been escaped
// with the lines.
var noNewline = regexp.MustCompile(`^\\{1,2} [Nn]o newline`)

// markEnd notes that the line before has no newline in its file.
func (h *hunk) markEnd() {
	if len(h.lines) > 0 {
		h.lines[len(h.lines)-1].unended = true
	}
}

// settleEnds works out which sides end without a newline: those whose last line
// has the marker.
func (h *hunk) settleEnds() {
	for _, l := range h.lines {
		if l.op != add {
			h.oldEnd = l.unended
		}
		if l.op != remove {
			h.newEnd = l.unended
		}
	}
}

// elision is "..." alone or in a comment, with a few words of explanation.
var elision = regexp.MustCompile(`^\s*(//|#|--|/\*|<!--|;|%|\*|\{/\*)?\s*(\.\.\.|…)[^"'(){}\[\];=]*(\*/|-->|\*/\})?\s*$`)

func isElision(text string) bool { return elision.MatchString(text) }

// dropProse removes text that follows a complete hunk without a fence between:
// when the counts are met exactly, what comes after without an operator is no
// part of it.
func dropProse(h *hunk) {
	if h.oldCount < 0 {
		return
	}
	old, new := 0, 0
	for i, l := range h.lines {
		if old == h.oldCount && new == h.newCount {
			for _, rest := range h.lines[i:] {
				if !rest.bare || strings.HasPrefix(rest.text, "\u2212") {
					return // that is a minus, if a word processor's
				}
			}
			h.lines = h.lines[:i]
			return
		}
		if l.op != add {
			old++
		}
		if l.op != remove {
			new++
		}
	}
}

// allAdded reads a new file's content that was written without operators.
func allAdded(h *hunk) {
	for _, l := range h.lines {
		if l.op == add {
			return
		}
	}
	for i, l := range h.lines {
		if l.op == keep {
			text := l.text
			if !l.bare {
				text = " " + text
			}
			h.lines[i] = line{op: add, text: text}
		}
	}
}
