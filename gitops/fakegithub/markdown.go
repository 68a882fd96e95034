package fakegithub

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// Text of people and programs becomes HTML in two steps: goldmark renders what they wrote, HTML included, and
// bluemonday lets through only what GitHub would. Scripts, styles, comments and event handlers do not survive.
var (
	commentMarkdown  = newMarkdown(html.WithHardWraps())
	documentMarkdown = newMarkdown()
	cleaning         = newCleaning()
)

func newMarkdown(options ...renderer.Option) goldmark.Markdown {
	options = append(options, html.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(diffBlocks{}, 100)))
	return goldmark.New(goldmark.WithExtensions(extension.GFM, references{}), goldmark.WithRendererOptions(options...))
}

func newCleaning() *bluemonday.Policy {
	policy := bluemonday.UGCPolicy()
	policy.AllowElements("details", "summary", "kbd", "sub", "sup", "ins", "del")
	policy.AllowAttrs("open").OnElements("details")
	policy.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	policy.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	policy.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+-]+$`)).OnElements("code")
	policy.AllowAttrs("class").Matching(regexp.MustCompile(`^line-(add|del|hunk|meta)$`)).OnElements("span")
	return policy
}

// renderComment renders a comment: a new line is a line break, as on GitHub, and references are links.
func renderComment(text string, here place) template.HTML {
	context := parser.NewContext()
	context.Set(placeKey, here)
	return renderMarkdown(commentMarkdown, text, parser.WithContext(context))
}

// renderDocument renders a file such as README.md.
func renderDocument(text string) template.HTML { return renderMarkdown(documentMarkdown, text) }

func renderMarkdown(markdown goldmark.Markdown, text string, options ...parser.ParseOption) template.HTML {
	var buffer bytes.Buffer
	if err := markdown.Convert([]byte(text), &buffer, options...); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>")
	}
	return template.HTML(cleaning.SanitizeBytes(buffer.Bytes())) // cleaned on this very line
}

// diffBlocks colours fenced blocks that are diffs and leaves the others plain.
type diffBlocks struct{}

func (diffBlocks) RegisterFuncs(registerer renderer.NodeRendererFuncRegisterer) {
	registerer.Register(ast.KindFencedCodeBlock, renderFenced)
}

func renderFenced(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.FencedCodeBlock)
	language := string(block.Language(source))
	_, _ = w.WriteString(`<pre><code class="language-` + string(util.EscapeHTML([]byte(language))) + `">`)
	for at := range block.Lines().Len() {
		line := block.Lines().At(at)
		text := string(util.EscapeHTML(line.Value(source)))
		if class := lineClass(text); language == "diff" && class != "" {
			text = `<span class="` + class + `">` + strings.TrimSuffix(text, "\n") + "</span>\n"
		}
		_, _ = w.WriteString(text)
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkContinue, nil
}

// lineClass says what a line of a diff is.
func lineClass(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return "line-meta"
	case strings.HasPrefix(line, "@@"):
		return "line-hunk"
	case strings.HasPrefix(line, "+"):
		return "line-add"
	case strings.HasPrefix(line, "-"):
		return "line-del"
	default:
		return ""
	}
}
