package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"handoff/agents/llm/tape"
	"handoff/runner/store"
	"handoff/sandbox"
)

// TestTheStory plays the demo's story in the sandbox of this machine, looks at
// what GitHub shows in the end, and checks the branch out like anybody would.
func TestTheStory(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		lacking(t, "no go command on PATH: the story was not played")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var output bytes.Buffer
	dir := t.TempDir()
	play := &play{
		demoCommand: &demoCommand{Yes: true, Listen: "127.0.0.1:0", Git: "auto", LogLevel: "warn"},
		show:        newScreen(&output), keys: newKeyboard(strings.NewReader("")), events: make(chan told, 1024), began: time.Now(),
		player: strictDemo(t),
	}
	stage, err := play.raise(ctx, &process{ctx: ctx, stdout: &output, stderr: io.Discard}, dir, play)
	if err != nil {
		t.Fatal(err)
	}
	play.stage = stage
	t.Cleanup(func() {
		if err := stage.close(); err != nil {
			t.Error(err)
		}
	})
	if err := play.story(ctx); err != nil {
		t.Fatalf("%v\n%s\nWhere the tape does not fit, and the change is meant, run: go test ./cmd/handoff -run TestTheStory -update", err, &output)
	}
	keepDemo(t, play.player)
	for _, line := range []string{
		"architect      → implementer", "✘ run tests", "tester         → implementer", "✔ run tests",
		"testing the sealed commit", "Pull request: ", "login_test.go",
	} {
		if !strings.Contains(output.String(), line) {
			t.Errorf("the demo never showed %q:\n%s", line, &output)
		}
	}
	checkStory(t, stage)
	checkBranch(t, stage)
}

// demoTape is where the story's tape lies.
const demoTape = "demo/tape.jsonl"

// strictDemo plays the demo's tape and refuses what differs from it: whoever
// changes a prompt, a tool or what the crew is told sees here what the model is
// told now. With -update the tape takes it over. Where the sandbox is none, or
// gives something up, the crew is told so, which is another story; it is played
// loosely then.
func strictDemo(t *testing.T) *tape.Player {
	t.Helper()
	file, err := os.Open(demoTape)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	answers, err := tape.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	capabilities, err := sandbox.NewLocal(sandbox.LocalOptions{StateDir: t.TempDir()}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if capabilities.Err() != nil || capabilities.Tier.GivesUp() != "" {
		const lack = "no whole sandbox on this machine: what the model is told was not compared with the tape"
		if os.Getenv("CI") == "true" {
			t.Fatal(lack)
		}
		t.Log(lack)
		return tape.NewPlayer(answers, tape.Options{})
	}
	return tape.NewPlayer(answers, tape.Options{Strict: true, Update: *update})
}

// keepDemo writes the tape when it was updated, and otherwise looks whether
// every line of it was played and compared.
func keepDemo(t *testing.T, player *tape.Player) {
	t.Helper()
	for _, line := range player.Unused() {
		t.Errorf("nobody asked for the tape's line of agent %s, turn %d", line.Agent, line.Turn)
	}
	if *update {
		writeDemo(t, player.Tape())
		return
	}
	for _, line := range player.Tape().Lines() {
		if line.RequestHash == "" {
			t.Errorf("the tape's line of agent %s, turn %d was never compared; run with -update", line.Agent, line.Turn)
		}
	}
}

func writeDemo(t *testing.T, played *tape.Tape) {
	t.Helper()
	var text bytes.Buffer
	if _, err := played.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(demoTape, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkStory looks at the issue as its readers do.
func checkStory(t *testing.T, stage *stage) {
	t.Helper()
	s := &scene{t: t, stage: stage}
	sessions, err := stage.bot.store.Sessions(t.Context(), store.SessionFilter{}, 10)
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions (%v), want one", len(sessions), err)
	}
	if err := s.settle(t.Context(), sessions[0]); err != nil {
		t.Fatal(err)
	}
	repository, _ := stage.github.State().Repository(stageOwner + "/shelf")
	issue, _ := repository.Issue(1)
	pull, _ := repository.Issue(2)
	if pull.Pull == nil || len(repository.Issues) != 2 || len(repository.Branches) != 2 {
		t.Fatalf("want one issue, one pull request and two branches, got %d and %d", len(repository.Issues), len(repository.Branches))
	}
	progress := 0
	for _, comment := range issue.Comments {
		if strings.Contains(comment.Body, "[x] Write the token issuer and the handler") {
			progress++
		}
	}
	if progress != 1 {
		t.Errorf("%d progress comments with ticked checklists, want one", progress)
	}
}

// checkBranch clones the pull request's branch with git and runs its tests.
func checkBranch(t *testing.T, stage *stage) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		lacking(t, "no git command: the branch was not checked out and tested")
	}
	repository, _ := stage.github.State().Repository(stageOwner + "/shelf")
	pull, _ := repository.Issue(2)
	dir := filepath.Join(t.TempDir(), "clone")
	for _, command := range [][]string{
		{"git", "clone", "--quiet", "--branch", pull.Pull.Head, repository.CloneURL, dir},
		{"go", "-C", dir, "build", "./..."},
		{"go", "-C", dir, "test", "./..."},
	} {
		made := exec.CommandContext(t.Context(), command[0], command[1:]...)
		made.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
		if output, err := made.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, output)
		}
	}
}

// lacking skips a test for what this machine does not have; in CI, which
// installs everything, the lack is a failure.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 0, "Usage: handoff"},
		{[]string{"--help"}, 0, "demo"},
		{[]string{"dance"}, 2, "unexpected argument dance"},
		{[]string{"demo", "--yess"}, 2, "unknown flag --yess"},
		{[]string{"serve"}, 1, "GITHUB_APP_ID is missing"},
		{[]string{"version"}, 0, "handoff "},
	} {
		for _, name := range []string{"GITHUB_APP_ID", "GITHUB_PRIVATE_KEY", "GITHUB_WEBHOOK_SECRET"} {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
		var output bytes.Buffer
		if code := run(test.args, strings.NewReader(""), &output, &output); code != test.code || !strings.Contains(output.String(), test.want) {
			t.Errorf("handoff %s: code %d, want %d with %q:\n%s", strings.Join(test.args, " "), code, test.code, test.want, &output)
		}
	}
}
