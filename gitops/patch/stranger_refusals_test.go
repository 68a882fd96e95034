package patch_test

import (
	"fmt"
	"slices"
	"strings"
)

// What must be refused.
var refusalClasses = []class{
	{name: "removed line altered", refuse: true, make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool { return operator(b, i) == '-' && len(strings.TrimSpace(b.lines[i])) > 6 })
		if !ok {
			return false
		}
		text := typo(w.rng, w.at(s)[1:])
		if w.occursInFile(text) || slices.Contains(w.blocks[s.block].lines, "+"+text) {
			return false
		}
		w.set(s, "-"+text)
		return true
	}},
	{name: "removed line missing", refuse: true, make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return operator(b, i) == '-' && operator(b, i-1) == '-' && operator(b, i+1) == '-' && strings.TrimSpace(b.lines[i][1:]) != "" &&
				b.lines[i] != b.lines[i-1] && b.lines[i] != b.lines[i+1]
		})
		if ok {
			w.drop(s)
		}
		return ok
	}},
	{name: "context invented", refuse: true, make: func(w *work) bool {
		for i, b := range w.blocks {
			invented := 0
			for j := range b.lines {
				if isContext(b, j) && len(strings.TrimSpace(b.lines[j])) > 4 {
					w.blocks[i].lines[j] = " " + indentation(b.lines[j][1:]) + fmt.Sprintf("%s %d", inventedLines[w.rng.IntN(len(inventedLines))], j)
					invented++
				}
			}
			if invented < 3 {
				return false
			}
		}
		return true
	}},
	{name: "forgotten plus", refuse: true, make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return operator(b, i) == '+' && strings.TrimSpace(b.lines[i][1:]) != "" && besideChange(b, i)
		})
		if !ok || w.occursInFile(w.at(s)[1:]) {
			return false
		}
		w.set(s, " "+w.at(s)[1:])
		return true
	}},
	{name: "already applied", refuse: true, twins: true, make: func(w *work) bool {
		w.source = w.pair.text(w.wanted)
		w.src, w.squeezed = w.wanted, nil
		return !slices.ContainsFunc(w.blocks, func(b block) bool { return len(w.twins(b)) > 0 })
	}},
	{name: "one hunk already applied", refuse: true, make: func(w *work) bool {
		if len(w.blocks) < 2 {
			return false
		}
		done := w.blocks[w.rng.IntN(len(w.blocks))]
		w.source = w.pair.text(w.pair.apply([]block{done}))
		return true
	}},
	{name: "cut off in a change", refuse: true, styles: []string{"exact", "wrong"}, make: func(w *work) bool {
		last := len(w.blocks) - 1
		b := w.blocks[last]
		var ends []int
		for i := range b.lines[:len(b.lines)-1] {
			if operator(b, i) == '+' && len(b.lines[i]) > 8 && isContext(b, len(b.lines)-1) {
				ends = append(ends, i)
			}
		}
		if old, _ := counts(b.lines); len(ends) == 0 || b.at+old == len(w.src) {
			return false
		}
		end := ends[w.rng.IntN(len(ends))]
		w.wrap = func(d string) string {
			lines := strings.SplitAfter(strings.TrimSuffix(d, "\n"), "\n")
			lines = lines[:len(lines)-(len(b.lines)-1-end)]
			d = strings.Join(lines, "")
			torn := lines[len(lines)-1]
			return d[:len(d)-1-w.rng.IntN(len(torn)-2)]
		}
		w.style = "exact"
		return true
	}},
	{name: "envelope not closed", refuse: true, styles: []string{"bare"}, make: func(w *work) bool {
		w.header = func(w *work) string { return "*** Begin Patch\n*** Update File: " + w.path + "\n" }
		return true
	}},
	{name: "ambiguous", refuse: true, twins: true, styles: []string{"bare"}, make: func(w *work) bool {
		var twice []block
		for _, b := range w.pair.blocks(w.context) {
			if old := b.oldSide(); len(old) > 0 && occurrences(w.src, old) > 1 && len(b.lines) <= mostBlockLines {
				twice = append(twice, b)
			}
		}
		if len(twice) == 0 {
			return false
		}
		b := twice[w.rng.IntN(len(twice))]
		if sameEverywhere(w.pair, b) {
			return false
		}
		b.heading = ""
		w.rechoose([]block{b})
		return true
	}},
	{name: "hunks overlap", refuse: true, twins: true, make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool { return operator(b, i) == '+' })
		if !ok || !strings.Contains("\n"+strings.Join(w.blocks[s.block].lines, "\n"), "\n-") {
			return false
		}
		other := w.blocks[s.block]
		other.lines = slices.Clone(other.lines)
		other.lines[s.line] += " and more"
		w.blocks = append(w.blocks, other)
		return true
	}},
	{name: "creates what exists", refuse: true, twins: true, make: func(w *work) bool {
		w.header = func(w *work) string { return "--- /dev/null\n+++ b/" + w.path + "\n" }
		w.blocks = []block{{lines: prefixed("+", w.wanted[:min(20, len(w.wanted))])}}
		return true
	}},
	{name: "changes what is missing", refuse: true, make: func(w *work) bool { w.missing = true; return true }},
	{name: "deletes a part", refuse: true, twins: true, make: func(w *work) bool {
		w.header = func(w *work) string { return "--- a/" + w.path + "\n+++ /dev/null\n" }
		if len(w.src) < 20 {
			return false
		}
		w.blocks = []block{{lines: prefixed("-", w.src[:len(w.src)-5])}}
		return len(w.src) <= mostBlockLines
	}},
	{name: "binary", refuse: true, twins: true, make: func(w *work) bool {
		w.source = w.pair.text(w.src) + "\x00\n"
		return true
	}},
	{name: "binary patch", refuse: true, twins: true, make: func(w *work) bool {
		w.diff = "diff --git a/" + w.path + " b/" + w.path + "\nindex 83db48f..bf269f4 100644\nGIT binary patch\nliteral 12\nTcmZQzWMT#Y01f~L\n\n"
		return true
	}},
	{name: "changes nothing", refuse: true, make: func(w *work) bool {
		b := w.blocks[0]
		lines := b.lines[:0:0]
		for _, text := range b.lines {
			if text[0] == '-' {
				lines = append(lines, text, "+"+text[1:])
			} else if text[0] == ' ' {
				lines = append(lines, text)
			}
		}
		b.lines = lines
		w.blocks = []block{b}
		return true
	}},
	{name: "no hunk", refuse: true, twins: true, make: func(w *work) bool {
		w.diff = plainHeader(w)
		return true
	}},
	{name: "insertion between strangers", refuse: true, make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && isContext(b, i-1) && operator(b, i+1) == '+' && isInsertion(b, i+1) && isContext(b, len(b.lines)-1) && strings.TrimSpace(b.lines[i]) != "" &&
				b.lines[i] != b.lines[i-1]
		})
		if ok {
			w.drop(s)
		}
		return ok
	}},
}

// isInsertion says that the run of changes at i has no removed line.
func isInsertion(b block, i int) bool {
	for ; i < len(b.lines) && !isContext(b, i); i++ {
		if operator(b, i) == '-' {
			return false
		}
	}
	return true
}

// sameEverywhere says that the block's change gives one text wherever it is made.
func sameEverywhere(p textPair, b block) bool {
	old := b.oldSide()
	var first []string
	for at := 0; at+len(old) <= len(p.old); at++ {
		if !slices.Equal(p.old[at:at+len(old)], old) {
			continue
		}
		moved := b
		moved.changes = slices.Clone(b.changes)
		for i := range moved.changes {
			moved.changes[i].from += at - b.at
			moved.changes[i].to += at - b.at
		}
		text := p.apply([]block{moved})
		if first != nil && !slices.Equal(first, text) {
			return false
		}
		first = text
	}
	return true
}
