package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"handoff/agents/llm/tape"
)

// said runs the program and returns what it said where.
func said(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func TestAModelIsTestedWithOneRequest(t *testing.T) {
	answers, err := tape.Read(strings.NewReader(
		`{"agent": "test", "response": {"content": "ok\u001b[2J"}, "usage": {"input": 14, "output": 2, "cost_micros": 1234}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	player := tape.NewPlayer(answers, tape.Options{})
	server, err := tape.Serve(player)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	t.Setenv("PROVIDER", "tape")
	t.Setenv("TAPE_URL", server.URL)
	code, out, errs := said(t, "models", "test")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"provider    tape", "answer      ok", "latency", "14 in, 2 out", "$0.0012", "takes       strict schemas"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("the model moved the cursor: %q", out)
	}
	if unused := player.Unused(); len(unused) > 0 {
		t.Errorf("the request was not sent")
	}
}

// A refused key is one sentence on one line, and the key is not in it.
func TestARefusedKeyIsOneSentence(t *testing.T) {
	const key = "canary-4f7b19c2e5d8a063"
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"message": "Incorrect API key provided:\n` + r.Header.Get("Authorization") + `"}}`))
	}))
	defer server.Close()
	t.Setenv("OPENAI_BASE_URL", server.URL)
	t.Setenv("OPENAI_API_KEY", key)
	code, out, errs := said(t, "models", "test", "--provider", "compatible", "--model", "m")
	if code != 1 || out != "" || requests != 1 {
		t.Errorf("exit code %d after %d requests, said %q", code, requests, out)
	}
	if !strings.HasPrefix(errs, "handoff: LLM_ERROR: ") || strings.Count(errs, "\n") != 1 || strings.Contains(errs, key) {
		t.Errorf("it said %q", errs)
	}
}
