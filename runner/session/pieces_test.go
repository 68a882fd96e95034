package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/approval"
	"handoff/runner/store"
)

func TestDiffsAreSplitByFile(t *testing.T) {
	diff := `diff --git a/a.go b/a.go
index 1..2 100644
--- a/a.go
+++ b/a.go
@@ -1,2 +1,3 @@
 same
-old
+new
+++ b/forged.go
diff --git a/with space.txt b/with space.txt
new file mode 100644
--- /dev/null
+++ b/with space.txt	
@@ -0,0 +1 @@
+hello
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
`
	want := map[string]diffLines{
		"a.go":           {added: []string{"new", "++ b/forged.go"}, removed: []string{"old"}},
		"with space.txt": {added: []string{"hello"}},
		"gone":           {removed: []string{"bye"}},
	}
	if difference := cmp.Diff(want, splitDiff(diff), cmp.AllowUnexported(diffLines{})); difference != "" {
		t.Error(difference)
	}
}

// What commands left in a cache, on either side, leads nowhere else.
func TestACacheIsCopiedAndNothingBesides(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "of the host")
	write(t, filepath.Join(from, "build/object"), "compiled")
	write(t, filepath.Join(from, "taken"), "theirs")
	write(t, filepath.Join(to, "taken"), "mine")
	for link, target := range map[string]string{"link": filepath.Join(outside, "secret"), "dir": outside, "loop": "."} {
		if err := os.Symlink(target, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyCache(from, to); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(to, "build/object")); got != "compiled" {
		t.Errorf("the object holds %q", got)
	}
	if got := read(t, filepath.Join(to, "taken")); got != "mine" {
		t.Errorf("a file that was there holds %q", got)
	}
	for _, link := range []string{"link", "dir", "loop"} {
		if _, err := os.Lstat(filepath.Join(to, link)); err == nil {
			t.Errorf("%s was copied", link)
		}
	}
	// The copy is the copy's own: writing to it changes nothing of the original.
	write(t, filepath.Join(to, "build/object"), "poisoned")
	if got := read(t, filepath.Join(from, "build/object")); got != "compiled" {
		t.Errorf("the original holds %q", got)
	}
}

// A crew that turned a directory of its cache into a link gets an error, and
// the host writes nothing there.
func TestACopyNeverFollowsALinkOfTheCrews(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "build/authorized_keys"), "mine")
	if err := os.Symlink(outside, filepath.Join(to, "build")); err != nil {
		t.Fatal(err)
	}
	if err := copyCache(from, to); err == nil {
		t.Error("the copy went through a link")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("the host wrote %v", left)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTurnsAreTakenOneByOneAndForgotten(t *testing.T) {
	var all turns
	var group sync.WaitGroup
	inside := map[string]int{"a": 0, "b": 0}
	var mu sync.Mutex
	for i := range 100 {
		key := []string{"a", "b"}[i%2]
		group.Go(func() {
			end, err := all.take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer end()
			mu.Lock()
			inside[key]++
			if inside[key] > 1 {
				t.Errorf("two have the turn of %s", key)
			}
			mu.Unlock()
			mu.Lock()
			inside[key]--
			mu.Unlock()
		})
	}
	group.Wait()
	if len(all.all) != 0 {
		t.Errorf("%d keys are remembered", len(all.all))
	}
}

// Whoever has to stop does not wait for somebody else's long setup.
func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	var all turns
	end, err := all.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(time.Millisecond, func() { cancel(stop) })
	if _, err := all.take(ctx, "a"); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	end()
	if len(all.all) != 0 {
		t.Errorf("%d keys are remembered", len(all.all))
	}
}

// What time mends is waited for, an hour in all; a limit until it ends.
func TestASessionRestsLongerAndLonger(t *testing.T) {
	var all, last time.Duration
	for attempt := 1; attempt <= store.MaxAttempts; attempt++ {
		wait := rest(errors.New("disk full"), attempt)
		if wait <= last {
			t.Errorf("attempt %d rests %v after %v", attempt, wait, last)
		}
		all, last = all+wait, wait
	}
	if all < 50*time.Minute || all > 70*time.Minute {
		t.Errorf("a session rests %v in all", all)
	}
	limit := &github.Error{Code: github.CodeRateLimited, RetryAt: time.Now().Add(time.Hour)}
	if wait := rest(limit, 1); wait < 59*time.Minute {
		t.Errorf("a limit of an hour is waited for %v", wait)
	}
	if rest(errors.New("x"), 0) <= 0 || rest(errors.New("x"), 99) <= 0 {
		t.Error("an attempt without a number makes the session spin")
	}
}

func TestADecisionBelongsToItsCall(t *testing.T) {
	question, err := approval.NewQuestion(approval.Ask{
		Session: store.Session{ID: "s"}, Action: approval.Action{Kind: toolGitPush, CallKey: "c", ArgumentsHash: "h", RoleNeeded: "write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	row := question.Approval
	row.DecidedBy, row.Reason = "ada", "why"
	call := runner.PendingApproval{CallKey: "c", ArgumentHash: "h"}
	for state, want := range map[store.ApprovalState]runner.DecisionKind{
		store.ApprovalApproved: runner.DecisionApproved, store.ApprovalConsumed: runner.DecisionApproved,
		store.ApprovalRejected: runner.DecisionRejected, store.ApprovalExpired: runner.DecisionExpired,
		store.ApprovalPending: "", store.ApprovalSuperseded: "",
	} {
		row.State = state
		decision, decided := decisionOf(row, call)
		if decided != (want != "") || decided && (decision.Kind != want || decision.Approval != row.ID || decision.By != "ada") {
			t.Errorf("%s means %+v", state, decision)
		}
	}
	row.State = store.ApprovalApproved
	for what, other := range map[string]runner.PendingApproval{
		"another call": {CallKey: "d", ArgumentHash: "h"}, "other arguments": {CallKey: "c", ArgumentHash: "i"},
	} {
		if _, decided := decisionOf(row, other); decided {
			t.Errorf("the approval counts for %s", what)
		}
	}
	row.Record = []byte(strings.Replace(string(row.Record), `"kind":"git_push"`, `"kind":"delete_file"`, 1))
	if _, decided := decisionOf(row, call); decided {
		t.Error("a record that was changed counts")
	}
}

// pricedModel knows the price of some models.
type pricedModel struct {
	agents.Model
	known map[string]bool
}

func (m pricedModel) Priced(model agents.ModelRef) bool { return m.known[model.ID] }

// TestARepositoryDoesNotEscapeTheLimitOnCost by a model that nobody knows the
// price of.
func TestARepositoryDoesNotEscapeTheLimitOnCost(t *testing.T) {
	tester := agents.Agent{ID: "tester", Name: "Tester"}
	for _, test := range []struct {
		known        map[string]bool
		wish, chosen string
		notice       string
	}{
		{map[string]bool{"": true, "cheap": true}, "cheap", "cheap", ""},
		{map[string]bool{"": true}, "", "", ""},
		{map[string]bool{"": true}, "dear", "", "`models.tester` names dear"},
		{nil, "dear", "dear", "the limit on cost cannot hold"},
	} {
		h := &hold{Conductor: &Conductor{Options: Options{Model: pricedModel{known: test.known}}}}
		h.config.Models = map[string]string{"tester": test.wish}
		tester.Model = h.chooseModel(tester)
		h.crew = map[string]agents.Agent{"tester": tester}
		h.noticePrices()
		if got := strings.Join(h.notices, "; "); tester.Model.ID != test.chosen || !strings.Contains(got, test.notice) || (test.notice == "") != (got == "") {
			t.Errorf("%q with %v: %q, %q", test.wish, test.known, tester.Model.ID, got)
		}
		tester.Model = agents.ModelRef{}
	}
}
