package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
	"handoff/gitops/secrets"
	"handoff/runner/approval"
	"handoff/runner/intake"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
	"handoff/runner/verdict"
	"handoff/sandbox"
)

// A counter is a driver that remembers which sandboxes were made.
type counter struct {
	sandbox.Driver
	mu   sync.Mutex
	made []string
}

func (c *counter) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, spec.ID)
	return c.Driver.Create(ctx, spec)
}

// count is how many sandboxes were made for a purpose.
func (c *counter) count(purpose string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.made {
		if strings.HasSuffix(id, "-"+purpose) {
			n++
		}
	}
	return n
}

// counts puts a counter around a conductor's driver.
func counts(c *Conductor) *counter {
	counting := &counter{Driver: c.Sandbox}
	c.Sandbox = counting
	return counting
}

// verified lets the crew write a file and ask for a push, on a node, and returns
// what people are shown of the tests.
func (w *world) verified(conductor *Conductor, path, content string) approval.Verification {
	w.Helper()
	var shown *approval.Verification
	conductor.OnQuestion = func(_ store.Approval, prompt approval.Prompt) { shown = &prompt.Verification }
	w.writes(path, content)
	w.pushes()
	id := w.asked()
	w.works(conductor)
	w.is(id, store.StateAwaitingApproval)
	// The lane is free for the next session.
	_, err := w.store.Cancel(w.Context(), id, "mona")
	w.ok(err)
	w.works(conductor)
	w.is(id, store.StateCancelled)
	if shown == nil {
		w.Fatal("nobody was asked")
	}
	return *shown
}

// tested is a shop with a script for tests.
func tested(script string) map[string]string {
	files := aShop()
	files["tests.sh"] = script
	return files
}

// once fails when it is run first in a session, and never again. The folder
// that the runs of a session share is none that a real sandbox would let it see.
const once = "if [ ! -e ../../seen ]; then : > ../../seen; echo 'FAIL: sometimes'; exit 1; fi\n"

func TestFailuresOfTheSealedCommitAreToldApart(t *testing.T) {
	oldFails := "echo 'FAIL: old'; [ -e broken ] && echo 'FAIL: new'; exit 1\n"
	for what, test := range map[string]struct {
		script string
		want   verdict.Verdict
		// runs are how often the sealed commit and the base were tested.
		sealed, base int
	}{
		"they pass": {"exit 0\n", verdict.Verdict{Outcome: verdict.Passed, Runs: 1, Base: verdict.BaseUnknown}, 1, 0},
		"a new failure": {
			"if [ -e broken ]; then echo 'FAIL: new'; exit 1; fi\n",
			verdict.Verdict{Outcome: verdict.Failed, ExitCode: 1, Runs: 2, ByName: true, Base: verdict.BasePasses, New: []string{"new"}}, 2, 1,
		},
		"a failure that was there before": {
			oldFails,
			verdict.Verdict{Outcome: verdict.Failed, ExitCode: 1, Runs: 2, ByName: true, Base: verdict.BaseFails, New: []string{"new"}, Old: []string{"old"}}, 2, 2,
		},
		"a flaky test": {
			once,
			verdict.Verdict{Outcome: verdict.Flaky, ExitCode: 1, Runs: 2, ByName: true, Base: verdict.BaseUnknown, Flaky: []string{"sometimes"}}, 2, 0,
		},
		"a flaky test and a new failure": {
			once + "if [ -e broken ]; then echo 'FAIL: new'; exit 3; fi\n",
			// The second run fails elsewhere, so neither fails every time.
			verdict.Verdict{Outcome: verdict.Failed, ExitCode: 1, Runs: 2, ByName: true, Base: verdict.BasePasses, Flaky: []string{"sometimes", "new"}}, 2, 1,
		},
		"no names": {
			"[ ! -e broken ]\n",
			verdict.Verdict{Outcome: verdict.Failed, ExitCode: 1, Runs: 2, Base: verdict.BasePasses}, 2, 1,
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, tested(test.script))
			made := counts(w.conductor)
			got := w.verified(w.conductor, "broken", "x\n")
			if diff := cmp.Diff(test.want, got.Verdict); diff != "" {
				t.Error(diff)
			}
			if made.count("sealed") != test.sealed || made.count("base") != test.base {
				t.Errorf("the sealed commit was tested %d times and the base %d times", made.count("sealed"), made.count("base"))
			}
		})
	}
}

// What a limit ends, and a setup that fails, are results of their own: nothing
// is run again for them, and nothing of the base is kept.
func TestWhatDoesNotEndByItselfIsSaidAsItIs(t *testing.T) {
	for what, test := range map[string]struct {
		file, command string
		want          verdict.Outcome
		detail        string
	}{
		"no time":  {"tests.sh", "sleep 60", verdict.TimedOut, ""},
		"no end":   {"tests.sh", "exec yes", verdict.Limited, ""},
		"no setup": {"setup.sh", "exit 7", verdict.SetupFailed, "exit code 7"},
	} {
		t.Run(what, func(t *testing.T) {
			files := aShop()
			files[test.file] = "if [ -e broken ]; then " + test.command + "; fi\n"
			w := newWorld(t, files)
			if test.want == verdict.TimedOut {
				w.conductor.Operator.Timeout = 3 * time.Second // which the setup has as well
			}
			made := counts(w.conductor)
			got := w.verified(w.conductor, "broken", "x\n").Verdict
			if got.Outcome != test.want || got.Detail == "" || test.detail != "" && got.Detail != test.detail {
				t.Errorf("%+v", got)
			}
			if made.count("sealed") != 1 || made.count("base") != 0 {
				t.Errorf("the sealed commit was tested %d times and the base %d times", made.count("sealed"), made.count("base"))
			}
		})
	}
}

// The base is tested once, whichever session needs it and on whichever node.
func TestABaseIsTestedOnceForAllNodes(t *testing.T) {
	w := newWorld(t, tested("echo 'FAIL: old'; exit 1\n"))
	here, elsewhere := w.conductor, w.newConductor()
	madeHere, madeThere := counts(here), counts(elsewhere)
	for _, conductor := range []*Conductor{here, elsewhere, here} {
		got := w.verified(conductor, "greeting.txt", "hello\n").Verdict
		if diff := cmp.Diff([]string{"old"}, got.Old); diff != "" || got.New != nil {
			t.Errorf("%+v", got)
		}
	}
	if madeHere.count("base") != 2 || madeThere.count("base") != 0 {
		t.Errorf("the base was tested %d times here and %d times elsewhere, want once, and once more because it failed",
			madeHere.count("base"), madeThere.count("base"))
	}
	// Another command is another question.
	other := &hold{Conductor: here, config: repoconfig.Config{Test: []string{"sh other.sh"}}}
	recipe, err := other.recipe(t.Context())
	w.ok(err)
	if same := w.recipe(); same == recipe {
		t.Error("two test commands have one recipe")
	}
}

// What a check found out about the base is known to the sessions after it.
func TestACheckTestsTheBaseForOthersToo(t *testing.T) {
	w := newWorld(t, tested("[ ! -e broken ]\n"))
	made := counts(w.conductor)
	id := w.asked(agents.Variables{intake.VariableErrand: intake.ErrandCheck})
	w.works()
	w.is(id, store.StateCompleted)
	got := w.verified(w.conductor, "broken", "x\n").Verdict
	if made.count("base") != 1 || got.Base != verdict.BasePasses {
		t.Errorf("the base was tested %d times: %+v", made.count("base"), got)
	}
}

// recipe is that of the shop's rules on the world's node.
func (w *world) recipe() string {
	w.Helper()
	file, faults := repoconfig.Parse([]byte(rules))
	if len(faults) > 0 {
		w.Fatal(faults)
	}
	config, _ := w.conductor.Operator.Resolve(file)
	recipe, err := (&hold{Conductor: w.conductor, config: config}).recipe(w.Context())
	w.ok(err)
	return recipe
}

// A session that needs what another is about to find out waits for it.
func TestASessionWaitsForTheTestsOfItsBase(t *testing.T) {
	w := newWorld(t, tested("echo 'FAIL: old'; exit 1\n"))
	repository, _ := w.github.State().Repository(owner + "/" + name)
	base := repository.Branches["main"]
	_, err := w.github.As("mona").CreateIssue(owner+"/"+name, "Another", "")
	w.ok(err)
	other := store.Session{InstallationID: w.installation, RepositoryID: w.repository, Owner: owner, Repository: name, Issue: 2, RequesterID: w.person, RequesterLogin: "mona"}
	w.ok(w.store.CreateSession(t.Context(), &other))
	lease, err := w.store.Acquire(t.Context(), w.node, store.Caps{})
	w.ok(err)
	claim, err := lease.ClaimBaseRun(t.Context(), base, w.recipe())
	w.ok(err)
	if !claim.Mine {
		t.Fatalf("%+v", claim)
	}
	made := counts(w.conductor)
	waits := make(chan struct{})
	var said sync.Once
	w.conductor.OnDoing = func(_, _, what string) {
		if strings.Contains(what, "waiting for the tests of the base") {
			said.Do(func() { close(waits) })
		}
	}
	var kept sync.WaitGroup
	kept.Go(func() {
		<-waits
		result, _ := json.Marshal([]verdict.Run{{Outcome: verdict.Passed}})
		if err := lease.KeepBaseRun(t.Context(), base, w.recipe(), result); err != nil {
			t.Error(err)
		}
	})
	got := w.verified(w.conductor, "greeting.txt", "hello\n").Verdict
	kept.Wait()
	if made.count("base") != 0 || got.Base != verdict.BasePasses {
		t.Errorf("the base was tested %d times: %+v", made.count("base"), got)
	}
}

// A secret that a test prints as a name does not reach anybody.
func TestNamesOfTestsHoldNoSecrets(t *testing.T) {
	const secret = "the-host-knows-this-0123456789"
	w := newWorld(t, tested("echo 'FAIL: with '$(echo "+base64.StdEncoding.EncodeToString([]byte(secret))+" | base64 -d); exit 1\n"))
	w.conductor.Scanner = secrets.New(secret)
	got := w.verified(w.conductor, "greeting.txt", "hello\n")
	if len(got.Verdict.Old) != 1 || strings.Contains(got.Verdict.Old[0], secret) || strings.Contains(got.Output, secret) {
		t.Errorf("%+v", got)
	}
}
