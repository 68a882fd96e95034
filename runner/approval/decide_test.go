package approval

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/store"
)

// ways are the three ways to answer.
var ways = map[string]func(*world, person, Verdict) error{
	"comment": (*world).types, "check_run": (*world).clicks, "reaction": (*world).thumbs,
}

func TestWhoMayDecide(t *testing.T) {
	type story struct {
		who    person
		needed string
		counts bool
	}
	for _, story := range []story{
		{ada, "write", true}, {maria, "write", true}, {mona, "write", true}, {custom, "write", true},
		{triager, "write", false}, {reader, "write", false}, {stranger, "write", false}, {robot, "write", false},
		{ada, "maintain", true}, {maria, "maintain", true}, {mona, "maintain", false}, {custom, "maintain", false},
		{ada, "admin", true}, {maria, "admin", false},
		// Rows that no rule of ours would write let nobody decide.
		{ada, "", false}, {ada, "read", false}, {ada, "superuser", false},
	} {
		for via, answer := range ways {
			for _, verdict := range []Verdict{Approve, Reject} {
				t.Run(fmt.Sprintf("%s as %s by %s %v", story.who.login, story.needed, via, verdict), func(t *testing.T) {
					w := newWorld(t, func(a *Action) { a.RoleNeeded = story.needed })
					err := answer(w, story.who, verdict)
					want := store.ApprovalPending
					switch {
					case story.counts && verdict == Approve:
						want = store.ApprovalApproved
					case story.counts:
						want = store.ApprovalRejected
					}
					row := w.is(want)
					if story.counts && (err != nil || row.DecidedByID != story.who.id || row.DecidedVia != via) {
						t.Errorf("decided by %d (%s), error %v", row.DecidedByID, row.DecidedVia, err)
					}
					if _, refused := errors.AsType[*Refused](err); !story.counts && via != "reaction" && !refused {
						t.Errorf("the person is told %v", err)
					}
				})
			}
		}
	}
}

// The person who asked may not approve alone, but may say no.
func TestFourEyes(t *testing.T) {
	for via, answer := range ways {
		t.Run(via, func(t *testing.T) {
			w := newWorld(t, func(a *Action) { a.RequireOther = true })
			_ = answer(w, mona, Approve)
			w.is(store.ApprovalPending)
			if err := answer(w, mona, Reject); err != nil {
				t.Fatal(err)
			}
			if via == "reaction" {
				w.later(time.Minute)
			}
			w.is(store.ApprovalRejected)
		})
	}
}

// Without an answer of GitHub's nobody decides, and the answer is not lost.
func TestAFaultOfGitHubIsNoYes(t *testing.T) {
	for via, answer := range ways {
		t.Run(via, func(t *testing.T) {
			w := newWorld(t)
			w.fault = &github.Error{Code: github.CodeUnavailable, Message: "GitHub is unwell."}
			err := answer(w, ada, Approve)
			w.is(store.ApprovalPending)
			if _, refused := errors.AsType[*Refused](err); refused {
				t.Error("the answer is refused for good")
			}
			w.fault = nil
			if via == "reaction" {
				w.later(time.Minute)
			} else if err := answer(w, ada, Approve); err != nil {
				t.Fatal(err)
			}
			w.is(store.ApprovalApproved)
		})
	}
}

// A login that changed hands is somebody else, whatever that one may do.
func TestALoginThatChangedHandsDoesNotCount(t *testing.T) {
	w := newWorld(t)
	thief := person{id: 1000, login: ada.login, kind: "User"}
	if err := w.types(thief, Approve); err == nil {
		t.Error("the thief was heard")
	}
	w.is(store.ApprovalPending)
}

func TestAnEditedPromptIsVoid(t *testing.T) {
	for name, edit := range map[string]func(w *world){
		"edited":           func(w *world) { w.comment.Body = "harmless" },
		"edited, restored": func(w *world) { w.comment.UpdatedAt = w.comment.UpdatedAt.Add(time.Second) },
		"deleted":          func(w *world) { w.gone = true },
	} {
		for via, answer := range ways {
			t.Run(name+" by "+via, func(t *testing.T) {
				w := newWorld(t)
				edit(w)
				_ = answer(w, ada, Approve)
				if row := w.is(store.ApprovalSuperseded); !strings.HasPrefix(row.Reason, "the prompt was") {
					t.Errorf("void because %q", row.Reason)
				}
			})
		}
	}
	t.Run("webhook", func(t *testing.T) {
		w := newWorld(t)
		w.ok(w.service.VoidPrompt(t.Context(), repository, prompted, "the prompt was edited"))
		w.is(store.ApprovalSuperseded)
		w.ok(w.service.VoidPrompt(t.Context(), repository, prompted, "again"))
		w.ok(w.service.VoidPrompt(t.Context(), repository, 12345, "somebody's comment"))
	})
	t.Run("webhook after the decision", func(t *testing.T) {
		w := newWorld(t)
		w.ok(w.types(ada, Approve))
		w.ok(w.service.VoidPrompt(t.Context(), repository, prompted, "the prompt was edited"))
		w.is(store.ApprovalSuperseded)
	})
}

func TestOnlyTheDigestOfAnOpenRequestCounts(t *testing.T) {
	w := newWorld(t)
	for what, digest := range map[string]string{
		"nothing": "", "too short": w.approval.Digest[:7], "no digest": "approve-it", "another": strings.Repeat("0", 64),
		"too long": w.approval.Digest + "0",
	} {
		_, err := w.service.DecideByComment(t.Context(), repository, 12, digest, Answer{Verdict: Approve, By: ada.login, ByID: ada.id})
		if _, refused := errors.AsType[*Refused](err); !refused {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, place := range []struct {
		repository int64
		issue      int
	}{{repository, 13}, {7, 12}} {
		_, err := w.service.DecideByComment(t.Context(), place.repository, place.issue, w.approval.Digest, Answer{Verdict: Approve, By: ada.login, ByID: ada.id})
		if _, refused := errors.AsType[*Refused](err); !refused {
			t.Errorf("on %+v: %v", place, err)
		}
	}
	w.is(store.ApprovalPending)
}

func TestOnlyTheRequestsOwnButtonsCount(t *testing.T) {
	w := newWorld(t)
	answer := Answer{By: ada.login, ByID: ada.id}
	for what, click := range map[string]Click{
		"another check run": {ApprovalID: w.approval.ID, CheckRunID: 1, Identifier: ActionApprove},
		"another request":   {ApprovalID: "nobody's", CheckRunID: checked, Identifier: ActionApprove},
		"another button":    {ApprovalID: w.approval.ID, CheckRunID: checked, Identifier: "merge"},
	} {
		if _, err := w.service.DecideByCheckRun(t.Context(), repository, click, answer); err == nil {
			t.Errorf("%s was heard", what)
		}
	}
	if _, err := w.service.DecideByCheckRun(t.Context(), 7, Click{ApprovalID: w.approval.ID, CheckRunID: checked, Identifier: ActionApprove}, answer); err == nil {
		t.Error("a click in another repository was heard")
	}
	w.is(store.ApprovalPending)
}

func TestTheFirstDecisionStands(t *testing.T) {
	w := newWorld(t)
	w.ok(w.types(ada, Reject))
	err := w.clicks(maria, Approve)
	if _, refused := errors.AsType[*Refused](err); !refused {
		t.Errorf("a second decision: %v", err)
	}
	if row := w.is(store.ApprovalRejected); row.DecidedByID != ada.id {
		t.Errorf("decided by %d", row.DecidedByID)
	}
}

func TestARejectionWinsWithinTheGrace(t *testing.T) {
	w := newWorld(t)
	w.ok(w.types(ada, Approve))
	w.clock.Advance(store.ApprovalGrace - time.Second)
	w.ok(w.clicks(maria, Reject))
	w.is(store.ApprovalRejected)
	w = newWorld(t)
	w.ok(w.types(ada, Approve))
	w.clock.Advance(store.ApprovalGrace)
	if err := w.clicks(maria, Reject); err == nil {
		t.Error("a rejection after the grace was heard")
	}
	w.is(store.ApprovalApproved)
}

func TestAnExpiredRequestCannotBeApproved(t *testing.T) {
	w := newWorld(t)
	w.clock.Advance(time.Hour)
	err := w.types(ada, Approve)
	if _, refused := errors.AsType[*Refused](err); !refused || !strings.Contains(err.Error(), "expired") {
		t.Errorf("told %v", err)
	}
	w.round()
	w.is(store.ApprovalExpired)
}

// An answer that is faster than our own records is taken later, not refused.
func TestAnAnswerThatIsTooEarlyIsKept(t *testing.T) {
	w := newWorld(t)
	row := w.approval
	row.CheckRunID = 0
	w.ok(w.store.MarkPrompted(t.Context(), w.approval.ID, prompted, "", w.clock.Now()))
	for via, answer := range map[string]func(*world, person, Verdict) error{"comment": (*world).types, "check_run": (*world).clicks} {
		if err := answer(w, ada, Approve); !errors.Is(err, store.ErrTooEarly) {
			t.Errorf("%s: %v", via, err)
		}
	}
	w.is(store.ApprovalPending)
}

// A row that was changed in the database does not fit its digest any more.
func TestARecordThatWasChangedDecidesNothing(t *testing.T) {
	w := newWorld(t)
	row := w.approval
	row.Record = []byte(strings.Replace(string(row.Record), `"role_needed":"write"`, `"role_needed":"read"`, 1))
	if _, err := ActionOf(row); err == nil {
		t.Error("a changed record was taken")
	}
	row.Record = []byte("{")
	if _, err := ActionOf(row); err == nil {
		t.Error("half a record was taken")
	}
}
