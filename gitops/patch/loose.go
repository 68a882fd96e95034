package patch

import (
	"regexp"
	"slices"
	"strings"
)

// What stands outside of the hunks is prose, usually. But a writer who leaves
// out the line @@ leaves a hunk there, and to apply the others without it would
// be to apply half a patch. So a block that can only be a hunk is read as one,
// and of the rest nothing may look like the file.

// startsLooseHunk says whether a hunk without a line @@ begins here, where no
// file's header was: a block, up to the next header or the end, in which every
// line has an operator, and which shows where its change belongs.
func (r *reader) startsLooseHunk() bool {
	if r.open || r.at < r.proseTo || operatorOf(r.line(0)) == 0 || !r.beginsBlock() {
		return false
	}
	lines := map[operation]int{}
	list := true
	// What keeps a block from being a hunk keeps its later parts too.
	for r.proseTo = r.at; r.proseTo < len(r.lines) && !r.endsLoose(r.proseTo); r.proseTo++ {
		text := r.lines[r.proseTo]
		op := operatorOf(text)
		if op == 0 && strings.TrimSpace(text) != "" {
			return false
		}
		lines[op]++
		list = list && (op != add && op != remove || listItem.MatchString(text))
	}
	if lines[add] > 0 {
		return lines[keep]+lines[remove] > 0 && !list
	}
	return lines[remove] > 0 && r.inDiffFence()
}

// operatorOf is the operator that a line with text begins with, 0 for none.
func operatorOf(text string) operation {
	if strings.TrimSpace(text) == "" {
		return 0
	}
	switch op := operation(text[0]); op {
	case keep, remove, add:
		return op
	}
	return 0
}

// beginsBlock says that nothing but the line's own block can be above it.
func (r *reader) beginsBlock() bool {
	if r.at == 0 {
		return true
	}
	above := strings.TrimSpace(r.lines[r.at-1])
	return above == "" || strings.HasPrefix(above, "```") || strings.HasPrefix(above, "~~~") || heredocStart.MatchString(above)
}

// inDiffFence says that the line above opens a fence for a diff, or for it
// knows not what.
func (r *reader) inDiffFence() bool {
	if r.at == 0 || !r.fenced {
		return false
	}
	language := strings.TrimLeft(strings.TrimSpace(r.lines[r.at-1]), "`~")
	return slices.Contains([]string{"", "diff", "patch", "udiff"}, language)
}

// endsLoose says that a line begins something else than a hunk's lines.
func (r *reader) endsLoose(at int) bool {
	text := r.lines[at]
	next := ""
	if at+1 < len(r.lines) {
		next = r.lines[at+1]
	}
	return strings.HasPrefix(text, "@@") || strings.HasPrefix(text, "diff --git ") || r.isWrapper(text) ||
		isFence(strings.TrimSpace(text)) || strings.HasPrefix(text, "--- ") && strings.HasPrefix(next, "+++ ")
}

// skip notes a line that belongs to no hunk, in a block with its neighbours.
func (r *reader) skip(text string) {
	if operatorOf(text) == 0 && strings.TrimSpace(text) != "" {
		r.endBlock()
		return
	}
	r.block = append(r.block, text)
}

// endBlock keeps what was skipped if it has changed lines.
func (r *reader) endBlock() {
	if slices.ContainsFunc(r.block, func(text string) bool { op := operatorOf(text); return op == add || op == remove }) {
		r.stray = append(r.stray, r.block)
	}
	r.block = nil
}

// looksLost finds a block outside of the hunks that is about this file: it
// removes a line that the file has, adds one beside such a line, or adds one
// that is no item of a list. It returns the block's line that shows it.
func (s *source) looksLost(stray [][]string) (text string, lost bool) {
	for _, block := range stray {
		adds := slices.ContainsFunc(block, func(text string) bool { return operatorOf(text) == add })
		for _, text := range block {
			op, rest := operatorOf(text), text[min(1, len(text)):]
			here := op != 0 && !trivial(rest) && s.form(2).id(rest, 2) >= 0
			if op == remove && here || op == keep && adds && here || op == add && !listItem.MatchString(text) {
				return text, true
			}
		}
	}
	return "", false
}

// listItem is a line of prose that begins with an operator, "+1" among them.
var listItem = regexp.MustCompile(`^([-+] \S|\+\d)`)
