package agents

import (
	"strings"
	"unicode"
)

// OneLine makes text one line of valid UTF-8 without control or invisible
// characters, so that it cannot break out of the list or the title that it is
// shown in. White space of any kind becomes single spaces.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}
