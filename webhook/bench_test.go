package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"handoff/runner/store/storetest"
	"handoff/webhook"
)

// BenchmarkDurableAnswer measures a command from request to answer with the
// database on disk: what GitHub waits for.
func BenchmarkDurableAnswer(b *testing.B) {
	server := newServer(b)
	for i := 0; b.Loop(); i++ {
		post(b, server, fmt.Sprint("guid-", i), comment(i, "/copilot add a login endpoint"), "stored")
	}
}

// BenchmarkIgnoredComment measures what most comments cost: they are no
// commands.
func BenchmarkIgnoredComment(b *testing.B) {
	server := newServer(b)
	body := comment(1, "Thank you for the report, we will look into it.")
	for b.Loop() {
		post(b, server, "guid", body, "ignored")
	}
}

const benchSecret = "a-webhook-secret-of-some-length"

func newServer(b *testing.B) *webhook.Server {
	server, err := webhook.New(webhook.Options{Secrets: []string{benchSecret}, AppID: 1, Inbox: storetest.Open(b, storetest.SQLite)})
	if err != nil {
		b.Fatal(err)
	}
	return server
}

// comment is a delivery of the size that GitHub's have, about 12 kB.
func comment(id int, body string) string {
	return fmt.Sprintf(`{"action":"created","installation":{"id":99},"padding":%q,
	"repository":{"id":5,"name":"login","owner":{"id":7,"login":"octo","type":"User"}},"sender":{"id":42,"login":"mona","type":"User"},
	"issue":{"number":12,"title":"Add a login","body":"We need one.","state":"open"},
	"comment":{"id":%d,"body":%q,"created_at":"2026-05-04T12:00:00Z","updated_at":"2026-05-04T12:00:00Z","user":{"id":42,"login":"mona","type":"User"}}}`,
		strings.Repeat("x", 11_000), id+1, body)
}

func post(b *testing.B, server http.Handler, guid, body, want string) {
	mac := hmac.New(sha256.New, []byte(benchSecret))
	mac.Write([]byte(body))
	request := httptest.NewRequest("POST", "/webhook", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-GitHub-Event", "issue_comment")
	request.Header.Set("X-GitHub-Delivery", guid)
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusAccepted || !strings.Contains(recorder.Body.String(), want) {
		b.Fatalf("answer %d %s, want %s", recorder.Code, recorder.Body, want)
	}
}
