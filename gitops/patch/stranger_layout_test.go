package patch_test

import (
	"strings"
)

// Rules 9, 14 and 15: indentation, order, line endings.
var layoutClasses = []class{
	{name: "tabs to 4 spaces", make: func(w *work) bool { return usesTabs(w) && w.reindented("\t", "    ") }},
	{name: "tabs to 8 spaces", make: func(w *work) bool { return usesTabs(w) && w.reindented("\t", "        ") }},
	{name: "tabs to 2 spaces", make: func(w *work) bool { return usesTabs(w) && w.reindented("\t", "  ") }},
	{name: "4 spaces to tabs", make: func(w *work) bool { return usesUnit(w, "    ") && w.reindented("    ", "\t") }},
	{name: "2 spaces to tabs", make: func(w *work) bool { return usesUnit(w, "  ") && w.reindented("  ", "\t") }},
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

// reindented writes the whole diff with another kind of indentation, where a
// reader can see that from what it keeps or removes, and where no line that it
// changes in nothing but indentation becomes one that it does not change.
func (w *work) reindented(from, to string) bool {
	shows, collapses := false, false
	change := reindent(from, to)
	for _, b := range w.blocks {
		removed := map[string]string{}
		for _, text := range b.lines {
			after := change(text)
			shows = shows || text[0] != '+' && after != text
			if text[0] == '-' {
				removed[after[1:]] = text[1:]
			}
			before, again := removed[after[1:]]
			collapses = collapses || text[0] == '+' && again && before != text[1:]
		}
	}
	return shows && !collapses && w.mapLines(change)
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
