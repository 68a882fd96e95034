package store_test

import (
	"context"
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

// liveOnce does what there is to do until the session has ended. It can be
// started again after any death.
func liveOnce(ctx context.Context, url string) error {
	s, err := store.Open(ctx, url, store.Options{NowExpression: storetest.NowExpression})
	if err != nil {
		return err
	}
	death, _ := strconv.Atoi(os.Getenv(deathVariable))
	s.SetHook(func(string) {
		if death--; death == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	// The delivery comes again and again, as GitHub's may.
	_, err = s.PutDelivery(ctx, store.Delivery{GUID: "g", InstallationID: 7, Body: []byte("{}")}, []store.Command{
		{Key: "k", RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 1, ActorLogin: "ann", Verb: "task"}})
	if err != nil {
		return err
	}
	node, err := s.Register(ctx, "life")
	if err != nil {
		return err
	}
	l := &life{store: s, node: node, outside: os.Getenv(worldVariable)}
	for {
		for _, step := range []func(context.Context) error{l.route, l.work, l.send} {
			if err := step(ctx); err != nil && !errors.Is(err, store.ErrNone) {
				return err
			}
		}
		session, err := s.LastSession(ctx, 1, 1)
		if err != nil || session.State.Ended() {
			return err
		}
	}
}

type life struct {
	store   *store.Store
	node    *store.Node
	outside string
}

// route makes the command a session.
func (l *life) route(ctx context.Context) error {
	command, err := l.store.ClaimCommand(ctx, l.node)
	if err != nil {
		return err
	}
	return l.store.RouteCommand(ctx, l.node, command.ID, store.Routing{State: store.CommandRouted,
		Session: &store.Session{InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 1}})
}

// work takes the session one step on: intent and effect, pause, end.
func (l *life) work(ctx context.Context) error {
	lease, err := l.store.Acquire(ctx, l.node, store.Caps{})
	if err != nil {
		return err
	}
	records, err := lease.Load(ctx, 1)
	if err != nil {
		return err
	}
	if len(records) > 1 {
		return lease.Finish(ctx, store.Ending{State: store.StateCompleted, Batch: notes("the end")})
	}
	if len(records) == 0 {
		_, err := lease.Append(ctx, runner.Batch{Records: []runner.Record{intent("call")},
			Effects: []agents.EffectRequest{request("push")}})
		if err != nil {
			return err
		}
	}
	return lease.Suspend(ctx, store.Suspension{State: store.StatePublishing})
}

// send pushes once: a line in the file is what GitHub would have.
func (l *life) send(ctx context.Context) error {
	effect, reconcile, err := l.store.ClaimEffect(ctx, l.node)
	if err != nil {
		return err
	}
	have, err := os.ReadFile(l.outside)
	if err != nil {
		return err
	}
	if !reconcile || !strings.Contains(string(have), effect.Key) {
		if err := os.WriteFile(l.outside, append(have, effect.Key+"\n"...), 0o600); err != nil {
			return err
		}
	}
	outcome := runner.Record{RunID: "run-1", Kind: runner.RecordToolOutcome, Payload: json.RawMessage(`{"call":"call"}`)}
	return l.store.EndEffect(ctx, l.node, effect, store.EffectEnd{State: store.EffectDone,
		Records: []runner.Record{outcome}, WakeSession: true})
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
		command := exec.CommandContext(t.Context(), os.Args[0])
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
