package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"handoff/runner"
	"handoff/runner/store"
)

func TestOneActiveSessionOfAnIssueUnderFourNodes(t *testing.T) {
	inEachWorld(t, func(w *world) {
		const sessions = 12
		for range sessions {
			w.session(1)
		}
		var active, done atomic.Int32
		var wait sync.WaitGroup
		for range 4 {
			node := w.node("n")
			wait.Go(func() {
				for done.Load() < sessions {
					lease, err := w.store.Acquire(w.Context(), node, store.Caps{})
					if errors.Is(err, store.ErrNone) {
						continue
					}
					if err != nil {
						w.Error(err)
						return
					}
					if active.Add(1) != 1 {
						w.Error("two sessions of one issue are held at the same time")
					}
					if _, err := lease.Append(w.Context(), notes("work")); err != nil {
						w.Error(err)
					}
					active.Add(-1)
					if err := lease.Finish(w.Context(), store.Ending{State: store.StateCompleted}); err != nil {
						w.Error(err)
						return
					}
					done.Add(1)
				}
			})
		}
		wait.Wait()
	})
}

func TestFollowUpsRunInOrderHoweverTheFirstOneEnds(t *testing.T) {
	endings := map[string]func(w *world, node *store.Node, id string){
		"finished": func(w *world, node *store.Node, id string) { w.finish(w.acquire(node)) },
		"failed": func(w *world, node *store.Node, id string) {
			w.ok(w.acquire(node).Finish(w.Context(), store.Ending{State: store.StateFailed, Code: "LLM_ERROR"}))
		},
		"cancelled before it began": func(w *world, node *store.Node, id string) {
			session, err := w.store.Cancel(w.Context(), id, "ann")
			w.ok(err)
			w.equal(session.State, store.StateCancelled)
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			inEachWorld(t, func(w *world) {
				first, second, third := w.session(1), w.session(1), w.session(1)
				active, err := w.store.ActiveSession(w.Context(), 1, 1)
				w.ok(err)
				w.equal(active.ID, first)
				node := w.node("a")
				end(w, node, first)
				lease := w.acquire(node)
				w.equal(lease.Session().ID, second)
				w.idle(node)
				w.finish(lease)
				w.equal(w.acquire(node).Session().ID, third)
			})
		})
	}
}

func TestSessionThatKillsItsNodesIsGivenUpAndTheNextGoesOn(t *testing.T) {
	inEachWorld(t, func(w *world) {
		deadly, next := w.session(1), w.session(1)
		var attempts int
		for {
			node := w.node("doomed")
			lease := w.acquire(node)
			if lease.Session().ID == next {
				break
			}
			attempts++
			w.equal(lease.Session().Attempts, attempts)
			w.equal(lease.Exhausted(), attempts > store.MaxAttempts)
			w.dies()
		}
		session := w.load(deadly)
		w.equal(session.State, store.StateFailed)
		w.equal(session.Code, store.CodeAttempts)
		if attempts <= store.MaxAttempts {
			w.Fatalf("given up after %d attempts, before any holder was told", attempts)
		}
	})
}

func TestPauseGivesTheAttemptsBack(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		w.acquire(w.node("dies"))
		w.dies()
		node := w.node("a")
		lease := w.acquire(node)
		w.equal(lease.Session().Attempts, 2)
		w.suspend(lease)
		w.ok(w.store.Wake(w.Context(), id))
		w.equal(w.acquire(node).Session().Attempts, 1)
	})
}

func TestRetryWaitsAndCounts(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		node := w.node("a")
		w.ok(w.acquire(node).Retry(w.Context(), w.clock.Now().Add(5*time.Second), "GitHub is down"))
		w.idle(node)
		w.clock.Advance(6 * time.Second)
		w.ok(node.Beat(w.Context()))
		lease := w.acquire(node)
		w.equal(lease.Session().Attempts, 2)
		w.ok(lease.Retry(w.Context(), time.Time{}, "at once"))
		w.equal(w.acquire(node).Session().Attempts, 3)
	})
}

func TestCancelledQueuedSessionNeverRuns(t *testing.T) {
	inEachWorld(t, func(w *world) {
		first, second := w.session(1), w.session(1)
		_, err := w.store.Cancel(w.Context(), second, "ann")
		w.ok(err)
		node := w.node("a")
		lease := w.acquire(node)
		w.equal(lease.Session().ID, first)
		w.finish(lease)
		w.idle(node)
		w.equal(w.load(second).State, store.StateCancelled)
	})
}

func TestCancelAgainstAcquire(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		for issue := range 30 {
			id := w.session(issue)
			var lease *store.Lease
			var wait sync.WaitGroup
			wait.Go(func() {
				var err error
				if lease, err = w.store.Acquire(w.Context(), node, store.Caps{}); err != nil && !errors.Is(err, store.ErrNone) {
					w.Error(err)
				}
			})
			wait.Go(func() {
				if _, err := w.store.Cancel(w.Context(), id, "ann"); err != nil {
					w.Error(err)
				}
			})
			wait.Wait()
			session := w.load(id)
			w.equal(session.CancelRequested, true)
			w.equal(session.State == store.StateCancelled, lease == nil)
			if lease != nil {
				w.ok(lease.Finish(w.Context(), store.Ending{State: store.StateCancelled}))
			}
		}
	})
}

func TestCancelIsSeenByTheHolderAndWakesASleeper(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		changed, stop := w.store.Notify(store.TopicSessions)
		defer stop()
		_, err := w.store.Cancel(w.Context(), id, "ann")
		w.ok(err)
		<-changed
		requested, by, err := lease.CancelRequested(w.Context())
		w.ok(err)
		w.equal(requested, true)
		w.equal(by, "ann")
		// It pauses before it has looked: it is ready again at once.
		w.suspend(lease)
		lease = w.acquire(node)
		w.equal(lease.Session().CancelBy, "ann")
		w.ok(lease.Finish(w.Context(), store.Ending{State: store.StateCancelled}))

		sleeper := w.session(2)
		w.suspend(w.acquire(node))
		w.idle(node)
		_, err = w.store.Cancel(w.Context(), sleeper, "bob")
		w.ok(err)
		w.equal(w.acquire(node).Session().ID, sleeper)
	})
}

func TestCancelOfAnUnknownOrEndedSession(t *testing.T) {
	inEachWorld(t, func(w *world) {
		_, err := w.store.Cancel(w.Context(), "nobody", "ann")
		w.fails(err, store.ErrNotFound)
		id := w.session(1)
		w.finish(w.acquire(w.node("a")))
		session, err := w.store.Cancel(w.Context(), id, "ann")
		w.ok(err)
		w.equal(session.State, store.StateCompleted)
		w.equal(session.CancelRequested, false)
	})
}

func TestCapsAreExactUnderSixteenAcquirers(t *testing.T) {
	for name, caps := range map[string]store.Caps{"all": {Global: 3}, "installation": {PerInstallation: 3}} {
		t.Run(name, func(t *testing.T) {
			inEachWorld(t, func(w *world) {
				for issue := range 16 {
					w.session(issue)
				}
				node := w.node("a")
				var held atomic.Int32
				var wait sync.WaitGroup
				for range 16 {
					wait.Go(func() {
						_, err := w.store.Acquire(w.Context(), node, caps)
						if err == nil {
							held.Add(1)
						} else if !errors.Is(err, store.ErrNone) {
							w.Error(err)
						}
					})
				}
				wait.Wait()
				w.equal(held.Load(), 3)
			})
		})
	}
}

func TestOrphanIsTakenOverAtTheCap(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		w.acquire(w.node("dies"))
		w.session(2)
		w.dies()
		lease, err := w.store.Acquire(w.Context(), w.node("b"), store.Caps{Global: 1})
		w.ok(err)
		w.equal(lease.Session().ID, id)
	})
}

func TestCappedInstallationDoesNotStarveOthers(t *testing.T) {
	inEachWorld(t, func(w *world) {
		for issue := range 5 {
			w.sessionOf(1, issue)
		}
		other := w.sessionOf(2, 99)
		node := w.node("a")
		caps := store.Caps{PerInstallation: 1}
		first, err := w.store.Acquire(w.Context(), node, caps)
		w.ok(err)
		w.equal(first.Session().InstallationID, 1)
		second, err := w.store.Acquire(w.Context(), node, caps)
		w.ok(err)
		w.equal(second.Session().ID, other)
		_, err = w.store.Acquire(w.Context(), node, caps)
		w.fails(err, store.ErrNone)
	})
}

func TestPauseFreesTheSlotAndKeepsTheLane(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		w.session(1)
		other := w.session(2)
		node := w.node("a")
		caps := store.Caps{Global: 1}
		lease, err := w.store.Acquire(w.Context(), node, caps)
		w.ok(err)
		_, err = w.store.Acquire(w.Context(), node, caps)
		w.fails(err, store.ErrNone)
		w.suspend(lease)
		lease, err = w.store.Acquire(w.Context(), node, caps)
		w.ok(err)
		w.equal(lease.Session().ID, other)
		w.finish(lease)
		w.idle(node) // The second one of issue 1 still waits behind the pause.
	})
}

func TestTimerIsNotEarly(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		at := w.clock.Now().Add(10 * time.Second)
		w.ok(w.acquire(node).Suspend(w.Context(), store.Suspension{State: store.StateSuspended, WakeAt: at}))
		w.equal(w.load(id).WakeAt, at)
		w.clock.Advance(10*time.Second - time.Millisecond)
		w.ok(node.Beat(w.Context()))
		w.idle(node)
		w.clock.Advance(time.Millisecond)
		lease := w.acquire(node)
		w.equal(lease.Session().ID, id)
		w.equal(lease.Session().State, store.StateSuspended)
	})
}

func TestWakeDuringARunIsRememberedOnce(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		w.ok(w.store.Wake(w.Context(), id))
		w.suspend(lease)
		lease = w.acquire(node)
		w.suspend(lease)
		w.idle(node)
		w.ok(w.store.Wake(w.Context(), id))
		w.acquire(node)
	})
}

func TestDrainedNodeKeepsWhatItHoldsAndTakesNothing(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		w.session(2)
		w.comment(3, "task")
		node := w.node("a")
		lease := w.acquire(node)
		w.ok(node.Drain(w.Context()))
		w.idle(node)
		_, err := w.store.ClaimCommand(w.Context(), node)
		w.fails(err, store.ErrNone)
		w.put(effect("k", "x"))
		w.nothingToSend(node)
		w.ok(node.Beat(w.Context()))
		_, err = lease.Append(w.Context(), notes("still mine"))
		w.ok(err)
		w.ok(node.Leave(w.Context()))
		<-node.Lost()
		_, err = lease.Append(w.Context(), notes("no longer"))
		w.fails(err, runner.ErrFenced)
		w.equal(w.acquire(w.node("b")).Session().ID, id)
	})
}

func TestActiveTimeLeavesWaitingOut(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		w.clock.Advance(3 * time.Second)
		w.equal(w.load(id).ActiveMillis, 3000)
		w.suspend(lease)
		w.clock.Advance(7 * time.Second)
		w.ok(node.Beat(w.Context()))
		w.ok(w.store.Wake(w.Context(), id))
		lease = w.acquire(node)
		w.clock.Advance(2 * time.Second)
		w.finish(lease)
		w.clock.Advance(time.Hour)
		w.equal(w.load(id).ActiveMillis, 5000)
	})
}

func TestPrefixOfAnIDNamesOneSession(t *testing.T) {
	inEachWorld(t, func(w *world) {
		for issue, id := range []string{"0199aaaa-0001", "0199aaaa-0002", "0199bbbb-0001"} {
			w.ok(w.store.CreateSession(w.Context(), &store.Session{ID: id, InstallationID: 7, RepositoryID: 1, Issue: issue + 1}))
		}
		for prefix, want := range map[string]string{"0199bbbb-0001": "0199bbbb-0001", "0199B": "0199bbbb-0001", "0199aaaa-0002": "0199aaaa-0002"} {
			found, err := w.store.SessionByPrefix(w.Context(), prefix)
			w.ok(err)
			w.equal(found.ID, want)
		}
		for prefix, want := range map[string]error{
			"": store.ErrNotFound, "019": store.ErrNotFound, "0199%": store.ErrNotFound, "____": store.ErrNotFound, "0200": store.ErrNotFound,
			"0199": store.ErrAmbiguous, "0199aaaa-000": store.ErrAmbiguous,
		} {
			_, err := w.store.SessionByPrefix(w.Context(), prefix)
			w.fails(err, want)
		}
	})
}
