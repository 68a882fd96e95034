package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"handoff/agents"
)

// TestMemoryOfABodyIsUsedAgainWhenNobodyReadsIt tells when a body goes back.
func TestMemoryOfABodyIsUsedAgainWhenNobodyReadsIt(t *testing.T) {
	wrote := func(request *http.Request, err error) {
		httptrace.ContextClientTrace(request.Context()).WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	for name, test := range map[string]struct {
		transport func(*http.Request)
		returned  bool
	}{
		"written":              {func(r *http.Request) { wrote(r, nil) }, true},
		"nothing was reported": {func(*http.Request) {}, false},
		"broken off":           {func(r *http.Request) { wrote(r, errors.New("reset")) }, false},
		"asked for again, and both written": {func(r *http.Request) {
			wrote(r, nil)
			_, _ = r.GetBody()
			wrote(r, nil)
		}, true},
		"asked for again, the first still being written": {func(r *http.Request) {
			_, _ = r.GetBody()
			wrote(r, nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body := newRequestBody(&draft{}, "{}")
			pattern, err := newPattern(provider{}, "http://provider.test")
			if err != nil {
				t.Fatal(err)
			}
			request := body.request(t.Context(), pattern)
			test.transport(request)
			if got := body.free(); got != test.returned {
				t.Errorf("memory is free: %v, want %v", got, test.returned)
			}
		})
	}
}

// A hoarder answers at once and reads nothing until later.
type hoarder struct{ bodies []io.ReadCloser }

func (h *hoarder) RoundTrip(request *http.Request) (*http.Response, error) {
	h.bodies = append(h.bodies, request.Body)
	w := httptest.NewRecorder()
	streams(text("early")...)(w, request)
	return w.Result(), nil
}

// TestABodyStaysWhileATransportHoldsIt: an early answer ends the call, not the
// sending.
func TestABodyStaysWhileATransportHoldsIt(t *testing.T) {
	var h hoarder
	client := newClient(t, ProviderOpenAI, newServer(t, streams(text("unused")...)), func(c *Config) { c.HTTPClient = &http.Client{Transport: &h} })
	for call := range 3 {
		if _, err := client.Respond(t.Context(), question(strings.Repeat(fmt.Sprint(call), 1000))); err != nil {
			t.Fatal(err)
		}
	}
	for call, body := range h.bodies {
		sent, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(sent), strings.Repeat(fmt.Sprint(call), 1000)) {
			t.Errorf("call %d sent %.200q, %v", call, sent, err)
		}
	}
}

// TestBodiesArriveWhole asks from many goroutines at once a server that answers
// some requests before it has read them, and gives up on others: whatever the
// memory was used for, no body that arrives has bytes of another.
func TestBodiesArriveWhole(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rand.IntN(4) == 0 { // answers at once, and reads afterwards
			_ = http.NewResponseController(w).EnableFullDuplex()
			streams(text("early")...)(w, r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has gone
		}
		var asked struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(body, &asked); err != nil || len(asked.Messages) != 1 {
			t.Errorf("a body arrived that is none: %v", err)
			return
		}
		word, _, _ := strings.Cut(asked.Messages[0].Content, " ")
		if strings.ReplaceAll(asked.Messages[0].Content, word+" ", "") != "" {
			t.Errorf("a body has words of another")
		}
		streams(text("late")...)(w, r)
	}))
	defer s.Close()
	client := newClient(t, ProviderOpenAI, &server{Server: s})
	var everybody sync.WaitGroup
	for caller := range 8 {
		everybody.Go(func() {
			for call := range 15 {
				ctx, cancel := context.WithCancel(t.Context())
				words := strings.Repeat(fmt.Sprintf("%d-%d ", caller, call), 1+rand.IntN(40_000))
				request := question(words)
				if call%5 == 0 {
					request.OnDelta = func(agents.Delta) { cancel() }
				}
				_, err := client.Respond(ctx, request)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	everybody.Wait()
}
