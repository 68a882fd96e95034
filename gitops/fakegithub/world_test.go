package fakegithub

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// stage is a small world that the tests play on: an organisation acme with the repository hello, maria who maintains
// it, walter who may write, ralph who may only read, and the App robot that is installed on it. Every answer of the
// API and every webhook that passes through it is checked against GitHub's published description.
type stage struct {
	*testing.T
	server       *Server
	app          App
	installation Installation
	repository   Repository
	hooks        *receiver
}

const hookSecret = "it's a secret to everybody"

func helloFiles() fstest.MapFS {
	return fstest.MapFS{
		"README.md":                {Data: []byte("# Hello\n\nA greeting.\n")},
		"main.go":                  {Data: []byte("package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n")},
		"internal/greet/greet.go":  {Data: []byte("package greet\n")},
		"run.sh":                   {Data: []byte("#!/bin/sh\nexec go run .\n"), Mode: 0o755},
		".github/workflows/ci.yml": {Data: []byte("on: push\n")},
	}
}

func newStage(t *testing.T, change ...func(*Options)) *stage {
	t.Helper()
	s := &stage{T: t, hooks: newReceiver(t)}
	options := Options{DataDir: t.TempDir()}
	for _, one := range change {
		one(&options)
	}
	server, err := New(options)
	s.ok(err)
	s.server = server
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.ok(server.WaitIdle(ctx)) // so that no webhook is cut in the middle
		s.ok(server.Close())
	})
	s.seed()
	s.ok(server.Start(t.Context()))
	return s
}

func (s *stage) seed() {
	s.Helper()
	_, err := s.server.AddUser(UserSpec{Login: "acme", Type: "Organization"})
	s.ok(err)
	for _, login := range []string{"maria", "walter", "ralph", "stranger"} {
		_, err := s.server.AddUser(UserSpec{Login: login})
		s.ok(err)
	}
	s.repository, err = s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "hello", Description: "says hello", Files: helloFiles(),
		Roles: map[string]Role{"maria": RoleMaintain, "walter": RoleWrite, "ralph": RoleRead}})
	s.ok(err)
	s.app, err = s.server.AddApp(AppSpec{Slug: "robot", Owner: "acme", WebhookURL: s.hooks.URL, WebhookSecret: hookSecret,
		PrivateKey: testKey(), Permissions: map[string]string{"issues": "write", "pull_requests": "write", "contents": "write",
			"checks": "write", "actions": "read", "statuses": "write"}})
	s.ok(err)
	s.installation, err = s.server.Install(InstallationSpec{App: "robot", Account: "acme"})
	s.ok(err)
}

// testKey is made once for all tests; making one takes longer than most of them.
var testKey = sync.OnceValue(func() string {
	_, text, err := appKey("")
	if err != nil {
		panic(err)
	}
	return text
})

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// jwt signs the App's credential.
func (s *stage) jwt(change ...func(jwt.MapClaims)) string {
	s.Helper()
	now := s.server.Now()
	claims := jwt.MapClaims{"iss": fmt.Sprint(s.app.ID), "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix()}
	for _, one := range change {
		one(claims)
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(parseKey(s.T, s.app.PrivateKey))
	s.ok(err)
	return text
}

func parseKey(t *testing.T, text string) *rsa.PrivateKey {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// token mints an installation token as the bot would; scope is the request's body.
func (s *stage) token(scope ...map[string]any) string {
	s.Helper()
	var body any
	if len(scope) > 0 {
		body = scope[0]
	}
	answer := s.as(s.jwt()).post(fmt.Sprintf("/app/installations/%d/access_tokens", s.installation.ID), body)
	answer.is(http.StatusCreated)
	return answer.text("token")
}

func (s *stage) bot() *client { return s.as(s.token()) }

func (s *stage) person(login string) *client { return s.as(s.server.As(login).Token()) }

func (s *stage) as(credential string) *client { return &client{stage: s, credential: credential} }

// client asks the API with one credential.
type client struct {
	stage      *stage
	credential string
	headers    map[string]string
}

func (c *client) get(path string) *answer             { return c.do(http.MethodGet, path, nil) }
func (c *client) post(path string, body any) *answer  { return c.do(http.MethodPost, path, body) }
func (c *client) patch(path string, body any) *answer { return c.do(http.MethodPatch, path, body) }
func (c *client) delete(path string) *answer          { return c.do(http.MethodDelete, path, nil) }
func (c *client) with(name, value string) *client {
	return &client{stage: c.stage, credential: c.credential, headers: map[string]string{name: value}}
}

func (c *client) do(method, path string, body any) *answer {
	t := c.stage
	t.Helper()
	var content []byte
	switch body := body.(type) {
	case nil:
	case string:
		content = []byte(body)
	default:
		var err error
		content, err = json.Marshal(body)
		t.ok(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, t.server.URL()+"/api/v3"+path, bytes.NewReader(content))
	t.ok(err)
	if c.credential != "" {
		request.Header.Set("Authorization", "Bearer "+c.credential)
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := noRedirects.Do(request)
	t.ok(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	t.ok(err)
	checkAnswer(t.T, request, response, data)
	return &answer{stage: t, request: method + " " + path, response: response, body: data}
}

var noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// answer is what came back.
type answer struct {
	stage    *stage
	request  string
	response *http.Response
	body     []byte
}

func (a *answer) is(status int) *answer {
	a.stage.Helper()
	if a.response.StatusCode != status {
		a.stage.Fatalf("%s: got %d, want %d: %s", a.request, a.response.StatusCode, status, a.body)
	}
	return a
}

// refused checks status and GitHub's message.
func (a *answer) refused(status int, message string) {
	a.stage.Helper()
	a.is(status)
	if got := a.text("message"); got != message {
		a.stage.Fatalf("%s: got message %q, want %q", a.request, got, message)
	}
}

func (a *answer) into(target any) {
	a.stage.Helper()
	if err := json.Unmarshal(a.body, target); err != nil {
		a.stage.Fatalf("%s: %v: %s", a.request, err, a.body)
	}
}

func (a *answer) field(name string) any {
	a.stage.Helper()
	var fields map[string]any
	a.into(&fields)
	return fields[name]
}

func (a *answer) text(name string) string {
	a.stage.Helper()
	text, _ := a.field(name).(string)
	return text
}

func (a *answer) id() int64 {
	a.stage.Helper()
	var fields struct {
		ID int64 `json:"id"`
	}
	a.into(&fields)
	return fields.ID
}

func (a *answer) list() []map[string]any {
	a.stage.Helper()
	var list []map[string]any
	a.into(&list)
	return list
}

// receiver collects the webhooks that an App is sent.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	received []received
	status   int
}

type received struct {
	event, action string
	header        http.Header
	body          []byte
	payload       map[string]any
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusAccepted}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		one := received{event: request.Header.Get("X-GitHub-Event"), header: request.Header, body: body}
		if err := json.Unmarshal(body, &one.payload); err != nil {
			t.Errorf("webhook %s: %v", one.event, err)
		}
		one.action, _ = one.payload["action"].(string)
		checkWebhook(t, one)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.received = append(r.received, one)
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answerWith(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// told waits until all webhooks are sent and returns those that came since the last call.
func (s *stage) told() []received {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	s.ok(s.server.WaitIdle(ctx))
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	list := s.hooks.received
	s.hooks.received = nil
	return list
}

// names lists events as event.action.
func names(list []received) []string {
	var result []string
	for _, one := range list {
		name := one.event
		if one.action != "" {
			name += "." + one.action
		}
		result = append(result, name)
	}
	return result
}
