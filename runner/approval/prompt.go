package approval

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"handoff/agents"
	"handoff/runner/report"
	"handoff/runner/verdict"
)

//go:embed templates/*.md
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"inline":  report.Inline,
	"code":    report.Code,
	"neutral": func(text string) string { return report.Neutral(text, 4_000) },
	"quote":   report.Quote,
	"fence":   report.Fence,
	"tokens":  report.Tokens,
	"cost":    report.Cost,
	"short":   Short,
	"when":    func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"join":    inlineCode,
}).ParseFS(templateFiles, "templates/*.md"))

// Short is a digest or a commit as people read it: its first eight digits.
func Short(digest string) string { return digest[:min(len(digest), minPrefix)] }

// inlineCode lists somebody else's names, each as code.
func inlineCode(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = report.Code(name)
	}
	return strings.Join(quoted, ", ")
}

// A Verification is the host's own run of the configured tests on the sealed
// commit. Nothing in it was chosen by a model.
type Verification struct {
	// Commands are what was run, none when nothing is configured.
	Commands []string
	// NotRun says why the tests could not be run, "" when they were; nothing
	// below counts then.
	NotRun string
	// Verdict is what the runs came to. Its names are the output's.
	Verdict verdict.Verdict
	// Output is what the first run printed last, Duration what it took.
	Output   string
	Duration time.Duration
}

// maxTests and maxTestName are how many failures of a kind a prompt names, and
// how many characters of each.
const (
	maxTests    = 20
	maxTestName = 120
)

// Result is one line of Markdown that says what the tests came to.
func (v Verification) Result() string {
	switch {
	case len(v.Commands) == 0:
		return "⚠️ no test command is configured"
	case v.NotRun != "":
		return "⚠️ not run: " + report.Inline(v.NotRun)
	}
	sign, took := "❌ ", ""
	switch v.Verdict.Outcome {
	case verdict.Passed:
		sign, took = "✅ ", " in "+report.Duration(v.Duration)
	case verdict.Flaky:
		sign = "⚠️ "
	}
	return sign + report.Inline(v.Verdict.Summary()) + took + ": " + inlineCode(v.Commands)
}

// Failures lists the tests that failed, by kind, with how they were told apart,
// as Markdown; "" where there is nothing to list.
func (v Verification) Failures() string {
	var lines []string
	for _, group := range v.Verdict.Groups() {
		shown := make([]string, min(len(group.Tests), maxTests))
		for i := range shown {
			shown[i] = shorten(group.Tests[i], maxTestName)
		}
		line := fmt.Sprintf("- %s (%d): %s", group.Title, len(group.Tests), inlineCode(shown))
		if more := len(group.Tests) - len(shown); more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, line)
	}
	if method := v.Verdict.Method(); method != "" {
		lines = append(lines, "", method)
	}
	return strings.Join(lines, "\n")
}

// shorten cuts a text to a number of characters.
func shorten(text string, limit int) string {
	if characters := []rune(text); len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}
	return text
}

// A Finding is a secret found in what would leave; it never holds the secret.
type Finding struct {
	File string
	Line int
	Rule string
}

// A Prompt is all that maintainers are shown before they decide.
type Prompt struct {
	Kind      string
	Digest    string
	Repo      string
	Issue     int
	Requester string
	// Push.
	BaseRef   string
	Base      string
	Commit    string
	TargetRef string
	Title     string
	Body      string
	Files     []File
	Diff      string
	// Verified says that GitHub makes and signs the commit that is pushed.
	Verified bool
	// Message is the commit's message, as it is sealed.
	Message      string
	Verification Verification
	Risks        []Risk
	// Workflows are the CI workflow files that a push of this branch may start.
	Workflows []string
	// delete_file.
	Path   string
	Agent  string
	Reason string
	Size   int64

	// CheckRun says that a check run with buttons goes with the prompt.
	CheckRun     bool
	Role         string
	RequireOther bool
	ExpiresAt    time.Time
	Usage        agents.Usage
	SessionURL   string
	// Since is what changed since the tree that was approved before, "" for
	// the first prompt.
	Since string

	diffLimit int
}

// diffLimits are how many characters of the diff a prompt folds in: the first
// with which the whole prompt fits, because the words at its end must be read.
var diffLimits = []int{55_000, 30_000, 10_000, 0}

// maxFiles is how many files a prompt lists.
const maxFiles = 100

// Markdown renders the prompt as the body of a comment, short enough for the
// outbox to add its marker.
func (p Prompt) Markdown() string {
	const room = report.MaxBody - 1_000
	body := ""
	for _, limit := range diffLimits {
		p.diffLimit = limit
		if body = p.render(); len([]rune(body)) <= room {
			break
		}
	}
	return report.Cut(body, room)
}

func (p Prompt) render() string {
	name := "push.md"
	if p.Kind == "delete_file" {
		name = "delete_file.md"
	}
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, p); err != nil {
		return "This prompt could not be written: " + err.Error()
	}
	return b.String()
}

// Branch is the target ref as people say it.
func (p Prompt) Branch() string { return strings.TrimPrefix(p.TargetRef, "refs/heads/") }

// ShownFiles are the files that the prompt lists.
func (p Prompt) ShownFiles() []File { return p.Files[:min(len(p.Files), maxFiles)] }

// MoreFiles counts the files that it does not.
func (p Prompt) MoreFiles() int { return max(0, len(p.Files)-maxFiles) }

// Totals counts the changed lines.
func (p Prompt) Totals() string {
	added, removed := 0, 0
	for _, file := range p.Files {
		added += file.Additions
		removed += file.Deletions
	}
	files := "files"
	if len(p.Files) == 1 {
		files = "file"
	}
	return fmt.Sprintf("%d %s, +%d −%d", len(p.Files), files, added, removed)
}

// FoldedDiff is the diff in a fence, cut where it is too long.
func (p Prompt) FoldedDiff() string {
	diff := []rune(p.Diff)
	if len(diff) > p.diffLimit {
		diff = append(diff[:p.diffLimit:p.diffLimit], []rune("\n… the diff is longer; the session page has all of it")...)
	}
	return report.Fence(string(diff), "diff")
}
