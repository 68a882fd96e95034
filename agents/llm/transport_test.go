package llm

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"handoff/agents"
)

// compressed answers as another reply does, compressed, whatever was asked for.
func compressed(answer reply) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		plain := httptest.NewRecorder()
		answer(plain, r)
		for name := range plain.Header() {
			w.Header().Set(name, plain.Header().Get(name))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(plain.Code)
		zip := gzip.NewWriter(w)
		_, _ = io.Copy(zip, plain.Body)
		_ = zip.Close()
	}
}

// TestAnAnswerThatIsCompressedUnasked: some gateways compress what they pass
// on, whatever the call accepts.
func TestAnAnswerThatIsCompressedUnasked(t *testing.T) {
	for name, client := range map[string]*http.Client{"our transport": nil, "a transport of the caller's": {}} {
		s := newServer(t, compressed(fails(http.StatusTooManyRequests, `{"error":{"message":"slowly"}}`)), compressed(streams(text("ok")...)))
		response, err := newClient(t, ProviderOpenAI, s, func(c *Config) { c.HTTPClient = client }).Respond(t.Context(), question("Hi"))
		if err != nil || response.Text != "ok" || response.Usage.Requests != 2 {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
		if got := s.headers[0].Get("Accept-Encoding"); got != "identity" {
			t.Errorf("%s: accepts %q", name, got)
		}
	}
}

// TestAServerThatSwitchesProtocols holds on to the connection, which is then
// nobody's but the caller's: no clock and no cancellation would end a read.
func TestAServerThatSwitchesProtocols(t *testing.T) {
	left := make(chan struct{})
	defer close(left)
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		go func() {
			<-left
			_ = connection.Close()
		}()
	})
	_, err := newClient(t, ProviderOpenAI, s, oneAttempt).Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); failure.Kind != agents.KindTransport || !strings.Contains(failure.Message, "another protocol") {
		t.Errorf("%v", failure)
	}
}

// roundTrip is a transport of the caller's.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestATransportThatGivesNoBody as many that are written for a test do.
func TestATransportThatGivesNoBody(t *testing.T) {
	for status, kind := range map[int]string{
		http.StatusOK: agents.KindTransport, http.StatusNoContent: agents.KindUnavailable, http.StatusNotFound: agents.KindRejected,
	} {
		bare := roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: status}, nil })
		client := newClient(t, ProviderOpenAI, newServer(t), oneAttempt, func(c *Config) { c.HTTPClient = &http.Client{Transport: bare} })
		_, err := client.Respond(t.Context(), question("Hi"))
		if failure := failureOf(t, err); failure.Kind != kind {
			t.Errorf("%d: %v", status, failure)
		}
	}
}

// TestATransportThatChangesItsRequest changes that one only: a gateway's
// transport may add what is meant for one call, or lead it elsewhere.
func TestATransportThatChangesItsRequest(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	changing := roundTrip(func(request *http.Request) (*http.Response, error) {
		request.URL.Path += "/changed"
		request.Header.Add("X-Changed", "yes")
		return http.DefaultTransport.RoundTrip(request)
	})
	client := newClient(t, ProviderOpenAI, s, func(c *Config) { c.HTTPClient = &http.Client{Transport: changing} })
	for range 2 {
		if _, err := client.Respond(t.Context(), question("Hi")); err != nil {
			t.Fatal(err)
		}
	}
	if path := client.main.pattern.URL.Path; path != "/chat/completions" || len(s.headers[1].Values("X-Changed")) != 1 {
		t.Errorf("the next call goes to %s with %v", path, s.headers[1])
	}
}

func TestAServerWithoutTLSIsNamed(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	client := newClient(t, ProviderCompatible, s, oneAttempt, func(c *Config) { c.BaseURL = strings.Replace(s.URL, "http:", "https:", 1) })
	_, err := client.Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); !strings.Contains(failure.Message, http.ErrSchemeMismatch.Error()) || !strings.Contains(failure.Message, "OPENAI_BASE_URL") {
		t.Errorf("%v", failure)
	}
}
