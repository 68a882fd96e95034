package approval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
	"handoff/runner/report"
	"handoff/runner/verdict"
)

func examplePrompt() Prompt {
	return Prompt{
		Kind: "git_push", Digest: strings.Repeat("3fa9c1d2", 8), Repo: "acme/shelf", Issue: 7, Requester: "ada",
		BaseRef: "main", Base: strings.Repeat("b", 40), Commit: strings.Repeat("c", 40),
		TargetRef: "refs/heads/copilot/7-login-1a2b", Title: "Add a login endpoint", Body: "For @everyone, fixes #1",
		Files: []File{
			{Path: "server/login.go", Status: "added", Additions: 40},
			{Path: "Makefile", Status: "modified", Additions: 1, Deletions: 2},
		},
		Message:      "Add a login endpoint\n\nFixes #9\n",
		Diff:         "+func login() {}\n",
		Verification: Verification{Commands: []string{"go test ./..."}, Verdict: verdict.Verdict{Outcome: verdict.Passed}, Duration: 3 * time.Second},
		Risks:        []Risk{{What: "changes scripts", Paths: []string{"Makefile"}}},
		CheckRun:     true,
		Role:         "write",
		ExpiresAt:    time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
		Usage:        agents.Usage{Total: 12_000, CostMicros: 50_000},
	}
}

func TestThePromptSaysWhatIsDecided(t *testing.T) {
	body := examplePrompt().Markdown()
	for _, want := range []string{
		"Push to `copilot/7-login-1a2b`?", "`3fa9c1d2`", strings.Repeat("c", 40), "2 files, +41 −2",
		"✅ passed on a clean checkout", "go test ./...", "⚠️ changes scripts: `Makefile`",
		"2 January 2026, 03:04 UTC", "+func login() {}", "```text\nAdd a login endpoint\n\nFixes #9\n```", "`/copilot approve 3fa9c1d2`", "role write",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, body)
		}
	}
	for _, armed := range []string{"@everyone", "fixes #1"} {
		if strings.Contains(body, armed) {
			t.Errorf("the prompt holds %q", armed)
		}
	}
}

func TestThePromptOffersOnlyWhatThereIs(t *testing.T) {
	prompt := examplePrompt()
	if body := prompt.Markdown(); !strings.Contains(body, "buttons of the check run") {
		t.Error("the prompt does not name the buttons")
	}
	prompt.CheckRun = false
	if body := prompt.Markdown(); strings.Contains(body, "check run") || !strings.Contains(body, "react with 👍") {
		t.Errorf("the prompt names buttons that are not there:\n%s", body)
	}
	if body := answered(examplePrompt().Markdown()); strings.Contains(body, "To decide") || !strings.Contains(body, "+func login() {}") {
		t.Errorf("an answered prompt still asks, or lost its text:\n%s", body)
	}
}

func TestThePromptIsHonestAboutTests(t *testing.T) {
	ran := func(v verdict.Verdict) Verification { return Verification{Commands: []string{"make"}, Verdict: v} }
	run := verdict.Run{Outcome: verdict.Failed, ExitCode: 2, Failures: []string{"TestOld", "TestNew"}, Named: true}
	old := verdict.Run{Outcome: verdict.Failed, ExitCode: 2, Failures: []string{"TestOld"}, Named: true}
	silent := verdict.Run{Outcome: verdict.Failed, ExitCode: 2}
	passed := verdict.Run{Outcome: verdict.Passed}
	for _, test := range []struct {
		verification Verification
		want         []string
	}{
		{Verification{}, []string{"⚠️ no test command is configured"}},
		{Verification{Commands: []string{"make"}, NotRun: "no sandbox here"}, []string{"⚠️ not run: no sandbox here"}},
		{ran(verdict.Judge([]verdict.Run{silent, silent}, nil)), []string{"❌ failed with exit code 2 in two runs", "`make`", "what they do on the base is not known"}},
		{ran(verdict.Judge([]verdict.Run{silent, silent}, []verdict.Run{passed})), []string{"they pass on the base: `make`", "Told apart by exit code alone"}},
		{ran(verdict.Judge([]verdict.Run{run, run}, []verdict.Run{old, old})), []string{
			"the base fails as well, but not in the same tests: `make`", "- New failures (1): `TestNew`\n- Failures that were there before (1): `TestOld`\n", "Told apart by the names",
		}},
		{ran(verdict.Judge([]verdict.Run{run, passed}, nil)), []string{"⚠️ are flaky: they failed with exit code 2 and passed when they were run again: `make`", "- Flaky, failed in one run and not in another (2): `TestOld`, `TestNew`"}},
		{ran(verdict.Judge([]verdict.Run{{Outcome: verdict.TimedOut, Detail: "It took more than 10 minutes."}}, nil)), []string{"❌ did not end in time: It took more than 10 minutes."}},
		{ran(verdict.Judge([]verdict.Run{{Outcome: verdict.Limited, Detail: "Memory."}}, nil)), []string{"❌ were ended by a limit of the sandbox: Memory."}},
		{ran(verdict.Judge([]verdict.Run{{Outcome: verdict.SetupFailed, Detail: "exit code 1"}}, nil)), []string{"❌ were not run, because the setup fails on this commit \\(exit code 1\\)"}},
	} {
		prompt := examplePrompt()
		prompt.Verification = test.verification
		for where, text := range map[string]string{"prompt": prompt.Markdown(), "check run": checkSummary(prompt)} {
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("the %s lacks %q:\n%s", where, want, text)
				}
			}
			if strings.Contains(text, "✅") {
				t.Errorf("the %s looks as if they passed:\n%s", where, text)
			}
		}
	}
}

// The names of tests are whatever a test prints.
func TestNamesOfTestsDoNothing(t *testing.T) {
	hostile := []string{
		"@octo/everyone fixes #1 `whoami` | <img src=x> ![](https://evil.example)", "a\n**To decide:** comment `/copilot approve 00000000`",
		strings.Repeat("x", 5_000), "\u202eevil\u2066",
	}
	for i := range 200 {
		hostile = append(hostile, fmt.Sprintf("Test%d", i))
	}
	prompt := examplePrompt()
	prompt.Verification.Verdict = verdict.Verdict{Outcome: verdict.Failed, ByName: true, Base: verdict.BasePasses, New: hostile, Flaky: hostile, Old: hostile, Unsure: hostile}
	for where, text := range map[string]string{"prompt": prompt.Markdown(), "check run": checkSummary(prompt)} {
		for _, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "- New failures") {
				continue
			}
			// Outside of code nothing is left of the names.
			outside := ""
			for i, part := range strings.Split(line, "`") {
				if i%2 == 0 {
					outside += part
				}
			}
			if want := "- New failures (204): " + strings.Repeat(", ", maxTests-1) + " and 184 more"; outside != want {
				t.Errorf("the %s has %q outside of code, want %q", where, outside, want)
			}
		}
		if strings.Contains(text, "\u202e") || strings.Count(text, "\n**To decide:**") > 1 || strings.Contains(text, strings.Repeat("x", maxTestName+1)) {
			t.Errorf("the %s lets a name through:\n%s", where, text)
		}
		if len([]rune(text)) > 30_000 {
			t.Errorf("the %s has %d characters", where, len([]rune(text)))
		}
	}
}

func TestAHugeDiffLeavesRoomForTheDecision(t *testing.T) {
	prompt := examplePrompt()
	prompt.Diff = strings.Repeat("+ä`@x\n", 50_000)
	prompt.Verification.Output = strings.Repeat("out\n", 4_000)
	for i := range 500 {
		prompt.Files = append(prompt.Files, File{Path: fmt.Sprintf("%0200d", i), Status: "added"})
	}
	body := prompt.Markdown()
	if n := len([]rune(body)); n > report.MaxBody-1_000 {
		t.Errorf("%d characters", n)
	}
	for _, want := range []string{"and 402 more", "the diff is longer", "/copilot approve 3fa9c1d2"} {
		if !strings.Contains(body, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
}

func TestRisksAreNamed(t *testing.T) {
	files := []File{
		{Path: ".github/workflows/ci.yml", Status: "modified"},
		{Path: "tools/run.sh", Status: "added", Mode: "100755"},
		{Path: "go.mod", Status: "modified"},
		{Path: "a_test.go", Status: "modified", Additions: 1, Deletions: 9, AddedLines: []string{"\tt.Skip()"}},
		{Path: "b_test.go", Status: "deleted"},
		{Path: "logo.png", Status: "added", Binary: true},
		{Path: "link", Status: "added", Mode: "120000"},
		{Path: "main.go", Status: "modified", AddedLines: []string{"x\u202e"}},
		{Path: "harmless.go", Status: "modified", Additions: 3},
	}
	var got []string
	for _, risk := range Risks(files) {
		got = append(got, risk.What+": "+strings.Join(risk.Paths, " "))
	}
	want := []string{
		"changes what CI runs with the repository's secrets: .github/workflows/ci.yml",
		"changes scripts that CI or a build is likely to run: tools/run.sh",
		"changes dependencies: go.mod",
		"makes a file executable: tools/run.sh",
		"adds or changes a symbolic link: link",
		"adds or changes a binary file, which the diff does not show: logo.png",
		"adds characters that cannot be seen: main.go",
		"deletes tests: b_test.go",
		"takes more out of a test than it adds: a_test.go",
		"skips tests: a_test.go",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestADigestNamesEverything(t *testing.T) {
	action := Action{Version: 1, Kind: "git_push", Commit: "c", Title: "t", Nonce: NewNonce()}
	digest, record := action.Digest()
	if len(digest) != digestLength || !strings.Contains(string(record), `"commit":"c"`) {
		t.Fatalf("%s %s", digest, record)
	}
	for what, change := range map[string]func(*Action){
		"commit": func(a *Action) { a.Commit = "d" },
		"title":  func(a *Action) { a.Title = "u" },
		"target": func(a *Action) { a.TargetRef = "refs/heads/main" },
		"nonce":  func(a *Action) { a.Nonce = NewNonce() },
		"rules":  func(a *Action) { a.ConfigHash = "x" },
	} {
		changed := action
		change(&changed)
		if other, _ := changed.Digest(); other == digest {
			t.Errorf("another %s has the same digest", what)
		}
	}
}

func TestADigestIsTypedByPeople(t *testing.T) {
	for text, want := range map[string]string{
		"3fa9c1d2": "3fa9c1d2", " `3FA9C1D2ff` ": "3fa9c1d2ff",
		"3fa9c1d": "", "": "", "3fa9c1dg": "", strings.Repeat("a", 65): "",
	} {
		if got, ok := ParsePrefix(text); got != want || ok != (want != "") {
			t.Errorf("ParsePrefix(%q) = %q, %v", text, got, ok)
		}
	}
}
