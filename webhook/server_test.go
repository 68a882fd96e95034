package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"handoff/runner/store"
)

const (
	secret   = "the-current-webhook-secret"
	previous = "the-previous-webhook-secret"
	appID    = 4711
)

// An inbox keeps deliveries in memory by the contract of Inbox.
type inbox struct {
	mu         sync.Mutex
	deliveries map[string]store.Delivery
	commands   map[string]store.Command
	broken     error
	entered    chan struct{}
	release    chan struct{}
}

func (i *inbox) PutDelivery(ctx context.Context, delivery store.Delivery, commands []store.Command) (bool, error) {
	if i.entered != nil {
		close(i.entered)
		<-i.release
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken != nil {
		return false, i.broken
	}
	if _, known := i.deliveries[delivery.GUID]; known {
		return false, nil
	}
	i.deliveries[delivery.GUID] = delivery
	for _, command := range commands {
		if _, known := i.commands[command.Key]; !known {
			i.commands[command.Key] = command
		}
	}
	return true, nil
}

func newServer(t *testing.T) (*Server, *inbox) {
	t.Helper()
	in := &inbox{deliveries: map[string]store.Delivery{}, commands: map[string]store.Command{}}
	server, err := New(Options{Secrets: []string{secret, previous}, AppID: appID, Inbox: in})
	if err != nil {
		t.Fatal(err)
	}
	return server, in
}

func sign(body []byte, with string) string {
	mac := hmac.New(sha256.New, []byte(with))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// post makes a request as GitHub does; change may spoil it.
func post(body string, change func(*http.Request)) *http.Request {
	request := httptest.NewRequest("POST", "/webhook", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-GitHub-Event", "issue_comment")
	request.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	request.Header.Set("X-GitHub-Hook-ID", "292430182")
	request.Header.Set("X-Hub-Signature-256", sign([]byte(body), secret))
	if change != nil {
		change(request)
	}
	return request
}

func send(server http.Handler, request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	return recorder
}

// A comment of mona's on issue 12 of octo/login; replace spoils parts of it.
func commented(body string, replace ...string) string {
	encoded, _ := json.Marshal(body)
	text := `{"action":"created","installation":{"id":99},
	"repository":{"id":1296269,"name":"login","private":false,"owner":{"id":7,"login":"octo","type":"Organization"}},
	"sender":{"id":42,"login":"mona","type":"User"},
	"issue":{"number":12,"title":"Add a login","body":"We need one.","state":"open","locked":false,"user":{"id":43,"login":"hubot","type":"User"}},
	"comment":{"id":555,"body":` + string(encoded) + `,"html_url":"https://github.example/octo/login/issues/12#issuecomment-555",
	"created_at":"2026-05-04T12:00:00Z","updated_at":"2026-05-04T12:00:00Z","user":{"id":42,"login":"mona","type":"User"},"performed_via_github_app":null}}`
	return strings.NewReplacer(replace...).Replace(text)
}

func TestACommandIsStoredBeforeTheAnswer(t *testing.T) {
	server, in := newServer(t)
	body := commented("/copilot add a login endpoint\n\n> with care")
	answer := send(server, post(body, nil))
	if answer.Code != http.StatusAccepted || !strings.Contains(answer.Body.String(), "stored") {
		t.Fatalf("answer %d %s", answer.Code, answer.Body)
	}
	delivery := in.deliveries["72d3162e-cc78-11e3-81ab-4c9367dc0958"]
	if string(delivery.Body) != body || delivery.HookID != 292430182 || delivery.InstallationID != 99 || delivery.RepositoryID != 1296269 ||
		delivery.Event != "issue_comment" || delivery.Action != "created" || delivery.Source != "webhook" {
		t.Errorf("stored delivery %+v", delivery)
	}
	command := in.commands["comment/issue/1296269/555/created"]
	if command.Kind != store.CommandComment || command.Verb != VerbTask || command.Text != "add a login endpoint\n\n[excerpt 1]" ||
		command.Owner != "octo" || command.Repository != "login" || command.Issue != 12 || command.CommentID != 555 ||
		command.CommentKind != "issue" || command.ActorID != 42 || command.ActorLogin != "mona" || command.InstallationID != 99 {
		t.Errorf("stored command %+v", command)
	}
	var detail store.CommentDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	if detail.IssueTitle != "Add a login" || detail.IssueBody != "We need one." || detail.IsPullRequest || detail.CreatedAt.IsZero() ||
		len(detail.Excerpts) != 1 || detail.IssueAuthorID != 43 || detail.OwnerID != 7 {
		t.Errorf("stored detail %+v", detail)
	}
}

func TestTheSameCommentIsOneCommand(t *testing.T) {
	server, in := newServer(t)
	body := commented("/copilot add a login")
	for i, want := range []string{"stored", "duplicate", "duplicate"} {
		if answer := send(server, post(body, nil)); answer.Code != 202 || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("delivery %d: %d %s, want %s", i, answer.Code, answer.Body, want)
		}
	}
	// Another hook sends the same comment under its own id.
	send(server, post(body, func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", "another") }))
	if len(in.commands) != 1 || len(in.deliveries) != 2 {
		t.Errorf("%d commands, %d deliveries", len(in.commands), len(in.deliveries))
	}
}

func TestBadRequestsAreRefusedAndStoreNothing(t *testing.T) {
	good := commented("/copilot add a login")
	large := strings.Repeat(" ", MaxBody+1)
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"GET":                  {good, func(r *http.Request) { r.Method = "GET" }, 405},
		"PUT":                  {good, func(r *http.Request) { r.Method = "PUT" }, 405},
		"another path":         {good, func(r *http.Request) { r.URL.Path = "/webhooks" }, 404},
		"no content type":      {good, func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"form":                 {"payload=" + good, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415},
		"text":                 {good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"nonsense type":        {good, func(r *http.Request) { r.Header.Set("Content-Type", ";;") }, 415},
		"announced too large":  {good, func(r *http.Request) { r.ContentLength = MaxBody + 1 }, 413},
		"too large":            {large, nil, 413},
		"too large in chunks":  {large, func(r *http.Request) { r.ContentLength = -1 }, 413},
		"large and unsigned":   {large, func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, 413},
		"no signature":         {good, func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, 401},
		"empty signature":      {good, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256=") }, 401},
		"short signature":      {good, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256=abcd") }, 401},
		"no hexadecimal":       {good, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("zz", 32)) }, 401},
		"another secret":       {good, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", sign([]byte(good), "another-secret")) }, 401},
		"empty secret":         {good, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", sign([]byte(good), "")) }, 401},
		"another body":         {good + " ", func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", sign([]byte(good), secret)) }, 401},
		"SHA-1 alone":          {good, sha1Only(good), 401},
		"no event":             {good, func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, 400},
		"no delivery id":       {good, func(r *http.Request) { r.Header.Del("X-GitHub-Delivery") }, 400},
		"strange delivery id":  {good, func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", "a/../b") }, 400},
		"empty body":           {"", nil, 400},
		"no JSON":              {"payload", nil, 400},
		"cut JSON":             {good[:100], nil, 400},
		"two values":           {good + "{}", nil, 400},
		"an array":             {"[]", nil, 400},
		"a number for an id":   {commented("/copilot x", `"id":555`, `"id":5.5`), nil, 400},
		"text for a structure": {commented("/copilot x", `"installation":{"id":99}`, `"installation":"99"`), nil, 400},
		"deep":                 {strings.Repeat(`{"a":`, 20000), nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			server, in := newServer(t)
			answer := send(server, post(c.body, c.change))
			if answer.Code != c.want {
				t.Errorf("answer %d %s, want %d", answer.Code, answer.Body, c.want)
			}
			if len(in.deliveries)+len(in.commands) != 0 {
				t.Errorf("something was stored: %v %v", in.deliveries, in.commands)
			}
			var message map[string]string
			if err := json.Unmarshal(answer.Body.Bytes(), &message); err != nil || message["message"] == "" {
				t.Errorf("the answer gives no reason: %s", answer.Body)
			}
		})
	}
}

func sha1Only(body string) func(*http.Request) {
	return func(r *http.Request) {
		mac := hmac.New(sha1.New, []byte(secret))
		mac.Write([]byte(body))
		r.Header.Del("X-Hub-Signature-256")
		r.Header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(mac.Sum(nil)))
	}
}

func TestThePreviousSecretCountsWhileRotating(t *testing.T) {
	server, in := newServer(t)
	body := commented("/copilot add a login")
	answer := send(server, post(body, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", sign([]byte(body), previous)) }))
	if answer.Code != 202 || len(in.commands) != 1 {
		t.Errorf("answer %d %s", answer.Code, answer.Body)
	}
}

func TestContentTypeMayNameItsCharset(t *testing.T) {
	server, _ := newServer(t)
	answer := send(server, post(commented("/copilot x y"), func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON; charset=utf-8") }))
	if answer.Code != 202 {
		t.Errorf("answer %d %s", answer.Code, answer.Body)
	}
}

// A delivery that cannot be stored is not acknowledged, so that the sweeper
// finds it in GitHub's log.
func TestADatabaseThatIsDownIsNotAcknowledged(t *testing.T) {
	server, in := newServer(t)
	in.broken = errors.New("disk full")
	answer := send(server, post(commented("/copilot add a login"), nil))
	if answer.Code != 503 || answer.Header().Get("Retry-After") == "" || strings.Contains(answer.Body.String(), "disk full") {
		t.Errorf("answer %d %s", answer.Code, answer.Body)
	}
	in.broken = nil
	if answer := send(server, post(commented("/copilot add a login"), nil)); answer.Code != 202 || len(in.commands) != 1 {
		t.Errorf("afterwards: %d %s", answer.Code, answer.Body)
	}
}

func TestAServerWithoutASecretIsRefused(t *testing.T) {
	for _, secrets := range [][]string{nil, {""}, {"", ""}} {
		_, err := New(Options{Secrets: secrets, AppID: appID, Inbox: &inbox{}})
		if err == nil || !strings.Contains(err.Error(), "GITHUB_WEBHOOK_SECRET") {
			t.Errorf("New with %q: %v", secrets, err)
		}
	}
	_, err := New(Options{Path: "webhook"})
	for _, want := range []string{"GITHUB_WEBHOOK_SECRET", "GITHUB_APP_ID", "inbox", "slash"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var fault error
	server, err := New(Options{Secrets: []string{secret}, AppID: appID, Inbox: &inbox{}, Ready: func(context.Context) error { return fault }})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) int { return send(server, httptest.NewRequest("GET", path, nil)).Code }
	if get("/healthz") != 200 || get("/readyz") != 200 {
		t.Error("a healthy server is not healthy")
	}
	fault = errors.New("database unreachable")
	if get("/healthz") != 200 || get("/readyz") != 503 {
		t.Error("a server without its database is ready, or not alive")
	}
}

// A stop lets the request in flight finish: what GitHub is told is true.
func TestShutdownFinishesWhatItBegan(t *testing.T) {
	server, in := newServer(t)
	in.entered, in.release = make(chan struct{}), make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	answered := make(chan string, 1)
	go func() {
		request := post(commented("/copilot add a login"), nil)
		request.RequestURI = ""
		request.URL.Scheme, request.URL.Host = "http", listener.Addr().String()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answered <- fmt.Sprint(response.StatusCode, string(text))
	}()
	<-in.entered
	stop()
	close(in.release)
	if got := <-answered; !strings.HasPrefix(got, "202") {
		t.Errorf("the request in flight got %s", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Secrets and bodies never reach the log; what was stored does.
func TestTheLogNamesDeliveriesAndNoSecrets(t *testing.T) {
	var log bytes.Buffer
	in := &inbox{deliveries: map[string]store.Delivery{}, commands: map[string]store.Command{}}
	var observed []string
	server, err := New(Options{Secrets: []string{secret, "short"}, AppID: appID, Inbox: in, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observe: func(result string) { observed = append(observed, result) }})
	if err != nil {
		t.Fatal(err)
	}
	send(server, post(commented("/copilot add hunter2 to the vault"), nil))
	send(server, post("{}", func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "") }))
	if text := log.String(); !strings.Contains(text, "72d3162e") || strings.Contains(text, secret) || strings.Contains(text, "hunter2") || !strings.Contains(text, "secret is short") {
		t.Errorf("the log: %s", text)
	}
	if got := strings.Join(observed, " "); got != "stored refused_401" {
		t.Errorf("observed %q", got)
	}
}

// Bodies of many requests at once cannot take more memory than set aside.
func TestTheMemoryForBodiesIsBounded(t *testing.T) {
	server, _ := newServer(t)
	if err := server.bodies.Acquire(t.Context(), bodiesAtOnce); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if answer := send(server, post(commented("/copilot add a login"), nil).WithContext(ctx)); answer.Code != 503 {
		t.Errorf("answer %d %s", answer.Code, answer.Body)
	}
	server.bodies.Release(bodiesAtOnce)
	if answer := send(server, post(commented("/copilot add a login"), nil)); answer.Code != 202 {
		t.Errorf("answer %d %s", answer.Code, answer.Body)
	}
}
