package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoff/runner/store"
)

// In a sandbox that leaks (these stories have none) the session's canary is found
// in whatever carries it out, and nothing of it is pushed or kept.
func TestALeakIsNoticedByTheSessionsCanary(t *testing.T) {
	w := newWorld(t, map[string]string{"README.md": "A shop.\n"})
	w.calls("run_command", map[string]any{"command": "cat ../canary; base64 ../canary > loot.txt"})
	w.pushes()
	id := w.asked()
	w.works()
	w.is(id, store.StateCompleted)
	outputs := w.outputs(id)
	if !strings.Contains(outputs[0], "[redacted]") || strings.Contains(outputs[0], "canary-") {
		t.Errorf("the command's output is %q", outputs[0])
	}
	if !strings.Contains(outputs[1], "loot.txt:1: known-secret") {
		t.Errorf("the push ended in %q", outputs[1])
	}
}

// A session keeps its canary from one hold to the next; no two have the same.
func TestEachSessionHasACanaryOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		w := newWorld(t, map[string]string{"README.md": "A shop.\n"})
		w.writes("a.txt", "hello\n")
		w.pushes()
		id := w.asked()
		w.works()
		w.is(id, store.StateAwaitingApproval)
		canary := filepath.Join(w.conductor.workspaceDir(id), "canary")
		first := read(t, canary)
		_, err := w.store.Decide(t.Context(), w.question(id).ID, store.Decision{State: store.ApprovalSuperseded, By: "host", Via: store.ViaTerminal, Reason: "again"})
		w.ok(err)
		w.works()
		if again := read(t, canary); again != first || seen[first] || len(first) < 30 {
			t.Errorf("%q, then %q", first, again)
		}
		seen[first] = true
		if info, err := os.Stat(canary); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("anybody can read it: %v, %v", info.Mode(), err)
		}
	}
}

// A crash between the two steps of planting leaves no session without a canary.
func TestACanaryThatACrashLeftEmptyIsPlantedAgain(t *testing.T) {
	w := newWorld(t, aShop())
	h := &hold{Conductor: w.conductor, session: store.Session{ID: "crashed"}}
	canary := filepath.Join(w.conductor.workspaceDir("crashed"), "canary")
	w.ok(os.MkdirAll(filepath.Dir(canary), 0o755))
	w.ok(os.WriteFile(canary, nil, 0o600))
	w.ok(h.plantCanary())
	if planted := read(t, canary); len(planted) < 30 || w.conductor.Scanner.RedactKnown(planted) == planted {
		t.Errorf("%q is planted and looked for", planted)
	}
}
