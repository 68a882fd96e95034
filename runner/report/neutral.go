package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Clean removes what a reader cannot see but a program obeys: control
// characters, zero-width characters, bidirectional overrides, tag characters
// and variation selectors outside of emoji. Newlines and tabs stay, invalid
// UTF-8 becomes U+FFFD.
func Clean(dirty string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(dirty, "\uFFFD"))
}

var htmlComment = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)

// StripComments removes HTML comments, which people do not see on a page and
// programs read. Removing one may join the pieces of another, so it goes on
// until none is left.
func StripComments(body string) string {
	for htmlComment.MatchString(body) {
		body = htmlComment.ReplaceAllString(body, "")
	}
	return body
}

func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r == 0xFE0F: // makes an emoji of a sign; harmless and common
		return false
	case 0xFE00 <= r && r <= 0xFE0E, 0xE0100 <= r && r <= 0xE01EF: // variation selectors
		return true
	case 0xE0000 <= r && r <= 0xE007F: // tags
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// The characters with which GitHub and other bots are told to act.
var (
	mention   = regexp.MustCompile(`@([\pL\pN_-])`)
	reference = regexp.MustCompile(`(#|\b[Gg][Hh]-)(\d)`)
	slash     = regexp.MustCompile(`(?m)^([ \t>*+-]*)/(\pL)`)
	// issueURL is a link to an issue or a pull request, which GitHub turns into
	// a cross reference as well.
	issueURL = regexp.MustCompile(`/(issues|pull|discussions)/(\d)`)
	image    = regexp.MustCompile(`!\[`)
)

// disarm makes text outside of code harmless. The entity between the sign and
// the name is invisible and keeps GitHub from seeing the two as one word.
func disarm(text string) string {
	text = strings.ReplaceAll(text, "<", "&lt;")
	// First, because the entities that follow look like references themselves.
	text = reference.ReplaceAllString(text, "$1&#8203;$2")
	text = mention.ReplaceAllString(text, "@&#8203;$1")
	text = issueURL.ReplaceAllString(text, "/$1/&#8203;$2")
	text = image.ReplaceAllString(text, "&#33;[")
	return slash.ReplaceAllString(text, "$1&#47;$2")
}

var markdownParser = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// Neutral returns somebody else's Markdown with its formatting and without
// its effects: it mentions nobody, refers to nothing, commands no bot, loads
// no image and holds no HTML. At most limit characters are kept.
func Neutral(markdown string, limit int) string {
	source := []byte(Cut(strings.TrimSpace(Clean(markdown)), limit))
	var b strings.Builder
	end := 0
	for _, code := range codeRanges(source) {
		if code[0] < end {
			continue
		}
		b.WriteString(disarm(string(source[end:code[0]])))
		b.Write(source[code[0]:code[1]])
		end = code[1]
	}
	b.WriteString(disarm(string(source[end:])))
	return closeFence(b.String())
}

// codeRanges finds the code of a Markdown text, as byte ranges in order.
func codeRanges(source []byte) [][2]int {
	var ranges [][2]int
	add := func(segment text.Segment) {
		if segment.Start < segment.Stop {
			ranges = append(ranges, [2]int{segment.Start, segment.Stop})
		}
	}
	document := markdownParser.Parse(text.NewReader(source))
	// Walk cannot fail: the visitor returns no error.
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range node.Lines().Len() {
				add(node.Lines().At(i))
			}
			return ast.WalkSkipChildren, nil
		case *ast.CodeSpan:
			for child := node.FirstChild(); child != nil; child = child.NextSibling() {
				if segment, ok := child.(*ast.Text); ok {
					add(segment.Segment)
				}
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return ranges
}

// closeFence closes a code fence that was left open, so that what we write
// below is not swallowed by it.
func closeFence(markdown string) string {
	fence := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimLeft(line, " ")
		run := len(line) - len(strings.TrimLeft(line, "`"))
		if tildes := len(line) - len(strings.TrimLeft(line, "~")); tildes > run {
			run = tildes
		}
		switch {
		case run < 3:
		case fence == "":
			fence = line[:run]
		case strings.HasPrefix(line, fence) && strings.TrimSpace(line[run:]) == "":
			fence = ""
		}
	}
	if fence == "" {
		return markdown
	}
	return strings.TrimRight(markdown, "\n") + "\n" + fence
}

// inlineLimit bounds one line of somebody else's words.
const inlineLimit = 300

// markdownSigns are escaped in plain lines.
const markdownSigns = "\\`*_[]()#|~>!"

// Inline returns text as one plain line without any Markdown of its own.
func Inline(text string) string {
	words := strings.Fields(Clean(text))
	line := []rune(strings.Join(words, " "))
	if len(line) > inlineLimit {
		line = append(line[:inlineLimit-1], '…')
	}
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '@' && i+1 < len(line):
			b.WriteString("@&#8203;")
		case r == '#' && i+1 < len(line):
			b.WriteString("\\#&#8203;")
		case r < utf8.RuneSelf && strings.ContainsRune(markdownSigns, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return issueURL.ReplaceAllString(b.String(), "/$1/&#8203;$2")
}

// Reveal shows what [Clean] removes: a hidden character appears as its code
// point, so that a reviewer sees what a compiler would. Carriage returns at the
// end of a line are left out.
func Reveal(dirty string) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(dirty, "\uFFFD"), "\r\n", "\n")
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// HasHidden says whether text holds characters that cannot be seen.
func HasHidden(text string) bool {
	return strings.ContainsFunc(strings.ReplaceAll(text, "\r\n", "\n"), hidden)
}

// Code shows one line of somebody else's as code, so that nothing in it means
// anything.
func Code(text string) string {
	line := []rune(strings.Join(strings.Fields(Reveal(text)), " "))
	if len(line) > inlineLimit {
		line = append(line[:inlineLimit-1], '…')
	}
	// A backtick would end the code, and a bar the cell of a table.
	return "`" + strings.NewReplacer("`", "ˋ", "|", "¦").Replace(string(line)) + "`"
}

// Fence shows text verbatim in a code block whose fence is longer than any run
// of backticks inside; hidden characters are revealed.
func Fence(text, language string) string {
	text = strings.TrimRight(Reveal(text), "\n")
	longest, run := 0, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence + language + "\n" + text + "\n" + fence
}

// quoteLimit bounds a quoted task; the whole of it is a click away.
const quoteLimit = 1_000

// Quote shows somebody's words as a Markdown quotation, disarmed.
func Quote(text string) string {
	neutral := Neutral(text, quoteLimit)
	return "> " + strings.ReplaceAll(neutral, "\n", "\n> ")
}
