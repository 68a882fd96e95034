package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/store"
)

// Reject wins, whoever was first.
func TestOppositeReactionsReject(t *testing.T) {
	w := newWorld(t)
	w.reactions = []github.Reaction{
		{Content: "+1", User: github.User{ID: ada.id, Login: ada.login, Type: "User"}},
		{Content: "heart", User: github.User{ID: ada.id, Login: ada.login, Type: "User"}},
		{Content: "-1", User: github.User{ID: maria.id, Login: maria.login, Type: "User"}},
	}
	w.round()
	w.is(store.ApprovalRejected)
}

// A rejection that cannot be checked keeps the approvals after it waiting.
func TestNoApprovalOvertakesARejectionThatCannotBeChecked(t *testing.T) {
	w := newWorld(t)
	w.reactions = []github.Reaction{
		{Content: "+1", User: github.User{ID: ada.id, Login: ada.login, Type: "User"}},
		{Content: "-1", User: github.User{ID: maria.id, Login: maria.login, Type: "User"}},
	}
	w.fault = &github.Error{Code: github.CodeUnavailable, Message: "GitHub is unwell."}
	w.round()
	w.is(store.ApprovalPending)
}

// The bot's own thumbs, and those of other bots and of nobody, are no votes.
func TestOnlyPeopleVote(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"Bot", "Organization", "Mannequin", ""} {
		w.reactions = append(w.reactions, github.Reaction{Content: "+1", User: github.User{ID: ada.id, Login: ada.login, Type: kind}})
	}
	w.round()
	w.later(time.Minute)
	w.is(store.ApprovalPending)
	if w.lookups != 0 {
		t.Errorf("%d roles were looked up", w.lookups)
	}
}

// Somebody posts the prompt's text again, marker and all: what happens to that
// comment, and what is thought of it, says nothing about the request.
func TestACopyOfThePromptIsNone(t *testing.T) {
	w := newWorld(t)
	const replica = prompted + 1
	w.ok(w.service.VoidPrompt(t.Context(), repository, replica, "the prompt was edited"))
	w.ok(w.service.VoidPrompt(t.Context(), repository+1, prompted, "the prompt of another repository was edited"))
	w.is(store.ApprovalPending)
	w.ok(w.thumbs(ada, Approve))
	w.is(store.ApprovalApproved)
}

// An unchanged list without votes costs GitHub nothing; one with a vote that
// does not count is read again, because roles change.
func TestTheETagIsKeptOnlyWhereNothingIsOpen(t *testing.T) {
	w := newWorld(t)
	w.round()
	w.later(time.Minute)
	if want := []string{"", `"1"`}; !slices.Equal(w.etags, want) {
		t.Errorf("ETags %q, want %q", w.etags, want)
	}
	w.later(time.Minute)
	w.ok(w.thumbs(reader, Approve))
	w.later(2 * time.Minute)
	w.is(store.ApprovalPending)
	promoted := reader
	promoted.role, promoted.base = "write", "write"
	w.people[reader.id] = promoted
	w.later(2 * time.Minute)
	w.is(store.ApprovalApproved)
}

// A crowd without the right to vote is asked about a few at a time, and hides
// nobody who has it.
func TestACrowdDoesNotHideAMaintainer(t *testing.T) {
	w := newWorld(t)
	for id := range int64(5 * maxTries / 2) {
		w.reactions = append(w.reactions, github.Reaction{Content: "+1", User: github.User{ID: 10_000 + id, Login: fmt.Sprint("fan", id), Type: "User"}})
	}
	w.reactions = append(w.reactions, github.Reaction{Content: "+1", User: github.User{ID: ada.id, Login: ada.login, Type: "User"}})
	w.round()
	if w.lookups != maxTries {
		t.Errorf("%d roles were looked up at once", w.lookups)
	}
	for range 2 {
		w.is(store.ApprovalPending)
		w.later(6 * time.Second)
	}
	w.is(store.ApprovalApproved)
	w.later(time.Hour)
	if _, err := w.service.DecideByComment(t.Context(), repository, 12, w.approval.Digest, Answer{Verdict: Reject, By: ada.login, ByID: ada.id}); err == nil {
		t.Error("decided twice")
	}
}

// A thumb within the cooldown counts when it is over.
func TestAThumbThatIsTooEarlyCountsAfterTheCooldown(t *testing.T) {
	w := newWorld(t)
	w.ok(w.store.MarkPrompted(t.Context(), w.approval.ID, prompted, "", w.clock.Now()))
	w.ok(w.thumbs(ada, Approve))
	w.is(store.ApprovalPending)
	w.later(store.ApprovalCooldown)
	w.is(store.ApprovalApproved)
}

// A rate limit is waited for; other faults are asked about as usual.
func TestARateLimitPutsThePollOff(t *testing.T) {
	w := newWorld(t)
	w.fault = &github.Error{Code: github.CodeRateLimited, Message: "Wait.", RetryAt: w.clock.Now().Add(10 * time.Minute)}
	w.round()
	w.later(9 * time.Minute)
	if len(w.etags) != 1 {
		t.Errorf("GitHub was asked %d times within its limit", len(w.etags))
	}
	w.later(2 * time.Minute)
	if len(w.etags) != 2 {
		t.Errorf("GitHub was asked %d times", len(w.etags))
	}
}

func TestThePollerAsksLessAndLess(t *testing.T) {
	for age, base := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 119 * time.Second: 5 * time.Second, 2 * time.Minute: 15 * time.Second,
		9 * time.Minute: 15 * time.Second, 10 * time.Minute: time.Minute, 48 * time.Hour: time.Minute, -time.Minute: 5 * time.Second,
	} {
		for range 100 {
			if got := interval(age); got < base || got > base+base/10 {
				t.Fatalf("at the age of %v it waits %v", age, got)
			}
		}
	}
}

func TestThePollerEndsWithItsNode(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.poller.Run(ctx, w.node) }()
	stop()
	<-ended
}

// What closes a prompt names who and how, and takes the buttons away also when
// the check run is not there yet.
func TestHowAPromptIsClosed(t *testing.T) {
	for state, want := range map[store.ApprovalState]string{
		store.ApprovalApproved: "Approved by ada (by comment)", store.ApprovalConsumed: "Approved by ada (by comment)",
		store.ApprovalRejected: "Rejected by ada (by comment): no tests", store.ApprovalExpired: "Expired without a decision",
		store.ApprovalSuperseded: "No longer valid: no tests",
	} {
		row := store.Approval{ID: "1", Digest: "3fa9c1d2", State: state, DecidedBy: "ada", DecidedVia: "comment", Reason: "no tests"}
		for _, hasCheck := range []bool{true, false} {
			effects, err := Closing(row, "the prompt", hasCheck)
			if err != nil {
				t.Fatal(err)
			}
			if len(effects) == 1 == hasCheck {
				t.Errorf("%s: %d effects", state, len(effects))
			}
			for _, effect := range effects {
				if body := string(effect.Payload); effect.After == "" || !strings.Contains(body, want) {
					t.Errorf("%s after %q: %s", effect.Key, effect.After, body)
				}
			}
		}
	}
}
