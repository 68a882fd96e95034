package approval

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
	"handoff/runner/report"
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
		Verification: Verification{Commands: []string{"go test ./..."}, Passed: true, Duration: 3 * time.Second},
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
	for _, test := range []struct {
		verification Verification
		want         string
	}{
		{Verification{}, "no test command is configured"},
		{Verification{NotRun: "no sandbox here"}, "not run: no sandbox here"},
		{Verification{Commands: []string{"make"}, ExitCode: 2}, "❌ failed with exit code 2: `make`"},
		{Verification{Commands: []string{"make"}, ExitCode: 2, BaseKnown: true, BasePassed: true}, "they pass on the base"},
		{Verification{Commands: []string{"make"}, ExitCode: 2, BaseKnown: true, OldFailures: []string{"TestOld"}, NewFailures: []string{"TestNew"}}, "new: `TestNew`; as before: `TestOld`"},
	} {
		prompt := examplePrompt()
		prompt.Verification = test.verification
		if body := prompt.Markdown(); !strings.Contains(body, test.want) || strings.Contains(body, "✅ passed") {
			t.Errorf("%+v: no %q in the prompt", test.verification, test.want)
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
