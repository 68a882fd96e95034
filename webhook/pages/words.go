package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"handoff/runner/report"
	"handoff/runner/store"
)

// escapes are a terminal's: colours, titles, cursor movements.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])`)

// clean makes somebody else's text readable: no terminal escapes, nothing that
// cannot be seen.
func clean(text string) string { return report.Clean(escapes.ReplaceAllString(text, "")) }

// Markdown of people and models becomes HTML in two steps: goldmark leaves out
// any HTML in it, and bluemonday lets only plain formatting through. Images do
// not, because to load one tells somebody that the page was read.
var (
	renderer = goldmark.New(goldmark.WithExtensions(extension.GFM))
	cleaning = newCleaning()
)

func newCleaning() *bluemonday.Policy {
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre",
		"blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	policy.AllowAttrs("href").OnElements("a")
	policy.AllowURLSchemes("https", "http")
	policy.RequireParseableURLs(true)
	policy.AllowRelativeURLs(false)
	policy.RequireNoFollowOnLinks(true)
	policy.RequireNoReferrerOnLinks(true)
	policy.AddTargetBlankToFullyQualifiedLinks(true)
	return policy
}

// markdown renders somebody else's Markdown.
func markdown(text string) template.HTML {
	text = clean(text)
	var b bytes.Buffer
	if err := renderer.Convert([]byte(text), &b); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>")
	}
	return template.HTML(cleaning.SanitizeBytes(b.Bytes())) // cleaned on this very line
}

// when shows a time in a person's order.
func when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006 15:04:05 UTC")
}

// label is a state or a tool in words.
func label(name any) string { return strings.ReplaceAll(clean(fmt.Sprint(name)), "_", " ") }

// headlines say how things stand.
var headlines = map[store.SessionState]string{
	store.StateQueued:           "waits for its turn",
	store.StatePreparing:        "the crew is getting ready",
	store.StateRunning:          "the crew is at work",
	store.StateAwaitingApproval: "waits for a maintainer",
	store.StatePublishing:       "the approved commit is being pushed",
	store.StateSuspended:        "waits",
	store.StateCompleted:        "done",
	store.StateFailed:           "ended early",
	store.StateCancelled:        "was stopped",
	store.StateExpired:          "nobody decided in time",
}

// size shows a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// indented shows JSON for people, and what is none as it is.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
