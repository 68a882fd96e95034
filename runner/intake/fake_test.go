package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"handoff/gitops/fakegithub"
	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/intake"
	"handoff/runner/outbox"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/webhook"
)

// A line is the whole way of a comment: the fake GitHub, the webhook server,
// the store, the router, the App client.
type line struct {
	t       *testing.T
	github  *fakegithub.Server
	store   *store.Store
	sweeper *intake.Sweeper
	down    atomic.Bool
	issue   fakegithub.Issue
}

const secret = "0123456789abcdef0123"

func newLine(t *testing.T) *line {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server, err := fakegithub.New(fakegithub.Options{DataDir: t.TempDir()})
	must(err)
	must(server.Start(t.Context()))
	t.Cleanup(func() { server.Close() })
	l := &line{t: t, github: server, store: storetest.Open(t, storetest.SQLite)}
	for _, login := range []string{"mona", "hubot"} {
		_, err := server.AddUser(fakegithub.UserSpec{Login: login})
		must(err)
	}
	_, err = server.AddRepository(fakegithub.RepositorySpec{Owner: "mona", Name: "login", Files: fstest.MapFS{"README.md": {Data: []byte("# login\n")}}})
	must(err)
	app, err := server.AddApp(fakegithub.AppSpec{
		Slug: "handoff", Owner: "mona", WebhookSecret: secret,
		Permissions: map[string]string{"contents": "write", "issues": "write", "pull_requests": "write", "checks": "write"},
	})
	must(err)
	_, err = server.Install(fakegithub.InstallationSpec{App: "handoff", Account: "mona"})
	must(err)
	client, err := github.NewApp(github.Config{AppID: app.ID, PrivateKey: app.PrivateKey, BaseURL: server.URL()})
	must(err)
	l.issue, err = server.As("mona").CreateIssue("mona/login", "Add a login", "We need one.")
	must(err)
	l.serve(app, client)
	return l
}

// serve starts the webhook server and the router.
func (l *line) serve(app fakegithub.App, client *github.App) {
	door, err := webhook.New(webhook.Options{Secrets: []string{secret}, AppID: app.ID, Inbox: l.store})
	if err != nil {
		l.t.Fatal(err)
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		door.ServeHTTP(w, r)
	}))
	l.t.Cleanup(hook.Close)
	if err := l.github.SetWebhook("handoff", hook.URL+"/webhook", secret); err != nil {
		l.t.Fatal(err)
	}
	l.sweeper = intake.NewSweeper(intake.SweeperOptions{
		Log: client, Marks: l.store, Matters: webhook.Matters,
		Deliver: func(ctx context.Context, m intake.Missed) error {
			_, err := door.Deliver(ctx, webhook.Received{GUID: m.GUID, Event: m.Event, HookID: m.HookID, Body: m.Body, At: m.At, Source: "sweeper"})
			return err
		},
	})
	router := intake.NewRouter(intake.Options{
		Store: l.store,
		Repository: func(installation, repository int64) intake.Repository {
			return client.Installation(installation).ReadOnly(repository)
		},
		Decisions: approval.NewService(l.store, func(installation, repository int64) approval.Repository {
			return client.Installation(installation).ReadOnly(repository)
		}, slog.New(slog.DiscardHandler)),
	})
	node, err := l.store.Register(l.t.Context(), "test")
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		router.Run(ctx, node)
	}()
	l.t.Cleanup(func() { stop(); <-ended })
}

// says comments and waits until GitHub has delivered it.
func (l *line) says(who, body string) {
	l.t.Helper()
	if _, err := l.github.As(who).Comment("mona/login", l.issue.Number, body); err != nil {
		l.t.Fatal(err)
	}
	if err := l.github.WaitIdle(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

// effects waits for effects of the outbox, in their order.
func (l *line) effects(kinds ...string) []store.Effect {
	l.t.Helper()
	node, err := l.store.Register(l.t.Context(), "outbox")
	if err != nil {
		l.t.Fatal(err)
	}
	var found []store.Effect
	for len(found) < len(kinds) {
		effect, _, err := l.store.ClaimEffect(l.t.Context(), node)
		if errors.Is(err, store.ErrNone) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if err := l.store.EndEffect(l.t.Context(), node, effect, store.EffectEnd{State: store.EffectDone}); err != nil {
			l.t.Fatal(err)
		}
		found = append(found, effect)
	}
	for i, effect := range found {
		if effect.Kind != kinds[i] {
			l.t.Errorf("effect %d is %s, want %s", i, effect.Kind, kinds[i])
		}
	}
	return found
}

func (l *line) sessions() []store.Session {
	l.t.Helper()
	sessions, err := l.store.Sessions(l.t.Context(), store.SessionFilter{}, 10)
	if err != nil {
		l.t.Fatal(err)
	}
	return sessions
}

func TestACommentBecomesASession(t *testing.T) {
	l := newLine(t)
	l.says("mona", "what a nice day")
	l.says("hubot", "/copilot print env")
	var refusal outbox.CommentCreate
	if err := json.Unmarshal(l.effects(outbox.KindCommentCreate)[0].Payload, &refusal); err != nil {
		t.Fatal(err)
	}
	if refusal.Issue != l.issue.Number || !strings.Contains(refusal.Body, "@hubot") || !strings.Contains(refusal.Body, "write") {
		t.Errorf("the stranger is told %+v", refusal)
	}
	l.says("hubot", "/copilot print env, please")
	l.says("mona", "/copilot add a login endpoint\n\n> like this")
	effect := l.effects(outbox.KindReaction)[0]
	if !strings.Contains(string(effect.Payload), `"eyes"`) || effect.Owner != "mona" || effect.Repository != "login" {
		t.Errorf("the reaction is %+v", effect)
	}
	sessions := l.sessions()
	if len(sessions) != 1 || sessions[0].Issue != l.issue.Number || sessions[0].RequesterLogin != "mona" ||
		!strings.HasPrefix(sessions[0].Task, "add a login endpoint\n\n[excerpt 1]") || sessions[0].IssueTitle != "Add a login" {
		t.Errorf("sessions %+v", sessions)
	}
}

// The bot is away while somebody comments; GitHub does not try again.
func TestAMissedCommentIsFetchedFromTheLog(t *testing.T) {
	l := newLine(t)
	l.down.Store(true)
	l.says("mona", "/copilot add a login endpoint")
	l.says("mona", "no command")
	l.down.Store(false)
	if n := len(l.sessions()); n != 0 {
		t.Fatalf("%d sessions while the bot was away", n)
	}
	for range 2 {
		if _, err := l.sweeper.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.effects(outbox.KindReaction)
	if sessions := l.sessions(); len(sessions) != 1 || sessions[0].Task != "add a login endpoint" {
		t.Errorf("sessions %+v", sessions)
	}
}

// Somebody closes the issue, or the owner uninstalls the App: the session ends.
func TestTheGroundGoesAway(t *testing.T) {
	l := newLine(t)
	l.says("mona", "/copilot add a login endpoint")
	l.effects(outbox.KindReaction)
	if err := l.github.As("mona").CloseIssue("mona/login", l.issue.Number); err != nil {
		t.Fatal(err)
	}
	for !l.sessions()[0].State.Ended() {
		time.Sleep(5 * time.Millisecond)
	}
	if s := l.sessions()[0]; s.State != store.StateCancelled || !strings.Contains(s.Reason, "closed") {
		t.Errorf("the session is %s: %s", s.State, s.Reason)
	}
}
