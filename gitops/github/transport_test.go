package github

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A redirect to another host would receive the token with a plain client.
func TestRedirectsToAnotherHostGetNothing(t *testing.T) {
	var caught atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Add(1) }))
	defer thief.Close()
	for _, status := range []int{301, 302, 307, 308} {
		m := newMisbehaving(t)
		m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
			w.Header().Set("Location", thief.URL+"/steal")
			w.WriteHeader(status)
			return true
		}
		_, err := m.reader().Repository(t.Context())
		mustCode(t, err, CodeUnexpected)
		m.mint = m.handle
		_, err = m.app.Installation(1).ReadOnly(2).Repository(t.Context())
		if err == nil {
			t.Errorf("%d: a token was minted through a redirect", status)
		}
	}
	if caught.Load() != 0 {
		t.Errorf("the other host received %d requests", caught.Load())
	}
}

// A renamed repository answers with a redirect on the same host; that one is
// followed, with the token and the body.
func TestRedirectsOnTheSameHostAreFollowed(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/v3/repos/octo/login/issues/12/comments") {
			return false
		}
		w.Header().Set("Location", "/api/v3/repositories/"+strconv.Itoa(testRepository)+"/issues/12/comments")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	made, err := m.writer().CreateComment(t.Context(), 12, "hello")
	if err != nil || made.ID != 5 {
		t.Fatalf("CreateComment = %+v, %v", made, err)
	}
	for i, token := range m.tokens {
		if !strings.HasPrefix(token, canary) {
			t.Errorf("request %s came without the token", m.requests[i])
		}
	}
}

// GitHub may also answer a write with 301, of which an ordinary client makes a
// GET that succeeds and means nothing. We ask for the new name instead.
func TestAMovedRepositoryIsWrittenToUnderItsNewName(t *testing.T) {
	m := newMisbehaving(t)
	if _, err := m.writer().Repository(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v3"); {
		case strings.HasPrefix(path, "/repos/octo/login/"):
			w.Header().Set("Location", m.URL+"/api/v3/repositories/"+strconv.Itoa(testRepository)+"/issues/12/comments")
			w.WriteHeader(http.StatusMovedPermanently)
		case r.Method == "GET" && strings.HasSuffix(path, "/comments"):
			t.Error("the write became a read")
			reply(w, 200, `[]`)
		case strings.HasPrefix(path, "/repositories/"):
			reply(w, 200, `{"id":`+strconv.Itoa(testRepository)+`,"name":"signin","owner":{"login":"octo"}}`)
		default:
			return false
		}
		return true
	}
	made, err := m.writer().CreateComment(t.Context(), 12, "hello")
	if err != nil || made.ID != 5 {
		t.Errorf("CreateComment = %+v, %v", made, err)
	}
	if last := m.requests[len(m.requests)-1]; last != "POST /repos/octo/signin/issues/12/comments" {
		t.Errorf("the last request is %s", last)
	}
}

func TestReadsAreRepeatedAndCreationsAreNot(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, _ *http.Request, nth int) bool {
		if nth <= 2 {
			reply(w, 502, "<html>")
		}
		return nth <= 2
	}
	if _, err := m.writer().Repository(t.Context()); err != nil {
		t.Fatal(err)
	}
	posts := 0
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == "POST" {
			posts++
			reply(w, 502, "<html>")
		}
		return r.Method == "POST"
	}
	_, err := m.writer().CreateComment(t.Context(), 12, "hello")
	mustCode(t, err, CodeUnknownOutcome)
	if posts != 1 {
		t.Errorf("the comment was sent %d times", posts)
	}
}

// The comment was made and the answer never came: nobody can know, so nobody
// guesses.
func TestALostAnswerIsAnUnknownOutcome(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method != "POST" {
			return false
		}
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return false
		}
		connection.Close()
		return true
	}
	_, err := m.writer().CreateComment(t.Context(), 12, "hello")
	mustCode(t, err, CodeUnknownOutcome)
}

func TestAnAnswerThatIsNoJSONIsAnUnknownOutcome(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == "POST" {
			reply(w, 201, "<html>fine")
		}
		return r.Method == "POST"
	}
	_, err := m.writer().CreateComment(t.Context(), 12, "hello")
	mustCode(t, err, CodeUnknownOutcome)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		reply(w, 200, "<html>fine")
		return true
	}
	_, err = m.reader().Issue(t.Context(), 12)
	mustCode(t, err, CodeUnexpected)
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	m := newMisbehaving(t)
	if _, err := m.writer().Repository(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Close()
	// On a connection that was open nobody could know what arrived.
	m.app.base.(*http.Transport).CloseIdleConnections()
	_, err := m.writer().CreateComment(t.Context(), 12, "hello")
	mustCode(t, err, CodeUnavailable)
	_, err = m.writer().Issue(t.Context(), 12)
	mustCode(t, err, CodeUnavailable)
}

func TestACancelledCallerIsToldSo(t *testing.T) {
	m := newMisbehaving(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.writer().Issue(ctx, 12)
	mustCode(t, err, CodeCancelled)
}

// Limits and missing permissions both come as 403.
func TestLimitsAreToldFromMissingPermissions(t *testing.T) {
	reset := func(m *misbehaving, d time.Duration) string { return strconv.FormatInt(m.now.Add(d).Unix(), 10) }
	for name, c := range map[string]struct {
		status int
		header func(m *misbehaving) map[string]string
		body   string
		want   Code
		wait   time.Duration
	}{
		"primary": {403, func(m *misbehaving) map[string]string {
			return map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset(m, 20*time.Minute)}
		}, `{"message":"API rate limit exceeded for installation ID 99."}`, CodeRateLimited, 20 * time.Minute},
		"primary as 429": {429, func(m *misbehaving) map[string]string {
			return map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset(m, 3*time.Minute)}
		}, `{}`, CodeRateLimited, 3 * time.Minute},
		"secondary with time": {403, func(*misbehaving) map[string]string { return map[string]string{"Retry-After": "90"} },
			`{"message":"You have exceeded a secondary rate limit"}`, CodeRateLimited, 90 * time.Second},
		"secondary without time": {403, nil,
			`{"message":"You have exceeded a secondary rate limit. Please wait a few minutes"}`, CodeRateLimited, time.Minute},
		"429 without a word": {429, nil, ``, CodeRateLimited, time.Minute},
		"a year":             {429, func(*misbehaving) map[string]string { return map[string]string{"Retry-After": "31536000"} }, ``, CodeRateLimited, limitLongest},
		"missing permission": {403, func(*misbehaving) map[string]string { return map[string]string{"X-RateLimit-Remaining": "4999"} },
			`{"message":"Resource not accessible by integration"}`, CodeForbidden, 0},
		"locked": {403, nil, `{"message":"Unable to create comment because issue is locked."}`, CodeForbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMisbehaving(t)
			if _, err := m.writer().Repository(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
				if c.header != nil {
					for key, value := range c.header(m) {
						w.Header().Set(key, value)
					}
				}
				reply(w, c.status, c.body)
				return true
			}
			_, err := m.writer().CreateComment(t.Context(), 12, "hello")
			e := mustCode(t, err, c.want)
			if c.want != CodeRateLimited {
				return
			}
			if got := e.RetryAt.Sub(m.local); got != c.wait {
				t.Errorf("the wait is %v, want %v", got, c.wait)
			}
			// Until then nothing is sent, not even a read or a token for git.
			sent := len(m.requests)
			_, err = m.reader().Issue(t.Context(), 12)
			mustCode(t, err, CodeRateLimited)
			_, err = m.reader().Token(t.Context(), false)
			mustCode(t, err, CodeRateLimited)
			if len(m.requests) != sent {
				t.Errorf("requests were sent during the limit: %v", m.requests[sent:])
			}
			m.handle = nil
			m.pass(c.wait + time.Second)
			if _, err := m.writer().CreateComment(t.Context(), 12, "hello"); err != nil {
				t.Errorf("after the limit: %v", err)
			}
		})
	}
}

func TestErrorsKeepGitHubsWords(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == "POST" {
			reply(w, 422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"A pull request already exists for octo:copilot/12-login."}]}`)
		}
		return r.Method == "POST"
	}
	_, err := m.writer().CreatePullRequest(t.Context(), PullRequestRequest{Title: "Add a login", Head: "copilot/12-login", Base: "main"})
	if e := mustCode(t, err, CodeValidation); !strings.Contains(e.Message, "already exists") || e.Status != 422 {
		t.Errorf("the error is %+v", e)
	}
}
