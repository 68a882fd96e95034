package patch_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

// A class is one way in which a diff is not as it should be. make corrupts the
// right diff and says whether that was possible.
type class struct {
	name   string
	refuse bool
	// styles are the header styles it is tried with; all of them if nil.
	styles []string
	// context is how many lines of context the diff has, 3 if 0.
	context int
	// hard says that refusing is as good as applying rightly.
	hard bool
	// least is the share of cases that must come out right, rightInClass if 0.
	least float64
	// twins says that the class is about hunks that stand in several places.
	twins bool
	make  func(w *work) bool
}

func (c class) contextLines() int {
	if c.context > 0 {
		return c.context
	}
	return 3
}

var classes = slices.Concat(readingClasses, slipClasses, layoutClasses, twofoldClasses, fileClasses, refusalClasses)

// Two corruptions at once: nothing is promised but that none is applied wrongly.
var twofoldClasses = []class{
	{name: "a dress and a slip", hard: true, make: anchored(func(w *work) bool { return both(w, readingClasses, slipClasses) })},
	{name: "two slips", hard: true, make: anchored(func(w *work) bool { return both(w, slipClasses, slipClasses) })},
	{name: "a slip and a layout", hard: true, make: anchored(func(w *work) bool { return both(w, slipClasses, layoutClasses) })},
}

// both corrupts by one class of each list, the second first: it may choose
// other hunks.
func both(w *work, first, second []class) bool {
	a, b := first[w.rng.IntN(len(first))], second[w.rng.IntN(len(second))]
	if a.styles != nil || b.styles != nil || a.context+b.context > 0 || strings.HasPrefix(a.name, "elision") || b.name == "hunk twice" {
		return false
	}
	if !b.make(w) {
		return false
	}
	for _, block := range w.blocks {
		for _, text := range block.lines {
			if text == "" || !strings.ContainsAny(text[:1], " +-") {
				return false // the other needs to know what a line is
			}
		}
	}
	return a.make(w)
}

// Rules 3, 4 and 18: the dress.
var readingClasses = []class{
	{name: "clean", make: func(*work) bool { return true }},
	{name: "fence", make: wrapped(func(d string) string { return "```diff\n" + d + "```\n" })},
	{name: "prose", make: wrapped(func(d string) string {
		return "Here is the change you asked for:\n\n```diff\n" + d + "```\n\nIt keeps the rest as it is.\nLet me know - I can also add tests.\n"
	})},
	{name: "prose, no fence", make: wrapped(func(d string) string { return "This should do it:\n\n" + d })},
	{name: "CRLF", make: wrapped(func(d string) string { return strings.ReplaceAll(d, "\n", "\r\n") })},
	{name: "no final newline", make: wrapped(func(d string) string { return strings.TrimSuffix(d, "\n") })},
	{name: "git header", make: headed(func(w *work) string {
		return fmt.Sprintf("diff --git a/%s b/%s\nindex 83db48f..bf269f4 100644\n", w.path, w.path) + plainHeader(w)
	})},
	{name: "no prefix", make: headed(func(w *work) string { return "--- " + w.path + "\n+++ " + w.path + "\n" })},
	{name: "absolute", make: headed(func(w *work) string { return "--- /home/u/repo/" + w.path + "\n+++ /home/u/repo/" + w.path + "\n" })},
	{name: "original", make: headed(func(w *work) string { return "--- " + w.path + ".orig\n+++ " + w.path + "\n" })},
	{name: "timestamps", make: headed(func(w *work) string {
		return "--- a/" + w.path + "\t2024-03-01 10:11:12.000000000 +0100\n+++ b/" + w.path + "\t2024-03-01 10:12:12.000000000 +0100\n"
	})},
	{name: "only +++", make: headed(func(w *work) string { return "+++ b/" + w.path + "\n" })},
	{name: "no header", make: headed(nil)},
	{name: "envelope", styles: []string{"bare"}, make: enveloped(false)},
	{name: "envelope in a heredoc", styles: []string{"bare"}, make: enveloped(true)},
	{name: "heredoc", make: wrapped(func(d string) string { return "git apply <<'PATCH'\n" + d + "PATCH\n" })},
	{name: "JSON-escaped", make: wrapped(func(d string) string {
		quoted, _ := json.Marshal(d)
		return strings.Trim(string(quoted), `"`)
	})},
	{name: "HTML-escaped", make: func(w *work) bool {
		return w.mapLines(func(text string) string { return text[:1] + html.EscapeString(text[1:]) })
	}},
	{name: "NN |", make: numbered(" | ")},
	{name: "NN tab", make: numbered("\t")},
}

func wrapped(wrap func(string) string) func(*work) bool {
	return func(w *work) bool {
		w.wrap = wrap
		return true
	}
}

func headed(header func(*work) string) func(*work) bool {
	return func(w *work) bool {
		w.header = header
		return true
	}
}

func enveloped(heredoc bool) func(*work) bool {
	return func(w *work) bool {
		w.header = func(w *work) string { return "*** Begin Patch\n*** Update File: " + w.path + "\n" }
		w.wrap = func(d string) string {
			d += "*** End Patch\n"
			if heredoc {
				d = "apply_patch <<'EOF'\n" + d + "EOF\n"
			}
			return d
		}
		return true
	}
}

// numbered puts line numbers before the old lines, as a file viewer shows them.
func numbered(separator string) func(*work) bool {
	return func(w *work) bool {
		for i, b := range w.blocks {
			n := b.at + 1
			for j, text := range b.lines {
				if text[0] != '+' {
					w.blocks[i].lines[j] = fmt.Sprintf("%c%d%s%s", text[0], n, separator, text[1:])
					n++
				}
			}
		}
		return true
	}
}

// Rules 5 and 7: slips in context lines.
var slipClasses = []class{
	{name: "blank context", make: func(w *work) bool {
		return w.mapLines(func(text string) string {
			if text == " " {
				return ""
			}
			return text
		})
	}},
	{name: "no operator, one", make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool { return isContext(b, i) && bareIsSafe(b.lines[i][1:]) })
		if ok {
			w.set(s, w.at(s)[1:])
		}
		return ok
	}},
	{name: "no operator, all", make: func(w *work) bool {
		unsafe := w.spots(func(b block, i int) bool {
			return isContext(b, i) && len(b.lines[i]) > 1 && !bareIsSafe(b.lines[i][1:])
		})
		return len(unsafe) == 0 && w.mapLines(func(text string) string { return strings.TrimPrefix(text, " ") })
	}},
	{name: "elision", make: func(w *work) bool { return elide(w, " ") }},
	{name: "elision, comment", make: func(w *work) bool { return elide(w, " "+indentation(w.anyOld())+"// ") }},
	{name: "elision, hash", make: func(w *work) bool { return elide(w, "# ") }},
	{name: "trailing space", make: func(w *work) bool {
		return w.mapLines(func(text string) string {
			if text[0] != '+' && w.rng.IntN(3) == 0 {
				return text + strings.Repeat(" ", 1+w.rng.IntN(3))
			}
			return text
		})
	}},
	{name: "trailing space lost", make: func(w *work) bool {
		return w.mapLines(func(text string) string {
			if text[0] != '+' && text != " " {
				return text[:1] + strings.TrimRight(text[1:], " \t")
			}
			return text
		})
	}},
	{name: "white space inside", make: func(w *work) bool {
		return w.mapLines(func(text string) string {
			if text[0] == '+' {
				return text
			}
			body := text[1:]
			indent := indentation(body)
			rest := body[len(indent):]
			return text[:1] + indent + strings.Join(strings.FieldsFunc(rest, unicode.IsSpace), " ")
		})
	}},
	{name: "typography", make: func(w *work) bool {
		fancy := strings.NewReplacer(`"`, "”", "'", "’", " - ", " – ", "...", "…")
		return w.mapLines(func(text string) string {
			if text[0] == '+' {
				return text
			}
			return text[:1] + fancy.Replace(text[1:])
		})
	}},
	{name: "typo", make: anchored(func(w *work) bool { return typos(w, 1, 1) })},
	{name: "two typos in a line", make: anchored(func(w *work) bool { return typos(w, 1, 2) })},
	{name: "typos in two lines", make: anchored(func(w *work) bool { return typos(w, 2, 1) })},
	{name: "line left out", make: anchored(func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && isContext(b, i-1) && isContext(b, i+1) && !besideChange(b, i)
		})
		if ok {
			w.drop(s)
		}
		return ok
	})},
	{name: "line left out beside a change", make: anchored(func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && (isContext(b, i-1) && operator(b, i+1) == '-' || operator(b, i-1) == '-' && isContext(b, i+1))
		})
		if ok {
			w.drop(s)
		}
		return ok
	})},
	{name: "edge line lost", make: func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && (i == 0 || i == len(b.lines)-1) && !besideChange(b, i)
		})
		if ok {
			w.drop(s)
		}
		return ok
	}},
	{name: "invented at the edge", make: anchored(func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && (i == 0 || i == len(b.lines)-1)
		})
		if !ok {
			return false
		}
		invented := " " + indentation(w.at(s)[1:]) + inventedLines[w.rng.IntN(len(inventedLines))]
		if s.line > 0 {
			s.line++
		}
		w.insert(s, invented)
		return !w.occursInFile(invented[1:])
	})},
	{name: "typo and left out", make: anchored(func(w *work) bool {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && isContext(b, i-1) && isContext(b, i+1) && !besideChange(b, i)
		})
		if ok {
			w.drop(s)
		}
		return ok && typos(w, 1, 1)
	})},
	{name: "typo and white space", make: anchored(func(w *work) bool {
		return typos(w, 1, 1) && w.mapLines(func(text string) string {
			if text[0] != '+' && w.rng.IntN(3) == 0 {
				return text + " "
			}
			return text
		})
	})},
}

var inventedLines = []string{
	"// prepare what follows", "logger.Debug(\"entering the section\")", "const retries = maximumAttempts",
	"<!-- section begins -->", "assert_valid(configuration)", "# see the documentation for details",
}

// anchored asks for three lines with some words that are left as they are in
// every hunk that is corrupted: with less nobody could know where it belongs.
func anchored(corrupt func(w *work) bool) func(w *work) bool {
	return func(w *work) bool {
		before := make([][]string, len(w.blocks))
		for i, b := range w.blocks {
			before[i] = slices.Clone(b.lines)
		}
		if !corrupt(w) {
			return false
		}
		for i, b := range w.blocks {
			anchors := 0
			for _, text := range b.oldSide() {
				if wordy(text) && w.occursInFile(text) {
					anchors++
				}
			}
			if anchors < 3 && !slices.Equal(before[i], b.lines) {
				return false
			}
		}
		return true
	}
}

// wordy says that a line has at least one word of four letters.
func wordy(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) }), func(word string) bool { return len(word) >= 4 })
}

// bareIsSafe says that a context line cannot be mistaken without its space.
func bareIsSafe(text string) bool {
	return text != "" && !strings.ContainsAny(text[:1], "+-@\\ *`#~") && !strings.HasPrefix(text, "diff ") && !strings.HasPrefix(text, "Index: ")
}

func indentation(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

func (w *work) anyOld() string { return w.src[w.rng.IntN(len(w.src))] }

// elide takes the diff with more context and puts dots for some of it.
func elide(w *work, before string) bool {
	w.context = 8
	all := w.pair.blocks(w.context)
	chosen := slices.Clone(all[w.rng.IntN(len(all)):][:1])
	chosen[0].lines = slices.Clone(chosen[0].lines)
	if len(chosen[0].lines) > mostBlockLines {
		return false
	}
	w.rechoose(chosen)
	s, ok := w.anySpot(func(b block, i int) bool {
		for j := i - 2; j <= i+4; j++ {
			if !isContext(b, j) || j >= i && j <= i+2 && strings.Contains(b.lines[j], "...") {
				return false
			}
		}
		return true
	})
	if !ok {
		return false
	}
	w.drop(s)
	w.drop(s)
	w.drop(s)
	words := []string{"...", "... existing code ...", "... rest of the code ..."}
	text := before + words[w.rng.IntN(len(words))]
	if before == " " {
		text = " ..."
	}
	w.insert(s, text)
	return true
}

// typos puts edits into context lines.
func typos(w *work, lines, edits int) bool {
	for range lines {
		s, ok := w.anySpot(func(b block, i int) bool {
			return isContext(b, i) && len(strings.TrimSpace(b.lines[i])) >= 4*edits+4
		})
		if !ok {
			return false
		}
		text := w.at(s)[1:]
		for range edits {
			text = typo(w.rng, text)
		}
		if w.occursInFile(text) {
			return false
		}
		w.set(s, " "+text)
	}
	return true
}

// typo changes one letter of a line.
func typo(rng *rand.Rand, text string) string {
	letters := []rune(text)
	var spots []int
	for i, c := range letters {
		if unicode.IsLetter(c) {
			spots = append(spots, i)
		}
	}
	if len(spots) == 0 {
		return text
	}
	at := spots[rng.IntN(len(spots))]
	other := rune('a' + rng.IntN(26))
	switch rng.IntN(4) {
	case 0:
		return string(slices.Delete(letters, at, at+1))
	case 1:
		return string(slices.Insert(letters, at, other))
	case 2:
		if at+1 < len(letters) {
			letters[at], letters[at+1] = letters[at+1], letters[at]
		}
	default:
		letters[at] = other
	}
	return string(letters)
}

// Rules 9, 14 and 15: indentation, order, line endings.
var layoutClasses = []class{
	{name: "tabs to 4 spaces", make: func(w *work) bool { return usesTabs(w) && w.mapLines(reindent("\t", "    ")) }},
	{name: "tabs to 8 spaces", make: func(w *work) bool { return usesTabs(w) && w.mapLines(reindent("\t", "        ")) }},
	{name: "tabs to 2 spaces", make: func(w *work) bool { return usesTabs(w) && w.mapLines(reindent("\t", "  ")) }},
	{name: "4 spaces to tabs", make: func(w *work) bool { return usesUnit(w, "    ") && w.mapLines(reindent("    ", "\t")) }},
	// In a template literal white space is content, so what JavaScript adds there
	// is refused.
	{name: "2 spaces to tabs", least: 0.9, make: func(w *work) bool { return usesUnit(w, "  ") && w.mapLines(reindent("  ", "\t")) }},
	{name: "tabs to spaces, added right", make: func(w *work) bool {
		change := reindent("\t", "    ")
		return usesTabs(w) && w.mapLines(func(text string) string {
			if text[0] == '+' {
				return text
			}
			return change(text)
		})
	}},
	{name: "moved in", make: func(w *work) bool {
		unit := "\t"
		if usesSpaces(w.src) {
			unit = "    "
		}
		return w.mapLines(func(text string) string {
			if len(text) == 1 {
				return text
			}
			return text[:1] + unit + text[1:]
		})
	}},
	{name: "moved to the margin", make: func(w *work) bool {
		for i, b := range w.blocks {
			prefix, first := "", true
			for _, text := range b.lines {
				if strings.TrimSpace(text[1:]) == "" {
					if text[0] == '+' && len(text) > 1 {
						return false // moved, it is as empty as any
					}
					continue
				}
				if first {
					prefix, first = indentation(text[1:]), false
				}
				for !strings.HasPrefix(text[1:], prefix) {
					prefix = prefix[:len(prefix)-1]
				}
			}
			if prefix == "" {
				return false
			}
			for j, text := range b.lines {
				w.blocks[i].lines[j] = text[:1] + strings.TrimPrefix(text[1:], prefix)
			}
		}
		return true
	}},
	{name: "shuffled", make: func(w *work) bool {
		w.rng.Shuffle(len(w.blocks), func(i, j int) { w.blocks[i], w.blocks[j] = w.blocks[j], w.blocks[i] })
		return len(w.blocks) > 1
	}},
	{name: "hunk twice", make: func(w *work) bool {
		w.wrap = nil
		w.blocks = append(w.blocks, w.blocks[w.rng.IntN(len(w.blocks))])
		return true
	}},
	{name: "header twice", make: func(w *work) bool {
		if len(w.blocks) < 2 {
			return false
		}
		w.wrap = func(d string) string {
			at := strings.LastIndex(d, "\n@@")
			return d[:at+1] + plainHeader(w) + d[at+1:]
		}
		return true
	}},
	{name: "CRLF file", make: func(w *work) bool { w.pair.ending = "\r\n"; return true }},
	{name: "CRLF file and diff", make: func(w *work) bool {
		w.pair.ending = "\r\n"
		w.wrap = func(d string) string { return strings.ReplaceAll(d, "\n", "\r\n") }
		return true
	}},
	{name: "mixed endings", make: func(w *work) bool {
		// The first half is CRLF, the rest LF; changes are clear of the seam.
		seam := len(w.src) / 2
		for _, b := range w.blocks {
			old, _ := counts(b.lines)
			if b.at <= seam+1 && b.at+old >= seam-1 || b.at < 1 {
				return false
			}
		}
		delta := 0
		for _, b := range w.blocks {
			if b.at < seam {
				old, new := counts(b.lines)
				delta += new - old
			}
		}
		mixed := func(lines []string, seam int) string {
			return strings.Join(lines[:seam], "\r\n") + "\r\n" + strings.Join(lines[seam:], "\n") + "\n"
		}
		w.source, w.want = mixed(w.src, seam), mixed(w.wanted, seam+delta)
		return true
	}},
	{name: "file without final newline", make: func(w *work) bool {
		w.pair.final = false
		return len(w.wanted) > 0 && w.wanted[len(w.wanted)-1] != ""
	}},
	{name: "marker at the end", make: func(w *work) bool {
		last := w.blocks[len(w.blocks)-1]
		old, _ := counts(last.lines)
		if last.at+old != len(w.src) || operator(last, len(last.lines)-1) != ' ' {
			return false
		}
		w.pair.final = false
		w.insert(spot{len(w.blocks) - 1, len(last.lines)}, `\ No newline at end of file`)
		return true
	}},
	{name: "context of 1", context: 1, make: func(*work) bool { return true }},
	{name: "context of 2", context: 2, make: func(*work) bool { return true }},
	{name: "context of 6", context: 6, make: func(*work) bool { return true }},
}

// reindent replaces the unit of indentation at the start of lines.
func reindent(from, to string) func(string) string {
	return func(text string) string {
		body := text[1:]
		n := 0
		for strings.HasPrefix(body[n*len(from):], from) {
			n++
		}
		return text[:1] + strings.Repeat(to, n) + body[n*len(from):]
	}
}

func usesSpaces(lines []string) bool {
	tabs, spaces := indentations(lines)
	return spaces > tabs
}

// usesTabs says that tabs are the rule in a file, to which a raw string may be
// an exception, and that what is added follows it: where people mix them, no
// reader can tell what was meant.
func usesTabs(w *work) bool {
	for _, b := range w.blocks {
		for _, text := range b.lines {
			if text[0] == '+' && strings.Contains(indentation(text[1:]), " ") {
				return false
			}
		}
	}
	tabs, spaces := indentations(w.src)
	return tabs > 9*spaces
}

func indentations(lines []string) (tabs, spaces int) {
	for _, text := range lines {
		switch {
		case strings.HasPrefix(text, "\t"):
			tabs++
		case strings.HasPrefix(text, "  "):
			spaces++
		}
	}
	return tabs, spaces
}

// usesUnit says that nearly everything in the diff is indented by a multiple.
func usesUnit(w *work, unit string) bool {
	for _, b := range w.blocks {
		for _, text := range b.lines {
			indent := indentation(text[1:])
			if strings.TrimSpace(text) != "" && (len(indent)%len(unit) != 0 || strings.Contains(indent, "\t")) {
				return false
			}
		}
	}
	indented := false
	for _, text := range w.src {
		if strings.HasPrefix(text, "\t") {
			return false
		}
		indented = indented || strings.HasPrefix(text, unit) && strings.TrimSpace(text) != ""
	}
	return indented // or nothing says what the file uses
}

// Rules 16 and 17: whole files.
var fileClasses = []class{
	{name: "new file", twins: true, styles: []string{"exact", "bare"}, make: func(w *work) bool {
		w.missing, w.want = true, w.pair.text(w.src)
		w.pair.ending = "\n"
		w.want = strings.ReplaceAll(w.want, "\r\n", "\n")
		if len(w.src) > mostBlockLines {
			return false
		}
		w.blocks = []block{{at: 0, lines: prefixed("+", w.src)}}
		w.header = func(w *work) string { return "--- /dev/null\n+++ b/" + w.path + "\n" }
		if !w.pair.final {
			w.blocks[0].lines = append(w.blocks[0].lines, `\ No newline at end of file`)
		}
		return true
	}},
	{name: "deleted file", twins: true, styles: []string{"exact", "bare"}, make: func(w *work) bool {
		w.deleted = true
		w.blocks = []block{{at: 0, lines: prefixed("-", w.src)}}
		w.header = func(w *work) string {
			return "diff --git a/" + w.path + " b/" + w.path + "\ndeleted file mode 100644\n--- a/" + w.path + "\n+++ /dev/null\n"
		}
		return len(w.src) <= mostBlockLines
	}},
	{name: "renamed file", make: func(w *work) bool {
		w.newPath = "moved/" + w.path
		w.header = func(w *work) string {
			return "diff --git a/" + w.path + " b/" + w.newPath + "\nsimilarity index 90%\nrename from " + w.path + "\nrename to " + w.newPath + "\n--- a/" + w.path + "\n+++ b/" + w.newPath + "\n"
		}
		return true
	}},
	{name: "file among others", make: func(w *work) bool {
		w.wrap = func(d string) string {
			other := "--- a/other/first.txt\n+++ b/other/first.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
			return other + d + strings.ReplaceAll(other, "first", "last")
		}
		return true
	}},
}

func prefixed(operator string, lines []string) []string {
	out := make([]string, len(lines))
	for i, text := range lines {
		out[i] = operator + text
	}
	return out
}

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
