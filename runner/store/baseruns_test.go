package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"handoff/runner"
	"handoff/runner/store"
)

// claims asks for a base run and says what came back: a result, "mine", or
// "wait".
func (w *world) claims(lease *store.Lease, commit, recipe string) string {
	w.Helper()
	run, err := lease.ClaimBaseRun(w.Context(), commit, recipe)
	w.ok(err)
	switch {
	case run.Mine:
		return "mine"
	case run.Result == nil:
		return "wait"
	}
	return string(run.Result)
}

func (w *world) keeps(lease *store.Lease, commit, recipe, result string) {
	w.Helper()
	w.ok(lease.KeepBaseRun(w.Context(), commit, recipe, json.RawMessage(result)))
}

func TestABaseIsTestedOnceForAllSessions(t *testing.T) {
	inEachWorld(t, func(w *world) {
		elsewhere := w.another()
		w.session(1)
		w.session(2)
		first := w.acquire(w.node("one"))
		second, err := elsewhere.Acquire(w.Context(), w.nodeOf(elsewhere, "two"), store.Caps{})
		w.ok(err)
		none, err := first.BaseRun(w.Context(), "c1", "go test")
		w.ok(err)
		w.equal(none == nil, true)
		w.equal(w.claims(first, "c1", "go test"), "mine")
		w.equal(w.claims(first, "c1", "go test"), "mine")
		w.equal(w.claims(second, "c1", "go test"), "wait")
		w.equal(w.claims(second, "c2", "go test"), "mine")
		w.equal(w.claims(second, "c1", "make"), "mine")
		w.keeps(first, "c1", "go test", `[{"outcome":"passed"}]`)
		for _, lease := range []*store.Lease{first, second} {
			w.equal(w.claims(lease, "c1", "go test"), `[{"outcome":"passed"}]`)
			kept, err := lease.BaseRun(w.Context(), "c1", "go test")
			w.ok(err)
			w.equal(string(kept), `[{"outcome":"passed"}]`)
		}
	})
}

func TestOfManyThatAskAtOnceOneTestsTheBase(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("one")
		var leases []*store.Lease
		for issue := range 8 {
			w.session(issue + 1)
			leases = append(leases, w.acquire(node))
		}
		var mine atomic.Int32
		var wait sync.WaitGroup
		for _, lease := range leases {
			wait.Go(func() {
				run, err := lease.ClaimBaseRun(t.Context(), "c1", "make")
				if err != nil {
					w.Error(err)
				}
				if run.Mine {
					mine.Add(1)
				}
			})
		}
		wait.Wait()
		w.equal(mine.Load(), 1)
	})
}

func TestNothingIsKnownAboutTheBaseOfAnotherInstallation(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("one")
		w.sessionOf(7, 1)
		ours := w.acquire(node)
		w.keeps(ours, "c1", "make", `[1]`)
		w.sessionOf(8, 2)
		w.equal(w.claims(w.acquire(node), "c1", "make"), "mine")
	})
}

// Whoever has claimed the run and is gone holds up nobody.
func TestAClaimEndsWithItsSessionsLease(t *testing.T) {
	for what, gone := range map[string]func(*world, *store.Lease){
		"died":        func(w *world, _ *store.Lease) { w.dies() },
		"finished":    func(w *world, lease *store.Lease) { w.finish(lease) },
		"suspended":   func(w *world, lease *store.Lease) { w.suspend(lease) },
		"was retried": func(w *world, lease *store.Lease) { w.ok(lease.Retry(w.Context(), w.clock.Now().Add(time.Hour), "")) },
	} {
		t.Run(what, func(t *testing.T) {
			inEachWorld(t, func(w *world) {
				node := w.node("one")
				w.session(1)
				lost := w.acquire(node)
				w.equal(w.claims(lost, "c1", "make"), "mine")
				gone(w, lost)
				w.session(2)
				next := w.node("two")
				second := w.acquire(next)
				if what == "died" {
					// Its own session comes first, under a new fence.
					w.equal(second.Session().Issue, 1)
				}
				w.equal(w.claims(second, "c1", "make"), "mine")
				w.fails(lost.KeepBaseRun(w.Context(), "c1", "make", json.RawMessage(`["zombie"]`)), runner.ErrFenced)
				w.keeps(second, "c1", "make", `[1]`)
				w.equal(w.claims(second, "c1", "make"), "[1]")
			})
		})
	}
}

func TestOldBaseRunsAreForgotten(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		lease := w.acquire(w.node("one"))
		w.keeps(lease, "old", "make", `[1]`)
		w.clock.Advance(10 * time.Second)
		w.keeps(lease, "new", "make", `[2]`)
		removed, err := w.store.ForgetBaseRuns(w.Context(), 5*time.Second)
		w.ok(err)
		w.equal(removed, 1)
		w.equal(w.claims(lease, "old", "make"), "mine")
		w.equal(w.claims(lease, "new", "make"), "[2]")
	})
}

// A result may hold what tests print: it comes back as it was.
func TestABaseRunComesBackAsItWas(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		lease := w.acquire(w.node("one"))
		result, err := json.Marshal([]string{"a\x00b", "'; DROP TABLE base_runs; --", fmt.Sprintf("%0300d", 1), "✖ \u202e"})
		w.ok(err)
		w.keeps(lease, "c1", "make", string(result))
		w.equal(w.claims(lease, "c1", "make"), string(result))
	})
}
