package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
)

func TestProgressWhileTheCrewWorks(t *testing.T) {
	got := Progress{
		State:     "running",
		Headline:  "The crew is at work",
		Task:      "Add a login endpoint",
		Requester: "ada",
		Plan: []Task{
			{Title: "Design the endpoint", Done: true, Owner: "architect"},
			{Title: "Write it"},
		},
		Agent: "Implementer",
		Doing: "go build ./...",
		Steps: []Step{
			{Agent: "Architect", Text: "wrote architecture/LOGIN_DESIGN.md"},
			{Agent: "Architect", Text: "hands over to Implementer", Handoff: true},
			{Agent: "Implementer", Text: "ran the tests", Failed: true},
		},
		Active: 75 * time.Second,
		Usage:  agents.Usage{Requests: 7, Total: 12_345, CostMicros: 123_456},
	}.Markdown()
	want := `### The crew is at work

> Add a login endpoint

- [x] Design the endpoint · architect
- [ ] Write it

**Now:** Implementer · go build ./...

<details open><summary>Last steps</summary>

- ✔️ **Architect** wrote architecture/LOGIN\_DESIGN.md
- ➡️ **Architect** hands over to Implementer
- ❌ **Implementer** ran the tests

</details>

<sub>running · 1 min 15 s · 7 model calls · 12.3k tokens · $0.12 · asked by ada</sub>
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProgressNamesTheStateInWords(t *testing.T) {
	got := Progress{State: "awaiting_approval", Headline: "The crew waits for a maintainer"}.Markdown()
	if !strings.Contains(got, "<sub>awaiting approval ·") {
		t.Errorf("people read the name of a constant:\n%s", got)
	}
}

func TestProgressAtTheEnd(t *testing.T) {
	got := Progress{
		State:    "failed",
		Headline: "The session ended early",
		Failure:  "the limit of 40 turns was reached",
		Next:     "Comment `/copilot retry` to go on from here.",
		PatchURL: "https://bot.example/patch", PatchUntil: time.Date(2026, 11, 27, 9, 30, 0, 0, time.UTC),
	}.Markdown()
	for _, want := range []string{"**Why it ended:** the limit of 40 turns", "`/copilot retry`", "[download](https://bot.example/patch) (this link works until 27 November 2026, 09:30 UTC)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "<details") || strings.Contains(got, "Now:") {
		t.Errorf("a session without steps shows some:\n%s", got)
	}
}

func TestLastWordsMentionTheRequesterAlone(t *testing.T) {
	got := LastWords{Requester: "ada", Headline: "The session ended early", Failure: "@bob broke it", Next: "Comment `/copilot retry`."}.Markdown()
	want := "@ada: The session ended early.\n\n@&#8203;bob broke it\n\nComment `/copilot retry`.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = LastWords{Requester: "ada", Headline: "Stopped", Failure: "no", PatchURL: "https://bot.example/patch"}.Markdown()
	if want := "**The work so far, as a patch:** [download](https://bot.example/patch)\n"; !strings.HasSuffix(got, want) {
		t.Error(got)
	}
	got = LastWords{Requester: "not a login @everyone", PullRequestURL: "https://x.example/pull/2"}.Markdown()
	if strings.Contains(got, "@everyone") || !strings.Contains(got, "https://x.example/pull/2") {
		t.Error(got)
	}
}

func TestManyStepsAreCounted(t *testing.T) {
	progress := Progress{Steps: make([]Step, 30)}
	if got := progress.Markdown(); !strings.Contains(got, "… 18 earlier steps") {
		t.Error(got)
	}
}

func TestALongResultIsCut(t *testing.T) {
	got := Progress{Result: strings.Repeat("ä", 200_000)}.Markdown()
	if n := len([]rune(got)); n > MaxBody {
		t.Errorf("%d characters, GitHub takes %d", n, MaxBody)
	}
	if !strings.Contains(got, "session page has it all") || !strings.Contains(got, "model calls") {
		t.Error("the cut is not said, or it took the footer")
	}
}

func TestNeutralTakesTheTeeth(t *testing.T) {
	for _, test := range []struct{ what, text, want string }{
		{"a mention", "ask @org/everyone", "ask @&#8203;org/everyone"},
		{"an issue", "fixes #12 and GH-3", "fixes #&#8203;12 and GH-&#8203;3"},
		{"a link to an issue", "see https://x.example/a/b/issues/5", "see https://x.example/a/b/issues/&#8203;5"},
		{"our command", "/copilot push", "&#47;copilot push"},
		{"another bot's command in a list", "- /approve", "- &#47;approve"},
		{"HTML", "<img src=x><!-- marker -->", "&lt;img src=x>&lt;!-- marker -->"},
		{"an image", "![secret](https://evil.example/?k=1)", "&#33;[secret](https://evil.example/?k=1)"},
		{"code stays as it is", "use `npm i @org/x` now", "use `npm i @org/x` now"},
		{"a block of code", "```go\n// @x #1 <T>\n```", "```go\n// @x #1 <T>\n```"},
		{"an open block is closed", "```\nrm -rf", "```\nrm -rf\n```"},
		{"hidden letters", "a\u200bb\u202ec\U000E0041d", "abcd"},
		{"terminal escapes", "\x1b[31mred", "[31mred"},
	} {
		if got := Neutral(test.text, 1000); got != test.want {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}

func TestNoCommentIsLeft(t *testing.T) {
	for text, want := range map[string]string{
		"a<!-- /copilot push -->b": "ab",
		"a<!<!-- x -->-- y -->b":   "ab",
		"open <!-- for ever":       "open ",
		"plain":                    "plain",
	} {
		if got := StripComments(text); got != want {
			t.Errorf("StripComments(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestInlineIsOnePlainLine(t *testing.T) {
	for text, want := range map[string]string{
		"two\nlines":     "two lines",
		"**bold** `x`":   "\\*\\*bold\\*\\* \\`x\\`",
		"@ada #1 <b>":    "@&#8203;ada \\#&#8203;1 &lt;b\\>",
		"a | b":          "a \\| b",
		"![i](u)":        "\\!\\[i\\]\\(u\\)",
		"ends with @":    "ends with @",
		"\u202eevil":     "evil",
		"x/issues/7 end": "x/issues/&#8203;7 end",
	} {
		if got := Inline(text); got != want {
			t.Errorf("Inline(%q) = %q, want %q", text, got, want)
		}
	}
	if n := len([]rune(Inline(strings.Repeat("a", 5000)))); n != inlineLimit {
		t.Errorf("a long line has %d characters", n)
	}
}

func TestCodeIsOneLineThatCannotBeLeft(t *testing.T) {
	if got, want := Code("go test ./...\n`@ada` | #1"), "`go test ./... ˋ@adaˋ ¦ #1`"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestNothingLeavesAFence(t *testing.T) {
	got := Fence("before\n````\nafter", "text")
	if want := "`````text\nbefore\n````\nafter\n`````"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFenceRevealsWhatIsHidden(t *testing.T) {
	got := Fence("if admin\u202e {\r\nx\x1b[0m", "go")
	if want := "```go\nif admin⟨U+202E⟩ {\nx⟨U+001B⟩[0m\n```"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !HasHidden("a\u200bb") || HasHidden("plain\r\ntext") {
		t.Error("HasHidden is wrong")
	}
}

// Whatever a model writes, outside of code no armed sign is left.
func FuzzNeutral(f *testing.F) {
	f.Add("hello @world `@x` #1\n```\n@y")
	f.Add("    indented @code\n> quote ~~~\n@z")
	f.Fuzz(func(t *testing.T, markdown string) {
		got := Neutral(markdown, 5000)
		source := []byte(got)
		var outside strings.Builder
		end := 0
		for _, code := range codeRanges(source) {
			outside.Write(source[end:max(end, code[0])])
			end = max(end, code[1])
		}
		outside.Write(source[end:])
		if strings.Contains(outside.String(), "<!--") {
			t.Errorf("an HTML comment survived: %q", got)
		}
	})
}

func TestCallsInWords(t *testing.T) {
	if got := DescribeCall("run_command", "command=go build ./... dir=x"); got != "run command go build ./... dir=x" {
		t.Error(got)
	}
	if got := DescribeCall("read_file", "path=a.go"); got != "read file" {
		t.Error(got)
	}
	for _, test := range []struct {
		tool, summary string
		isError, want bool
	}{
		{"run_tests", "tests failed, exit code 1", false, true},
		{"run_tests", "tests passed", false, false},
		{"run_command", "exit code 0 after 1s", false, false},
		{"read_file", "failed.go, lines 1 to 2", false, false},
		{"read_file", "", true, true},
	} {
		if got := CallFailed(test.tool, test.summary, test.isError); got != test.want {
			t.Errorf("CallFailed(%q, %q, %v) = %v", test.tool, test.summary, test.isError, got)
		}
	}
}

func TestWordsForNumbers(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond:      "2 s",
		185 * time.Second:            "3 min 5 s",
		72*time.Minute + time.Second: "1 h 12 min",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for usage, want := range map[*agents.Usage]string{
		{CostMicros: 1_234_567}:                    "$1.23",
		{CostMicros: 1_234}:                        "$0.0012",
		{CostUnknown: true}:                        "cost unknown",
		{CostUnknown: true, CostMicros: 2_000_000}: "at least $2.00",
	} {
		if got := Cost(*usage); got != want {
			t.Errorf("Cost(%+v) = %q, want %q", usage, got, want)
		}
	}
}
