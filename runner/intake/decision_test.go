package intake

import (
	"slices"
	"strings"
	"testing"
	"time"

	"handoff/runner/approval"
	"handoff/runner/store"
)

func TestDecisionsArePassedOn(t *testing.T) {
	w := newWorld(t)
	yes := w.says(mona, "approve", "`3fa9c1d2`")
	no := w.says(owner, "reject", "3fa9c1d2 the tests are missing")
	w.route()
	w.mustBecome(yes, store.CommandRouted)
	w.mustBecome(no, store.CommandRouted)
	want := []string{"comment true 3fa9c1d2 by 42 on #12: ", "comment false 3fa9c1d2 by 45 on #12: the tests are missing"}
	if !slices.Equal(w.decided, want) || !w.seen(yes) || len(w.comments()) != 0 {
		t.Errorf("decisions %q, comments %q", w.decided, w.comments())
	}
}

func TestARefusedDecisionIsExplained(t *testing.T) {
	w := newWorld(t)
	w.decision = &approval.Refused{Reason: "This request has expired."}
	command := w.says(mona, "approve", "3fa9c1d2")
	w.route()
	w.mustBecome(command, store.CommandRefused)
	w.mustSay("@mona", "This request has expired.")
}

func TestADecisionThatIsTooEarlyIsTakenLater(t *testing.T) {
	w := newWorld(t)
	w.decision = store.ErrTooEarly
	command := w.says(mona, "approve", "3fa9c1d2")
	w.route()
	w.mustBecome(command, store.CommandNew)
	if !w.seen(command) {
		t.Error("the waiting decision is not shown as seen")
	}
	w.decision = nil
	w.pass(store.ApprovalCooldown + time.Second)
	w.route()
	w.mustBecome(command, store.CommandRouted)
}

// A decision that fails for ever does not hold up the issue for ever.
func TestADecisionThatAlwaysFailsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.decision = errCrash
	command := w.says(mona, "approve", "3fa9c1d2")
	status := w.says(mona, "status", "")
	for range attemptsKept + 1 {
		w.route()
		w.pass(6 * time.Minute)
	}
	w.mustBecome(command, store.CommandRefused)
	w.mustBecome(status, store.CommandRouted)
	if comments := w.comments(); len(comments) != 2 || !strings.Contains(comments[0], "operator") {
		t.Errorf("comments %q", comments)
	}
}

// The process ends between the decision and the routing: the next node finds
// the decision made, by the same command, and does not complain.
func TestACrashAfterTheDecisionIsNotARefusal(t *testing.T) {
	w := newWorld(t)
	command := w.says(mona, "approve", "3fa9c1d2")
	w.store.before = func(store.Routing) error { w.store.before = nil; return errCrash }
	w.route()
	w.decision = &approval.Refused{Reason: "This request is approved already; nothing has changed."}
	w.asked = store.Approval{State: store.ApprovalApproved, DecidedByID: mona.id, DecidedVia: "comment"}
	w.pass(5 * time.Second)
	w.route()
	w.mustBecome(command, store.CommandRouted)
	if len(w.comments()) != 0 {
		t.Errorf("comments %q", w.comments())
	}
	// A second comment of the same words is told that nothing has changed.
	w.says(mona, "approve", "3fa9c1d2")
	w.route()
	w.mustSay("already")
}

func (w *world) clicks(who person) store.Command {
	return w.put(store.Command{Kind: store.CommandCheckAction, ActorID: who.id, ActorLogin: who.login},
		store.CheckActionDetail{CheckRunID: 321, Identifier: "approve", ExternalID: "approval-1", HeadSHA: "abc", AppID: 4711})
}

func TestAClickIsPassedOn(t *testing.T) {
	w := newWorld(t)
	command := w.clicks(mona)
	w.route()
	w.mustBecome(command, store.CommandRouted)
	if want := []string{"check_run approve of approval-1 on check run 321 by 42"}; !slices.Equal(w.decided, want) {
		t.Errorf("decisions %q", w.decided)
	}
}

func TestARefusedClickIsToldOnceOnTheIssue(t *testing.T) {
	w := newWorld(t)
	w.decision = &approval.Refused{Reason: "hubot may not decide here."}
	w.asked = store.Approval{ID: "approval-1", RepositoryID: repository, Issue: 12, State: store.ApprovalPending}
	for range 3 {
		command := w.clicks(hubot)
		w.route()
		w.mustBecome(command, store.CommandRefused)
	}
	w.mustSay("#12 @hubot", "may not decide")
}

// A click that names an approval of another repository is told to nobody.
func TestAClickOnAStrangeCheckRunIsSilent(t *testing.T) {
	w := newWorld(t)
	w.decision = &approval.Refused{Reason: "This button belongs to another request."}
	for _, asked := range []store.Approval{{}, {ID: "x", RepositoryID: 5, Issue: 3}} {
		w.asked = asked
		command := w.clicks(mona)
		w.route()
		w.mustBecome(command, store.CommandRefused)
	}
	if len(w.comments()) != 0 {
		t.Errorf("comments %q", w.comments())
	}
}
