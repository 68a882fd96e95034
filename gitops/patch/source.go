package patch

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A source is a file taken apart for matching. It is used by one call only.
type source struct {
	text []byte
	// lines are without their line endings; offsets has one element more and
	// holds where each line starts.
	lines   []string
	offsets []int
	// forms holds, for each level, the lines as small numbers: two lines are
	// equal at a level if their numbers are. Filled when first needed.
	forms [4]*form
	// within says for each line what literal is open where it begins; filled
	// when first needed.
	within []literal
	// around is the literal that was asked for last, style how the file's code is
	// indented; filled when first needed.
	around literalRun
	style  *kind
	// aligned counts the steps that alignments have taken.
	aligned int
}

// A form is the lines of a file at one level of exactness.
type form struct {
	ids    []int32
	byText map[string]int32
	counts []int32
}

func newSource(text []byte) *source {
	s := &source{text: text}
	whole := string(text)
	s.lines = make([]string, 0, bytes.Count(text, []byte{'\n'})+1)
	s.offsets = make([]int, 0, cap(s.lines)+1)
	for at := 0; at < len(whole); {
		s.offsets = append(s.offsets, at)
		end := strings.IndexByte(whole[at:], '\n')
		if end < 0 {
			s.lines = append(s.lines, whole[at:])
			break
		}
		s.lines = append(s.lines, strings.TrimSuffix(whole[at:at+end], "\r"))
		at += end + 1
	}
	s.offsets = append(s.offsets, len(whole))
	return s
}

// ending returns a line's own line ending, "" for a last line without one.
func (s *source) ending(i int) string {
	raw := s.text[s.offsets[i]:s.offsets[i+1]]
	return string(raw[len(s.lines[i]):])
}

// indented is the form of level 2 with the indentation kept, for alignments.
const indented = 3

// form returns the lines at a level from 0 to 2, or as indented.
func (s *source) form(level int) *form {
	if s.forms[level] != nil {
		return s.forms[level]
	}
	f := &form{ids: make([]int32, len(s.lines)), byText: map[string]int32{}}
	var id int32
	for i, text := range s.lines {
		if i == 0 || text != s.lines[i-1] { // a file may be millions of blank lines
			id = f.add(normal(text, level))
		}
		f.ids[i] = id
		f.counts[id]++
	}
	s.forms[level] = f
	return f
}

// add returns the number of a line's text, a new one if it is new.
func (f *form) add(text string) int32 {
	id, known := f.byText[text]
	if !known {
		id = int32(len(f.counts))
		f.byText[text] = id
		f.counts = append(f.counts, 0)
	}
	return id
}

// id returns the number of a diff's line, -1 when no line of the file equals it.
func (f *form) id(text string, level int) int32 {
	if id, ok := f.byText[normal(text, level)]; ok {
		return id
	}
	return -1
}

// normal is the part of a line that counts at a level: 0 all of it, 1 without
// trailing white space, 2 with white space folded, without indentation (which
// an indentation map judges) and with plain punctuation.
func normal(text string, level int) string {
	switch level {
	case 0:
		return text
	case 1:
		return strings.TrimRight(text, " \t\r\f\v\u00a0")
	case indented:
		return withIndent(text)
	}
	if plain, ok := foldASCII(text); ok {
		return plain
	}
	return foldUnicode(text)
}

// withIndent is a line folded as at level 2 with its indentation in front.
func withIndent(text string) string {
	folded := normal(text, 2)
	if folded == "" || text == "" || text[0] != ' ' && text[0] != '\t' {
		return folded
	}
	return indentOf(text) + folded
}

// foldASCII folds a line that needs no more than its ends trimmed, which is
// nearly every line, without allocating.
func foldASCII(text string) (string, bool) {
	trimmed := strings.Trim(text, " \t\r\f\v")
	for i := range len(trimmed) {
		c := trimmed[i]
		if c >= utf8.RuneSelf || c == '\t' || c == '\r' || c == '\f' || c == '\v' {
			return "", false
		}
		if c == ' ' && trimmed[i+1] == ' ' { // a trimmed line never ends in a space
			return "", false
		}
	}
	return trimmed, true
}

func foldUnicode(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, c := range text {
		if unicode.IsSpace(c) || c == '\ufeff' {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		if plain, ok := typographic[c]; ok {
			b.WriteString(plain)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// typographic maps what word processors, web pages and models put in place of
// the punctuation on a keyboard. Zero-width characters count as nothing.
var typographic = map[rune]string{
	'\u2018': "'", '\u2019': "'", '\u201a': "'", '\u201b': "'", '\u2032': "'",
	'\u201c': `"`, '\u201d': `"`, '\u201e': `"`, '\u201f': `"`, '\u2033': `"`,
	'\u00ab': `"`, '\u00bb': `"`,
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2015': "-", '\u2212': "-",
	'\u2026': "...", '\u00d7': "x",
	'\u200b': "", '\u200c': "", '\u200d': "", '\u2060': "",
}

// trivialWords are lines that stand everywhere and anchor nothing.
var trivialWords = map[string]bool{
	"else": true, "return": true, "break": true, "continue": true, "default:": true, "end": true,
	"finally": true, "pass": true, "done": true, "then": true, "begin": true, "return nil": true,
	"return err": true, "return null;": true, "return;": true, "break;": true, "continue;": true,
	"} else {": true, "try {": true, "} finally {": true, "else:": true, "try:": true,
	"if err != nil {": true, "t.Fatal(err)": true, "return nil, err": true, "*/": true, "/*": true,
}

// hasWord says that a line has more than white space and punctuation.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
}

// anchoring says that a line has a word of its own, however common: brackets
// and single letters alone say nothing about a place.
func anchoring(text string) bool { return wordCharacters(text) >= 2 }

func wordCharacters(text string) int {
	n := 0
	for _, c := range text {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			n++
		}
	}
	return n
}

// trivial says that a line is too common to show where a hunk belongs.
func trivial(text string) bool {
	text = normal(text, 2)
	return trivialWords[text] || wordCharacters(text) < 4
}
