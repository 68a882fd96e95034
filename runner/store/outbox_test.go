package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

func (w *world) put(e store.Effect) {
	w.Helper()
	_, err := w.store.PutEffect(w.Context(), e)
	w.ok(err)
}

func (w *world) claim(node *store.Node) store.Effect {
	w.Helper()
	claimed, reconcile, err := w.store.ClaimEffect(w.Context(), node)
	w.ok(err)
	w.equal(reconcile, false)
	return claimed
}

func (w *world) nothingToSend(node *store.Node) {
	w.Helper()
	claimed, _, err := w.store.ClaimEffect(w.Context(), node)
	if err == nil {
		w.Fatalf("claimed %s, want nothing", claimed.Key)
	}
	w.fails(err, store.ErrNone)
}

func (w *world) end(node *store.Node, e store.Effect, state store.EffectState) {
	w.Helper()
	w.ok(w.store.EndEffect(w.Context(), node, e, store.EffectEnd{State: state}))
}

func (w *world) effectState(key string) store.EffectState {
	w.Helper()
	e, err := w.store.EffectByKey(w.Context(), key)
	w.ok(err)
	return e.State
}

func TestKeyOfAnEffectIsUniqueForEver(t *testing.T) {
	inEachWorld(t, func(w *world) {
		stored, err := w.store.PutEffect(w.Context(), effect("k", "hello"))
		w.ok(err)
		w.equal(stored, true)
		stored, err = w.store.PutEffect(w.Context(), effect("k", "hello"))
		w.ok(err)
		w.equal(stored, false)
		_, err = w.store.PutEffect(w.Context(), effect("k", "other"))
		w.fails(err, store.ErrDuplicate)
		node := w.node("a")
		w.end(node, w.claim(node), store.EffectDone)
		stored, err = w.store.PutEffect(w.Context(), effect("k", "hello"))
		w.ok(err)
		w.equal(stored, false)
		w.nothingToSend(node)
	})
}

func TestEffectIsClaimedOnce(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.put(effect("k", "x"))
		var claims atomic.Int32
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				_, _, err := w.store.ClaimEffect(w.Context(), node)
				if err == nil {
					claims.Add(1)
				} else if !errors.Is(err, store.ErrNone) {
					w.Error(err)
				}
			})
		}
		wait.Wait()
		w.equal(claims.Load(), 1)
	})
}

func TestEffectWaitsForItsPredecessorAndItsTime(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		later := effect("later", "x")
		later.After = "first"
		w.put(later)
		timed := effect("timed", "x")
		timed.NotBefore = w.clock.Now().Add(time.Second)
		w.put(timed)
		w.nothingToSend(node)
		w.put(effect("first", "x"))
		first := w.claim(node)
		w.equal(first.Key, "first")
		w.nothingToSend(node)
		w.end(node, first, store.EffectDone)
		w.equal(w.claim(node).Key, "later")
		w.nothingToSend(node)
		w.clock.Advance(time.Second)
		w.equal(w.claim(node).Key, "timed")
	})
}

func TestWhatCannotBeSentAnyMoreEndsToo(t *testing.T) {
	for state, inherited := range map[store.EffectState]store.EffectState{
		store.EffectFailed:     store.EffectFailed,
		store.EffectUnknown:    store.EffectFailed,
		store.EffectSuperseded: store.EffectSuperseded,
	} {
		t.Run(string(state), func(t *testing.T) {
			inEachWorld(t, func(w *world) {
				node := w.node("a")
				for i, key := range []string{"a", "b", "c"} {
					e := effect(key, "x")
					if i > 0 {
						e.After = []string{"a", "b", "c"}[i-1]
					}
					w.put(e)
				}
				w.end(node, w.claim(node), state)
				w.equal(w.effectState("b"), inherited)
				w.equal(w.effectState("c"), inherited)
				// One that is written only now is in the same boat.
				late := effect("late", "x")
				late.After = "a"
				w.put(late)
				w.equal(w.effectState("late"), inherited)
				w.nothingToSend(node)
			})
		})
	}
}

func TestWriterQueueKeepsTokensForPeople(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		for i := range 20 {
			w.put(effect(fmt.Sprintf("result-%02d", i), "x"))
		}
		for i := range store.WriterBurst - store.WriterReserved {
			w.equal(w.claim(node).Key, fmt.Sprintf("result-%02d", i))
		}
		w.nothingToSend(node)
		for i := range 4 {
			eyes := effect(fmt.Sprintf("eyes-%d", i), "👀")
			eyes.Priority = 0
			w.put(eyes)
		}
		for i := range store.WriterReserved {
			w.equal(w.claim(node).Key, fmt.Sprintf("eyes-%d", i))
		}
		w.nothingToSend(node)
		// Another installation has a bucket of its own.
		other := effect("other", "x")
		other.InstallationID = 8
		w.put(other)
		w.equal(w.claim(node).Key, "other")
		// A token a second: the first goes to the reaction, then the reserve
		// fills before a result may go.
		w.clock.Advance(time.Second)
		w.equal(w.claim(node).Key, "eyes-3")
		w.clock.Advance(3 * time.Second)
		w.nothingToSend(node)
		w.clock.Advance(time.Second)
		w.equal(w.claim(node).Key, "result-07")
		w.nothingToSend(node)
	})
}

func TestBucketDoesNotOverflow(t *testing.T) {
	inEachWorld(t, func(w *world) {
		for i := range 20 {
			e := effect(fmt.Sprint(i), "x")
			e.Priority = 0
			w.put(e)
		}
		w.clock.Advance(time.Hour)
		node := w.node("a")
		for range store.WriterBurst {
			w.claim(node)
		}
		w.nothingToSend(node)
	})
}

func TestWithoutAServerThatLimitsNothingIsPaced(t *testing.T) {
	inEachWorld(t, func(w *world) {
		options := w.clock.Options()
		options.Mode, options.Unpaced = store.ModeShare, true
		unpaced := storetest.OpenURL(t, w.url, options)
		node := w.node("a")
		for i := range 3 * store.WriterBurst {
			w.put(effect(fmt.Sprintf("result-%02d", i), "x"))
		}
		for i := range 3 * store.WriterBurst {
			claimed, _, err := unpaced.ClaimEffect(w.Context(), node)
			w.ok(err)
			w.equal(claimed.Key, fmt.Sprintf("result-%02d", i))
		}
		_, _, err := unpaced.ClaimEffect(w.Context(), node)
		w.fails(err, store.ErrNone)
	})
}

func TestInstallationsTakeTurnsInTheOutbox(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		for _, key := range []string{"a1", "a2", "a3"} {
			w.put(effect(key, "x"))
		}
		other := effect("b1", "x")
		other.InstallationID = 8
		w.put(other)
		urgent := effect("a0", "x")
		urgent.Priority = 0
		w.put(urgent)
		var order []string
		for range 5 {
			order = append(order, w.claim(node).Key)
		}
		w.equal(order, []string{"a0", "b1", "a1", "a2", "a3"})
	})
}

func TestHalfSentEffectOfADeadNodeIsLookedUpFirst(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.put(effect("k", "x"))
		dead := w.node("dead")
		claimed := w.claim(dead)
		w.dies()
		alive := w.node("alive")
		again, reconcile, err := w.store.ClaimEffect(w.Context(), alive)
		w.ok(err)
		w.equal(reconcile, true)
		w.equal(again.Key, "k")
		err = w.store.EndEffect(w.Context(), dead, claimed, store.EffectEnd{State: store.EffectDone})
		w.fails(err, runner.ErrFenced)
		w.equal(w.effectState("k"), store.EffectSending)
		w.end(alive, again, store.EffectDone)
		w.equal(w.effectState("k"), store.EffectDone)
	})
}

func TestClaimRenewsTheLease(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node, rival := w.node("a"), w.node("b")
		w.clock.Advance(10 * time.Second)
		w.ok(rival.Beat(w.Context()))
		w.put(effect("k", "x"))
		w.claim(node)
		// The request may take its whole time, and the claim still stands.
		w.clock.Advance(store.CreationTimeout)
		w.nothingToSend(rival)
		w.equal(node.Alive(), true)
	})
}

func TestUnsureSenderAsksForAnotherLook(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.put(effect("unsure", "x"))
		claimed := w.claim(node)
		w.ok(w.store.EndEffect(w.Context(), node, claimed, store.EffectEnd{State: store.EffectSending,
			Error: "timeout", RetryAt: w.clock.Now().Add(time.Second)}))
		w.nothingToSend(node)
		w.clock.Advance(time.Second)
		again, reconcile, err := w.store.ClaimEffect(w.Context(), node)
		w.ok(err)
		w.equal(reconcile, true)
		// The first claim is over, though it was the same node's.
		err = w.store.EndEffect(w.Context(), node, claimed, store.EffectEnd{State: store.EffectDone})
		w.fails(err, runner.ErrFenced)
		w.ok(w.store.EndEffect(w.Context(), node, again, store.EffectEnd{State: store.EffectPending,
			RetryAt: w.clock.Now().Add(time.Second)}))
		w.nothingToSend(node)
		w.clock.Advance(time.Second)
		w.equal(w.claim(node).Attempts, 3)
	})
}

func TestProgressIsCoalesced(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		latest := func(text string) { w.Helper(); w.ok(w.store.PutLatest(w.Context(), effect("progress", text))) }
		body := func(e store.Effect) string {
			var payload struct{ Body string }
			w.ok(json.Unmarshal(e.Payload, &payload))
			return payload.Body
		}
		latest("1")
		latest("2")
		claimed := w.claim(node)
		w.equal(body(claimed), "2")
		w.equal(claimed.Version, 2)
		// Two more while it is being sent: the last one goes out next.
		latest("3")
		latest("4")
		w.nothingToSend(node)
		w.end(node, claimed, store.EffectDone)
		claimed = w.claim(node)
		w.equal(body(claimed), "4")
		w.end(node, claimed, store.EffectDone)
		w.nothingToSend(node)
		latest("4")
		w.nothingToSend(node) // Nothing new.
		latest("5")
		w.end(node, w.claim(node), store.EffectFailed)
		latest("6")
		claimed = w.claim(node)
		w.equal(body(claimed), "6")
		w.end(node, claimed, store.EffectSuperseded)
		latest("7")
		w.nothingToSend(node)
	})
}

func TestProgressKeepsItsDistance(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		e := effect("progress", "1")
		e.NotBefore = w.clock.Now().Add(5 * time.Second)
		w.ok(w.store.PutLatest(w.Context(), e))
		e = effect("progress", "2")
		e.NotBefore = w.clock.Now().Add(time.Second)
		w.ok(w.store.PutLatest(w.Context(), e))
		w.clock.Advance(4 * time.Second)
		w.nothingToSend(node)
		w.clock.Advance(time.Second)
		w.claim(node)
	})
}

func TestOutcomeAndEndOfAnEffectAreOneTransaction(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		_, err := lease.Append(w.Context(), runner.Batch{Records: []runner.Record{intent("call")},
			Effects: []agents.EffectRequest{request("push")}})
		w.ok(err)
		w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StatePublishing}))
		claimed := w.claim(node)
		w.equal(claimed.CallKey, "call")
		outcome := runner.Record{RunID: "run-1", Kind: runner.RecordToolOutcome, Payload: json.RawMessage(`{"call":"call"}`)}
		end := store.EffectEnd{State: store.EffectDone, Result: json.RawMessage(`{"sha":"abc"}`),
			Records: []runner.Record{outcome}, WakeSession: true, SessionState: store.StateRunning}
		forged := claimed
		forged.Attempts++
		w.fails(w.store.EndEffect(w.Context(), node, forged, end), runner.ErrFenced)
		w.equal(len(w.gapless(id)), 1)
		w.ok(w.store.EndEffect(w.Context(), node, claimed, end))
		records := w.gapless(id)
		w.equal(records[1].Kind, runner.RecordToolOutcome)
		w.equal(records[1].Epoch, 1)
		w.fails(w.store.EndEffect(w.Context(), node, claimed, end), runner.ErrFenced)
		w.equal(len(w.gapless(id)), 2)
		lease = w.acquire(node)
		w.equal(lease.Session().State, store.StateRunning)
		w.equal(lease.Session().NextSeq, 3)
	})
}

func TestOutcomeComesWhileSomebodyHoldsTheSession(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		_, err := lease.Append(w.Context(), runner.Batch{Records: []runner.Record{intent("call")},
			Effects: []agents.EffectRequest{request("push")}})
		w.ok(err)
		claimed := w.claim(node)
		w.ok(w.store.EndEffect(w.Context(), node, claimed, store.EffectEnd{State: store.EffectDone, Records: notes("out").Records}))
		first, err := lease.Append(w.Context(), notes("mine"))
		w.ok(err)
		w.equal(first, 3) // Two was the outcome's: the holder sees the gap and loads.
		w.equal(len(w.gapless(id)), 3)

		_, err = lease.Append(w.Context(), runner.Batch{Records: []runner.Record{intent("call-2")},
			Effects: []agents.EffectRequest{request("push-2")}})
		w.ok(err)
		claimed = w.claim(node)
		w.finish(lease)
		w.ok(w.store.EndEffect(w.Context(), node, claimed, store.EffectEnd{State: store.EffectUnknown,
			Records: notes("too late").Records, WakeSession: true, SessionState: store.StateRunning}))
		w.equal(len(w.gapless(id)), 5)
		w.equal(w.load(id).State, store.StateCompleted)
		w.idle(node)
	})
}

func TestPromptIsNotedWithItsEffect(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, "0123456789abcdef", "prompt")
		claimed := w.claim(node)
		w.ok(w.store.EndEffect(w.Context(), node, claimed, store.EffectEnd{State: store.EffectDone,
			Prompt: &store.ApprovalPrompt{ID: id, CommentID: 77, BodyHash: "h"}}))
		approval, err := w.store.ApprovalByPrompt(w.Context(), 1, 77)
		w.ok(err)
		w.equal(approval.ID, id)
		w.equal(approval.PromptedAt, w.clock.Now())
		due, err := w.store.DuePolls(w.Context(), node, 10)
		w.ok(err)
		w.equal(len(due), 1)
		due, err = w.store.DuePolls(w.Context(), node, 10)
		w.ok(err)
		w.equal(len(due), 0)
		next := w.clock.Now().Add(5 * time.Second)
		w.ok(w.store.SetPolls(w.Context(), []store.Poll{{Approval: "unknown", Next: next}, {Approval: id, Next: next, ETag: `"etag"`}}))
		w.clock.Advance(5 * time.Second)
		due, err = w.store.DuePolls(w.Context(), node, 10)
		w.ok(err)
		w.equal(due[0].PollETag, `"etag"`)
	})
}
