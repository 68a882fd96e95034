package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"handoff/runner/store"
)

// asks suspends a new session of the issue for an approval with that digest, and
// returns the approval's id. Its prompt is an effect with that key.
func (w *world) asks(node *store.Node, issue int, digest, promptKey string) string {
	w.Helper()
	w.session(issue)
	return w.asksUnder(w.acquire(node), "call", digest, promptKey)
}

func (w *world) asksUnder(lease *store.Lease, call, digest, promptKey string) string {
	w.Helper()
	approval := store.Approval{ID: store.NewID(), CallKey: call, Kind: "git_push", Digest: digest, Nonce: "n",
		Record: json.RawMessage(`{"a": 1}`), Commit: "c0ffee", Tree: "7ree", TargetRef: "refs/heads/copilot/x",
		ExpectedRemote: "0000", Title: "Add login", ExpiresAt: w.clock.Now().Add(time.Hour)}
	w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval,
		Approvals: []store.Approval{approval}, Effects: []store.Effect{effect(promptKey, "please decide")}}))
	return approval.ID
}

// prompted makes the prompt appear and waits until it can be approved.
func (w *world) prompted(id string) {
	w.Helper()
	w.ok(w.store.MarkPrompted(w.Context(), id, 77, "hash", time.Time{}))
	w.clock.Advance(store.ApprovalCooldown)
}

func yes() store.Decision {
	return store.Decision{State: store.ApprovalApproved, By: "max", ByID: 9, Via: "reaction"}
}

func no() store.Decision {
	return store.Decision{State: store.ApprovalRejected, By: "mia", ByID: 8, Via: "comment", Reason: "not like this"}
}

const digest = "3fa9c1d2aa00aa00aa00aa00aa00aa00"

func TestApprovalWakesItsSession(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "prompt")
		w.prompted(id)
		w.idle(node)
		approval, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		w.equal(approval.State, store.ApprovalApproved)
		w.equal(approval.DecidedBy, "max")
		w.equal(approval.DecidedAt, w.clock.Now())
		w.equal(approval.Record, json.RawMessage(`{"a": 1}`))
		lease := w.acquire(node)
		w.equal(lease.Session().State, store.StateAwaitingApproval)
		w.equal(lease.Session().ID, approval.SessionID)
	})
}

func TestApprovalNeedsAPromptFiveSecondsOld(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "prompt")
		_, err := w.store.Decide(w.Context(), id, yes())
		w.fails(err, store.ErrTooEarly)
		w.ok(w.store.MarkPrompted(w.Context(), id, 77, "hash", time.Time{}))
		w.clock.Advance(store.ApprovalCooldown - time.Millisecond)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.fails(err, store.ErrTooEarly)
		w.clock.Advance(time.Second)
		// The finger was on the button before the prompt had been there for long.
		early := yes()
		early.ActedAt = w.clock.Now().Add(-3 * time.Second)
		_, err = w.store.Decide(w.Context(), id, early)
		w.fails(err, store.ErrTooEarly)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.ok(err)
	})
}

func TestATerminalNeedsAPromptButNoCooldown(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		typed := yes()
		typed.Via = store.ViaTerminal
		_, err := w.store.Decide(w.Context(), id, typed)
		w.fails(err, store.ErrTooEarly)
		w.ok(w.store.MarkPrompted(w.Context(), id, 77, "hash", time.Time{}))
		_, err = w.store.Decide(w.Context(), id, typed)
		w.ok(err)
	})
}

func TestRejectionMayComeAtOnce(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		approval, err := w.store.Decide(w.Context(), id, no())
		w.ok(err)
		w.equal(approval.Reason, "not like this")
	})
}

func TestSixteenDecideAndOneCounts(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		w.prompted(id)
		results := make([]error, 16)
		rows := make([]store.Approval, 16)
		var wait sync.WaitGroup
		for i := range results {
			wait.Go(func() {
				decision := yes()
				decision.ByID = int64(i + 1)
				rows[i], results[i] = w.store.Decide(w.Context(), id, decision)
			})
		}
		wait.Wait()
		stands, err := w.store.Approval(w.Context(), id)
		w.ok(err)
		var counted int
		for i, err := range results {
			if err == nil {
				counted++
				w.equal(stands.DecidedByID, i+1)
				continue
			}
			w.fails(err, store.ErrAlreadyDecided)
			w.equal(rows[i].DecidedByID, stands.DecidedByID)
		}
		w.equal(counted, 1)
	})
}

func TestRejectWinsWithinTheGracePeriod(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "prompt")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		w.clock.Advance(store.ApprovalGrace - time.Second)
		approval, err := w.store.Decide(w.Context(), id, no())
		w.ok(err)
		w.equal(approval.State, store.ApprovalRejected)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.fails(err, store.ErrAlreadyDecided)
	})
}

func TestRejectionAfterTheGracePeriodIsTooLate(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		w.clock.Advance(store.ApprovalGrace)
		row, err := w.store.Decide(w.Context(), id, no())
		w.fails(err, store.ErrAlreadyDecided)
		w.equal(row.State, store.ApprovalApproved)
		// What was approved may still turn out to be out of date.
		_, err = w.store.Decide(w.Context(), id, store.Decision{State: store.ApprovalSuperseded, By: "host", Via: "host"})
		w.ok(err)
	})
}

func TestExpiryIsByTheDatabasesClock(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "prompt")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, store.Decision{State: store.ApprovalExpired})
		w.fails(err, store.ErrTooEarly)
		w.clock.AdvanceDatabase(time.Hour)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.fails(err, store.ErrApprovalExpired)
		expired, err := w.store.ExpireApprovals(w.Context(), 10)
		w.ok(err)
		w.equal(len(expired), 1)
		w.equal(expired[0].State, store.ApprovalExpired)
		expired, err = w.store.ExpireApprovals(w.Context(), 10)
		w.ok(err)
		w.equal(len(expired), 0)
		w.equal(w.acquire(w.node("b")).Session().ID, w.load(w.sessionOfApproval(id)).ID)
	})
}

func (w *world) sessionOfApproval(id string) string {
	w.Helper()
	approval, err := w.store.Approval(w.Context(), id)
	w.ok(err)
	return approval.SessionID
}

func TestTimerIsMovedToTheExpiry(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		now := w.clock.Now()
		id := w.sessionOfApproval(w.asks(node, 1, digest, "prompt"))
		w.equal(w.load(id).WakeAt, now.Add(time.Hour))
		// Woken for a message, it pauses again: the earlier expiry still counts.
		w.ok(w.store.Wake(w.Context(), id))
		w.ok(w.acquire(node).Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval, WakeAt: now.Add(2 * time.Hour)}))
		w.equal(w.load(id).WakeAt, now.Add(time.Hour))
		w.ok(w.store.Wake(w.Context(), id))
		w.ok(w.acquire(node).Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval, WakeAt: now.Add(time.Minute)}))
		w.equal(w.load(id).WakeAt, now.Add(time.Minute))
	})
}

func TestOneOpenApprovalForACall(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		first := w.asks(node, 1, digest, "prompt")
		w.ok(w.store.Wake(w.Context(), w.sessionOfApproval(first)))
		second := w.asksUnder(w.acquire(node), "call", "aaaaaaaaaaaaaaaa", "prompt-2")
		approval, err := w.store.Approval(w.Context(), first)
		w.ok(err)
		w.equal(approval.State, store.ApprovalSuperseded)
		_, err = w.store.Decide(w.Context(), first, yes())
		w.fails(err, store.ErrAlreadyDecided)
		found, err := w.store.ApprovalByDigestPrefix(w.Context(), 1, 1, "AAAAaaaa")
		w.ok(err)
		w.equal(found.ID, second)
		all, err := w.store.ApprovalsOfSession(w.Context(), found.SessionID)
		w.ok(err)
		w.equal(len(all), 2)
	})
}

func TestDigestPrefixNamesOneApproval(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		w.session(1)
		lease := w.acquire(node)
		w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval, Approvals: []store.Approval{
			{CallKey: "a", Digest: "aaaaaaaa1"}, {CallKey: "b", Digest: "aaaaaaaa2"}}}))
		for prefix, want := range map[string]error{
			"aaaaaaaa1": nil, "aaaaaaaa": store.ErrAmbiguous, "aaaaaaa": store.ErrNotFound, "": store.ErrNotFound,
			"aaaaaaa%": store.ErrNotFound, "bbbbbbbb": store.ErrNotFound, "aaaaaaaa\x00": store.ErrNotFound,
		} {
			_, err := w.store.ApprovalByDigestPrefix(w.Context(), 1, 1, prefix)
			if !errors.Is(err, want) {
				w.Errorf("prefix %q: got %v, want %v", prefix, err, want)
			}
		}
		_, err := w.store.ApprovalByDigestPrefix(w.Context(), 1, 2, "aaaaaaaa1")
		w.fails(err, store.ErrNotFound)
	})
}

func TestApprovalIsConsumedOnceAndOnlyForWhatItNames(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		w.prompted(id)
		right := store.Consumption{Digest: digest, Commit: "c0ffee", TargetRef: "refs/heads/copilot/x",
			ExpectedRemote: "0000", EffectKey: "push"}
		_, err := w.store.Consume(w.Context(), id, right)
		w.fails(err, store.ErrAlreadyDecided)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		for name, change := range map[string]func(*store.Consumption){
			"digest": func(c *store.Consumption) { c.Digest = "x" }, "commit": func(c *store.Consumption) { c.Commit = "x" },
			"target": func(c *store.Consumption) { c.TargetRef = "x" }, "remote": func(c *store.Consumption) { c.ExpectedRemote = "x" },
		} {
			wrong := right
			change(&wrong)
			if _, err := w.store.Consume(w.Context(), id, wrong); !errors.Is(err, store.ErrStale) {
				w.Errorf("%s: got %v, want it stale", name, err)
			}
		}
		row, err := w.store.Consume(w.Context(), id, right)
		w.ok(err)
		w.equal(row.State, store.ApprovalConsumed)
		// After a crash the same push goes on; another one may not.
		_, err = w.store.Consume(w.Context(), id, right)
		w.ok(err)
		right.EffectKey = "another push"
		_, err = w.store.Consume(w.Context(), id, right)
		w.fails(err, store.ErrAlreadyDecided)
		_, err = w.store.Decide(w.Context(), id, store.Decision{State: store.ApprovalSuperseded})
		w.fails(err, store.ErrAlreadyDecided)
	})
}

func TestApprovalThatExpiredBeforeItWasUsed(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		w.clock.AdvanceDatabase(time.Hour)
		_, err = w.store.Consume(w.Context(), id, store.Consumption{})
		w.fails(err, store.ErrApprovalExpired)
	})
}

func TestEndOfASessionClosesItsApprovals(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "prompt")
		_, err := w.store.Cancel(w.Context(), w.sessionOfApproval(id), "ann")
		w.ok(err)
		w.ok(w.acquire(node).Finish(w.Context(), store.Ending{State: store.StateCancelled}))
		approval, err := w.store.Approval(w.Context(), id)
		w.ok(err)
		w.equal(approval.State, store.ApprovalSuperseded)
	})
}

func TestRestoredBackupVoidsWhatWasOpen(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		pending := w.asks(node, 1, digest, "p1")
		approved := w.asks(node, 2, digest, "p2")
		consumed := w.asks(node, 3, digest, "p3")
		for _, id := range []string{approved, consumed} {
			w.ok(w.store.MarkPrompted(w.Context(), id, 77, "", w.clock.Now().Add(-time.Minute)))
			_, err := w.store.Decide(w.Context(), id, yes())
			w.ok(err)
		}
		_, err := w.store.Consume(w.Context(), consumed, store.Consumption{EffectKey: "push"})
		w.ok(err)
		epoch, voided, err := w.store.NewRestoreEpoch(w.Context())
		w.ok(err)
		w.equal(epoch, 2)
		w.equal(voided, 2)
		for _, id := range []string{pending, approved} {
			row, err := w.store.Approval(w.Context(), id)
			w.ok(err)
			w.equal(row.State, store.ApprovalSuperseded)
		}
		row, err := w.store.Approval(w.Context(), consumed)
		w.ok(err)
		w.equal(row.State, store.ApprovalConsumed)
		fresh := w.asks(node, 4, digest, "p4")
		row, err = w.store.Approval(w.Context(), fresh)
		w.ok(err)
		w.equal(row.RestoreEpoch, 2)
	})
}

func TestEffectConsumesItsApproval(t *testing.T) {
	inEachWorld(t, func(w *world) {
		node := w.node("a")
		id := w.asks(node, 1, digest, "push")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		w.ok(node.Beat(w.Context()))
		w.ok(w.store.EndEffect(w.Context(), node, w.claim(node), store.EffectEnd{State: store.EffectDone, ConsumeApproval: id}))
		row, err := w.store.Approval(w.Context(), id)
		w.ok(err)
		w.equal(row.State, store.ApprovalConsumed)
		w.equal(row.ConsumedBy, "push")
	})
}

func TestUnknownApprovals(t *testing.T) {
	inEachWorld(t, func(w *world) {
		_, err := w.store.Approval(w.Context(), "x")
		w.fails(err, store.ErrNotFound)
		_, err = w.store.Decide(w.Context(), "x", yes())
		w.fails(err, store.ErrNotFound)
		_, err = w.store.Consume(w.Context(), "x", store.Consumption{})
		w.fails(err, store.ErrNotFound)
		w.fails(w.store.SetCheckRun(w.Context(), "x", 1), store.ErrNotFound)
		id := w.asks(w.node("a"), 1, digest, "prompt")
		_, err = w.store.Decide(w.Context(), id, store.Decision{State: store.ApprovalConsumed})
		if err == nil {
			w.Fatal("consumed is not a decision")
		}
	})
}
