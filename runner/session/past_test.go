package session

import (
	"strings"
	"testing"

	"handoff/agents"
	"handoff/agents/tools"
	"handoff/gitops/fakegithub"
	"handoff/runner"
	"handoff/runner/store"
)

// A session begins with its base commit alone. What came before is fetched when
// an agent asks for it, and ends with the base.
func TestAgentsSeeTheHistoryOfTheBase(t *testing.T) {
	w := newWorld(t, aShop())
	commit := func(files map[string]string, message string) {
		_, err := w.github.Commit(fakegithub.CommitSpec{Repository: owner + "/" + name, Branch: "main", Author: "mona", Message: message, Files: files})
		w.ok(err)
	}
	commit(map[string]string{"price.txt": "10\n"}, "Set a price\n\nFor the opening.")
	commit(map[string]string{"price.txt": "10\n12\n"}, "Add a second price")
	w.ok(w.store.PutAgent(t.Context(), store.AgentRow{ID: "copilot", Version: "2", Source: strings.Replace(crew, "read_file", "read_file, git_log, git_blame", 1)}))
	w.writes("price.txt", "99\n")
	w.calls("git_log", map[string]any{"path": "price.txt", "full": true})
	w.calls("git_log", map[string]any{})
	w.calls("git_blame", map[string]any{"path": "price.txt"})
	w.calls("git_blame", map[string]any{"path": "greeting.txt"})
	id := w.asked()
	w.works()
	w.is(id, store.StateCompleted)
	outputs := w.outputs(id)
	for i, want := range []string{
		"mona\n  > Set a price\n  > \n  > For the opening.\n", "3 commits, newest first", "mona\t10\n", "There was no file greeting.txt",
	} {
		if got := outputs[i+1]; !strings.Contains(got, want) {
			t.Errorf("output %d has no %q:\n%s", i+1, want, got)
		}
	}
	if strings.Contains(outputs[3], "\t99") || !strings.Contains(outputs[3], "mona\t12\n") {
		t.Errorf("the blame is not of the base:\n%s", outputs[3])
	}
}

// outputs are what a session's tools answered, in order.
func (w *world) outputs(id string) []string {
	w.Helper()
	records, err := w.store.Records(w.Context(), id, 1)
	w.ok(err)
	state, err := runner.Fold(records)
	w.ok(err)
	var texts []string
	for _, item := range state.Items() {
		if item.Kind == agents.KindToolCallOutput {
			texts = append(texts, item.Text)
		}
	}
	return texts
}

var _ tools.History = (*past)(nil)
