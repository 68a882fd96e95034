package fakegithub

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// references is the Markdown extension that links #12 to that issue and @maria to that account.
type references struct{}

// place is where a text stands: references mean something only there.
type place struct {
	repository string // path of the repository, for example /acme/hello
	known      func(login string) bool
}

var placeKey = parser.NewContextKey()

func (references) Extend(markdown goldmark.Markdown) {
	markdown.Parser().AddOptions(parser.WithInlineParsers(util.Prioritized(references{}, 500)))
}

// Trigger is called by goldmark for the characters to look at.
func (references) Trigger() []byte { return []byte{'#', '@'} }

// Parse makes a link of a reference at the reader's place, or nothing.
func (references) Parse(_ ast.Node, block text.Reader, context parser.Context) ast.Node {
	here, ok := context.Get(placeKey).(place)
	before := block.PrecendingCharacter()
	if !ok || isWordCharacter(before) || before == '/' {
		return nil
	}
	line, _ := block.PeekLine()
	length := 1
	for length < len(line) && isWordCharacter(rune(line[length])) {
		length++
	}
	name := string(line[1:length])
	destination := ""
	switch {
	case line[0] == '#' && name != "" && strings.Trim(name, "0123456789") == "":
		destination = here.repository + "/issues/" + name
	case line[0] == '@' && here.known(name):
		destination = "/" + name
	default:
		return nil
	}
	link := ast.NewLink()
	link.Destination = []byte(destination)
	link.AppendChild(link, ast.NewString(line[:length]))
	block.Advance(length)
	return link
}

func isWordCharacter(character rune) bool {
	return character == '-' || character == '_' || character >= '0' && character <= '9' ||
		character >= 'a' && character <= 'z' || character >= 'A' && character <= 'Z'
}
