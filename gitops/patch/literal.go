package patch

import "strings"

// Within a literal or a comment of several lines white space is content, and a
// file that is indented by tabs may well hold text that is not. What is open
// where a line begins is guessed without knowing the language: from quotes,
// comments and the strings that may hold either.

// A literal is what would close the literal or comment that is open at the
// start of a line; "" when none is.
type literal string

// noLiteral is the state of ordinary code and text.
const noLiteral literal = ""

// after is what is open behind a line.
func (l literal) after(text string) literal {
	start := true // at the first word of the line
	for {
		if l != noLiteral {
			at := strings.Index(text, string(l))
			if at < 0 {
				return l
			}
			text, l, start = text[at+len(l):], noLiteral, false
		}
		at, opened := opening(text, start)
		if opened == noLiteral {
			return noLiteral
		}
		text, l = text[at:], opened
	}
}

// opening finds the first mark that opens a literal, and where its inside
// begins. A string that ends on its line and a comment to the end of the line
// open none, whatever they hold.
func opening(text string, start bool) (at int, opened literal) {
	if start {
		indent := len(text) - len(strings.TrimLeft(text, " \t"))
		switch rest := text[indent:]; {
		case strings.HasPrefix(rest, "/*"):
			return indent + 2, "*/"
		case strings.HasPrefix(rest, "#"), strings.HasPrefix(rest, "*"):
			return 0, noLiteral
		}
	}
	for at := 0; at < len(text); at++ {
		rest := text[at:]
		switch text[at] {
		case '\\':
			at++ // the mark behind it opens nothing, and is not looked for its end again and again
		case '`':
			if !strings.HasPrefix(rest, "```") { // the fence of a Markdown file
				return at + 1, "`"
			}
			at += 2
		case '"', '\'':
			triple := strings.Repeat(rest[:1], 3)
			if strings.HasPrefix(rest, triple) {
				return at + 3, literal(triple)
			}
			if at == 0 || !isWordByte(text[at-1]) { // no apostrophe
				at += stringLength(rest)
			}
		case '/':
			if strings.HasPrefix(rest, "//") && (at == 0 || text[at-1] != ':') {
				return 0, noLiteral
			}
		}
	}
	return 0, noLiteral
}

// stringLength is how far the end of a string is from its opening quote, 0
// where it does not end on the line.
func stringLength(text string) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case text[0]:
			return at
		}
	}
	return 0
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// maxUnclosed bounds how often the guess starts again behind a mark that
// nothing closes.
const maxUnclosed = 16

// literals says for each line what is open where it begins. What is never
// closed was no literal.
func (s *source) literals() []literal {
	if s.within != nil {
		return s.within
	}
	s.within = make([]literal, len(s.lines))
	from := 0
	for range maxUnclosed {
		opened, open := s.followFrom(from)
		if open == noLiteral {
			return s.within
		}
		clear(s.within[opened+1:])
		from = opened + 1
	}
	return s.within
}

// followFrom fills in the states from a line on at which nothing is open. It
// returns the line that opened what the end of the file leaves open.
func (s *source) followFrom(from int) (opened int, open literal) {
	for i := from; i < len(s.lines); i++ {
		s.within[i] = open
		next := open.after(s.lines[i])
		if next != noLiteral && (open == noLiteral || next != open) {
			opened = i
		}
		open = next
	}
	return opened, open
}

// A literalRun is a run of lines that begin within one literal, and how they are
// indented. The zero value has no lines.
type literalRun struct {
	from, to int
	kind     kind
	indents  map[string]bool
}

// literalAt is the run of the literal that is open at a line or opened by it. A
// hunk asks for the same one for many of its lines.
func (s *source) literalAt(line int) literalRun {
	within := s.literals()
	if line < 0 || line >= len(within) {
		return literalRun{}
	}
	if within[line] == noLiteral {
		line++
	}
	if line == len(within) || within[line] == noLiteral {
		return literalRun{}
	}
	if line < s.around.from || line >= s.around.to {
		s.around = s.literalRun(line)
	}
	return s.around
}

// literalRun collects the run around a line that begins within a literal.
func (s *source) literalRun(line int) literalRun {
	r := literalRun{from: line, to: line, indents: map[string]bool{}}
	for r.from > 0 && s.within[r.from-1] != noLiteral {
		r.from--
	}
	for r.to < len(s.within) && s.within[r.to] != noLiteral {
		r.to++
	}
	for _, text := range s.lines[r.from:r.to] {
		r.kind.count(text)
		r.indents[indentOf(text)] = true
	}
	return r
}
