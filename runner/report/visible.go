package report

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// htmlTag is a tag with all that is between its brackets, quoted ones included,
// or the rest of the text if it is never closed.
var htmlTag = regexp.MustCompile(`<(?:"[^"]*"|'[^']*'|[^'">])*(?:>|$)`)

// titles are those of links, which a page shows to nobody who does not hover, and
// of link definitions, which are a way to write comments; each with what stays.
var titles = []struct {
	pattern *regexp.Regexp
	stays   string
}{
	{regexp.MustCompile(`(\]\([^()\s]*)\s+(?:"[^"]*"|'[^']*'|\([^()]*\))\s*\)`), "$1)"},
	{regexp.MustCompile(`(?m)^([ >]*\[[^\]\n]+\]:[ \t]*\n?[ \t]*\S+)[ \t]*\n?[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$`), "$1"},
}

// Visible returns what people see of somebody's Markdown on the page, for a
// model to read no more than they do: without HTML comments, characters that
// cannot be seen, the texts of images, the titles of links, and HTML tags, whose
// attributes can hold words. What stands in code stays as it is.
func Visible(markdown string) string {
	for range visiblePasses {
		seen := visibleOnce(markdown)
		if seen == markdown {
			return seen
		}
		markdown = seen
	}
	// Whoever nests so deeply hides something, and shows no tag that matters.
	return Clean(strings.ReplaceAll(markdown, "<", ""))
}

// visiblePasses bounds how often a text is gone through for what the cutting
// itself put together, as in <!-<b>- hidden -->.
const visiblePasses = 8

func visibleOnce(markdown string) string {
	source := Clean(StripComments(Clean(markdown)))
	for _, title := range titles {
		source = title.pattern.ReplaceAllString(source, title.stays)
	}
	return without([]byte(source), unseenRanges([]byte(source)))
}

// unseenRanges finds the texts of images and the tags of HTML, as byte ranges.
func unseenRanges(source []byte) [][2]int {
	var ranges [][2]int
	add := func(start, stop int) { ranges = append(ranges, [2]int{start, stop}) }
	// Walk cannot fail: the visitor returns no error.
	_ = ast.Walk(markdownParser.Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Image:
			texts(node, add)
			return ast.WalkSkipChildren, nil
		case *ast.RawHTML:
			pieces(node, add)
		case *ast.HTMLBlock:
			start, stop := blockRange(node)
			for _, tag := range htmlTag.FindAllIndex(source[start:stop], -1) {
				add(start+tag[0], start+tag[1])
			}
		}
		return ast.WalkContinue, nil
	})
	return ranges
}

// texts finds all text below a node, in whatever it is dressed.
func texts(node ast.Node, add func(start, stop int)) {
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			add(child.Segment.Start, child.Segment.Stop)
		case *ast.RawHTML:
			pieces(child, add)
		default:
			texts(child, add)
		}
	}
}

// pieces finds the parts of a tag, of which each line has one.
func pieces(tag *ast.RawHTML, add func(start, stop int)) {
	for i := range tag.Segments.Len() {
		piece := tag.Segments.At(i)
		add(piece.Start, piece.Stop)
	}
}

// blockRange is where a block of HTML stands, its last line included.
func blockRange(node *ast.HTMLBlock) (start, stop int) {
	lines := node.Lines()
	if lines.Len() > 0 {
		start, stop = lines.At(0).Start, lines.At(lines.Len()-1).Stop
	}
	if node.HasClosure() {
		start, stop = cmp.Or(start, node.ClosureLine.Start), max(stop, node.ClosureLine.Stop)
	}
	return start, stop
}

// without returns the source without the ranges, which may overlap.
func without(source []byte, ranges [][2]int) string {
	slices.SortFunc(ranges, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	var kept bytes.Buffer
	end := 0
	for _, unseen := range ranges {
		if unseen[0] > end {
			kept.Write(source[end:unseen[0]])
		}
		end = max(end, unseen[1])
	}
	kept.Write(source[end:])
	return strings.TrimSpace(kept.String())
}
