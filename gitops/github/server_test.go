package github

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

const (
	testApp          = 4711
	testInstallation = 99
	testRepository   = 1296269
	// canary begins every token that the test server hands out; it must never
	// show in an error or a log.
	canary = "ghs_canary"
)

// testKey is made once: RSA keys take time.
var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pkcs1PEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// A misbehaving is a GitHub of which each test decides how it behaves.
type misbehaving struct {
	*httptest.Server
	t   *testing.T
	app *App
	log *bytes.Buffer

	mu sync.Mutex
	// now is GitHub's clock, local the client's.
	now, local time.Time
	// minted are the bodies of the requests for tokens.
	minted []string
	// requests are the others, as "METHOD path".
	requests []string
	// tokens are the credentials that came with them.
	tokens []string
	sleeps []time.Duration
	// expires is how long tokens live.
	expires time.Duration
	// mint and handle, when set, answer before the usual answers do; they
	// return false to leave it to those.
	mint   func(w http.ResponseWriter, r *http.Request, nth int) bool
	handle func(w http.ResponseWriter, r *http.Request, nth int) bool
}

func newMisbehaving(t *testing.T) *misbehaving {
	t.Helper()
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	m := &misbehaving{t: t, now: start, local: start, expires: time.Hour, log: &bytes.Buffer{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	app, err := NewApp(Config{
		AppID: testApp, PrivateKey: pkcs1PEM(testKey()), BaseURL: m.URL,
		Logger: slog.New(slog.NewTextHandler(&lockedWriter{w: m.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	app.clock.local = func() time.Time {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.local
	}
	app.clock.sleep = func(ctx context.Context, d time.Duration) error {
		m.mu.Lock()
		m.sleeps = append(m.sleeps, d)
		m.mu.Unlock()
		return ctx.Err()
	}
	m.app = app
	t.Cleanup(func() {
		if strings.Contains(m.log.String(), canary) {
			t.Errorf("a token is in the log:\n%s", m.log)
		}
	})
	return m
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// pass moves both clocks.
func (m *misbehaving) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.local = m.now.Add(d), m.local.Add(d)
}

func (m *misbehaving) reader() *Client {
	return m.app.Installation(testInstallation).ReadOnly(testRepository)
}
func (m *misbehaving) writer() *Client {
	return m.app.Installation(testInstallation).Writer(testRepository)
}

func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	now := m.now
	m.mu.Unlock()
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	w.Header().Set("X-GitHub-Request-Id", "ABCD:1234")
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	if strings.HasSuffix(path, "/access_tokens") {
		m.serveMint(w, r, now)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, r.Method+" "+path)
	m.tokens = append(m.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "token "))
	nth := len(m.requests)
	m.mu.Unlock()
	if m.handle != nil && m.handle(w, r, nth) {
		return
	}
	switch {
	case path == fmt.Sprintf("/repositories/%d", testRepository):
		reply(w, 200, fmt.Sprintf(`{"id":%d,"name":"login","owner":{"login":"octo","id":7,"type":"Organization"},"default_branch":"main"}`, testRepository))
	case r.Method == "POST" && strings.HasSuffix(path, "/comments"):
		reply(w, 201, `{"id":5,"body":"hello","user":{"id":1,"login":"bot[bot]","type":"Bot"}}`)
	case strings.Contains(path, "/issues/"):
		reply(w, 200, `{"number":12,"title":"Add a login endpoint","state":"open"}`)
	default:
		reply(w, 404, `{"message":"Not Found"}`)
	}
}

func (m *misbehaving) serveMint(w http.ResponseWriter, r *http.Request, now time.Time) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.minted = append(m.minted, strings.TrimSpace(string(body)))
	nth := len(m.minted)
	expires := now.Add(m.expires)
	m.mu.Unlock()
	if m.mint != nil && m.mint(w, r, nth) {
		return
	}
	reply(w, 201, fmt.Sprintf(`{"token":"%s_%d","expires_at":%q}`, canary, nth, expires.UTC().Format(time.RFC3339)))
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// claims returns the JWT of a request for a token, its signature checked.
func (m *misbehaving) claims(r *http.Request, key *rsa.PrivateKey) (*jwt.RegisteredClaims, error) {
	claims := &jwt.RegisteredClaims{}
	parser := jwt.NewParser(jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), claims,
		func(*jwt.Token) (any, error) { return &key.PublicKey, nil })
	return claims, err
}

// mustCode fails the test unless err has the code, and looks for secrets in it.
func mustCode(t *testing.T, err error, want Code) *Error {
	t.Helper()
	if CodeOf(err) != want {
		t.Fatalf("error is %v, want the code %s", err, want)
	}
	e := err.(*Error)
	if strings.Contains(fmt.Sprintf("%v %+v %v", err, err, e.Err), canary) {
		t.Errorf("a token is in the error %v", err)
	}
	if e.Message == "" || !strings.HasSuffix(e.Message, ".") {
		t.Errorf("the message is no sentence: %q", e.Message)
	}
	return e
}

// permissions decodes what a token was asked for.
func permissions(t *testing.T, body string) (repositories []int64, granted map[string]string) {
	t.Helper()
	var request struct {
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	return request.RepositoryIDs, request.Permissions
}
