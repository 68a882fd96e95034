package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// What the process that lives a session is told: its database, the file that
// stands for the world outside, and at which point of a transaction it kills
// itself, counted from its start.
const (
	lifeVariable  = "HANDOFF_STORE_LIFE"
	worldVariable = "HANDOFF_STORE_WORLD"
	deathVariable = "HANDOFF_STORE_DEATH"
)

// TestLifeChild is no test: it is the process of TestKilledAnywhereInALife. It
// does what there is to do until the session has ended, and can be started again
// after any death.
func TestLifeChild(t *testing.T) {
	url := os.Getenv(lifeVariable)
	if url == "" {
		t.Skip("only runs as the process that another test starts")
	}
	s, err := store.Open(t.Context(), url, store.Options{NowExpression: storetest.NowExpression})
	if err != nil {
		t.Fatal(err)
	}
	death, _ := strconv.Atoi(os.Getenv(deathVariable))
	s.SetHook(func(string) {
		if death--; death == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	life := &life{T: t, store: s, outside: os.Getenv(worldVariable)}
	life.ok(deliver(t, s))
	life.node, err = s.Register(t.Context(), "life")
	life.ok(err)
	for !life.over() {
		life.route()
		life.work()
		life.send()
	}
}

// deliver brings the delivery, again and again, as GitHub would.
func deliver(t *testing.T, s *store.Store) error {
	_, err := s.PutDelivery(t.Context(), store.Delivery{GUID: "g", InstallationID: 7, Body: []byte("{}")}, []store.Command{
		{Key: "k", RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 1, ActorLogin: "ann", Verb: "task"}})
	return err
}

type life struct {
	*testing.T
	store   *store.Store
	node    *store.Node
	outside string
}

func (l *life) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *life) over() bool {
	session, err := l.store.LastSession(l.Context(), 1, 1)
	return err == nil && session.State.Ended()
}

// route makes the command a session.
func (l *life) route() {
	command, err := l.store.ClaimCommand(l.Context(), l.node)
	if errors.Is(err, store.ErrNone) {
		return
	}
	l.ok(err)
	l.ok(l.store.RouteCommand(l.Context(), l.node, command.ID, store.Routing{State: store.CommandRouted,
		Session: &store.Session{InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 1}}))
}

// work takes the session one step on: intent and effect, pause, end.
func (l *life) work() {
	lease, err := l.store.Acquire(l.Context(), l.node, store.Caps{})
	if errors.Is(err, store.ErrNone) {
		return
	}
	l.ok(err)
	records, err := lease.Load(l.Context(), 1)
	l.ok(err)
	switch len(records) {
	case 0:
		_, err := lease.Append(l.Context(), runner.Batch{Records: []runner.Record{intent("call")},
			Effects: []agents.EffectRequest{request("push")}})
		l.ok(err)
		fallthrough
	case 1:
		l.ok(lease.Suspend(l.Context(), store.Suspension{State: store.StatePublishing}))
	default:
		l.ok(lease.Finish(l.Context(), store.Ending{State: store.StateCompleted, Batch: notes("the end")}))
	}
}

// send pushes once: a line in the file is what GitHub would have.
func (l *life) send() {
	effect, reconcile, err := l.store.ClaimEffect(l.Context(), l.node)
	if errors.Is(err, store.ErrNone) {
		return
	}
	l.ok(err)
	have, err := os.ReadFile(l.outside)
	l.ok(err)
	if !reconcile || !strings.Contains(string(have), effect.Key) {
		l.ok(os.WriteFile(l.outside, append(have, effect.Key+"\n"...), 0o600))
	}
	outcome := runner.Record{RunID: "run-1", Kind: runner.RecordToolOutcome, Payload: json.RawMessage(`{"call":"call"}`)}
	l.ok(l.store.EndEffect(l.Context(), l.node, effect, store.EffectEnd{State: store.EffectDone,
		Records: []runner.Record{outcome}, WakeSession: true}))
}

// TestKilledAnywhereInALife lives a session from its delivery to its end, killed
// at each point of each transaction in turn and started again. However often it
// is told, the world outside sees one push, and the journal reads the same.
func TestKilledAnywhereInALife(t *testing.T) {
	step := 7
	if os.Getenv("CI") == "true" {
		step = 1
	}
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			var died int
			for death := 1; ; death += step {
				if !livesThrough(t, engine, death) {
					break
				}
				died++
			}
			if died < 3 {
				t.Errorf("the process died at %d points only", died)
			}
		})
	}
}

// livesThrough lives one life with one death and says whether it came to that.
func livesThrough(t *testing.T, engine string, death int) (died bool) {
	t.Helper()
	url := storetest.URL(t, engine)
	w := &world{T: t, url: url, clock: storetest.NewClock(t, url)}
	options := w.clock.Options()
	options.Mode = store.ModeShare
	w.store = w.openWith(options)
	outside := filepath.Join(t.TempDir(), "outside")
	w.ok(os.WriteFile(outside, nil, 0o600))
	live := func(death int) error {
		command := exec.Command(os.Args[0], "-test.run=^TestLifeChild$", "-test.timeout=1m")
		command.Env = append(os.Environ(), lifeVariable+"="+url, worldVariable+"="+outside,
			fmt.Sprintf("%s=%d", deathVariable, death))
		output, err := command.CombinedOutput()
		if err != nil && err.Error() != "signal: killed" {
			t.Fatalf("death %d: %v\n%s", death, err, output)
		}
		return err
	}
	if died = live(death) != nil; died {
		w.dies()
		w.ok(live(0))
	}

	pushed, err := os.ReadFile(outside)
	w.ok(err)
	w.equal(string(pushed), "push\n")
	session, err := w.store.LastSession(w.Context(), 1, 1)
	w.ok(err)
	w.equal(session.State, store.StateCompleted)
	var kinds []runner.RecordKind
	for _, record := range w.gapless(session.ID) {
		kinds = append(kinds, record.Kind)
	}
	if !slices.Equal(kinds, []runner.RecordKind{runner.RecordToolIntent, runner.RecordToolOutcome, runner.RecordNoteAdded}) {
		t.Fatalf("death %d: the journal reads %v", death, kinds)
	}
	sessions, err := w.store.Sessions(w.Context(), store.SessionFilter{}, 10)
	w.ok(err)
	w.equal(len(sessions), 1)
	return died
}
