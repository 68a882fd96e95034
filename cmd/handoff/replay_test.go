package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"handoff/runner/store"
)

// played is a session with everything that makes playing it again hard: two
// calls in one answer, a name that is no tool's, arguments that are no JSON.
const played = `
{"agent": "copilot", "response": {"content": "I look.", "tool_calls": [{"name": "list_files", "arguments": {}}, {"name": "functions.look", "arguments": {}}, {"name": "read_file", "arguments": "{\"path\":"}]}}
{"agent": "copilot", "response": {"tool_calls": [{"name": "handoff_to", "arguments": {"target_agent": "implementer", "reason": "next", "context": "write greeting.txt"}}]}}
{"agent": "implementer", "response": {"tool_calls": [{"name": "write_file", "arguments": {"path": "greeting.txt", "content": "hello\n"}}]}}
{"agent": "implementer", "response": {"tool_calls": [{"name": "handoff_to", "arguments": {"target_agent": "copilot", "reason": "next", "context": "written"}}]}}
{"agent": "copilot", "response": {"tool_calls": [{"name": "git_push", "arguments": {"title": "Add a greeting", "body": "It says hello."}}]}}
{"agent": "copilot", "response": {"content": "The greeting is there."}}
`

// TestASessionIsPlayedAgain: whatever was recorded of a session is enough to
// play it, although nobody made a tape of it.
func TestASessionIsPlayedAgain(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		lacking(t, "no git command on PATH: no session was played again")
	}
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	repository, tape := filepath.Join(dir, "repo"), filepath.Join(dir, "tape.jsonl")
	must(t, os.WriteFile(tape, []byte(played), 0o600))
	must(t, os.Mkdir(repository, 0o755))
	must(t, os.WriteFile(filepath.Join(repository, "README.md"), []byte("A shop.\n"), 0o644))
	for _, command := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "base"}} {
		arguments := append([]string{"-C", repository, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, command...)
		if output, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", command, err, output)
		}
	}
	says := func(code int, arguments ...string) string {
		t.Helper()
		var out bytes.Buffer
		if got := run(arguments, strings.NewReader(""), &out, &out); got != code {
			t.Fatalf("handoff %q ended with %d:\n%s", arguments, got, &out)
		}
		return out.String()
	}
	says(0, "run", "--repo", repository, "--sandbox", "none", "--tape", tape, "--yes", "add a greeting")

	databases, err := filepath.Glob(filepath.Join(dir, "state/handoff/runs/*/handoff.db"))
	if err != nil || len(databases) != 1 {
		t.Fatalf("databases %q, %v", databases, err)
	}
	url := "sqlite://" + databases[0]
	database, err := store.Open(t.Context(), url, store.Options{Mode: store.ModeRead})
	must(t, err)
	sessions, err := database.Sessions(t.Context(), store.SessionFilter{}, 2)
	must(t, err)
	must(t, database.Close())
	id := sessions[0].ID

	out := says(0, "sessions", "replay", id, "--database-url", url, "--repo", repository, "--sandbox", "none", "--yes")
	has(t, out, "The session began at commit", "I look.", "The greeting is there.", "Branch: copilot/add-a-greeting-")
	// The same as a file, for run and for tests.
	file := filepath.Join(dir, "exported.jsonl")
	must(t, os.WriteFile(file, []byte(says(0, "sessions", "export", id, "--database-url", url, "--file", "tape.jsonl")), 0o600))
	has(t, says(0, "run", "--repo", repository, "--sandbox", "none", "--tape", file, "--yes", "add a greeting"), "The greeting is there.")
	branches, err := exec.Command("git", "-C", repository, "branch", "--list", "copilot/*").Output()
	if err != nil || strings.Count(string(branches), "copilot/") != 3 {
		t.Errorf("branches:\n%s%v", branches, err)
	}
}

func TestASessionWithoutAnswersCannotBePlayed(t *testing.T) {
	s := newShelf(t)
	_, complaint := s.does(1, "sessions", "replay", s.session("add a login").Session().ID)
	has(t, complaint, "nothing to play again")
}
