// Package report writes what people read on GitHub, the progress comment and the
// last words of a session, and reads what they wrote there as they see it.
//
// Everything here is pure: a struct goes in, Markdown comes out. The text that
// models, repositories and strangers wrote passes through one of three doors,
// and nothing of theirs reaches a comment otherwise:
//
//   - [Neutral] keeps their Markdown readable but takes its teeth: no mentions,
//     no issue references, no HTML, no remote images, no other bot's commands.
//   - [Inline] makes one plain line of it.
//   - [Fence] shows it verbatim in a code block that it cannot leave.
//
// The first two strip the characters that people cannot see ([Clean]), the third
// shows them ([Reveal]). Results are cut to what GitHub takes, with a word that
// says so.
//
// In the other direction there is one door: [Visible] leaves of somebody's
// Markdown what a person sees on the page, before a model reads it.
package report

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"handoff/agents"
)

// MaxBody is GitHub's limit for the body of a comment, in characters.
const MaxBody = 65_536

//go:embed templates/*.md
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"inline":   Inline,
	"person":   person,
	"neutral":  func(text string) string { return Neutral(text, MaxBody/2) },
	"fence":    func(text string) string { return Fence(text, "") },
	"quote":    Quote,
	"duration": Duration,
	"tokens":   Tokens,
	"cost":     Cost,
	"words":    func(name string) string { return strings.ReplaceAll(name, "_", " ") },
	"until":    func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
}).ParseFS(templateFiles, "templates/*.md"))

// A Progress is all that the progress comment shows.
type Progress struct {
	// State is the session's state in the words of the design.
	State string
	// Headline is one line that says how things stand.
	Headline  string
	Task      string
	Requester string
	Plan      []Task
	// Agent is the name of who works now, "" when nobody does.
	Agent string
	// Doing is what they do, "" when it is not known.
	Doing  string
	Steps  []Step
	Active time.Duration
	Usage  agents.Usage
	// Result is the crew's final answer, in their Markdown.
	Result string
	// Failure is why the session ended early; Next is what to do about it.
	Failure string
	Next    string
	// NotPushed is what the host says about a push that was declined, and
	// ServerSaid are the server's own words; both "" when there was none since.
	NotPushed  string
	ServerSaid string
	// Notices are things that the reader should know: what was cut, what the
	// sandbox cannot do, which wishes of the configuration were not met.
	Notices        []string
	PullRequestURL string
	PromptURL      string
	// PatchURL is where the work can be fetched as a diff, and PatchUntil when
	// that ends, zero for never.
	PatchURL   string
	PatchUntil time.Time
	SessionURL string
}

// A Task is one line of the checklist.
type Task struct {
	Title string
	Done  bool
	Owner string
}

// A Step is one thing that happened, for the list of last steps.
type Step struct {
	Agent string
	// Text is one line, already about a single thing ("ran the tests").
	Text string
	// Failed marks a step that did not succeed.
	Failed bool
	// Handoff marks a change of agent.
	Handoff bool
}

// shownSteps bounds the list of last steps, so that the comment stays short.
const shownSteps = 12

// LastSteps returns the steps that are shown.
func (p Progress) LastSteps() []Step {
	return p.Steps[max(0, len(p.Steps)-shownSteps):]
}

// EarlierSteps counts the steps that are not shown.
func (p Progress) EarlierSteps() int { return max(0, len(p.Steps)-shownSteps) }

// Markdown renders the comment, at most [MaxBody] characters long.
func (p Progress) Markdown() string {
	return render("progress.md", p)
}

// LastWords are the one new comment at a session's end. It is short, because
// the progress comment has the whole; it exists because an edit notifies nobody.
type LastWords struct {
	Requester      string
	State          string
	Headline       string
	Failure        string
	Next           string
	PullRequestURL string
	// NotPushed is as in [Progress].
	NotPushed string
	// PatchURL and PatchUntil are as in [Progress].
	PatchURL   string
	PatchUntil time.Time
}

// Markdown renders the comment. The requester alone is mentioned.
func (l LastWords) Markdown() string {
	return render("last_words.md", l)
}

// render executes a template that was parsed at start; the data are our own
// structs, so a failure is a defect of the template and is shown as text.
func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		return "This report could not be written: " + err.Error()
	}
	return Cut(tidyBlankLines(b.String()), MaxBody)
}

// login is what GitHub lets people call themselves.
var login = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})$`)

// person mentions somebody whom the host names, and nobody else.
func person(name string) string {
	if login.MatchString(name) {
		return "@" + name
	}
	return Inline(name)
}

// tidyBlankLines makes one blank line of several, which templates leave.
func tidyBlankLines(text string) string {
	var lines []string
	inFence := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			inFence = !inFence
		}
		blank := strings.TrimSpace(line) == ""
		if blank && !inFence && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		if blank && !inFence {
			line = ""
		}
		lines = append(lines, line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// Cut shortens text to the limit in characters and says that it did.
func Cut(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	const note = "\n\n… (cut; the session page has it all)\n"
	return string(runes[:limit-len([]rune(note))]) + note
}

// Duration renders a time as people say it: 42 s, 3 min 5 s, 1 h 12 min.
func Duration(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Tokens renders a number of tokens: 950, 12.3k, 1.20M.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.2fM", float64(n)/1_000_000)
}

// Cost renders what a session cost in US dollars, and says where the price is
// not known.
func Cost(usage agents.Usage) string {
	dollars := fmt.Sprintf("$%.2f", float64(usage.CostMicros)/1e6)
	switch {
	case usage.CostUnknown && usage.CostMicros == 0:
		return "cost unknown"
	case usage.CostUnknown:
		return "at least " + dollars
	case usage.CostMicros > 0 && usage.CostMicros < 10_000:
		return fmt.Sprintf("$%.4f", float64(usage.CostMicros)/1e6)
	}
	return dollars
}
