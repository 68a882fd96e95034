package webhook

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"handoff/runner/store"
)

// Words is a command's text, taken apart.
type Words struct {
	// Instruction is what the person said, with [excerpt N] where something
	// was taken out as data.
	Instruction string
	// Excerpts are what the person showed: quotes, code, logs, folded
	// sections. They are data, whatever they say.
	Excerpts []store.Excerpt
	// Hidden counts the parts that people do not see on the page: HTML
	// comments, tags with attributes, image texts, invisible characters. They
	// are gone from everything else.
	Hidden int
}

// The parts of Markdown that are taken out as a whole.
var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	htmlDetails = regexp.MustCompile(`(?is)<details\b.*?(?:</details\s*>|$)`)
	// htmlTag knows tags by their names, because List<String> is not one.
	htmlTag = regexp.MustCompile(`(?is)</?(?:a|abbr|b|blockquote|br|code|dd|del|details|div|dl|dt|em|embed|form|g-emoji|h[1-6]|hr|i|iframe|img|input|ins|kbd|li|link|meta|object|ol|p|picture|pre|q|s|samp|script|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|tfoot|th|thead|title|tr|tt|u|ul|var|video)(?:\s[^<>]*)?/?>`)
	// image and linkTitle show nothing of their texts on the page.
	image     = regexp.MustCompile(`!\[[^\]]*\](?:\([^()\s]*(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)|\[[^\]]*\])`)
	linkTitle = regexp.MustCompile(`(\]\([^()\s]*)\s+(?:"[^"]*"|'[^']*')\s*\)`)
	linkNote  = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s+\S.*$`)
)

// logLine matches the beginnings of lines that programs print and people
// paste: stack traces, test output, log lines, shell sessions. What a person
// might write by hand ("main.go:12 should return early") needs the indentation
// or the punctuation that programs give it.
var logLine = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`\s+at \S.*\d\)?\s*$`,
	`\s+\S+\.\w{1,5}:\d+:? `,
	`\S+\.\w{1,5}:\d+:\d+:? `,
	`\s*goroutine \d+ \[`,
	`\s*File ".+", line \d+`,
	`\s*Traceback \(most recent`,
	`\s*Exception in thread`,
	`\s*Caused by: `,
	`\s*(?:panic|fatal error|runtime error): `,
	`\s*\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d`,
	`\s*\[?\d\d:\d\d:\d\d[\].,Z ]`,
	`\s*\[(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\]`,
	`\s*(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL): `,
	`\s*npm (?:ERR!|error) `,
	`\s*(?:---|===) (?:FAIL|PASS|RUN|SKIP)`,
	`FAIL\t`,
	`##\[\w+\]`,
	`\s*Error: .*exit(?:ed)? (?:with )?(?:code|status)`,
	`[$%] \S`,
}, "|") + `)`)

// listItem matches the beginning of an item, whose later paragraphs are
// indented without being code.
var listItem = regexp.MustCompile(`^ {0,3}(?:[-*+]|\d{1,9}[.)])\s`)

// Split takes a command's text apart. Everything from the first line that
// looks like a log is data down to the end, because nobody can tell where a
// pasted log ends; fence a log to say more below it.
func Split(text string) Words {
	s := &splitter{}
	text = s.uncomment(text)
	text = s.clean(text)
	text = htmlDetails.ReplaceAllStringFunc(text, func(folded string) string {
		return "\n" + s.excerpt("details", s.untag(folded)) + "\n"
	})
	s.blocks(text)
	instruction := strings.Join(s.kept, "\n")
	instruction = s.cut(instruction, image, "[image]")
	instruction = s.cut(instruction, linkTitle, "$1)")
	instruction = s.cut(instruction, linkNote, "")
	instruction = s.untag(instruction)
	return Words{Instruction: strings.TrimSpace(squeeze(instruction)), Excerpts: s.excerpts, Hidden: s.hidden}
}

// A splitter collects while Split goes through a text.
type splitter struct {
	kept     []string
	excerpts []store.Excerpt
	hidden   int
}

// passes bounds how often a text is gone through for what the cutting itself
// put together, as in <!-<!-- -->-, so that nobody can make it take long.
const passes = 8

// cut replaces what matches and counts it.
func (s *splitter) cut(text string, what *regexp.Regexp, with string) string {
	for range passes {
		found := len(what.FindAllStringIndex(text, -1))
		if found == 0 {
			return text
		}
		s.hidden += found
		text = what.ReplaceAllString(text, with)
	}
	return text
}

// uncomment drops HTML comments; where they are nested to confuse, whatever
// could begin one goes.
func (s *splitter) uncomment(text string) string {
	text = s.cut(text, htmlComment, "")
	if htmlComment.MatchString(text) {
		text = strings.ReplaceAll(text, "<", "")
	}
	return text
}

// untag drops HTML tags and counts those with attributes, which can hold text.
func (s *splitter) untag(text string) string {
	for range passes {
		if !htmlTag.MatchString(text) {
			return text
		}
		text = htmlTag.ReplaceAllStringFunc(text, func(tag string) string {
			if strings.Contains(tag, "=") {
				s.hidden++
			}
			return ""
		})
	}
	return strings.ReplaceAll(text, "<", "")
}

// clean drops characters that people cannot see and counts those that no
// ordinary text has. Emoji are made with joiners and selectors.
func (s *splitter) clean(text string) string {
	previous := rune(0)
	return strings.Map(func(r rune) rune {
		before := previous
		previous = r
		if !invisible(r) {
			return r
		}
		if r == '\r' || ((r == 0x200D || r == 0xFE0F) && (before > 0x2000 || before == 0xA9 || before == 0xAE)) {
			return -1
		}
		s.hidden++
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// excerpt keeps text as data and returns what stands in its place.
func (s *splitter) excerpt(kind, text string) string {
	s.excerpts = append(s.excerpts, store.Excerpt{Kind: kind, Text: strings.Trim(text, "\n")})
	return fmt.Sprintf("[excerpt %d]", len(s.excerpts))
}

// blocks goes through the lines and takes out fences, quotes, indented code
// and logs. The first line is the command's own and never a block.
func (s *splitter) blocks(text string) {
	lines := strings.Split(text, "\n")
	s.kept = append(s.kept, lines[0])
	for i := 1; i < len(lines); {
		kind, end := block(lines, i)
		if kind == "" {
			s.kept = append(s.kept, lines[i])
			i++
			continue
		}
		s.kept = append(s.kept, s.excerpt(kind, strings.Join(lines[i:end], "\n")))
		i = end
	}
}

// block returns the kind of the block that begins at a line and the index of
// the line behind it, "" for none.
func block(lines []string, at int) (kind string, end int) {
	line := lines[at]
	switch {
	case fenceOf(line) != "":
		return "code", fenceEnd(lines, at)
	case strings.HasPrefix(strings.TrimLeft(line, " "), ">"):
		return "quote", quoteEnd(lines, at)
	case logLine.MatchString(line):
		return "log", len(lines)
	case isIndented(line) && strings.TrimSpace(lines[at-1]) == "" && !inList(lines, at):
		end = at
		for end < len(lines) && (isIndented(lines[end]) || strings.TrimSpace(lines[end]) == "") {
			end++
		}
		return "code", end
	}
	return "", at
}

// fenceOf returns the characters that open a code fence, "" for none.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !(mark == "`" && strings.Contains(rest, "`")) {
			return line[:n]
		}
	}
	return ""
}

// fenceEnd returns the index behind a fence; one that is never closed lasts to
// the end, as in Markdown.
func fenceEnd(lines []string, at int) int {
	mark := fenceOf(lines[at])
	for i := at + 1; i < len(lines); i++ {
		closing := strings.TrimSpace(lines[i])
		if strings.HasPrefix(closing, mark) && strings.Trim(closing, mark[:1]) == "" {
			return i + 1
		}
	}
	return len(lines)
}

// quoteEnd returns the index behind a quote. Markdown lets a quoted paragraph
// go on without the sign until a blank line.
func quoteEnd(lines []string, at int) int {
	for i := at + 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "" {
			return i
		}
	}
	return len(lines)
}

// inList says whether the text before a line is an item of a list.
func inList(lines []string, at int) bool {
	for at--; at >= 0; at-- {
		if strings.TrimSpace(lines[at]) != "" && !isIndented(lines[at]) {
			return listItem.MatchString(lines[at])
		}
	}
	return false
}

func isIndented(line string) bool {
	return (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")) && strings.TrimSpace(line) != ""
}

// squeeze leaves one blank line where there are several.
func squeeze(text string) string {
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	return text
}

// invisible says whether a character shows nothing or reorders what does:
// controls, zero-width and bidirectional marks, tag characters, variation
// selectors, fillers.
func invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return true
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164, r == 0xFFA0:
		return true
	}
	return r >= 0xE0000 && r <= 0xE0FFF
}
