package patch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A task is one diff to apply and what should come of it.
type task struct {
	class, style, name string
	// kind says in what way headers are wrong.
	kind         string
	source, diff string
	missing      bool // there is no file
	want         string
	deleted      bool
	newPath      string
	// refuse says that nothing but a refusal is right.
	refuse bool
}

// A work is a task in the making: a right diff that a class corrupts.
type work struct {
	task
	rng    *rand.Rand
	pair   textPair
	blocks []block
	// src and wanted are the file before and after, as lines.
	src, wanted []string
	path        string
	// context is how many lines of context the diff has.
	context int
	// header introduces the file; none if it is nil.
	header func(w *work) string
	// wrap is what happens to the diff as a whole.
	wrap func(diff string) string
	// squeezed is src without white space, filled when first needed.
	squeezed []string
}

// The most that a diff changes at once.
const (
	mostBlocks     = 4
	mostBlockLines = 250
)

// newWork draws a right diff: some of the hunks that lead from one release to
// the next.
func newWork(rng *rand.Rand, pair textPair, context int) (*work, bool) {
	all := pair.blocks(context)
	n := min(len(all), 1+rng.IntN(mostBlocks))
	first := rng.IntN(len(all) - n + 1)
	w := &work{rng: rng, pair: pair, path: pair.name, context: context, header: plainHeader}
	for _, b := range all[first : first+n] {
		if len(b.lines) > mostBlockLines {
			return nil, false
		}
		b.lines = slices.Clone(b.lines)
		w.blocks = append(w.blocks, b)
	}
	w.src, w.wanted = pair.old, pair.apply(w.blocks)
	return w, !slices.Equal(w.src, w.wanted)
}

// rechoose sets what the file is before and after from the chosen blocks.
func (w *work) rechoose(blocks []block) {
	w.blocks = blocks
	w.wanted = w.pair.apply(blocks)
}

// finish writes the task down.
func (w *work) finish() task {
	if w.source == "" && !w.missing {
		w.source = w.pair.text(w.src)
	}
	if w.want == "" && !w.deleted {
		w.want = w.pair.text(w.wanted)
	}
	if w.diff == "" {
		w.diff = w.render()
	}
	if w.wrap != nil {
		w.diff = w.wrap(w.diff)
	}
	w.name = w.pair.name
	return w.task
}

func plainHeader(w *work) string { return "--- a/" + w.path + "\n+++ b/" + w.path + "\n" }

func (w *work) render() string {
	var b strings.Builder
	if w.header != nil {
		b.WriteString(w.header(w))
	}
	b.WriteString(w.hunks())
	return b.String()
}

func (w *work) hunks() string {
	var b strings.Builder
	headers := w.headers()
	for i, block := range w.blocks {
		b.WriteString(headers[i] + "\n")
		for _, text := range block.lines {
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// numbers are what a hunk header states.
type numbers struct{ oldStart, oldCount, newStart, newCount int }

func (n numbers) String() string {
	return fmt.Sprintf("@@ -%d,%d +%d,%d @@", n.oldStart, n.oldCount, n.newStart, n.newCount)
}

// headers writes the line @@ of every hunk in the task's style.
func (w *work) headers() []string {
	list := w.exactNumbers()
	kind := w.rng.IntN(5)
	withHeading := w.rng.IntN(2) == 0
	if w.style == "wrong" {
		for tries := 0; !w.makeWrong(list); tries++ {
			list = w.exactNumbers()
			if tries == 20 {
				break
			}
		}
	}
	headers := make([]string, len(list))
	for i, n := range list {
		heading := w.blocks[i].heading
		switch {
		case w.style == "bare" && heading == "":
			headers[i] = []string{"@@", "@@ ... @@", "@@ -XXX,XX +XXX,XX @@"}[kind%3]
		case w.style == "bare":
			headers[i] = []string{"@@", "@@ ... @@", "@@ -XXX,XX +XXX,XX @@", "@@ " + heading, "@@ " + heading + " @@"}[kind]
		case withHeading && heading != "":
			headers[i] = n.String() + " " + heading
		default:
			headers[i] = n.String()
		}
	}
	return headers
}

// exactNumbers are what diff would print.
func (w *work) exactNumbers() []numbers {
	list := make([]numbers, len(w.blocks))
	order := make([]int, len(w.blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return w.blocks[a].at - w.blocks[b].at })
	delta := 0
	for _, i := range order {
		block := w.blocks[i]
		old, new := counts(block.lines)
		list[i] = numbers{block.at + 1, old, block.at + 1 + delta, new}
		if old == 0 {
			list[i].oldStart-- // diff names the line before
		}
		delta += new - old
	}
	return list
}

// makeWrong spoils the numbers in one of the ways in which models do. It fails
// when a number came to name another place where the hunk fits, which would be
// an order to change that one.
func (w *work) makeWrong(list []numbers) bool {
	w.kind = []string{"near", "far", "counts", "far and counts", "drift", "ones"}[w.rng.IntN(6)]
	shift := 1 + w.rng.IntN(60)
	for i := range list {
		n := &list[i]
		switch w.kind {
		case "near":
			by := 1 + w.rng.IntN(9)
			if w.rng.IntN(2) == 0 && n.oldStart > by {
				by = -by
			}
			n.oldStart, n.newStart = n.oldStart+by, n.newStart+by
		case "far":
			n.oldStart = 1 + w.rng.IntN(len(w.src)+20)
			n.newStart = n.oldStart
		case "counts":
			n.oldCount, n.newCount = max(1, n.oldCount-3+w.rng.IntN(7)), max(1, n.newCount-3+w.rng.IntN(7))
		case "far and counts":
			n.oldStart, n.newStart = 1+w.rng.IntN(len(w.src)+20), 1+w.rng.IntN(len(w.src)+20)
			n.oldCount, n.newCount = 1+w.rng.IntN(12), 1+w.rng.IntN(12)
		case "drift":
			n.oldStart, n.newStart = n.oldStart+shift, n.newStart+shift
		case "ones":
			n.oldStart, n.newStart = 1, 1
		}
		for _, at := range w.twins(w.blocks[i]) {
			if off := at + 1 - n.oldStart; at != w.blocks[i].at && -10 <= off && off <= 10 {
				return false
			}
		}
	}
	return true
}

// twins are the lines, from 0, on which a block's old side stands, its white
// space aside.
func (w *work) twins(b block) []int {
	if w.squeezed == nil {
		w.squeezed = make([]string, len(w.src))
		for i, text := range w.src {
			w.squeezed[i] = squeeze(text)
		}
	}
	var old []string
	for _, text := range b.oldSide() {
		old = append(old, squeeze(text))
	}
	var found []int
	for at := 0; len(old) > 0 && at+len(old) <= len(w.squeezed); at++ {
		if slices.Equal(w.squeezed[at:at+len(old)], old) {
			found = append(found, at)
		}
	}
	return found
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

// undecided says that what the hunks say of the file stands there in several
// places, or in one although they are to be refused: only an exact number could
// tell, if anything.
func (w *work) undecided() bool {
	if w.style == "exact" && !w.refuse {
		return false
	}
	return slices.ContainsFunc(w.blocks, func(b block) bool {
		return slices.ContainsFunc(w.twins(b), func(at int) bool { return at != b.at })
	})
}

// A spot is one line of one hunk.
type spot struct{ block, line int }

// spots are the lines for which holds is true.
func (w *work) spots(holds func(b block, i int) bool) []spot {
	var found []spot
	for i, b := range w.blocks {
		for j := range b.lines {
			if holds(b, j) {
				found = append(found, spot{i, j})
			}
		}
	}
	return found
}

// anySpot draws one of them.
func (w *work) anySpot(holds func(b block, i int) bool) (spot, bool) {
	found := w.spots(holds)
	if len(found) == 0 {
		return spot{}, false
	}
	return found[w.rng.IntN(len(found))], true
}

func (w *work) at(s spot) string        { return w.blocks[s.block].lines[s.line] }
func (w *work) set(s spot, text string) { w.blocks[s.block].lines[s.line] = text }
func (w *work) drop(s spot) {
	b := &w.blocks[s.block]
	b.lines = slices.Delete(b.lines, s.line, s.line+1)
}

func (w *work) insert(s spot, text string) {
	b := &w.blocks[s.block]
	b.lines = slices.Insert(b.lines, s.line, text)
}

// mapLines changes lines and says whether that made a difference.
func (w *work) mapLines(change func(text string) string) bool {
	changed := false
	for i := range w.blocks {
		for j, text := range w.blocks[i].lines {
			w.blocks[i].lines[j] = change(text)
			changed = changed || w.blocks[i].lines[j] != text
		}
	}
	return changed
}

func operator(b block, i int) byte {
	if i < 0 || i >= len(b.lines) {
		return 0
	}
	return b.lines[i][0]
}

func isContext(b block, i int) bool { return operator(b, i) == ' ' }

// besideChange says that a line has a change next to it.
func besideChange(b block, i int) bool {
	return strings.IndexByte("+-", operator(b, i-1)) >= 0 && i > 0 || i+1 < len(b.lines) && !isContext(b, i+1)
}

// occursInFile says that the file has the line, its white space aside.
func (w *work) occursInFile(text string) bool {
	return slices.ContainsFunc(w.src, func(other string) bool { return squeeze(other) == squeeze(text) })
}

// oldSide is what a block says of the file.
func (b block) oldSide() []string {
	var lines []string
	for _, text := range b.lines {
		if text != "" && (text[0] == ' ' || text[0] == '-') {
			lines = append(lines, text[1:])
		} else if text == "" || text[0] != '+' && text[0] != '\\' {
			lines = append(lines, text) // its operator is missing
		}
	}
	return lines
}

// occurrences counts where lines stand together.
func occurrences(file, lines []string) int {
	n := 0
	for at := 0; at+len(lines) <= len(file); at++ {
		if slices.Equal(file[at:at+len(lines)], lines) {
			n++
		}
	}
	return n
}
