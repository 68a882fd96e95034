package approval

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/outbox"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

const (
	installation = 99
	repository   = 1296269
	prompted     = 500 // the prompt's comment
	checked      = 600 // the check run
)

// A person of the stories.
type person struct {
	id         int64
	login      string
	kind       string
	role, base string
}

var (
	mona     = person{42, "mona", "User", "write", "write"} // who asked
	ada      = person{45, "ada", "User", "admin", "admin"}
	maria    = person{46, "maria", "User", "maintain", "write"}
	custom   = person{47, "custom", "User", "release-manager", "write"}
	triager  = person{48, "triager", "User", "triage", "read"}
	reader   = person{49, "reader", "User", "read", "read"}
	stranger = person{50, "stranger", "User", "none", "none"}
	robot    = person{51, "robot[bot]", "Bot", "admin", "admin"}
)

// A world is a service with a real store and one approval that waits, on a
// GitHub that the test decides about.
type world struct {
	*testing.T
	clock    *storetest.Clock
	store    *store.Store
	node     *store.Node
	service  *Service
	poller   *Poller
	approval store.Approval

	people    map[int64]person
	fault     error // of every call
	comment   github.Comment
	gone      bool
	reactions []github.Reaction
	etags     []string // as the poller sent them
	etag      string   // of the list as it is
	lookups   int
}

func newWorld(t *testing.T, change ...func(*Action)) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	clock := storetest.NewClock(t, url)
	w := &world{T: t, clock: clock, store: storetest.OpenURL(t, url, clock.Options()), people: map[int64]person{}, etag: `"1"`}
	for _, p := range []person{mona, ada, maria, custom, triager, reader, stranger, robot} {
		w.people[p.id] = p
	}
	w.service = NewService(w.store, func(i, r int64) Repository {
		if i != installation || r != repository {
			t.Errorf("asked about installation %d, repository %d", i, r)
		}
		return w
	}, slog.New(slog.DiscardHandler))
	w.poller = NewPoller(w.service)
	w.register()
	w.ask(change...)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) register() {
	w.Helper()
	node, err := w.store.Register(w.Context(), "here")
	w.ok(err)
	w.node = node
}

// ask makes a session of mona's that waits for a push to be approved, an hour
// at most, and shows its prompt.
func (w *world) ask(change ...func(*Action)) {
	w.Helper()
	session := store.Session{
		InstallationID: installation, RepositoryID: repository, Owner: "octo", Repository: "shop", Issue: 12,
		RequesterID: mona.id, RequesterLogin: mona.login, Task: "x",
	}
	w.ok(w.store.CreateSession(w.Context(), &session))
	lease, err := w.store.Acquire(w.Context(), w.node, store.Caps{})
	w.ok(err)
	action := Action{
		Kind: "git_push", Session: session.ID, InstallationID: installation, RepositoryID: repository, Issue: 12,
		CallKey: "call-1", ArgumentsHash: "aa", Commit: "c0ffee", Tree: "7ree", TargetRef: "refs/heads/copilot/12", RoleNeeded: "write",
	}
	for _, c := range change {
		c(&action)
	}
	question, err := NewQuestion(Ask{Session: session, Action: action, Prompt: examplePrompt(), HeadSHA: "abc", ExpiresAt: w.clock.Now().Add(time.Hour)})
	w.ok(err)
	w.ok(lease.Suspend(w.Context(), store.Suspension{
		State: store.StateAwaitingApproval, Approvals: []store.Approval{question.Approval}, Effects: question.Effects,
	}))
	w.comment = github.Comment{ID: prompted, Body: "the prompt", CreatedAt: w.clock.Now(), UpdatedAt: w.clock.Now()}
	w.ok(w.store.MarkPrompted(w.Context(), question.Approval.ID, prompted, outbox.BodyHash(w.comment.Body), w.clock.Now()))
	w.ok(w.store.SetCheckRun(w.Context(), question.Approval.ID, checked))
	w.clock.Advance(store.ApprovalCooldown)
	w.approval, err = w.store.Approval(w.Context(), question.Approval.ID)
	w.ok(err)
}

// is checks how the approval stands.
func (w *world) is(want store.ApprovalState) store.Approval {
	w.Helper()
	row, err := w.store.Approval(w.Context(), w.approval.ID)
	w.ok(err)
	if row.State != want {
		w.Fatalf("the approval is %s (%s), want %s", row.State, row.Reason, want)
	}
	return row
}

// types is a comment, clicks a button, reacts a thumb.
func (w *world) types(who person, verdict Verdict) error {
	_, err := w.service.DecideByComment(w.Context(), repository, 12, w.approval.Digest[:minPrefix], Answer{Verdict: verdict, By: who.login, ByID: who.id})
	return err
}

func (w *world) clicks(who person, verdict Verdict) error {
	identifier := ActionReject
	if verdict == Approve {
		identifier = ActionApprove
	}
	_, err := w.service.DecideByCheckRun(w.Context(), repository, Click{ApprovalID: w.approval.ID, CheckRunID: checked, Identifier: identifier}, Answer{By: who.login, ByID: who.id})
	return err
}

func (w *world) thumbs(who person, verdict Verdict) error {
	content := "-1"
	if verdict == Approve {
		content = "+1"
	}
	w.reactions = append(w.reactions, github.Reaction{Content: content, User: github.User{ID: who.id, Login: who.login, Type: who.kind}})
	w.etag = fmt.Sprintf("%q", fmt.Sprint(len(w.reactions)+1))
	w.round()
	return nil
}

// round lets the poller look once at what is due.
func (w *world) round() {
	w.Helper()
	w.register()
	if err := w.poller.round(w.Context(), w.node); err != nil {
		w.Fatal(err)
	}
}

// later moves the time and lets the poller look.
func (w *world) later(by time.Duration) {
	w.Helper()
	w.clock.Advance(by)
	w.round()
}

// The world is the GitHub.

// mustBePrompt fails the test where any comment but the prompt is looked at: a
// copy of its text, by whomever, is none.
func (w *world) mustBePrompt(comment int64) {
	w.Helper()
	if comment != prompted {
		w.Errorf("comment %d was read as if it were the prompt", comment)
	}
}

func (w *world) Permission(_ context.Context, id int64, login string) (github.Permission, error) {
	w.lookups++
	who, ok := w.people[id]
	switch {
	case w.fault != nil:
		return github.Permission{}, w.fault
	case !ok:
		return github.Permission{}, &github.Error{Code: github.CodeNotFound, Message: "There is no such person."}
	case who.login != login:
		return github.Permission{}, &github.Error{Code: github.CodeConflict, Message: "The login belongs to somebody else."}
	}
	return github.Permission{User: github.User{ID: who.id, Login: who.login, Type: who.kind}, Role: who.role, Base: who.base}, nil
}

func (w *world) GetComment(_ context.Context, comment int64) (github.Comment, error) {
	w.mustBePrompt(comment)
	if w.gone {
		return github.Comment{}, &github.Error{Code: github.CodeNotFound, Message: "It is gone."}
	}
	return w.comment, w.fault
}

func (w *world) ListReactions(_ context.Context, comment int64, etag string) (github.Reactions, error) {
	w.mustBePrompt(comment)
	w.etags = append(w.etags, etag)
	switch {
	case w.fault != nil:
		return github.Reactions{}, w.fault
	case w.gone:
		return github.Reactions{}, &github.Error{Code: github.CodeNotFound, Message: "It is gone."}
	case etag == w.etag:
		return github.Reactions{NotModified: true, ETag: etag}, nil
	}
	return github.Reactions{ETag: w.etag, All: w.reactions}, nil
}
