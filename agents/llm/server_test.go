package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"handoff/agents"
)

// A reply is what the server does with one request.
type reply func(w http.ResponseWriter, r *http.Request)

// A server plays a provider: it answers requests with the replies in turn (the
// last one for ever) and remembers what it was asked.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	replies []reply
	headers []http.Header
	bodies  []string
}

func newServer(t testing.TB, replies ...reply) *server {
	t.Helper()
	s := &server{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.take(r, string(body))(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) take(r *http.Request, body string) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headers = append(s.headers, r.Header.Clone())
	s.bodies = append(s.bodies, body)
	next := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return next
}

// asked returns the bodies of the requests so far.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// streams answers with the lines as they are, each ended by a blank line.
func streams(lines ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Request-Id", "req-1")
		for _, line := range lines {
			_, _ = io.WriteString(w, line+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// data makes data lines of JSON, and the line that ends a stream.
func data(chunks ...string) []string {
	lines := make([]string, 0, len(chunks)+1)
	for _, chunk := range chunks {
		lines = append(lines, "data: "+chunk)
	}
	return append(lines, "data: [DONE]")
}

// text makes the chunks of a short answer.
func text(content string) []string {
	return data(
		fmt.Sprintf(`{"id":"gen-1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]}`, content),
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"prompt_tokens_details":{"cached_tokens":400}}}`,
	)
}

// fails answers with a status, a body and headers in pairs.
func fails(status int, body string, headers ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// wholly answers with one JSON document.
func wholly(body string) reply { return fails(http.StatusOK, body) }

// canary is the key of all tests; it may appear nowhere.
const canary = "sk-canary-4f7a91c2d8e6"

// environment looks variables up in a map.
func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// waits remembers how long a client slept, without sleeping.
type waits struct {
	mu   sync.Mutex
	list []time.Duration
}

func (w *waits) sleep(ctx context.Context, wait time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, wait)
	return ctx.Err()
}

// newClient makes a client of a provider that asks a server.
func newClient(t testing.TB, provider string, s *server, change ...func(*Config)) *Client {
	t.Helper()
	var slept waits
	config := Config{
		Provider: provider, BaseURL: s.URL, Retry: Retry{Sleep: slept.sleep},
		TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: canary}),
		Getenv: environment(map[string]string{
			"OPENROUTER_API_KEY": canary, "OPENAI_API_KEY": canary, "ZAI_API_KEY": canary, "VERTEX_PROJECT": "p",
		}),
	}
	if provider == ProviderCompatible {
		config.Model = "local"
	}
	for _, f := range change {
		f(&config)
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// question is a request with one message.
func question(text string) agents.Request {
	return agents.Request{
		Session: "s1", Agent: "copilot", Turn: 1,
		Messages: []*agents.Message{{Role: agents.RoleUser, Content: text}},
	}
}

// failureOf returns the error as what it must always be, and checks that the
// key is not in it.
func failureOf(t testing.TB, err error) *agents.Error {
	t.Helper()
	failure, ok := errors.AsType[*agents.Error](err)
	if !ok {
		t.Fatalf("error is %T (%v), not *agents.Error", err, err)
	}
	for cause := error(failure); cause != nil; cause = errors.Unwrap(cause) {
		for _, shown := range []string{cause.Error(), fmt.Sprintf("%+v", cause), fmt.Sprintf("%#v", cause)} {
			if strings.Contains(shown, canary) {
				t.Errorf("the key is in the error: %s", shown)
			}
		}
	}
	return failure
}
