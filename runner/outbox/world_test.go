package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"handoff/gitops/github"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

const (
	installation = 99
	repository   = 1296269
	ours         = 4711 // the id of our bot's account
)

// A world is an outbox with a real store, and a GitHub that remembers what it
// was told and fails when the test says so.
type world struct {
	*testing.T
	url    string
	clock  *storetest.Clock
	store  *store.Store
	node   *store.Node
	outbox *Outbox
	github *memory
	// publish is what happens to pushes.
	publish func(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	clock := storetest.NewClock(t, url)
	w := &world{T: t, url: url, clock: clock, store: storetest.OpenURL(t, url, clock.Options()), github: newMemory(clock)}
	w.outbox = New(Options{
		Store: w.store, Publisher: w, Key: []byte("0123456789abcdef"), Logger: slog.New(slog.DiscardHandler),
		Repository: func(i, r int64) Repository {
			if i != installation || r != repository {
				t.Errorf("an effect went to installation %d, repository %d", i, r)
			}
			return w.github
		},
	})
	w.register()
	return w
}

// Publish implements [Publisher].
func (w *world) Publish(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error) {
	return w.publish(ctx, effect, approval)
}

func (w *world) register() {
	w.Helper()
	node, err := w.store.Register(w.Context(), "here")
	w.ok(err)
	w.node = node
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wants puts an effect into the outbox and returns its key.
func (w *world) wants(key, kind string, payload any, after ...string) string {
	w.Helper()
	effect := w.effect(key, kind, payload)
	if len(after) > 0 {
		effect.After = after[0]
	}
	_, err := w.store.PutEffect(w.Context(), effect)
	w.ok(err)
	return key
}

func (w *world) effect(key, kind string, payload any) store.Effect {
	w.Helper()
	encoded, err := json.Marshal(payload)
	w.ok(err)
	return store.Effect{
		Key: key, Kind: kind, InstallationID: installation, RepositoryID: repository, Owner: "octo", Repository: "shop", Payload: encoded,
	}
}

// sends lets the outbox send all that can be sent now.
func (w *world) sends() {
	w.Helper()
	for {
		effect, reconcile, err := w.outbox.Store.ClaimEffect(w.Context(), w.node)
		if err != nil {
			return
		}
		w.outbox.send(w.Context(), w.node, effect, reconcile)
	}
}

// later moves the time and sends what is due then.
func (w *world) later(by time.Duration) {
	w.Helper()
	w.clock.Advance(by)
	w.register() // the node of before is dead by now
	w.sends()
}

// is checks what became of an effect.
func (w *world) is(key string, want store.EffectState) store.Effect {
	w.Helper()
	effect, err := w.store.EffectByKey(w.Context(), key)
	w.ok(err)
	if effect.State != want {
		w.Fatalf("%s is %s (%s), want %s", key, effect.State, effect.Error, want)
	}
	return effect
}

// A memory is a GitHub of one repository.
type memory struct {
	mu        sync.Mutex
	clock     *storetest.Clock
	next      int64
	comments  []github.Comment
	reactions []string
	checks    []github.CheckRunRequest
	runs      []github.CheckRun
	pulls     []github.PullRequest
	bodies    []string
	calls     []string
	// before, when set, runs before a call and may refuse it; after runs when
	// the call has taken effect and may lose its answer.
	before, after func(call string) error
}

func newMemory(clock *storetest.Clock) *memory { return &memory{clock: clock} }

// call makes one call of the fake's: refused before, or lost after.
func (m *memory) call(name string, effect func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, name)
	if m.before != nil {
		if err := m.before(name); err != nil {
			return err
		}
	}
	m.next++
	effect()
	if m.after != nil {
		return m.after(name)
	}
	return nil
}

func (m *memory) Bot(context.Context) (github.User, error) {
	return github.User{ID: ours, Login: "handoff[bot]", Type: "Bot"}, nil
}

// says puts a comment there that somebody wrote.
func (m *memory) says(author int64, body string) {
	m.next++
	m.add(author, body)
}

func (m *memory) add(author int64, body string) {
	now := m.clock.Now()
	m.comments = append(m.comments, github.Comment{ID: m.next, Author: github.User{ID: author}, Body: body, CreatedAt: now, UpdatedAt: now})
}

func (m *memory) CreateComment(_ context.Context, issue int, body string) (made github.Comment, err error) {
	err = m.call(fmt.Sprintf("comment on #%d", issue), func() {
		m.add(ours, body)
		made = m.comments[len(m.comments)-1]
	})
	return made, err
}

func (m *memory) EditComment(_ context.Context, id int64, body string) (edited github.Comment, err error) {
	err = m.call(fmt.Sprintf("edit %d", id), func() {
		for i := range m.comments {
			if m.comments[i].ID == id {
				m.comments[i].Body = body
				edited = m.comments[i]
			}
		}
	})
	return edited, err
}

func (m *memory) ListComments(_ context.Context, _ int, since time.Time) (found []github.Comment, err error) {
	err = m.call("list comments", func() {
		for _, comment := range m.comments {
			if !comment.UpdatedAt.Before(since) {
				found = append(found, comment)
			}
		}
	})
	return found, err
}

func (m *memory) CreateReaction(_ context.Context, comment int64, content string) (github.Reaction, error) {
	err := m.call("react", func() { m.reactions = append(m.reactions, fmt.Sprintf("%d %s", comment, content)) })
	return github.Reaction{ID: m.next}, err
}

func (m *memory) CreateReviewReaction(_ context.Context, comment int64, content string) (github.Reaction, error) {
	err := m.call("react to a review", func() { m.reactions = append(m.reactions, fmt.Sprintf("review %d %s", comment, content)) })
	return github.Reaction{ID: m.next}, err
}

func (m *memory) CreateCheckRun(_ context.Context, request github.CheckRunRequest) (made github.CheckRun, err error) {
	err = m.call("create a check run", func() {
		made = github.CheckRun{ID: m.next, Name: request.Name, ExternalID: request.ExternalID, HeadSHA: request.HeadSHA}
		m.checks, m.runs = append(m.checks, request), append(m.runs, made)
	})
	return made, err
}

func (m *memory) UpdateCheckRun(_ context.Context, id int64, request github.CheckRunRequest) (github.CheckRun, error) {
	err := m.call(fmt.Sprintf("update check run %d", id), func() { m.checks = append(m.checks, request) })
	return github.CheckRun{ID: id, Name: request.Name}, err
}

func (m *memory) ListCheckRunsForRef(context.Context, string) (found []github.CheckRun, err error) {
	err = m.call("list check runs", func() { found = m.runs })
	return found, err
}

func (m *memory) FindPullRequestByHead(_ context.Context, branch string) (pull github.PullRequest, found bool, err error) {
	err = m.call("find a pull request", func() {
		for _, one := range m.pulls {
			if one.Head == branch {
				pull, found = one, true
			}
		}
	})
	return pull, found, err
}

func (m *memory) CreatePullRequest(_ context.Context, request github.PullRequestRequest) (made github.PullRequest, err error) {
	err = m.call("create a pull request", func() {
		made = github.PullRequest{Number: int(m.next), Head: request.Head, State: "open", HTMLURL: fmt.Sprintf("https://github.test/pull/%d", m.next)}
		m.pulls, m.bodies = append(m.pulls, made), append(m.bodies, request.Body)
	})
	return made, err
}

func (m *memory) UpdatePullRequest(_ context.Context, number int, request github.PullRequestRequest) (github.PullRequest, error) {
	err := m.call(fmt.Sprintf("update pull request %d", number), func() { m.bodies = append(m.bodies, request.Body) })
	return github.PullRequest{Number: number, Head: request.Head, State: "open"}, err
}

// count says how often a call was made.
func (m *memory) count(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, call := range m.calls {
		if call == name {
			n++
		}
	}
	return n
}

// once returns a fault that happens to one call, once.
func once(name string, err error) func(string) error {
	return func(call string) error {
		if call == name && err != nil {
			fault := err
			err = nil
			return fault
		}
		return nil
	}
}

// unwell is GitHub on a bad day; lost an answer that never came.
var (
	unwell = &github.Error{Code: github.CodeUnavailable, Message: "GitHub is unwell."}
	lost   = &github.Error{Code: github.CodeUnknownOutcome, Message: "GitHub did not answer."}
)

// awaits makes a session that waits for an approved push, and puts the push and
// its pull request into the outbox. It returns the approval's id.
func (w *world) awaits() (session, approval string) {
	w.Helper()
	s := &store.Session{InstallationID: installation, RepositoryID: repository, Owner: "octo", Repository: "shop", Issue: 12, RequesterID: 1, RequesterLogin: "mona", Task: "x"}
	w.ok(w.store.CreateSession(w.Context(), s))
	lease, err := w.store.Acquire(w.Context(), w.node, store.Caps{})
	w.ok(err)
	row := store.Approval{ID: store.NewID(), CallKey: "call-1", Kind: "git_push", Digest: "ab", Commit: "c0ffee", TargetRef: "refs/heads/copilot/12", RoleNeeded: "write", State: store.ApprovalPending}
	push := w.effect("push", KindPush, Push{ApprovalID: row.ID})
	pull := w.effect("pull", KindPullRequest, PullRequest{ApprovalID: row.ID, Title: "t", Body: "b", Base: "main", Head: "copilot/12", Commit: "c0ffee"})
	push.CallKey, pull.CallKey, pull.After = "call-1", "call-1", "push"
	w.ok(lease.PutEffects(w.Context(), []store.Effect{push, pull}))
	w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval, Approvals: []store.Approval{row}}))
	w.ok(w.store.MarkPrompted(w.Context(), row.ID, 5, "hash", w.clock.Now()))
	w.clock.Advance(store.ApprovalCooldown)
	_, err = w.store.Decide(w.Context(), row.ID, store.Decision{State: store.ApprovalApproved, By: "mona", ByID: 1, Via: "comment"})
	w.ok(err)
	return s.ID, row.ID
}

// consume uses the approval up, as a publisher does before it pushes.
func (w *world) consume(ctx context.Context, effect store.Effect, approval store.Approval) {
	_, err := w.store.Consume(ctx, approval.ID, store.Consumption{EffectKey: effect.Key})
	w.ok(err)
}

// told returns what the call that asked for the push was told.
func (w *world) told(session string) (output string, effect string) {
	w.Helper()
	w.clock.Advance(time.Second)
	w.ok(w.store.Wake(w.Context(), session))
	lease, err := w.store.Acquire(w.Context(), w.node, store.Caps{})
	w.ok(err)
	records, err := lease.Load(w.Context(), 1)
	w.ok(err)
	if len(records) != 1 {
		w.Fatalf("the journal has %d records, want the outcome", len(records))
	}
	var payload struct {
		Output string `json:"output"`
		Effect string `json:"effect"`
	}
	w.ok(json.Unmarshal(records[0].Payload, &payload))
	return payload.Output, payload.Effect
}
