package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestACommentEndsWithItsMarkerAndIsEditedInPlace(t *testing.T) {
	w := newWorld(t)
	w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	w.wants("hello:text", KindCommentUpdate, CommentUpdate{EffectKey: "hello", Body: "Hello again"}, "hello")
	w.sends()
	created := w.is("hello", store.EffectDone)
	w.is("hello:text", store.EffectDone)
	if len(w.github.comments) != 1 {
		t.Fatalf("%d comments, want one", len(w.github.comments))
	}
	body := w.github.comments[0].Body
	if !strings.HasPrefix(body, "Hello again\n") || !HasMarker(body, Marker(w.outbox.Key, created)) {
		t.Errorf("the comment says %q", body)
	}
}

func TestReactionsFindTheirComment(t *testing.T) {
	w := newWorld(t)
	w.wants("prompt", KindCommentCreate, CommentCreate{Issue: 12, Body: "?"})
	w.wants("up", KindReaction, Reaction{EffectKey: "prompt", CommentKind: CommentIssue, Content: "+1"}, "prompt")
	w.wants("eyes", KindReaction, Reaction{CommentID: 77, CommentKind: CommentReview, Content: "eyes"})
	w.sends()
	slices.Sort(w.github.reactions)
	if want := []string{"1 +1", "review 77 eyes"}; !slices.Equal(w.github.reactions, want) {
		t.Errorf("reactions %q, want %q", w.github.reactions, want)
	}
}

func TestAPromptIsNotedInItsApproval(t *testing.T) {
	w := newWorld(t)
	_, id := w.awaits()
	w.wants("prompt", KindCommentCreate, CommentCreate{Issue: 12, Body: "Push?", ApprovalID: id})
	w.wants("check", KindCheckRunCreate, CheckRunCreate{HeadSHA: "abc", Name: "copilot push #12", ExternalID: id, Status: "completed", Actions: []CheckRunAction{{Label: "Approve", Identifier: "approve"}}})
	w.wants("check:closed", KindCheckRunUpdate, CheckRunUpdate{EffectKey: "check", Name: "copilot push #12", Status: "completed", Conclusion: "success"}, "check")
	w.publish = func(context.Context, store.Effect, store.Approval) (PushResult, error) {
		return PushResult{}, &Refusal{Reason: "not today"}
	}
	w.sends()
	w.is("check:closed", store.EffectDone)
	approval, err := w.store.Approval(t.Context(), id)
	w.ok(err)
	comment := w.github.comments[0]
	if approval.PromptCommentID != comment.ID || approval.PromptBodyHash != BodyHash(comment.Body) || approval.CheckRunID != w.github.runs[0].ID {
		t.Errorf("the approval knows comment %d, check run %d", approval.PromptCommentID, approval.CheckRunID)
	}
	if last := w.github.checks[1]; last.Conclusion != "success" || last.Name == "" || len(last.Actions) != 0 {
		t.Errorf("the check run became %+v", last)
	}
}

// Whatever is created is created once, also when its answer is lost and when
// the request never arrived.
func TestALostAnswerIsLookedUp(t *testing.T) {
	approval := ""
	for what, story := range map[string]struct {
		call string
		wish func(w *world) string
		made func(m *memory) int
	}{
		"comment": {"comment on #12", func(w *world) string {
			return w.wants("key", KindCommentCreate, CommentCreate{Issue: 12, Body: "x"})
		}, func(m *memory) int { return len(m.comments) }},
		"pull request": {"create a pull request", func(w *world) string {
			return w.wants("key", KindPullRequest, PullRequest{Title: "t", Head: "copilot/12", Base: "main"})
		}, func(m *memory) int { return len(m.pulls) }},
		"check run": {"create a check run", func(w *world) string {
			_, approval = w.awaits()
			return w.wants("key", KindCheckRunCreate, CheckRunCreate{HeadSHA: "abc", Name: "copilot", ExternalID: approval})
		}, func(m *memory) int { return len(m.runs) }},
	} {
		for _, arrived := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, arrived %v", what, arrived), func(t *testing.T) {
				w := newWorld(t)
				w.publish = func(context.Context, store.Effect, store.Approval) (PushResult, error) {
					return PushResult{}, &Refusal{Reason: "not today"}
				}
				if arrived {
					w.github.after = once(story.call, lost)
				} else {
					w.github.before = once(story.call, lost)
				}
				key := story.wish(w)
				w.sends()
				w.is(key, store.EffectSending)
				w.later(time.Minute)
				w.is(key, store.EffectDone)
				if n := story.made(w.github); n != 1 {
					t.Errorf("it was made %d times", n)
				}
			})
		}
	}
}

// The node dies with the request on its way; another one finds what it made.
func TestAnotherNodeFindsWhatADeadOneMade(t *testing.T) {
	w := newWorld(t)
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	effect, reconcile, err := w.store.ClaimEffect(t.Context(), w.node)
	w.ok(err)
	dead, fault := w.outbox.perform(t.Context(), effect, reconcile)
	w.ok(fault)
	before := w.node
	w.later(time.Minute)
	w.is(key, store.EffectDone)
	if len(w.github.comments) != 1 {
		t.Errorf("%d comments, want one", len(w.github.comments))
	}
	// The dead one was only asleep, and is too late.
	if err := w.store.EndEffect(t.Context(), before, effect, dead); !errors.Is(err, runner.ErrFenced) {
		t.Errorf("the zombie got %v", err)
	}
}

// A comment is taken for ours only if we wrote it and it ends with the marker.
func TestAForgedMarkerIsNotOurs(t *testing.T) {
	w := newWorld(t)
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	effect, err := w.store.EffectByKey(t.Context(), key)
	w.ok(err)
	marker := Marker(w.outbox.Key, effect)
	w.github.says(666, "I am the bot\n"+marker)
	w.github.says(ours, "A model says: "+marker+" and more")
	w.github.says(ours, "Another server's\n"+Marker([]byte("another key of ours"), effect))
	w.github.before = once("comment on #12", lost)
	w.sends()
	w.later(time.Minute)
	w.is(key, store.EffectDone)
	if len(w.github.comments) != 4 {
		t.Errorf("%d comments, want the three forged ones and ours", len(w.github.comments))
	}
}

func TestTextsCannotCarryMarkers(t *testing.T) {
	w := newWorld(t)
	w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "A model says <!-- handoff:00 --> and <!-<!-- handoff: -->- handoff:00 -->"})
	w.sends()
	if body := w.github.comments[0].Body; strings.Count(body, markerPrefix) != 1 || strings.Count(body, "<!-- handoff:") != 1 {
		t.Errorf("the comment says %q", body)
	}
}

// A prompt's diff may be of an HTML file. Nothing of it may be hidden from the
// person who approves it.
func TestHTMLCommentsInADiffAreShown(t *testing.T) {
	w := newWorld(t)
	diff := "```diff\n+<!-- harmless\n+rm -rf /\n+-->\n+<!-- never closed\n+curl evil\n```\n\nTo decide: comment"
	w.wants("prompt", KindCommentCreate, CommentCreate{Issue: 12, Body: diff})
	w.sends()
	if body := w.github.comments[0].Body; !strings.HasPrefix(body, diff) {
		t.Errorf("the prompt shows %q", body)
	}
}

func TestARateLimitIsWaitedForAndCountsForNothing(t *testing.T) {
	w := newWorld(t)
	limit := &github.Error{Code: github.CodeRateLimited, Message: "Wait.", RetryAt: time.Now().Add(time.Minute)}
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	w.github.before = func(string) error { return limit }
	w.sends()
	effect := w.is(key, store.EffectPending)
	if wait := effect.NotBefore.Sub(w.clock.Now()); wait < 50*time.Second || wait > time.Minute {
		t.Errorf("it is tried again after %v", wait)
	}
	for range 2 * maxFailures {
		w.later(2 * time.Minute)
	}
	w.github.before = once("comment on #12", unwell)
	w.later(2 * time.Minute)
	w.is(key, store.EffectPending)
	w.later(time.Minute)
	w.is(key, store.EffectDone)
}

// A limit without an end must not make the outbox spin.
func TestARateLimitWithoutAnEndIsWaitedForAll(t *testing.T) {
	w := newWorld(t)
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	w.github.before = func(string) error { return &github.Error{Code: github.CodeRateLimited, Message: "Wait."} }
	w.sends()
	w.is(key, store.EffectPending)
	if n := w.github.count("comment on #12"); n != 1 {
		t.Errorf("it was tried %d times at one moment", n)
	}
}

// The progress comment's text is one row for as long as the session lives: its
// attempts are many, and one bad answer is still one.
func TestATextThatWasReplacedOftenSurvivesABadDay(t *testing.T) {
	w := newWorld(t)
	w.wants("progress", KindCommentCreate, CommentCreate{Issue: 12, Body: "at work"})
	for step := range 3 * maxFailures {
		w.ok(w.store.PutLatest(t.Context(), w.effect("text", KindCommentUpdate, CommentUpdate{EffectKey: "progress", Body: fmt.Sprint("step ", step)})))
		w.later(5 * time.Second)
	}
	w.ok(w.store.PutLatest(t.Context(), w.effect("text", KindCommentUpdate, CommentUpdate{EffectKey: "progress", Body: "Done"})))
	w.github.before = once("edit 1", unwell)
	w.later(time.Second)
	w.is("text", store.EffectPending)
	w.later(2 * time.Second)
	w.is("text", store.EffectDone)
	if body := w.github.comments[0].Body; !strings.HasPrefix(body, "Done\n") {
		t.Errorf("the comment ends as %q", body)
	}
}

func TestWhatTimeDoesNotMendIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.github.before = func(string) error { return unwell }
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	w.wants("after", KindReaction, Reaction{EffectKey: "hello", Content: "+1"}, "hello")
	began := w.clock.Now()
	w.sends()
	for range maxFailures {
		w.later(10 * time.Minute)
	}
	effect := w.is(key, store.EffectFailed)
	w.is("after", store.EffectFailed)
	if n := w.github.count("comment on #12"); n != maxFailures || effect.Error != "GitHub is unwell." {
		t.Errorf("tried %d times, then %q", n, effect.Error)
	}
	if w.clock.Now().Sub(began) < 30*time.Minute || len(w.outbox.failures) != 0 {
		t.Errorf("given up after %v, remembering %v", w.clock.Now().Sub(began), w.outbox.failures)
	}
}

func TestARefusalIsFinal(t *testing.T) {
	w := newWorld(t)
	w.github.before = func(string) error {
		return &github.Error{Code: github.CodeValidation, Message: "GitHub refuses the text."}
	}
	key := w.wants("hello", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
	w.sends()
	if effect := w.is(key, store.EffectFailed); effect.Error != "GitHub refuses the text." || len(w.outbox.failures) != 0 {
		t.Errorf("it ended with %q", effect.Error)
	}
}

func TestNonsenseEndsItsRowAndNothingElse(t *testing.T) {
	for name, effect := range map[string]store.Effect{
		"list":         {Kind: KindCommentCreate, Payload: json.RawMessage(`[]`)},
		"null":         {Kind: KindCommentUpdate, Payload: json.RawMessage(`"x"`)},
		"number":       {Kind: KindReaction, Payload: json.RawMessage(`7`)},
		"wrong field":  {Kind: KindCommentCreate, Payload: json.RawMessage(`{"issue":"twelve"}`)},
		"cut off":      {Kind: KindPush, Payload: json.RawMessage(`{"approval_id":`)},
		"no approval":  {Kind: KindPush, Payload: json.RawMessage(`{"approval_id":"nobody"}`)},
		"empty":        {Kind: KindPush, Payload: json.RawMessage(``)},
		"unknown kind": {Kind: "wiki.delete", Payload: json.RawMessage(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			effect.Key, effect.InstallationID, effect.RepositoryID = "nonsense", installation, repository
			_, err := w.store.PutEffect(t.Context(), effect)
			w.ok(err)
			w.wants("sense", KindCommentCreate, CommentCreate{Issue: 12, Body: "Hello"})
			w.sends()
			w.is("nonsense", store.EffectFailed)
			w.is("sense", store.EffectDone)
		})
	}
}

func TestAnApprovedPushEndsWithItsPullRequest(t *testing.T) {
	w := newWorld(t)
	session, _ := w.awaits()
	w.publish = func(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error) {
		w.consume(ctx, effect, approval)
		return PushResult{Commit: approval.Commit, Ref: approval.TargetRef}, nil
	}
	w.sends()
	w.is("push", store.EffectDone)
	w.is("pull", store.EffectDone)
	output, effect := w.told(session)
	if effect != runner.EffectDone || !strings.Contains(output, w.github.pulls[0].HTMLURL) {
		t.Errorf("the crew was told %q (%s)", output, effect)
	}
}

func TestAnOpenPullRequestIsUpdated(t *testing.T) {
	w := newWorld(t)
	w.github.pulls = []github.PullRequest{{Number: 7, Head: "copilot/12", State: "open"}}
	w.wants("pull", KindPullRequest, PullRequest{Title: "t", Head: "copilot/12", Base: "main", Body: "new words"})
	w.sends()
	w.is("pull", store.EffectDone)
	if w.github.count("update pull request 7") != 1 || len(w.github.pulls) != 1 {
		t.Errorf("GitHub was asked to %q", w.github.calls)
	}
}

// What a push that fails is told, by how far it came.
func TestAFailedPushSaysWhatIsKnown(t *testing.T) {
	disk := &git.Error{Code: git.CodeIO, Message: "it cannot be written", Err: errors.New("open /srv/handoff/ws: no space left")}
	for name, story := range map[string]struct {
		consumes bool
		fault    error
		told     string
		effect   string
		tries    int
	}{
		"refused":              {false, &Refusal{Reason: "the approval has expired"}, "Nothing was pushed: the approval has expired", runner.EffectNotRun, 1},
		"declined by git":      {true, &Refusal{Reason: "the branch was moved"}, "Nothing was pushed: the branch was moved", runner.EffectNotRun, 1},
		"a full disk":          {false, disk, "Nothing was pushed: a fault of the server, which its log describes", runner.EffectNotRun, maxFailures},
		"a lost answer":        {true, &git.Error{Code: git.CodeUnknown, Message: "the server did not answer"}, "It is not known whether the push arrived: the server did not answer", runner.EffectUnknown, maxFailures},
		"GitHub never answers": {false, unwell, "Nothing was pushed: GitHub is unwell.", runner.EffectNotRun, maxFailures},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			session, _ := w.awaits()
			tries := 0
			w.publish = func(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error) {
				tries++
				if story.consumes {
					w.consume(ctx, effect, approval)
				}
				return PushResult{}, story.fault
			}
			w.sends()
			for range maxFailures {
				w.later(10 * time.Minute)
			}
			output, effect := w.told(session)
			if output != story.told || effect != story.effect || tries != story.tries {
				t.Errorf("after %d tries the crew was told %q (%s)", tries, output, effect)
			}
			if n := len(w.github.pulls); n != 0 {
				t.Errorf("%d pull requests without a push", n)
			}
		})
	}
}

// A fault of the program in one effect ends that effect, after looking whether
// it came through, and no other.
func TestAFaultOfTheProgramEndsOneEffectAlone(t *testing.T) {
	w := newWorld(t)
	session, _ := w.awaits()
	w.publish = func(context.Context, store.Effect, store.Approval) (PushResult, error) { panic("index out of range") }
	other := w.wants("c", KindCommentCreate, CommentCreate{Issue: 1, Body: "hello"})
	w.sends()
	for range maxFailures {
		w.later(10 * time.Minute)
	}
	if output, effect := w.told(session); effect != runner.EffectUnknown || !strings.Contains(output, "a fault of the server") {
		t.Errorf("the crew was told %q (%s)", output, effect)
	}
	w.is(other, store.EffectDone)
}

func TestAPushedBranchWhosePullRequestFailsIsSaid(t *testing.T) {
	w := newWorld(t)
	session, _ := w.awaits()
	w.publish = func(context.Context, store.Effect, store.Approval) (PushResult, error) { return PushResult{}, nil }
	w.github.before = func(string) error {
		return &github.Error{Code: github.CodeForbidden, Message: "Pull requests are switched off."}
	}
	w.sends()
	if output, _ := w.told(session); !strings.Contains(output, "The branch was pushed") || !strings.Contains(output, "Pull requests are switched off.") {
		t.Errorf("the crew was told %q", output)
	}
}

// A session whose prompt will never appear must hear of it.
func TestALostPromptWakesItsSession(t *testing.T) {
	w := newWorld(t)
	for _, story := range []struct {
		approval string
		state    store.EffectState
		wakes    bool
	}{
		{"approval-1", store.EffectFailed, true}, {"approval-1", store.EffectUnknown, true},
		{"approval-1", store.EffectPending, false}, {"approval-1", store.EffectDone, false}, {"", store.EffectFailed, false},
	} {
		prompt := w.effect("prompt", KindCommentCreate, CommentCreate{Issue: 12, Body: "Push?", ApprovalID: story.approval})
		if end := w.outbox.withOutcome(prompt, store.EffectEnd{State: story.state}, nil); end.WakeSession != story.wakes {
			t.Errorf("%s of %q wakes the session: %v", story.state, story.approval, end.WakeSession)
		}
	}
}

// Every text of every kind passes the scanner, and none goes when it fails.
func TestNoTextLeavesUnseen(t *testing.T) {
	w := newWorld(t)
	w.outbox.Redact = func(text string) (string, error) { return strings.ReplaceAll(text, "hunter2", "[redacted]"), nil }
	_, id := w.awaits()
	w.publish = func(context.Context, store.Effect, store.Approval) (PushResult, error) { return PushResult{}, nil }
	w.wants("comment", KindCommentCreate, CommentCreate{Issue: 12, Body: "x hunter2"})
	w.wants("text", KindCommentUpdate, CommentUpdate{EffectKey: "comment", Body: "y hunter2"}, "comment")
	w.wants("check", KindCheckRunCreate, CheckRunCreate{HeadSHA: "abc", Name: "n", ExternalID: id, Title: "hunter2", Summary: "hunter2", Text: "hunter2", Actions: []CheckRunAction{{Label: "hunter2"}}})
	w.wants("request", KindPullRequest, PullRequest{Title: "hunter2", Body: "hunter2", Head: "h", Base: "main"})
	w.sends()
	all := fmt.Sprint(w.github.comments, w.github.checks, w.github.bodies)
	if strings.Contains(all, "hunter2") || strings.Count(all, "[redacted]") < 6 {
		t.Errorf("what left: %s", all)
	}
	w.outbox.Redact = func(string) (string, error) { return "", errors.New("the scanner is broken") }
	key := w.wants("second", KindCommentCreate, CommentCreate{Issue: 12, Body: "z"})
	w.sends()
	w.is(key, store.EffectPending)
}

// A shutdown waits for a request, but not for a push that hangs.
func TestAShutdownDoesNotWaitForAPushThatHangs(t *testing.T) {
	w := newWorld(t)
	w.awaits()
	began := make(chan struct{})
	w.publish = func(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error) {
		w.consume(ctx, effect, approval)
		close(began)
		<-ctx.Done()
		return PushResult{}, ctx.Err()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.outbox.Run(ctx, w.node) }()
	<-began
	stop()
	<-ended
	w.is("push", store.EffectSending)
}
