package fakegithub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// control calls an endpoint below /_fake/.
func (s *stage) control(token, method, path string, body any, status int) []byte {
	s.Helper()
	content, err := json.Marshal(body)
	s.ok(err)
	request, err := http.NewRequestWithContext(s.Context(), method, s.server.URL()+"/_fake"+path, bytes.NewReader(content))
	s.ok(err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	s.ok(err)
	defer response.Body.Close()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(response.Body)
	s.ok(err)
	if response.StatusCode != status {
		s.Fatalf("%s %s: got %d, want %d: %s", method, path, response.StatusCode, status, answer.String())
	}
	return answer.Bytes()
}

func TestControlsNeedTheirToken(t *testing.T) {
	s := newStage(t)
	for _, token := range []string{"", "wrong", s.server.As("maria").Token(), s.token()} {
		s.control(token, http.MethodGet, "/state", nil, 401)
		s.control(token, http.MethodPost, "/reset", nil, 401)
		s.control(token, http.MethodPost, "/seed", nil, 401)
	}
	if _, found := s.server.State().Repository("acme/hello"); !found {
		t.Error("the state is gone")
	}
}

func TestControls(t *testing.T) {
	s := newStage(t)
	token := s.server.ControlToken()
	before := s.server.Now()
	s.control(token, http.MethodPost, "/clock", map[string]any{"advance": "1h"}, 200)
	if moved := s.server.Now().Sub(before); moved < time.Hour {
		t.Errorf("the clock moved by %s", moved)
	}
	s.control(token, http.MethodPost, "/clock", map[string]any{"advance": "soon"}, 422)
	s.control(token, http.MethodPost, "/faults", map[string]any{"kind": "429", "path": "/repos/acme/hello", "count": 2}, 204)
	s.bot().get("/repos/acme/hello").is(429)
	s.control(token, http.MethodDelete, "/faults", nil, 204)
	s.bot().get("/repos/acme/hello").is(200)

	s.control(token, http.MethodPost, "/reset", nil, 204)
	if state := s.server.State(); len(state.Users)+len(state.Repositories)+len(state.Apps) != 0 {
		t.Errorf("after the reset there is %+v", state)
	}
	var made seeded
	answer := s.control(token, http.MethodPost, "/seed", map[string]any{
		"users":         []map[string]any{{"login": "olga"}},
		"repositories":  []map[string]any{{"owner": "olga", "name": "new", "default_branch": "trunk", "files": map[string]string{"a.txt": "a"}}},
		"apps":          []map[string]any{{"slug": "helper", "owner": "olga", "webhook_url": s.hooks.URL, "permissions": map[string]string{"issues": "write"}}},
		"installations": []map[string]any{{"app": "helper", "account": "olga"}},
	}, 201)
	s.ok(json.Unmarshal(answer, &made))
	if made.Users[0].Token == "" || made.Apps[0].PrivateKey == "" || made.Repositories[0].Branches["trunk"] == "" || made.Installations[0].ID == 0 {
		t.Errorf("seeded %s", answer)
	}
	s.control(token, http.MethodPost, "/seed", map[string]any{"users": []map[string]any{{"login": "olga"}}}, 422)
	state := s.control(token, http.MethodGet, "/state", nil, 200)
	if bytes.Contains(state, []byte("PRIVATE KEY")) || bytes.Contains(state, []byte(made.Users[0].Token)) {
		t.Error("the state gives secrets away")
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "nonsense"} {
		server, err := New(Options{DataDir: t.TempDir(), Listen: address})
		if err == nil {
			t.Errorf("listening on %s was allowed", address)
			_ = server.Close()
		}
	}
	if _, err := New(Options{DataDir: t.TempDir(), Git: "svn"}); err == nil {
		t.Error("an unknown git backend was accepted")
	}
}

// TestManyAtOnce has people, the bot and the controls work at the same time; the race detector looks on.
func TestManyAtOnce(t *testing.T) {
	s := newStage(t)
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	bot := s.bot()
	t.Run("at once", func(t *testing.T) {
		for name, work := range map[string]func(){
			"comments": func() { bot.post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "x"}).is(201) },
			"person":   func() { _, err := s.server.As("maria").Comment("acme/hello", 1, "y"); s.ok(err) },
			"reads":    func() { bot.get("/repos/acme/hello/issues/1/comments").is(200) },
			"commits": func() {
				_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "main", Author: "walter", Message: "m", Files: map[string]string{"n": randomToken("")}})
				s.ok(err)
			},
			"refs":  func() { bot.get("/repos/acme/hello/branches").is(200) },
			"state": func() { s.server.State() },
			"clock": func() { s.server.Advance(time.Millisecond) },
			"page":  func() { s.browser().open("/acme/hello/issues/1", 200) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for range 5 {
					work()
				}
			})
		}
	})
	state, _ := s.server.State().Repository("acme/hello")
	if issue, _ := state.Issue(1); len(issue.Comments) != 10 {
		t.Errorf("there are %d comments, want 10", len(issue.Comments))
	}
}
