package session

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"handoff/agents"
	"handoff/gitops/fakegithub"
	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/gitops/secrets"
	"handoff/runner/outbox"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	goleak.VerifyTestMain(m)
}

// A world is a repository on a fake GitHub, a real store with a clock that the
// test moves, and a crew of one whose model says what the test wants. Nothing
// runs by itself: the test lets a node work on a session, and the outbox send.
type world struct {
	*testing.T
	clock        *storetest.Clock
	store        *store.Store
	node         *store.Node
	github       *fakegithub.Server
	app          *github.App
	installation int64
	repository   int64
	person       int64
	conductor    *Conductor
	outbox       *outbox.Outbox
	// script is what the model says next.
	script []agents.Response
	// heard is what the last message was each time the model was asked.
	heard []string
	// first is a commit that a test remembers.
	first string
	// breaks makes the program panic once the script is at its end.
	breaks bool
	// fault, when set, is what GitHub answers to the conductor.
	fault error
}

const (
	owner = "acme"
	name  = "shop"
)

// crew is the one agent of these stories.
const crew = `---
name: Copilot
slug: copilot
role: Manager
tools: [read_file, write_file, delete_file, run_command, git_push]
---
You work alone.
`

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	clock := storetest.NewClock(t, url)
	options := clock.Options()
	options.Unpaced = true // the writer queue has no time that passes
	w := &world{T: t, clock: clock, store: storetest.OpenURL(t, url, options)}
	w.ok(w.store.PutAgent(t.Context(), store.AgentRow{ID: "copilot", Version: "1", Source: crew}))
	w.raise(files)
	w.conductor = w.newConductor()
	w.outbox = outbox.New(outbox.Options{
		Store: w.store, Publisher: w.conductor, Key: []byte("0123456789abcdef"), Logger: w.log(),
		Repository: func(i, r int64) outbox.Repository { return w.app.Installation(i).Writer(r) },
	})
	node, err := w.store.Register(t.Context(), "here")
	w.ok(err)
	w.node = node
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return w
}

// raise starts the fake with one repository, in which mona may write.
func (w *world) raise(files map[string]string) {
	w.Helper()
	tree := fstest.MapFS{}
	for path, content := range files {
		tree[path] = &fstest.MapFile{Data: []byte(content), Mode: fs.FileMode(0o644)}
	}
	var err error
	w.github, err = fakegithub.New(fakegithub.Options{
		DataDir: w.TempDir(), Logger: w.log(),
		Limits: fakegithub.Limits{PerHour: -1, PointsPerMinute: -1, Concurrent: -1, ContentPerMinute: -1, ContentPerHour: -1},
	})
	w.ok(err)
	_, err = w.github.AddUser(fakegithub.UserSpec{Login: owner, Type: "Organization"})
	w.ok(err)
	mona, err := w.github.AddUser(fakegithub.UserSpec{Login: "mona"})
	w.ok(err)
	repository, err := w.github.AddRepository(fakegithub.RepositorySpec{
		Owner: owner, Name: name, Files: tree, Roles: map[string]fakegithub.Role{"mona": fakegithub.RoleWrite},
	})
	w.ok(err)
	app, err := w.github.AddApp(fakegithub.AppSpec{
		Slug: "crew", Name: "crew", Owner: owner, WebhookSecret: "0123456789abcdef",
		Permissions: map[string]string{"issues": "write", "pull_requests": "write", "contents": "write", "checks": "write"},
	})
	w.ok(err)
	installation, err := w.github.Install(fakegithub.InstallationSpec{App: "crew", Account: owner})
	w.ok(err)
	w.ok(w.github.Start(w.Context()))
	w.Cleanup(func() { w.ok(w.github.Close()) })
	w.app, err = github.NewApp(github.Config{AppID: app.ID, PrivateKey: app.PrivateKey, BaseURL: w.github.URL(), Logger: w.log()})
	w.ok(err)
	_, err = w.github.As("mona").CreateIssue(owner+"/"+name, "Greet people", "")
	w.ok(err)
	w.installation, w.repository, w.person = installation.ID, repository.ID, mona.ID
}

func (w *world) log() *slog.Logger { return slog.New(slog.NewTextHandler(logWriter{w.T}, nil)) }

type logWriter struct{ t *testing.T }

func (l logWriter) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(line), "\n"))
	return len(line), nil
}

// newConductor is a node with a data directory of its own.
func (w *world) newConductor() *Conductor {
	w.Helper()
	dir := w.TempDir()
	cache, err := git.NewCache(git.Options{Dir: dir + "/cache", Logger: w.log()})
	w.ok(err)
	pool, err := cache.NewPool(git.PoolOptions{Dir: dir + "/pool"})
	w.ok(err)
	driver := sandbox.NewUnisolated(sandbox.LocalOptions{StateDir: dir + "/sandbox", Logger: w.log()})
	w.Cleanup(func() {
		w.ok(pool.Close())
		w.ok(cache.Close())
		w.ok(sandbox.RemoveTree(dir))
	})
	return New(Options{
		Store: w.store, Cache: cache, Pool: pool, Sandbox: driver, Model: w, Scanner: secrets.New(), Operator: repoconfig.DefaultOperator(),
		DataDir: dir, Host: "localhost", Logger: w.log(),
		Repository: func(i, r int64) Repository { return unwell{w.app.Installation(i).ReadOnly(r), w} },
		Pusher:     func(i, r int64) Tokens { return w.app.Installation(i).Writer(r) },
		Signer:     func(i, r int64) Signer { return w.app.Installation(i).Committer(r) },
	})
}

// unwell is GitHub with the world's fault.
type unwell struct {
	client
	w *world
}

// client is [Repository] under a name that its method does not have.
type client = Repository

// Repository fails as the world wants.
func (u unwell) Repository(ctx context.Context) (github.Repository, error) {
	if u.w.fault != nil {
		return github.Repository{}, u.w.fault
	}
	return u.client.Repository(ctx)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Respond implements [agents.Model].
func (w *world) Respond(_ context.Context, request agents.Request) (agents.Response, error) {
	w.heard = append(w.heard, request.Messages[len(request.Messages)-1].Content)
	if w.breaks && len(w.script) == 0 {
		panic("index out of range")
	}
	if len(w.script) == 0 {
		return agents.Response{Text: "Done.", FinishReason: "stop"}, nil
	}
	next := w.script[0]
	w.script = w.script[1:]
	return next, nil
}

// calls lets the model call a tool.
func (w *world) calls(tool string, arguments map[string]any) {
	w.Helper()
	encoded, err := json.Marshal(arguments)
	w.ok(err)
	w.script = append(w.script, agents.Response{
		FinishReason: "tool_calls", ToolCalls: []agents.ToolCall{{ID: "c1", Name: tool, Arguments: string(encoded)}},
	})
}

func (w *world) writes(path, content string) {
	w.Helper()
	w.calls("write_file", map[string]any{"path": path, "content": content})
}

func (w *world) pushes() {
	w.Helper()
	w.calls("git_push", map[string]any{"title": "Greet people", "body": "As asked."})
}

// askedForTwoPushes makes a session whose crew greets, pushes, greets otherwise
// and pushes again.
func (w *world) askedForTwoPushes() string {
	w.Helper()
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	w.writes("greeting.txt", "hello again\n")
	w.pushes()
	return w.asked()
}

// asked makes a session that mona asked for.
func (w *world) asked(variables ...agents.Variables) string {
	w.Helper()
	session := store.Session{
		InstallationID: w.installation, RepositoryID: w.repository, Owner: owner, Repository: name, Issue: 1,
		RequesterID: w.person, RequesterLogin: "mona", Task: "greet people",
	}
	if len(variables) > 0 {
		session.Variables = variables[0]
	}
	w.ok(w.store.CreateSession(w.Context(), &session))
	return session.ID
}

// works lets a node hold the next session until it lets go.
func (w *world) works(conductors ...*Conductor) {
	w.Helper()
	lease, err := w.store.Acquire(w.Context(), w.node, store.Caps{})
	w.ok(err)
	conductor := w.conductor
	if len(conductors) > 0 {
		conductor = conductors[0]
	}
	conductor.hold(w.Context(), w.node, lease)
}

// sends lets the outbox send what it can, while work is under way.
func (w *world) sends(work func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.outbox.Run(ctx, w.node) }()
	work()
	stop()
	<-ended
}

// prompted waits until the open prompt of a session is shown, and approves it.
func (w *world) approves(id string) store.Approval {
	w.Helper()
	for {
		row := w.question(id)
		if row.PromptCommentID != 0 {
			decided, err := w.store.Decide(w.Context(), row.ID, store.Decision{
				State: store.ApprovalApproved, By: "mona", ByID: w.person, Via: store.ViaTerminal,
			})
			w.ok(err)
			return decided
		}
		time.Sleep(5 * time.Millisecond)
		w.clock.Advance(100 * time.Millisecond)
	}
}

// question returns the newest approval of a session.
func (w *world) question(id string) store.Approval {
	w.Helper()
	rows, err := w.store.ApprovalsOfSession(w.Context(), id)
	w.ok(err)
	if len(rows) == 0 {
		w.Fatal("nobody was asked")
	}
	return rows[len(rows)-1]
}

// is checks the state of a session.
func (w *world) is(id string, want store.SessionState) store.Session {
	w.Helper()
	session, err := w.store.Session(w.Context(), id)
	w.ok(err)
	if session.State != want {
		w.Fatalf("the session is %s (%s), want %s", session.State, cmp.Or(session.Reason, "no reason"), want)
	}
	return session
}
