package patch

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
)

// A class is one way in which models get diffs wrong.
type class struct {
	name string
	// refuse says that the diff must not be applied.
	refuse bool
	// rare says that a corpus may well hold nothing for it.
	rare bool
	// hunks corrupts the hunks, text the written diff; false means that there
	// is nothing here for the class.
	hunks func(*work) bool
	text  func(*rand.Rand, string) (string, bool)
}

var classes = []class{
	{name: "untouched"},
	{name: "fence and prose", text: always(func(d string) string {
		return "Here is the change you asked for:\n\n```diff\n" + d + "```\n\nLet me know - I can + will adjust it.\n"
	})},
	{name: "CRLF diff", text: always(func(d string) string { return strings.ReplaceAll(d, "\n", "\r\n") })},
	{name: "no final newline", text: always(func(d string) string { return strings.TrimSuffix(d, "\n") })},
	{name: "absolute prefixes", text: always(func(d string) string {
		return strings.NewReplacer("a/file.go", "/home/u/repo/file.go.orig\t2024-02-03 10:11:12.000 +0000", "b/file.go", "/home/u/repo/file.go\t2024-02-03 10:11:13.000 +0000").Replace(d)
	})},
	{name: "only +++", text: always(func(d string) string { return d[strings.Index(d, "+++"):] })},
	{name: "no file header", text: always(func(d string) string { return d[strings.Index(d, "@@"):] })},
	{name: "envelope", text: always(func(d string) string {
		return "*** Begin Patch\n*** Update File: file.go\n" + d[strings.Index(d, "@@"):] + "*** End Patch"
	})},
	{name: "heredoc", text: always(func(d string) string {
		return "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: file.go\n" + d[strings.Index(d, "@@"):] + "*** End Patch\nEOF\n"
	})},
	{name: "blank context", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			for j, l := range w.hunks[i].lines {
				if l == " " {
					w.hunks[i].lines[j] = ""
					changed = true
				}
			}
		}
		return changed
	}},
	{name: "no operators", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			for j, l := range w.hunks[i].lines {
				if len(l) > 1 && l[0] == ' ' && !strings.ContainsAny(l[1:2], "+-@\\*") && !strings.HasPrefix(l, " diff ") {
					w.hunks[i].lines[j] = l[1:]
					changed = true
				}
			}
		}
		return changed
	}},
	{name: "trailing space", hunks: func(w *work) bool {
		return w.eachLine(" -", func(text string) string {
			if w.rng.IntN(2) == 0 || strings.TrimSpace(text) == "" {
				return text
			}
			return text + strings.Repeat(" ", 1+w.rng.IntN(2))
		})
	}},
	{name: "stripped blanks", rare: true, hunks: func(w *work) bool {
		return w.eachLine(" -", func(text string) string { return strings.TrimRight(text, " \t") })
	}},
	{name: "white space inside", hunks: func(w *work) bool {
		return w.eachLine(" ", func(text string) string {
			indent := indentOf(text)
			if fields := strings.Fields(text); w.rng.IntN(2) == 0 && len(fields) > 1 {
				return indent + strings.Join(fields, "  ")
			}
			return text
		})
	}},
	{name: "typographic", hunks: func(w *work) bool {
		return w.eachLine(" -", func(text string) string {
			return strings.NewReplacer(`"`, "\u201d", "'", "\u2019", " - ", " \u2013 ", "...", "\u2026").Replace(text)
		})
	}},
	{name: "tabs to spaces", hunks: func(w *work) bool {
		// Lines that are indented by spaces beside tabs cannot be told apart
		// from corrupted ones, by anybody.
		if !strings.Contains(w.src, "\n\t") || strings.Contains(w.src, "\n  ") || strings.Contains(w.want, "\n  ") || strings.Contains(w.want, "\t  ") {
			return false
		}
		width := []int{2, 4, 8}[w.rng.IntN(3)]
		return w.eachLineAndShown(func(text string) string { return expandIndent(text, width) })
	}},
	{name: "spaces to tabs", rare: true, hunks: func(w *work) bool {
		if strings.Contains(w.src, "\t") || strings.Contains(w.want, "\t") {
			return false
		}
		return w.eachLineAndShown(func(text string) string { return shrinkIndent(text, 4) }) && !mixed(w.hunks)
	}},
	{name: "dedented", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			changed = dedent(w.hunks[i].lines) || changed
		}
		return changed
	}},
	{name: "indented", hunks: func(w *work) bool {
		prefix := []string{"\t", "  ", "    "}[w.rng.IntN(3)]
		if hasBlanks(w.want) {
			return false // nobody knows how far a line of nothing but white space was indented
		}
		return w.eachLine(" -+", func(text string) string {
			if strings.TrimSpace(text) == "" {
				return text
			}
			return prefix + text
		})
	}},
	{name: "misremembered", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			lines := contextLines(w.hunks[i])
			if len(lines) < 4 {
				continue
			}
			j := lines[w.rng.IntN(len(lines))]
			if !anchored(w.hunks[i], j) {
				continue
			}
			if text, ok := misremember(w.rng, w.hunks[i].lines[j]); ok && text[0] == ' ' && !strings.Contains(w.src, text[1:]) {
				w.hunks[i].lines[j] = text
				changed = true
			}
		}
		return changed
	}},
	{name: "context left out", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			h := w.hunks[i]
			var inner []int
			for _, j := range contextLines(h) {
				if j > 0 && j < len(h.lines)-1 && !beside(h, j) {
					inner = append(inner, j)
				}
			}
			if len(inner) > 0 && len(contextLines(h)) >= 5 {
				j := inner[w.rng.IntN(len(inner))]
				if !anchored(h, j) {
					continue
				}
				w.hunks[i].lines = slices.Delete(h.lines, j, j+1)
				changed = true
			}
		}
		return changed
	}},
	{name: "invented at edge", hunks: func(w *work) bool {
		changed := false
		for i := range w.hunks {
			h := w.hunks[i]
			if !anchored(h, -1) {
				continue
			}
			invented := fmt.Sprintf(" \tinvented.Line%d(withArguments)", w.rng.IntN(1000))
			if w.rng.IntN(2) == 0 && strings.HasPrefix(h.lines[0], " ") {
				w.hunks[i].lines = slices.Insert(h.lines, 0, invented)
				w.hunks[i].oldStart--
				changed = true
			} else if strings.HasPrefix(h.lines[len(h.lines)-1], " ") {
				w.hunks[i].lines = append(h.lines, invented)
				changed = true
			}
		}
		return changed
	}},
	{name: "elision", hunks: func(w *work) bool {
		changed := false
		lines := strings.Split(w.src, "\n")
		for i := range w.hunks {
			h := w.hunks[i]
			if !anchored(h, -1) || h.oldStart < 8 || !strings.HasPrefix(h.lines[0], " ") || w.overlapsBefore(i, 6) {
				continue
			}
			far := h.oldStart - 7
			w.hunks[i].lines = slices.Concat([]string{" " + lines[far], " " + lines[far+1], " \t// ..."}, h.lines)
			w.hunks[i].oldStart = far + 1
			changed = true
		}
		return changed
	}},
	{name: "drifted file", hunks: func(w *work) bool {
		n := 1 + w.rng.IntN(40)
		drift := strings.Repeat("// a line that came later\n", n)
		w.src, w.want = drift+w.src, drift+w.want
		return true
	}},
	{name: "shuffled hunks", hunks: func(w *work) bool {
		w.rng.Shuffle(len(w.hunks), func(i, j int) { w.hunks[i], w.hunks[j] = w.hunks[j], w.hunks[i] })
		return len(w.hunks) > 1
	}},
	{name: "repeated hunk", hunks: func(w *work) bool {
		h := w.hunks[w.rng.IntN(len(w.hunks))]
		// The header must be the same, as a repetition has it.
		h.header = headerStyles[0].write(w.rng, h)
		w.hunks = append(w.hunks, h)
		for i := range w.hunks {
			w.hunks[i].header = headerStyles[0].write(w.rng, w.hunks[i])
		}
		return true
	}},
	{name: "CRLF file", hunks: func(w *work) bool {
		if strings.Contains(w.src, "\r") || strings.Contains(w.want, "\r") {
			return false
		}
		w.src, w.want = strings.ReplaceAll(w.src, "\n", "\r\n"), strings.ReplaceAll(w.want, "\n", "\r\n")
		return true
	}},
	{name: "JSON-escaped", text: func(_ *rand.Rand, d string) (string, bool) {
		encoded, err := json.Marshal(d)
		return strings.Trim(string(encoded), `"`), err == nil
	}},
	{name: "HTML-escaped", text: func(_ *rand.Rand, d string) (string, bool) {
		escaped := html.EscapeString(d)
		return escaped, showsEscapes(d) && !strings.Contains(d, "&lt;") && !strings.Contains(d, "&amp;")
	}},
	{name: "line numbers |", hunks: func(w *work) bool { return w.numberContext("%d | ") }},
	{name: "line numbers tab", hunks: func(w *work) bool { return w.numberContext("%d\t") }},

	{name: "must refuse: already applied", refuse: true, hunks: func(w *work) bool {
		if strings.Count(w.want, "\n") <= strings.Count(w.src, "\n") {
			return false
		}
		for _, h := range w.hunks {
			var old strings.Builder
			for _, l := range h.lines {
				if l[0] != '+' && l[0] != '\\' {
					old.WriteString(l[1:] + "\n")
				}
			}
			inner := h.lines[0][0] == ' ' && h.lines[len(h.lines)-1][0] == ' '
			if inner && strings.Contains(w.want, old.String()) {
				return false // the same change is still possible elsewhere
			}
		}
		w.src = w.want
		return true
	}},
	{name: "must refuse: truncated", refuse: true, hunks: func(w *work) bool {
		h := &w.hunks[len(w.hunks)-1]
		h.header = headerStyles[0].write(w.rng, *h)
		end := -1
		for j, l := range h.lines {
			if strings.ContainsAny(l[:1], "+-") && j > 0 && j < len(h.lines)-4 {
				end = j
			}
		}
		if end < 0 {
			return false
		}
		h.lines = h.lines[:end+1]
		return true
	}, text: always(func(d string) string { return strings.TrimSuffix(d, "\n") })},
	{name: "must refuse: cut anywhere", refuse: true, hunks: func(w *work) bool {
		for i := range w.hunks {
			w.hunks[i].header = headerStyles[0].write(w.rng, w.hunks[i])
		}
		return true
	}, text: cutInLastHunk},
	{name: "must refuse: stale removal", refuse: true, hunks: func(w *work) bool {
		i := w.rng.IntN(len(w.hunks))
		for j, l := range w.hunks[i].lines {
			if l[0] != '-' || strings.TrimSpace(l[1:]) == "" {
				continue
			}
			if text, ok := misremember(w.rng, l); ok && text[0] == '-' && !strings.Contains(w.src, text[1:]) {
				w.hunks[i].lines[j] = text
				return true
			}
		}
		return false
	}},
	{name: "must refuse: gap in removed", refuse: true, hunks: func(w *work) bool {
		for i, h := range w.hunks {
			for j := 1; j < len(h.lines)-1; j++ {
				if strings.HasPrefix(h.lines[j-1], "-") && strings.HasPrefix(h.lines[j], "-") && strings.HasPrefix(h.lines[j+1], "-") &&
					strings.TrimSpace(h.lines[j][1:]) != "" && h.lines[j] != h.lines[j+1] && h.lines[j] != h.lines[j-1] {
					w.hunks[i].lines = slices.Delete(h.lines, j, j+1)
					return true
				}
			}
		}
		return false
	}},
	{name: "must refuse: forgotten plus", refuse: true, hunks: func(w *work) bool {
		for i, h := range w.hunks {
			for j, l := range h.lines {
				if j == 0 || j == len(h.lines)-1 {
					continue // at the edge it could be an invented line
				}
				if l[0] == '+' && !trivial(l[1:]) && !strings.Contains(w.src, strings.TrimSpace(l[1:])) {
					w.hunks[i].lines[j] = " " + l[1:]
					return true
				}
			}
		}
		return false
	}},
	{name: "must refuse: context of another file", refuse: true, hunks: func(w *work) bool {
		for i := range w.hunks {
			for _, j := range contextLines(w.hunks[i]) {
				w.hunks[i].lines[j] = fmt.Sprintf(" \tsomething.Else%d(entirely)", j)
			}
		}
		return len(contextLines(w.hunks[0])) > 0
	}},
}
