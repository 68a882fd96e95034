package patch_test

import (
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
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
