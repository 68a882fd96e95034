package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

func TestExpiredNodeLosesItsSessions(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("dies"))
		_, err := lease.Append(w.Context(), notes("one", "two"))
		w.ok(err)
		w.dies()
		taken := w.acquire(w.node("b"))
		w.equal(taken.Session().ID, id)
		w.equal(taken.Session().Fence, lease.Session().Fence+1)
		w.equal(taken.Session().NextSeq, 3)
		first, err := taken.Append(w.Context(), notes("three"))
		w.ok(err)
		w.equal(first, 3)
		records := w.gapless(id)
		w.equal(records[2].Epoch, 2)
		w.equal(records[1].Epoch, 1)
	})
}

func TestLiveNodeNeverLosesItsSessions(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		node, rival := w.node("a"), w.node("b")
		lease := w.acquire(node)
		for range 20 {
			w.clock.Advance(store.BeatInterval)
			w.ok(node.Beat(w.Context()))
			w.ok(rival.Beat(w.Context()))
			w.idle(rival)
		}
		_, err := lease.Append(w.Context(), notes("still here"))
		w.ok(err)
	})
}

func TestExpiredNodeCannotRenew(t *testing.T) {
	inEachWorld(t, func(w *world) {
		// By its own clock, which has stopped at the deadline…
		node := w.node("a")
		w.clock.Advance(store.NodeTTL - store.NodeMargin)
		w.equal(node.Alive(), false)
		w.fails(node.Beat(w.Context()), store.ErrNodeExpired)
		// …and by the database's, though the node has slept and thinks otherwise.
		node = w.node("b")
		w.clock.AdvanceDatabase(store.NodeTTL)
		w.equal(node.Alive(), true)
		w.fails(node.Beat(w.Context()), store.ErrNodeExpired)
		w.equal(node.Alive(), false)
		<-node.Lost()
	})
}

// zombie acquires a session whose node then sleeps through its own end, by a
// process clock that stood still, while another node takes over.
func (w *world) zombie(issue int) (zombie, successor *store.Lease) {
	w.Helper()
	w.session(issue)
	zombie = w.acquire(w.node("zombie"))
	w.clock.AdvanceDatabase(store.NodeTTL)
	return zombie, w.acquire(w.node("successor"))
}

func TestZombieWritesNothing(t *testing.T) {
	ctx := t.Context()
	writes := map[string]func(lease *store.Lease) error{
		"append": func(l *store.Lease) error {
			_, err := l.Append(ctx, runner.Batch{Records: []runner.Record{intent("c")}, ActiveAgent: "tester",
				Effects: []agents.EffectRequest{request("zombie")}})
			return err
		},
		"state":   func(l *store.Lease) error { return l.SetState(ctx, store.StatePublishing, "") },
		"agents":  func(l *store.Lease) error { return l.RecordAgents(ctx, map[string]string{"tester": "v1"}) },
		"effects": func(l *store.Lease) error { return l.PutEffects(ctx, []store.Effect{effect("zombie", "x")}) },
		"latest":  func(l *store.Lease) error { return l.PutLatest(ctx, effect("zombie", "x")) },
		"suspend": func(l *store.Lease) error {
			return l.Suspend(ctx, store.Suspension{State: store.StateSuspended, Batch: notes("x"),
				Approvals: []store.Approval{{CallKey: "c", Digest: "0123456789"}}})
		},
		"retry":  func(l *store.Lease) error { return l.Retry(ctx, time.Time{}, "x") },
		"finish": func(l *store.Lease) error { return l.Finish(ctx, store.Ending{State: store.StateFailed}) },
		"artifact": func(l *store.Lease) error {
			_, err := l.PutArtifact(ctx, store.Artifact{Name: "x"})
			return err
		},
	}
	inEachWorld(t, func(w *world) {
		zombie, successor := w.zombie(1)
		before := w.load(successor.Session().ID)
		for name, write := range writes {
			if err := write(zombie); !errors.Is(err, runner.ErrFenced) {
				w.Errorf("%s: got %v, want it fenced", name, err)
			}
		}
		id := successor.Session().ID
		w.equal(w.load(id), before)
		w.equal(len(w.gapless(id)), 0)
		effects, err := w.store.EffectsOfSession(w.Context(), id)
		w.ok(err)
		w.equal(len(effects), 0)
		approvals, err := w.store.ApprovalsOfSession(w.Context(), id)
		w.ok(err)
		w.equal(len(approvals), 0)
		w.finish(successor)
		_, err = successor.Append(w.Context(), notes("after the end"))
		w.fails(err, runner.ErrFenced)
	})
}

// A node stalls between the guard and the commit for longer than its lease. The
// take-over must wait for that commit or make it fail; it may never read a
// journal to which something is added afterwards.
func TestStallBetweenGuardAndCommit(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("stalls"))
		guarded, resume := make(chan struct{}), make(chan struct{})
		var once sync.Once
		w.store.SetHook(func(point string) {
			if point == "guarded" {
				once.Do(func() { close(guarded); <-resume })
			}
		})
		var appended error
		var wait sync.WaitGroup
		wait.Go(func() { _, appended = lease.Append(w.Context(), notes("late")) })
		<-guarded

		other := w.another()
		var taken *store.Lease
		wait.Go(func() {
			// On SQLite even the test's clock waits for the writer.
			w.clock.AdvanceDatabase(store.NodeTTL)
			node, err := other.Register(context.WithoutCancel(w.Context()), "successor")
			if err != nil {
				w.Error(err)
				return
			}
			if taken, err = other.Acquire(w.Context(), node, store.Caps{}); err != nil {
				w.Error(err)
			}
		})
		// Long enough for the successor to run into the lock. If it has not yet,
		// the test is only weaker.
		time.Sleep(50 * time.Millisecond)
		close(resume)
		wait.Wait()
		if w.Failed() {
			return
		}
		records := w.gapless(id)
		w.equal(taken.Session().NextSeq, len(records)+1)
		w.equal(appended == nil, len(records) == 1)
	})
}

// A node freezes in the middle of a transaction and does not come back for as long
// as anybody waits: Postgres gives its locks away, and what it wakes up to write
// is refused.
func TestFrozenTransactionDoesNotHoldUpTheTakeOver(t *testing.T) {
	url := storetest.URL(t, storetest.Postgres)
	clock := storetest.NewClock(t, url)
	// The store's own patience is ten seconds, which a test does not have.
	impatient := url + "&idle_in_transaction_session_timeout=200"
	w := &world{T: t, url: url, clock: clock, store: storetest.OpenURL(t, impatient, clock.Options())}
	id := w.session(1)
	lease := w.acquire(w.node("freezes"))
	frozen, thaw := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.store.SetHook(func(point string) {
		if point == "committing" {
			once.Do(func() { close(frozen); <-thaw })
		}
	})
	var appended error
	var wait sync.WaitGroup
	wait.Go(func() { _, appended = lease.Append(w.Context(), notes("too late")) })
	<-frozen
	clock.AdvanceDatabase(store.NodeTTL)
	w.store = w.another()
	w.equal(w.acquire(w.node("successor")).Session().ID, id)
	close(thaw)
	wait.Wait()
	if appended == nil {
		t.Error("the frozen node believes that it has written")
	}
	w.equal(len(w.gapless(id)), 0)
}

func TestNodesClocksDoNotMatter(t *testing.T) {
	inEachWorld(t, func(w *world) {
		options := w.clock.Options()
		for _, skew := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
			options.Mode = store.ModeShare
			options.Clock = func() time.Time { return w.clock.Now().Add(skew) }
			skewed := w.openWith(options)
			id := w.session(1)
			node := w.nodeOf(skewed, "skewed")
			lease, err := skewed.Acquire(w.Context(), node, store.Caps{})
			w.ok(err)
			w.equal(lease.Session().ID, id)
			w.clock.Advance(store.BeatInterval)
			w.ok(node.Beat(w.Context()))
			_, err = lease.Append(w.Context(), notes("x"))
			w.ok(err)
			w.equal(w.gapless(id)[0].Time, w.clock.Now())
			w.equal(skewed.Now(), w.clock.Now())
			w.ok(lease.Finish(w.Context(), store.Ending{State: store.StateCompleted}))
		}
	})
}

func TestDatabaseLostMidBeat(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.ok(w.store.Close())
		if err := node.Beat(w.Context()); err == nil || errors.Is(err, store.ErrNodeExpired) {
			w.Fatalf("got %v, want the database's own fault", err)
		}
		w.equal(node.Alive(), true)
		w.clockOnly(store.NodeTTL - store.NodeMargin)
		w.equal(node.Alive(), false)
		w.fails(node.Keep(w.Context()), store.ErrNodeExpired)
	})
}

func TestKeepEndsWithItsContext(t *testing.T) {
	inEachWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		w.ok(w.node("a").Keep(ctx))
	})
}

func TestServerThatComesBackTakesOverAtOnce(t *testing.T) {
	w := onSQLite(t)
	id := w.session(1)
	w.acquire(w.node("before"))
	w.ok(w.store.Close())
	w.store = w.openWith(w.clock.Options())
	w.equal(w.acquire(w.node("after")).Session().ID, id)
	// A second node of the same process is no successor.
	w.idle(w.node("beside"))
}

func TestBatchIsWrittenWholeOrNotAtAll(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		_, err := w.store.PutEffect(w.Context(), effect("taken", "x"))
		w.ok(err)
		_, err = lease.Append(w.Context(), runner.Batch{Records: []runner.Record{intent("call"), note("x")},
			Effects: []agents.EffectRequest{request("fine"), request("taken")}, ActiveAgent: "tester",
			Usage: agents.Usage{Requests: 1, Total: 5}})
		w.fails(err, store.ErrDuplicate)
		w.equal(len(w.gapless(id)), 0)
		_, err = w.store.EffectByKey(w.Context(), "fine")
		w.fails(err, store.ErrNotFound)
		session := w.load(id)
		w.equal(session.ActiveAgent+session.Node, lease.Session().Node)
		w.equal(session.NextSeq, 1)
		w.equal(session.Usage, agents.Usage{})
		// The lease's own view did not move either.
		w.equal(lease.Session().ActiveAgent, "")
		w.equal(lease.Session().NextSeq, 1)
	})
}

func TestBatchCarriesEverything(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		_, err := lease.Append(w.Context(), runner.Batch{
			Records: []runner.Record{intent("run-1/3/0"), note("x")}, Effects: []agents.EffectRequest{request("push")},
			ActiveAgent: "tester", Variables: agents.Variables{"branch": "copilot/x", "plan": "1"},
			Usage: agents.Usage{Requests: 2, Input: 10, Output: 5, Total: 15, CostMicros: 7, CostUnknown: true,
				Entries: []agents.UsageEntry{{Attempt: 1, Agent: "tester", Total: 6}, {Attempt: 2, Agent: "tester", Total: 9}}},
		})
		w.ok(err)
		_, err = lease.Append(w.Context(), runner.Batch{Variables: agents.Variables{"plan": "2"},
			Usage: agents.Usage{Requests: 1, Total: 1, Entries: []agents.UsageEntry{{Attempt: 1, Agent: "copilot", Total: 1}}}})
		w.ok(err)
		for _, session := range []store.Session{w.load(id), lease.Session()} {
			w.equal(session.ActiveAgent, "tester")
			w.equal(session.Variables, agents.Variables{"branch": "copilot/x", "plan": "2"})
			w.equal(session.Usage.Requests, 3)
			w.equal(session.Usage.Total, 16)
			w.equal(session.Usage.CostUnknown, true)
			w.equal(session.NextSeq, 3)
		}
		push, err := w.store.EffectByKey(w.Context(), "push")
		w.ok(err)
		w.equal(push.CallKey, "run-1/3/0")
		w.equal(push.SessionID, id)
		w.equal(push.Owner+"/"+push.Repository, "acme/shop")
		sums, err := w.store.UsageByAgent(w.Context(), id)
		w.ok(err)
		w.equal(sums["tester"].Total, 15)
		w.equal(sums["copilot"].Total, 1)
		sum, err := w.store.Usage(w.Context(), store.UsageFilter{InstallationID: 7, RequesterID: 5, Since: w.clock.Now()})
		w.ok(err)
		w.equal(sum.Requests, 3)
		sum, err = w.store.Usage(w.Context(), store.UsageFilter{Since: w.clock.Now().Add(time.Second)})
		w.ok(err)
		w.equal(sum.Requests, 0)
	})
}

func TestTwoIntentsCannotShareEffects(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.session(1)
		lease := w.acquire(w.node("a"))
		_, err := lease.Append(w.Context(), runner.Batch{Records: []runner.Record{intent("a"), intent("b")},
			Effects: []agents.EffectRequest{request("push")}})
		if err == nil {
			w.Fatal("nobody can tell which call the effect belongs to")
		}
	})
}

func TestConcurrentAppendsAreGapless(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 5 {
					if _, err := lease.Append(w.Context(), notes("a", "b", "c")); err != nil {
						w.Error(err)
					}
				}
			})
		}
		wait.Wait()
		w.equal(len(w.gapless(id)), 8*5*3)
	})
}

func TestLongBatchIsSplitInsideOnly(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		var batch runner.Batch
		for i := range 173 {
			payload, _ := json.Marshal(i)
			batch.Records = append(batch.Records, runner.Record{RunID: "r", Kind: runner.RecordNoteAdded, Payload: payload})
		}
		_, err := lease.Append(w.Context(), batch)
		w.ok(err)
		records := w.gapless(id)
		w.equal(len(records), 173)
		for i, record := range records {
			payload, _ := json.Marshal(i)
			w.equal(string(record.Payload), string(payload))
		}
		tail, err := lease.Load(w.Context(), 170)
		w.ok(err)
		w.equal(len(tail), 4)
	})
}

func TestCheckpointCanBeRestoredOrIsRefused(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		none, err := lease.Checkpoint(w.Context())
		w.ok(err)
		w.equal(none == nil, true)
		// The ids that git hash-object gives to "hello\n" and to nothing.
		hello, empty := "ce013625030ba8dba906f756967f9e9ca394464a", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
		checkpoint := &runner.Checkpoint{Base: "b", Tree: "t", Changes: []runner.CheckpointChange{
			{Path: "a", Mode: "100644", Blob: hello}, {Path: "b", Mode: "100755", Blob: empty}, {Path: "gone"}},
			Blobs: map[string][]byte{hello: []byte("hello\n")}}
		_, err = lease.Append(w.Context(), runner.Batch{Checkpoint: checkpoint})
		w.fails(err, store.ErrMissingBlob)
		missing, err := lease.MissingBlobs(w.Context(), []string{hello, empty})
		w.ok(err)
		w.equal(missing, []string{hello, empty})

		checkpoint.Blobs[empty] = nil
		_, err = lease.Append(w.Context(), runner.Batch{Checkpoint: checkpoint})
		w.ok(err)
		checkpoint.Blobs = nil
		checkpoint.Tree = "t2"
		_, err = lease.Append(w.Context(), runner.Batch{Records: notes("x").Records, Checkpoint: checkpoint})
		w.ok(err)
		loaded, err := w.store.Checkpoint(w.Context(), id)
		w.ok(err)
		w.equal(*loaded, *checkpoint)
		content, err := lease.Blob(w.Context(), hello)
		w.ok(err)
		w.equal(string(content), "hello\n")
		content, err = lease.Blob(w.Context(), empty)
		w.ok(err)
		w.equal(len(content), 0)
		_, err = w.store.Blob(w.Context(), 8, hello)
		w.fails(err, store.ErrNotFound) // Another installation's.

		checkpoint.Blobs = map[string][]byte{hello: []byte("forged\n")}
		if _, err = lease.Append(w.Context(), runner.Batch{Checkpoint: checkpoint}); err == nil {
			w.Fatal("contents under another's id were stored")
		}
	})
}

func TestArtifacts(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		first, err := lease.PutArtifact(w.Context(), store.Artifact{Name: "changes.patch", MediaType: "text/x-diff", Body: []byte("old")})
		w.ok(err)
		again, err := lease.PutArtifact(w.Context(), store.Artifact{Name: "changes.patch", MediaType: "text/x-diff", Body: []byte("newer")})
		w.ok(err)
		w.equal(again, first)
		artifact, err := w.store.Artifact(w.Context(), first)
		w.ok(err)
		w.equal(string(artifact.Body), "newer")
		list, err := w.store.Artifacts(w.Context(), id)
		w.ok(err)
		w.equal(len(list), 1)
		w.equal(list[0].Size, 5)
		w.equal(len(list[0].Body), 0)
		_, err = w.store.Artifact(w.Context(), "nothing")
		w.fails(err, store.ErrNotFound)
	})
}

// TestJournal holds the lease to the contract that it shares with the journals of
// others.
func TestJournal(t *testing.T) {
	inEachWorld(t, func(w *world) {
		var issue int
		runner.TestJournal(w.T, func(t *testing.T) (runner.Journal, func(*testing.T) runner.Journal) {
			issue++
			id := w.session(issue)
			take := func() runner.Journal {
				w.dies()
				lease := w.acquire(w.node("next"))
				for lease.Session().ID != id {
					// Orphans of the tests before.
					w.finish(lease)
					lease = w.acquire(w.node("next"))
				}
				return lease
			}
			return take(), func(*testing.T) runner.Journal { return take() }
		})
	})
}
