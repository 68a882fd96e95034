package store_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"handoff/runner"
	"handoff/runner/store"
)

func TestSameDeliverySixteenTimesAtOnce(t *testing.T) {
	inEachWorld(t, func(w *world) {
		delivery := store.Delivery{GUID: "g", Event: "issue_comment", InstallationID: 7, Body: []byte("{}")}
		command := store.Command{Key: "k", InstallationID: 7, RepositoryID: 1, Issue: 1, Verb: "task"}
		var stored atomic.Int32
		var wait sync.WaitGroup
		for range 16 {
			wait.Go(func() {
				is, err := w.store.PutDelivery(w.Context(), delivery, []store.Command{command})
				if err != nil {
					w.Error(err)
				}
				if is {
					stored.Add(1)
				}
			})
		}
		wait.Wait()
		w.equal(stored.Load(), 1)
		node := w.node("a")
		claimed, err := w.store.ClaimCommand(w.Context(), node)
		w.ok(err)
		w.ok(w.store.RouteCommand(w.Context(), node, claimed.ID, store.Routing{State: store.CommandRouted,
			Session: &store.Session{InstallationID: 7, RepositoryID: 1, Issue: 1}}))
		_, err = w.store.ClaimCommand(w.Context(), node)
		w.fails(err, store.ErrNone)
		sessions, err := w.store.Sessions(w.Context(), store.SessionFilter{}, 10)
		w.ok(err)
		w.equal(len(sessions), 1)
	})
}

func TestSameCommentUnderTwoDeliveriesIsOneCommand(t *testing.T) {
	inEachWorld(t, func(w *world) {
		command := store.Command{Key: "k", InstallationID: 7, RepositoryID: 1, Issue: 1}
		for _, guid := range []string{"g1", "g2"} {
			stored, err := w.store.PutDelivery(w.Context(), store.Delivery{GUID: guid, InstallationID: 7},
				[]store.Command{command})
			w.ok(err)
			w.equal(stored, true)
		}
		known, err := w.store.KnownDeliveries(w.Context(), []string{"g1", "g2", "g3"})
		w.ok(err)
		w.equal(known, map[string]bool{"g1": true, "g2": true})
		node := w.node("a")
		claimed, err := w.store.ClaimCommand(w.Context(), node)
		w.ok(err)
		w.equal(claimed.DeliveryGUID, "g1")
		_, err = w.store.ClaimCommand(w.Context(), node)
		w.fails(err, store.ErrNone)
	})
}

func TestDeliveryAndCommandAreStoredTogetherOrNotAtAll(t *testing.T) {
	inEachWorld(t, func(w *world) {
		first := store.Command{ID: "same", Key: "k1", InstallationID: 7}
		// Another key but an id that exists: the insert fails for good.
		second := store.Command{ID: "same", Key: "k2", InstallationID: 7}
		_, err := w.store.PutDelivery(w.Context(), store.Delivery{GUID: "g"}, []store.Command{first, second})
		if err == nil {
			w.Fatal("two commands with one id were stored")
		}
		known, err := w.store.KnownDeliveries(w.Context(), []string{"g"})
		w.ok(err)
		w.equal(len(known), 0)
		_, err = w.store.ClaimCommand(w.Context(), w.node("a"))
		w.fails(err, store.ErrNone)
	})
}

func TestSweepMarkNeverGoesBack(t *testing.T) {
	inEachWorld(t, func(w *world) {
		mark, err := w.store.SweepMark(w.Context())
		w.ok(err)
		w.equal(mark.IsZero(), true)
		later := w.clock.Now()
		w.ok(w.store.SetSweepMark(w.Context(), later))
		w.ok(w.store.SetSweepMark(w.Context(), later.Add(-time.Hour)))
		mark, err = w.store.SweepMark(w.Context())
		w.ok(err)
		w.equal(mark, later)
	})
}

func TestCommandsOfAnIssueAreRoutedInOrder(t *testing.T) {
	inEachWorld(t, func(w *world) {
		first, second, other := w.comment(1, "task"), w.comment(1, "stop"), w.comment(2, "task")
		node := w.node("a")
		claim := func(want store.Command) {
			w.Helper()
			got, err := w.store.ClaimCommand(w.Context(), node)
			w.ok(err)
			w.equal(got.ID, want.ID)
		}
		claim(first)
		claim(other) // The second one of the issue waits for the first.
		_, err := w.store.ClaimCommand(w.Context(), node)
		w.fails(err, store.ErrNone)
		w.ok(w.store.ReleaseCommand(w.Context(), node, first.ID, w.clock.Now().Add(time.Minute), "GitHub is down"))
		_, err = w.store.ClaimCommand(w.Context(), node)
		w.fails(err, store.ErrNone)
		w.clock.Advance(10 * time.Second)
		w.ok(node.Beat(w.Context()))
		w.clock.Advance(10 * time.Second)
		w.ok(node.Beat(w.Context()))
		w.clock.AdvanceDatabase(40 * time.Second)
		node = w.node("b")
		claim(first)
		w.ok(w.store.RouteCommand(w.Context(), node, first.ID, store.Routing{State: store.CommandRouted}))
		claim(second)
	})
}

func TestInstallationsTakeTurnsWithCommands(t *testing.T) {
	inEachWorld(t, func(w *world) {
		put := func(key string, installation int64, issue int) {
			w.Helper()
			_, err := w.store.PutDelivery(w.Context(), store.Delivery{GUID: key}, []store.Command{
				{Key: key, InstallationID: installation, RepositoryID: installation, Issue: issue}})
			w.ok(err)
		}
		for i, key := range []string{"a1", "a2", "a3"} {
			put(key, 1, i)
		}
		put("b1", 2, 1)
		node := w.node("a")
		var order []string
		for range 4 {
			command, err := w.store.ClaimCommand(w.Context(), node)
			w.ok(err)
			w.ok(w.store.RouteCommand(w.Context(), node, command.ID, store.Routing{State: store.CommandRouted}))
			order = append(order, command.Key)
		}
		w.equal(order, []string{"a1", "b1", "a2", "a3"})
	})
}

func TestCommandOfADeadNodeComesBack(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.comment(1, "task")
		dead := w.node("dead")
		command, err := w.store.ClaimCommand(w.Context(), dead)
		w.ok(err)
		w.dies()
		alive := w.node("alive")
		again, err := w.store.ClaimCommand(w.Context(), alive)
		w.ok(err)
		w.equal(again.ID, command.ID)
		w.equal(again.Attempts, 2)
		err = w.store.RouteCommand(w.Context(), dead, command.ID, store.Routing{State: store.CommandRouted})
		w.fails(err, runner.ErrFenced)
		w.ok(w.store.RouteCommand(w.Context(), alive, command.ID, store.Routing{State: store.CommandRouted, Outcome: "done"}))
		routed, err := w.store.Command(w.Context(), command.ID)
		w.ok(err)
		w.equal(routed.Outcome, "done")
		err = w.store.RouteCommand(w.Context(), alive, command.ID, store.Routing{State: store.CommandRouted})
		w.fails(err, runner.ErrFenced)
	})
}

func TestRoutingIsOneTransaction(t *testing.T) {
	inEachWorld(t, func(w *world) {
		_, err := w.store.PutEffect(w.Context(), effect("taken", "old"))
		w.ok(err)
		w.comment(1, "task")
		node := w.node("a")
		command, err := w.store.ClaimCommand(w.Context(), node)
		w.ok(err)
		routing := store.Routing{State: store.CommandRouted, Outcome: "session",
			Session: &store.Session{InstallationID: 7, RepositoryID: 1, Issue: 1},
			Effects: []store.Effect{effect("eyes", "👀"), effect("taken", "new")}}
		w.fails(w.store.RouteCommand(w.Context(), node, command.ID, routing), store.ErrDuplicate)
		_, err = w.store.LastSession(w.Context(), 1, 1)
		w.fails(err, store.ErrNotFound)
		_, err = w.store.EffectByKey(w.Context(), "eyes")
		w.fails(err, store.ErrNotFound)

		routing.Effects = routing.Effects[:1]
		w.ok(w.store.RouteCommand(w.Context(), node, command.ID, routing))
		session, err := w.store.LastSession(w.Context(), 1, 1)
		w.ok(err)
		w.equal(session.ID, routing.Session.ID)
		w.equal(session.CommandID, command.ID)
		eyes, err := w.store.EffectByKey(w.Context(), "eyes")
		w.ok(err)
		w.equal(eyes.CommandID, command.ID)
	})
}

func TestMessageReachesALiveSessionOnly(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		say := func() error {
			w.comment(1, "task")
			command, err := w.store.ClaimCommand(w.Context(), node)
			w.ok(err)
			err = w.store.RouteCommand(w.Context(), node, command.ID, store.Routing{State: store.CommandRouted,
				Message: &store.Message{SessionID: id, ActorID: 5, Actor: "ann", Text: "use bcrypt"}})
			if err != nil {
				w.ok(w.store.RouteCommand(w.Context(), node, command.ID, store.Routing{State: store.CommandRefused}))
			}
			return err
		}
		lease := w.acquire(node)
		w.suspend(lease)
		w.idle(node)
		w.ok(say())
		lease = w.acquire(node)
		messages, err := lease.PendingMessages(w.Context())
		w.ok(err)
		w.equal(len(messages), 1)
		w.equal(messages[0].Text, "use bcrypt")

		batch := runner.Batch{Records: []runner.Record{note("x"), {RunID: "r", Kind: runner.RecordInputAdded}},
			TakeMessages: []string{messages[0].ID}}
		first, err := lease.Append(w.Context(), batch)
		w.ok(err)
		w.equal(first, 1)
		messages, err = lease.PendingMessages(w.Context())
		w.ok(err)
		w.equal(len(messages), 0)
		_, err = lease.Append(w.Context(), batch)
		w.fails(err, store.ErrDuplicate)
		w.equal(len(w.gapless(id)), 2)

		w.finish(lease)
		w.fails(say(), store.ErrSessionEnded)
	})
}

func TestMessageDuringARunIsNotSleptThrough(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		node := w.node("a")
		lease := w.acquire(node)
		w.comment(1, "task")
		command, err := w.store.ClaimCommand(w.Context(), node)
		w.ok(err)
		w.ok(w.store.RouteCommand(w.Context(), node, command.ID, store.Routing{State: store.CommandRouted,
			Message: &store.Message{SessionID: id, Text: "wait"}}))
		w.suspend(lease)
		w.equal(w.acquire(node).Session().ID, id)
	})
}

func TestBodyComesBackByteForByte(t *testing.T) {
	inEachWorld(t, func(w *world) {
		body := bytes.Repeat([]byte{0, 0xff, 'a', '\n'}, 1000)
		stored, err := w.store.PutDelivery(w.Context(), store.Delivery{GUID: "g", Body: body, Event: "push"}, nil)
		w.ok(err)
		w.equal(stored, true)
		delivery, err := w.store.Delivery(w.Context(), "g")
		w.ok(err)
		w.equal(bytes.Equal(delivery.Body, body), true)
		w.equal(delivery.ReceivedAt, w.clock.Now())
	})
}
