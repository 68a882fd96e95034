package patch_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

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
