package llm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"handoff/agents"
)

// TestMain looks for goroutines that outlive their call.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConnectionIsUsedAgain: a call that ended well leaves its connection to
// the next one.
func TestConnectionIsUsedAgain(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	var opened atomic.Int32
	transport := newTransport(time.Minute)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return dial(ctx, network, address)
	}
	client := newClient(t, ProviderOpenAI, s, func(c *Config) { c.HTTPClient = &http.Client{Transport: transport} })
	for range 5 {
		if _, err := client.Respond(t.Context(), question("Hi")); err != nil {
			t.Fatal(err)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("5 calls opened %d connections", opened.Load())
	}
}

// A stuck token source hands out nothing until it is let go.
type stuck struct{ release chan struct{} }

func (s stuck) Token() (*oauth2.Token, error) {
	<-s.release
	return nil, errors.New("released")
}

func TestTokenThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := stuck{make(chan struct{})}
		defer close(source.release)
		credential := &tokenCredential{source: source}
		start := time.Now()
		err := credential.authorize(t.Context(), &http.Request{Header: http.Header{}})
		if !errors.Is(err.(*credentialError).err, errTokenSlow) || time.Since(start) != tokenTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		// A text can be cleaned while the refresh hangs.
		if got := credential.redact("text"); got != "text" {
			t.Error(got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := credential.authorize(ctx, &http.Request{Header: http.Header{}}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// A failing token source fails with one error.
type failing struct{ err error }

func (f failing) Token() (*oauth2.Token, error) { return nil, f.err }

func TestTokenFailures(t *testing.T) {
	retrieve := func(status int) error {
		return &oauth2.RetrieveError{Response: &http.Response{StatusCode: status, Status: http.StatusText(status)}, Body: []byte(canary)}
	}
	for name, test := range map[string]struct {
		err      error
		attempts int
	}{
		"revoked":      {retrieve(400), 1},
		"overloaded":   {retrieve(503), 4},
		"no network":   {&net.DNSError{Err: "no such host"}, 4},
		"no account":   {errors.New("google: could not find default credentials"), 1},
		"with a token": {errors.New(canary), 1},
	} {
		s := newServer(t, streams(text("ok")...))
		client := newClient(t, ProviderVertex, s, func(c *Config) { c.TokenSource = failing{test.err} })
		_, err := client.Respond(t.Context(), question("Hi"))
		failure := failureOf(t, err)
		if failure.Kind != agents.KindAuth || failure.Usage.Requests != test.attempts || !strings.Contains(failure.Message, "gcloud") {
			t.Errorf("%s: %+v", name, failure)
		}
	}
}
