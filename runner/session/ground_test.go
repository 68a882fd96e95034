package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"handoff/gitops/fakegithub"
	"handoff/runner/outbox"
	"handoff/runner/store"
)

// A seal that is gone is a refusal and no riddle.
func TestAPushWithoutItsSealIsRefused(t *testing.T) {
	w := newWorld(t, aShop())
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	id := w.asked()
	w.works()
	row := w.question(id)
	row.ID = "another"
	_, err := w.conductor.Publish(t.Context(), store.Effect{Key: "push"}, row)
	if refused, ok := errors.AsType[*outbox.Refusal](err); !ok || !strings.Contains(refused.Reason, "not kept") {
		t.Errorf("got %v", err)
	}
}

// What was approved is checked again at the push, and nothing else is pushed.
func TestWhatNoLongerHoldsIsNotPushed(t *testing.T) {
	reasons := map[string]string{
		"role lost": "the role write is needed", "archived": "archived", "record changed": "record", "another decider": "may not decide",
		"taken back": "taken back", "expired": "expired", "issue closed": "issue #1 was closed", "issue locked": "issue #1 was locked",
		"a higher role is asked for": "the role admin is needed", "another person is asked for": "somebody else than mona",
		"rules that nobody understands": "has faults now", "history rewritten": "the history of main was rewritten",
		"thumb taken back": "mona has taken the 👍 back", "thumb down beside it": "mona rejects it", "thumb down behind a crowd": "mona rejects it", "prompt deleted": "the prompt was deleted",
	}
	for what, change := range map[string]func(w *world, row *store.Approval){
		"role lost":       func(w *world, _ *store.Approval) { w.ok(w.github.SetRole(owner+"/"+name, "mona", fakegithub.RoleRead)) },
		"archived":        func(w *world, _ *store.Approval) { w.ok(w.github.ArchiveRepository(owner + "/" + name)) },
		"record changed":  func(_ *world, row *store.Approval) { row.Record = []byte(`{"kind":"git_push"}`) },
		"another decider": func(_ *world, row *store.Approval) { row.DecidedByID = 12345 },
		"taken back": func(w *world, row *store.Approval) {
			_, err := w.store.SupersedeApprovals(w.Context(), row.SessionID, "stopped")
			w.ok(err)
		},
		"expired":      func(w *world, _ *store.Approval) { w.clock.Advance(73 * time.Hour) },
		"issue closed": func(w *world, _ *store.Approval) { w.ok(w.github.As("mona").CloseIssue(owner+"/"+name, 1)) },
		"issue locked": func(w *world, _ *store.Approval) { w.ok(w.github.As("mona").LockIssue(owner+"/"+name, 1)) },
		"a higher role is asked for": func(w *world, _ *store.Approval) {
			w.commits("main", ".github/handoff.yml", rules+"approval:\n  role: admin\n")
		},
		"another person is asked for": func(w *world, _ *store.Approval) {
			w.commits("main", ".github/handoff.yml", rules+"approval:\n  require_other: true\n")
		},
		"rules that nobody understands": func(w *world, _ *store.Approval) { w.commits("main", ".github/handoff.yml", "approval: [\n") },
		"history rewritten":             func(w *world, _ *store.Approval) { w.commits(w.first, "README.md", "Another shop.\n") },
		"thumb taken back": func(w *world, row *store.Approval) {
			row.DecidedVia = store.ViaReaction
			w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "+1"))
			w.ok(w.github.As("mona").Unreact(owner+"/"+name, row.PromptCommentID, "+1"))
		},
		"thumb down beside it": func(w *world, row *store.Approval) {
			row.DecidedVia = store.ViaReaction
			w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "+1"))
			w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "-1"))
		},
		"thumb down behind a crowd": func(w *world, row *store.Approval) {
			row.DecidedVia = store.ViaReaction
			w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "+1"))
			for i := range maxThumbs {
				login := fmt.Sprintf("eve%d", i)
				_, err := w.github.AddUser(fakegithub.UserSpec{Login: login})
				w.ok(err)
				w.ok(w.github.As(login).React(owner+"/"+name, row.PromptCommentID, "-1"))
			}
			w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "-1"))
		},
		"prompt deleted": func(_ *world, row *store.Approval) {
			row.DecidedVia, row.PromptCommentID = store.ViaReaction, 12345
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, aShop())
			repository, _ := w.github.State().Repository(owner + "/" + name)
			w.first = repository.Branches["main"]
			w.commits("main", "NEWS.md", "We have moved.\n")
			w.writes("greeting.txt", "hello\n")
			w.pushes()
			id := w.asked()
			w.sends(func() { w.works(); w.approves(id) })
			row := w.question(id)
			change(w, &row)
			_, err := w.conductor.Publish(t.Context(), store.Effect{Key: "push", SessionID: id}, row)
			if refused, ok := errors.AsType[*outbox.Refusal](err); !ok || reasons[what] == "" || !strings.Contains(refused.Reason, reasons[what]) {
				t.Errorf("got %v", err)
			}
			repository, _ = w.github.State().Repository(owner + "/" + name)
			if len(repository.Branches) != 1 {
				t.Errorf("the branches are %v", repository.Branches)
			}
		})
	}
}

// commits puts a file onto the default branch, which begins at from: its name,
// or the commit to which it is forced before.
func (w *world) commits(from, path, content string) {
	w.Helper()
	if from == "main" {
		from = ""
	}
	_, err := w.github.Commit(fakegithub.CommitSpec{
		Repository: owner + "/" + name, Branch: "main", From: from, Author: "mona", Message: "Change " + path,
		Files: map[string]string{path: content},
	})
	w.ok(err)
}

// What changes on the ground and leaves the approval's reasons alone does not
// stop the push: a default branch that moves on, laxer rules, a stranger's thumb
// down.
func TestWhatStillHoldsIsPushed(t *testing.T) {
	w := newWorld(t, aShop())
	_, err := w.github.AddUser(fakegithub.UserSpec{Login: "eve"})
	w.ok(err)
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	row := w.question(id)
	row.DecidedVia = store.ViaReaction
	w.ok(w.github.As("mona").React(owner+"/"+name, row.PromptCommentID, "+1"))
	w.ok(w.github.As("eve").React(owner+"/"+name, row.PromptCommentID, "-1"))
	w.commits("main", ".github/handoff.yml", "test: sh tests.sh\n")
	pushed, err := w.conductor.Publish(t.Context(), store.Effect{Key: "push", SessionID: id}, row)
	w.ok(err)
	if pushed.Commit != row.Commit {
		t.Errorf("pushed %s", pushed.Commit)
	}
}

// The same push again is the same push, also when the approver has left since:
// what arrived has arrived.
func TestAPushThatArrivedStaysArrived(t *testing.T) {
	w := newWorld(t, aShop())
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	effect := store.Effect{Key: "push", SessionID: id}
	first, err := w.conductor.Publish(t.Context(), effect, w.question(id))
	w.ok(err)
	w.ok(w.github.SetRole(owner+"/"+name, "mona", fakegithub.RoleRead))
	again, err := w.conductor.Publish(t.Context(), effect, w.question(id))
	w.ok(err)
	if again.Commit != first.Commit {
		t.Errorf("pushed %s, then %s", first.Commit, again.Commit)
	}
	// Another effect cannot use the approval.
	if _, err := w.conductor.Publish(t.Context(), store.Effect{Key: "second push", SessionID: id}, w.question(id)); err == nil {
		t.Error("an approval was used twice")
	}
}
