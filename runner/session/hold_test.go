package session

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"handoff/agents"
	"handoff/gitops/secrets"
	"handoff/runner/approval"
	"handoff/runner/intake"
	"handoff/runner/store"
)

// rules of a repository whose setup and tests are its own scripts.
const rules = "setup: sh setup.sh\ntest: sh tests.sh\n"

func aShop() map[string]string {
	return map[string]string{
		".github/handoff.yml": rules, "README.md": "A shop.\n", "go.mod": "module shop\n",
		"setup.sh": "echo from-the-base >> \"$XDG_CACHE_HOME/made\"\n", "tests.sh": "exit 0\n",
	}
}

// The whole of it: the crew writes, a person approves, another node pushes.
func TestAnApprovedCommitIsPushedFromAnyNode(t *testing.T) {
	for where, elsewhere := range map[string]bool{"the same node": false, "another node": true} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t, aShop())
			w.writes("greeting.txt", "hello\n")
			w.pushes()
			id := w.asked()
			w.sends(func() { w.works(); w.approves(id) })
			row := w.question(id)
			conductor := w.conductor
			if elsewhere {
				conductor = w.newConductor()
				w.outbox.Publisher = conductor
			}
			w.sends(func() { w.works(conductor) })
			w.is(id, store.StateCompleted)
			branch := strings.TrimPrefix(row.TargetRef, "refs/heads/")
			files, err := w.github.CommitFiles(owner+"/"+name, branch)
			w.ok(err)
			repository, _ := w.github.State().Repository(owner + "/" + name)
			if files["greeting.txt"] != "hello\n" || repository.Branches[branch] != row.Commit {
				t.Errorf("the branch is at %s with %q, approved was %s", repository.Branches[branch], files["greeting.txt"], row.Commit)
			}
			w.leavesNothing(conductor)
		})
	}
}

// leavesNothing checks that no workspace is left on a node.
func (w *world) leavesNothing(conductor *Conductor) {
	w.Helper()
	left, err := os.ReadDir(filepath.Join(conductor.DataDir, "ws"))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	if len(left) != 0 {
		w.Errorf("%d workspaces are left, such as %s", len(left), left[0].Name())
	}
}

// Two approved pushes of one session, the second from a node that has seen
// neither.
func TestASecondPushGoesOnTopOfTheFirst(t *testing.T) {
	w := newWorld(t, aShop())
	id := w.askedForTwoPushes()
	w.sends(func() { w.works(); w.approves(id) })
	first := w.question(id)
	w.sends(func() { w.works(); w.approves(id) })
	second := w.question(id)
	w.outbox.Publisher = w.newConductor()
	w.sends(func() { w.works() })
	w.is(id, store.StateCompleted)
	repository, _ := w.github.State().Repository(owner + "/" + name)
	branch := strings.TrimPrefix(second.TargetRef, "refs/heads/")
	if first.TargetRef != second.TargetRef || second.ExpectedRemote != first.Commit || repository.Branches[branch] != second.Commit {
		t.Errorf("the branch is at %s, the second push was %s onto %s", repository.Branches[branch], second.Commit, second.ExpectedRemote)
	}
}

// A retry begins with the work of the session before. Its setup must not: what
// it leaves in the caches is for everybody.
func TestTheSetupNeverRunsCodeThatNobodyApproved(t *testing.T) {
	w := newWorld(t, aShop())
	w.calls("read_file", map[string]any{"path": "setup.sh"})
	w.writes("setup.sh", "echo poison >> \"$XDG_CACHE_HOME/made\"\n")
	w.writes("greeting.txt", "hello\n")
	first := w.asked()
	w.works()
	w.is(first, store.StateCompleted)

	conductor := w.newConductor()
	conductor.SetupDir = w.TempDir()
	w.pushes()
	second := w.asked(agents.Variables{intake.VariableRetryOf: first})
	w.works(conductor)
	w.is(second, store.StateAwaitingApproval)
	caches, err := filepath.Glob(filepath.Join(conductor.SetupDir, "*", "*", "*", "made"))
	w.ok(err)
	if len(caches) != 1 || strings.Contains(read(t, caches[0]), "poison") {
		t.Errorf("the caches are %q", caches)
	}
	// The work itself is still there, and its own setup ran on the sealed commit
	// with a copy.
	if seal, err := conductor.loadSeal(t.Context(), w.question(second)); err != nil || len(seal.Sealed.Files) != 2 {
		t.Errorf("sealed were %d files, %v", len(seal.Sealed.Files), err)
	}
}

// Secrets are found where a diff shows nothing, and stop the push with file and
// rule before anybody is asked.
func TestSecretsAreFoundWhereTheDiffShowsNothing(t *testing.T) {
	const canary = "canary-Kq7vT2mXw9RzB4nYc6Hd8Lp3"
	for what, command := range map[string]string{
		"binary":       "printf 'a\\000b" + canary + "' > loot.bin",
		"encoded":      "printf 'x\\000%s' '" + base64.StdEncoding.EncodeToString([]byte(canary)) + "' > loot.bin",
		"in a link":    "ln -s " + canary + " loot.bin",
		"in its name":  "touch loot.bin " + canary,
		"shown plain":  "echo " + canary + " > loot.bin",
		"and nothing":  "",
		"not a secret": "printf 'a\\000b' > loot.bin",
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, map[string]string{"README.md": "A shop.\n", "make.sh": command + "\n"})
			w.conductor.Scanner = secrets.New(canary)
			w.writes("greeting.txt", "hello\n")
			w.calls("run_command", map[string]any{"command": "sh make.sh"})
			w.pushes()
			id := w.asked()
			w.works()
			if what == "and nothing" || what == "not a secret" {
				w.is(id, store.StateAwaitingApproval)
				return
			}
			w.is(id, store.StateCompleted)
			records, err := w.store.Records(t.Context(), id, 1)
			w.ok(err)
			said := false
			for _, record := range records {
				said = said || strings.Contains(string(record.Payload), "looks like secrets")
				if strings.Contains(string(record.Payload), canary) {
					t.Errorf("the journal holds the canary: %s", record.Payload)
				}
			}
			if !said {
				t.Error("the crew was not told why nothing was pushed")
			}
		})
	}
}

// Nobody can decide about a prompt that cannot be shown: the session ends at
// once and says so.
func TestALostPromptEndsTheSession(t *testing.T) {
	w := newWorld(t, aShop())
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	id := w.asked()
	w.works()
	w.is(id, store.StateAwaitingApproval)
	for {
		effect, _, err := w.store.ClaimEffect(t.Context(), w.node)
		w.ok(err)
		end := store.EffectEnd{State: store.EffectDone, Result: []byte(`{"comment_id":1}`)}
		if effect.Key == approval.PromptKey(w.question(id)) {
			end = store.EffectEnd{State: store.EffectFailed, Error: "The issue is locked.", WakeSession: true}
		}
		w.ok(w.store.EndEffect(t.Context(), w.node, effect, end))
		if end.WakeSession {
			break
		}
	}
	w.works()
	session := w.is(id, store.StateFailed)
	if session.Code != "PROMPT" || !strings.Contains(session.Reason, "The issue is locked.") {
		t.Errorf("it ended as %s: %s", session.Code, session.Reason)
	}
}

// A damaged workspace is made anew from the checkpoint.
func TestADamagedWorkspaceIsRebuilt(t *testing.T) {
	for what, damage := range map[string]func(dir string) error{
		"description cut off": func(dir string) error { return os.Truncate(filepath.Join(dir, "meta", "workspace.json"), 10) },
		"description gone":    func(dir string) error { return os.Remove(filepath.Join(dir, "meta", "workspace.json")) },
		"index cut off":       func(dir string) error { return os.Truncate(filepath.Join(dir, "meta", "index"), 5) },
		"files gone":          func(dir string) error { return os.RemoveAll(filepath.Join(dir, "tree")) },
		"objects gone":        func(dir string) error { return os.RemoveAll(filepath.Join(dir, "meta", "objects")) },
		"all gone":            os.RemoveAll,
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, aShop())
			w.writes("greeting.txt", "hello\n")
			w.pushes()
			id := w.asked()
			w.sends(func() { w.works(); w.approves(id) })
			w.ok(damage(w.conductor.workspaceDir(id)))
			w.sends(func() { w.works() })
			w.is(id, store.StateCompleted)
			row := w.question(id)
			repository, _ := w.github.State().Repository(owner + "/" + name)
			if repository.Branches[strings.TrimPrefix(row.TargetRef, "refs/heads/")] != row.Commit {
				t.Errorf("the branches are %v", repository.Branches)
			}
		})
	}
}

// One decision of two does not ask the other again.
func TestTwoQuestionsAreDecidedOneByOne(t *testing.T) {
	w := newWorld(t, map[string]string{"README.md": "A shop.\n", "a.txt": "a\n", "b.txt": "b\n"})
	w.script = []agents.Response{{FinishReason: "tool_calls", ToolCalls: []agents.ToolCall{
		{ID: "1", Name: "delete_file", Arguments: `{"path":"a.txt"}`},
		{ID: "2", Name: "delete_file", Arguments: `{"path":"b.txt"}`},
	}}}
	id := w.asked()
	w.works()
	rows, err := w.store.ApprovalsOfSession(t.Context(), id)
	w.ok(err)
	if len(rows) != 2 {
		t.Fatalf("%d questions", len(rows))
	}
	_, err = w.store.Decide(t.Context(), rows[0].ID, store.Decision{State: store.ApprovalRejected, By: "mona", ByID: w.person, Via: "comment", Reason: "keep it"})
	w.ok(err)
	w.works()
	w.is(id, store.StateAwaitingApproval)
	after, err := w.store.ApprovalsOfSession(t.Context(), id)
	w.ok(err)
	if len(after) != 2 || after[1].State != store.ApprovalPending {
		t.Errorf("%d questions, the second %s", len(after), after[len(after)-1].State)
	}
	_, err = w.store.Decide(t.Context(), rows[1].ID, store.Decision{State: store.ApprovalRejected, By: "mona", ByID: w.person, Via: "comment"})
	w.ok(err)
	w.works()
	w.is(id, store.StateCompleted)
}

// The sweep takes what a crash left of sessions that are over, and nothing of
// those that are not.
func TestTheSweepTakesOnlyWhatIsOver(t *testing.T) {
	w := newWorld(t, aShop())
	over := w.asked()
	w.works()
	w.is(over, store.StateCompleted)
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	waiting := w.asked()
	w.works()
	old, fresh := filepath.Join(w.conductor.setupRoot(), "1", "2", "old"), filepath.Join(w.conductor.setupRoot(), "1", "2", "new")
	for _, dir := range []string{w.conductor.workspaceDir(over), w.conductor.workspaceDir("strange"), old, fresh} {
		write(t, filepath.Join(dir, "file"), "x")
	}
	long := time.Now().Add(-2 * setupAge)
	w.ok(os.Chtimes(old, long, long))
	w.conductor.sweepWorkspaces(t.Context())
	w.conductor.sweepSetups(t.Context())
	for dir, kept := range map[string]bool{
		w.conductor.workspaceDir(over): false, w.conductor.workspaceDir(waiting): true, w.conductor.workspaceDir("strange"): true, old: false, fresh: true,
	} {
		if _, err := os.Stat(dir); (err == nil) != kept {
			t.Errorf("%s: %v", filepath.Base(dir), err)
		}
	}
	w.ok(os.Chtimes(w.conductor.workspaceDir("strange"), long, long))
	w.conductor.sweepWorkspaces(t.Context())
	if _, err := os.Stat(w.conductor.workspaceDir("strange")); err == nil {
		t.Error("an old workspace without a session is kept")
	}
}

// Faults in the configuration are told with their line.
func TestFaultsInTheConfigurationAreTold(t *testing.T) {
	for content, want := range map[string]string{
		"test: [\n":               ".github/handoff.yml",
		"tset: go test ./...\n":   "tset",
		"approval: {role: god}\n": "role",
	} {
		w := newWorld(t, map[string]string{".github/handoff.yml": content})
		id := w.asked()
		w.works()
		session := w.is(id, store.StateFailed)
		if session.Code != "CONFIG" || !strings.Contains(session.Reason, want) {
			t.Errorf("%q: %s: %s", content, session.Code, session.Reason)
		}
	}
}

// A command that fills the workspace fails in words that the crew can act on; what
// there was before is kept, here and on another machine.
func TestChangesBeyondMeasureArePutBack(t *testing.T) {
	w := newWorld(t, aShop())
	w.writes("greeting.txt", "hello\n")
	w.calls("run_command", map[string]any{"command": "for i in 0 1 2 3 4 5 6 7 8 9 a b; do truncate -s 9M big$i; done; echo filled"})
	w.pushes()
	id := w.asked()
	w.sends(func() { w.works(); w.approves(id) })
	last := w.heard[len(w.heard)-1]
	if !strings.Contains(last, "cannot be kept: the changes have more than 104857600 bytes in all") || !strings.Contains(last, "filled") {
		t.Errorf("the model heard %q", last)
	}
	conductor := w.newConductor()
	w.outbox.Publisher = conductor
	w.sends(func() { w.works(conductor) })
	w.is(id, store.StateCompleted)
	row := w.question(id)
	files, err := w.github.CommitFiles(owner+"/"+name, strings.TrimPrefix(row.TargetRef, "refs/heads/"))
	if err != nil || files["greeting.txt"] != "hello\n" || len(files) != len(aShop())+1 {
		t.Errorf("pushed are %d files, %v", len(files), err)
	}
}
