package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"handoff/agents"
	"handoff/gitops/github"
	"handoff/runner/store"
)

// GitHub is unwell for a while, then well: the session goes on as if nothing
// had been. If it stays unwell the session ends, and nobody is told more than
// they need.
func TestASessionOutlastsAnOutage(t *testing.T) {
	w := newWorld(t, aShop())
	id := w.asked()
	w.fault = &github.Error{Code: github.CodeUnavailable, Message: "GitHub did not answer."}
	for range 3 {
		w.works()
		w.is(id, store.StatePreparing)
		w.clock.Advance(time.Hour)
		w.again()
	}
	w.fault = nil
	w.works()
	w.is(id, store.StateCompleted)
}

// A fault of the program ends the session in which it happens, with its work
// kept and a way to go on, and no other.
func TestAFaultOfTheProgramEndsItsSessionAlone(t *testing.T) {
	w := newWorld(t, aShop())
	w.breaks = true
	w.writes("greeting.txt", "hello\n")
	id := w.asked()
	w.sends(func() { w.works() })
	session := w.is(id, store.StateFailed)
	if session.Code != "INTERNAL" || strings.Contains(session.Reason, "index out of range") {
		t.Errorf("it ended with %s: %s", session.Code, session.Reason)
	}
	artifacts, err := w.store.Artifacts(t.Context(), id)
	w.ok(err)
	if len(artifacts) != 1 || artifacts[0].Name != patchName {
		t.Errorf("kept are %+v", artifacts)
	}
	w.leavesNothing(w.conductor)
	w.breaks = false
	next := w.asked(agents.Variables{varRetryOf: id})
	w.pushes()
	w.works()
	w.is(next, store.StateAwaitingApproval)
}

// Where even the end meets the fault, the session is given back and tried again,
// and the node lives.
func TestAFaultInTheEndItselfIsTriedAgain(t *testing.T) {
	w := newWorld(t, aShop())
	id := w.asked()
	w.breaks = true
	link := w.conductor.PatchLink
	w.conductor.PatchLink = func(context.Context, string, string) (Link, error) { panic("nil map") }
	w.writes("greeting.txt", "hello\n")
	w.works()
	w.is(id, store.StateRunning)
	w.conductor.PatchLink, w.breaks = link, false
	w.clock.Advance(time.Hour)
	w.again()
	w.works()
	w.is(id, store.StateCompleted)
}

func TestAFaultThatStaysEndsTheSessionInOneSentence(t *testing.T) {
	w := newWorld(t, aShop())
	id := w.asked()
	w.fault = errors.New("open /srv/handoff/data: no space left on device")
	for range store.MaxAttempts {
		w.works()
		w.is(id, store.StatePreparing)
		w.clock.Advance(time.Hour)
		w.again()
	}
	w.works()
	session := w.is(id, store.StateFailed)
	if session.Code != "ATTEMPTS" || strings.Contains(session.Reason, "/srv") {
		t.Errorf("it ended as %s: %s", session.Code, session.Reason)
	}
}

// again is the node after its lease has run out.
func (w *world) again() {
	w.Helper()
	node, err := w.store.Register(w.Context(), "here")
	w.ok(err)
	w.node = node
}

// A shutdown is no failed attempt: the session is free at once.
func TestAShutdownGivesTheSessionBackAtOnce(t *testing.T) {
	w := newWorld(t, aShop())
	id := w.asked()
	w.writes("greeting.txt", "hello\n")
	w.conductor.StopSoftly()
	w.works()
	w.is(id, store.StateRunning)
	w.works(w.newConductor())
	w.is(id, store.StateCompleted)
}
