package tools

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// isBinary says whether content is not for reading: it has NUL bytes, or is
// not even mostly UTF-8.
func isBinary(data []byte) bool {
	if bytes.IndexByte(data, 0) >= 0 {
		return true
	}
	if utf8.Valid(data) {
		return false
	}
	bad := bytes.Count(bytes.ToValidUTF8(data, []byte{0}), []byte{0})
	return bad*20 > len(data)
}

// splitLines returns the lines without their endings; a final newline does not
// begin another line.
func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// maxLine is how many bytes of one line are shown; minified files would fill
// a model's window with a single one.
const maxLine = 2000

// showLine makes a line safe to show: what is invisible or moves the cursor
// becomes visible, and what is too long is cut, which clipped reports.
func showLine(line string, limit int) (shown string, clipped bool) {
	if len(line) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line = fmt.Sprintf("%s[… %d more bytes in this line]", line[:end], len(line)-end)
		clipped = true
	}
	if !needsEscape(line) {
		return line, clipped
	}
	var b strings.Builder
	for _, c := range line {
		if unsafe(c) {
			fmt.Fprintf(&b, "<U+%04X>", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String(), clipped
}

func needsEscape(line string) bool {
	return !utf8.ValidString(line) || strings.ContainsFunc(line, unsafe)
}

// unsafe says that a character deceives a reader or a terminal.
func unsafe(c rune) bool {
	return c < ' ' && c != '\t' || c == 0x7f || c != '\ufeff' && hidden(c)
}

// numbered writes one line as tools show it: its number, a tab, the line.
func numbered(b *strings.Builder, number int, line string) (clipped bool) {
	shown, clipped := showLine(line, maxLine)
	fmt.Fprintf(b, "%6d\t%s\n", number, shown)
	return clipped
}

// plural is "1 line" or "3 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
