package pages_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/report"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/webhook"
	"handoff/webhook/pages"
)

// A world is a server with pages over a database whose clock the test moves.
type world struct {
	*testing.T
	clock  *storetest.Clock
	store  *store.Store
	links  *pages.Links
	server *httptest.Server
	stop   chan struct{}
	node   *store.Node
}

// newWorld starts a server. Adjust may change the pages' options.
func newWorld(t *testing.T, adjust func(*pages.Options)) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	w := &world{T: t, clock: storetest.NewClock(t, url), stop: make(chan struct{})}
	w.store = storetest.OpenURL(t, url, w.clock.Options())
	front, err := webhook.New(webhook.Options{Secrets: []string{"a secret of sufficient length"}, AppID: 1, Inbox: w.store})
	w.ok(err)
	w.server = httptest.NewServer(front)
	// A connection that was made and never used would hold up the server's end.
	w.server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	t.Cleanup(w.server.Close)
	w.links, err = pages.NewLinks(w.store, w.server.URL)
	w.ok(err)
	options := pages.Options{
		Store: w.store, Links: w.links, Stop: w.stop,
		Checklist: func([]agents.Item) []report.Task {
			return []report.Task{{Title: "Write it", Done: true, Owner: "implementer"}, {Title: "Test it"}}
		},
		PullRequest: func(s store.Session) string { return s.Variables["pull_request_url"] },
	}
	if adjust != nil {
		adjust(&options)
	}
	shown, err := pages.New(options)
	w.ok(err)
	shown.Register(front.Group(""))
	for slug, source := range agents.CrewSources() {
		w.ok(w.store.PutAgent(t.Context(), store.AgentRow{ID: slug, Version: "1", Source: string(source)}))
	}
	w.node, err = w.store.Register(t.Context(), "node")
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// session makes a session and returns what holds it.
func (w *world) session(task string) *store.Lease {
	w.Helper()
	made := store.Session{
		InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 12, RequesterID: 5, RequesterLogin: "ann",
		Task: task, IssueTitle: "A login",
	}
	w.ok(w.store.CreateSession(w.Context(), &made))
	lease, err := w.store.Acquire(w.Context(), w.node, store.Caps{})
	w.ok(err)
	w.ok(lease.SetState(w.Context(), store.StateRunning, ""))
	return lease
}

// A script is a model that says its lines in order.
type script struct {
	mu    sync.Mutex
	lines []agents.Response
}

func (s *script) Respond(context.Context, agents.Request) (agents.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == 0 {
		return agents.Response{}, &agents.Error{Code: agents.CodeLLM, Message: "the script is over"}
	}
	next := s.lines[0]
	s.lines = s.lines[1:]
	next.Usage = agents.Usage{Requests: 1, Input: 1200, Output: 34, Total: 1234, CostMicros: 20_000, Entries: []agents.UsageEntry{
		{Attempt: 1, Input: 1200, Output: 34, Total: 1234, CostMicros: 20_000},
	}}
	return next, nil
}

func says(text string) agents.Response { return agents.Response{Text: text, FinishReason: "stop"} }

func calls(tool string, arguments map[string]string) agents.Response {
	encoded, _ := json.Marshal(arguments)
	return agents.Response{FinishReason: "tool_calls", ToolCalls: []agents.ToolCall{{ID: tool, Name: tool, Arguments: string(encoded)}}}
}

// play lets a small crew work on the session as the script says. The tool look
// prints what it is told to print.
func (w *world) play(lease *store.Lease, lines ...agents.Response) runner.Outcome {
	w.Helper()
	registry, err := agents.NewRegistry(agents.Tool{
		Name: "look", Schema: json.RawMessage(`{"type":"object"}`), Effect: agents.EffectNone,
		Run: func(_ context.Context, call agents.Call) (agents.Result, error) {
			var arguments map[string]string
			err := json.Unmarshal(call.Args, &arguments)
			return agents.Result{Output: arguments["print"], Summary: arguments["summary"]}, err
		},
	}, agents.Tool{
		Name: "git_push", Schema: json.RawMessage(`{"type":"object"}`), Effect: agents.EffectExternal,
		NeedsApproval: func(context.Context, agents.Call) (bool, error) { return true, nil },
		Run:           func(context.Context, agents.Call) (agents.Result, error) { return agents.Result{}, nil },
	})
	w.ok(err)
	tools := []string{"look", "git_push"}
	outcome, err := runner.Run(w.Context(), runner.RunRequest{
		Session: lease.Session().ID, Journal: lease, Tools: registry, Model: &script{lines: lines}, Start: "copilot",
		Input: runner.Input{ID: "task", Author: "ann", Text: "The task: " + lease.Session().Task},
		Crew: map[string]agents.Agent{
			"copilot":     {ID: "copilot", Name: "Copilot", Instructions: "Lead.", Tools: tools, Handoffs: []agents.Handoff{{Target: "implementer"}}},
			"implementer": {ID: "implementer", Name: "Implementer", Instructions: "Write.", Tools: tools, Handoffs: []agents.Handoff{{Target: "copilot"}}},
		},
	})
	w.ok(err)
	return outcome
}

func (w *world) putPatch(lease *store.Lease, patch string) {
	w.Helper()
	_, err := lease.PutArtifact(w.Context(), store.Artifact{Name: "work.patch", MediaType: "text/x-diff", Body: []byte(patch)})
	w.ok(err)
}

// link is a signed address of the session's page.
func (w *world) link(lease *store.Lease) string {
	w.Helper()
	link, err := w.links.Session(w.Context(), lease.Session().ID, time.Hour)
	w.ok(err)
	return link.URL
}

// An answer is what the server said.
type answer struct {
	status int
	header http.Header
	body   string
}

func (w *world) get(address string) answer { w.Helper(); return w.ask(http.MethodGet, address, "") }

// ask makes a request, perhaps under another host's name. An address may begin
// with a slash.
func (w *world) ask(method, address, host string) answer {
	w.Helper()
	if strings.HasPrefix(address, "/") {
		address = w.server.URL + address
	}
	request, err := http.NewRequestWithContext(w.Context(), method, address, nil)
	w.ok(err)
	request.Host = host
	response, err := w.server.Client().Do(request)
	w.ok(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.ok(err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// shows checks that an answer is a page that holds all of the words.
func (w *world) shows(got answer, words ...string) {
	w.Helper()
	if got.status != http.StatusOK {
		w.Fatalf("the answer is %d:\n%s", got.status, got.body)
	}
	for _, word := range words {
		if !strings.Contains(got.body, word) {
			w.Errorf("no %q on the page:\n%s", word, got.body)
		}
	}
}

// refuses checks that an answer is the one for whoever has no link.
func (w *world) refuses(got answer, why string) {
	w.Helper()
	if got.status != http.StatusNotFound || !strings.Contains(got.body, "handoff sessions link") {
		w.Errorf("%s: the answer is %d:\n%s", why, got.status, got.body)
	}
	for _, secret := range []string{"acme", "ann", "A login"} {
		if strings.Contains(got.body, secret) {
			w.Errorf("%s: the answer tells %q", why, secret)
		}
	}
}
