package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
)

// errOtherHost is what a redirect to another host ends with.
var errOtherHost = errors.New("GitHub redirected the request to another host, which is not followed")

// errMoved is what a writing request ends with whose redirect would turn it
// into a GET. GitHub sends 301 or 307 for a renamed repository; nothing has
// taken effect then.
var errMoved = errors.New("GitHub says that the repository has moved")

// checkRedirect follows redirects on the API's own host, as GitHub sends them
// for renamed repositories, and refuses all others before anything is sent.
func (a *App) checkRedirect(request *http.Request, via []*http.Request) error {
	if !a.isAPI(request) {
		return errOtherHost
	}
	if request.Method != via[0].Method {
		return errMoved
	}
	if len(via) >= 5 {
		return errors.New("GitHub redirected the request five times")
	}
	return nil
}

// isAPI says whether a request goes to the API's own scheme and host.
func (a *App) isAPI(request *http.Request) bool {
	return request.URL.Scheme == a.api.Scheme && request.URL.Host == a.api.Host
}

// A hostGuard carries requests to the API's own host and refuses all others,
// so that no credential can leave by any way. It learns GitHub's clock.
type hostGuard struct{ app *App }

// RoundTrip implements http.RoundTripper.
func (g *hostGuard) RoundTrip(request *http.Request) (*http.Response, error) {
	if !g.app.isAPI(request) {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, errOtherHost
	}
	response, err := g.app.base.RoundTrip(request)
	if err == nil {
		g.app.clock.learn(response.Header)
	}
	return response, err
}

// An appTransport authenticates as the App itself, with a JWT.
type appTransport struct{ app *App }

// RoundTrip implements http.RoundTripper. A refused JWT is signed again once,
// by GitHub's clock and with the key's file as it is now.
func (t *appTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	skew := t.app.clock.skew.Load()
	response, err := t.send(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	learnt := t.app.clock.skew.Load() != skew || t.app.key.reload()
	if again := replay(request); learnt && again != nil {
		response.Body.Close()
		return t.send(again)
	}
	return response, nil
}

func (t *appTransport) send(request *http.Request) (*http.Response, error) {
	apps, err := ghinstallation.NewAppsTransportWithOptions(&hostGuard{app: t.app}, t.app.id,
		ghinstallation.WithSigner(signer{key: t.app.key, clock: t.app.clock}))
	if err != nil {
		return nil, err
	}
	// ghinstallation writes to the request it is given, which a RoundTripper
	// must not do.
	return retryReads(t.app.clock, request.Clone(request.Context()), apps.RoundTrip)
}

// scopeKey is the context key under which a client passes its scope through
// go-github to the transport.
type scopeKey struct{}

// An installationTransport authenticates as the installation, with the token
// of the scope in the request's context.
type installationTransport struct{ installation *Installation }

// freshFor is how long after minting a refusal may be replication lag:
// GitHub's replicas learn of a token within a few seconds.
const freshFor = 10 * time.Second

// lagWaits are the waits for GitHub's replicas.
var lagWaits = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}

// RoundTrip implements http.RoundTripper.
func (t *installationTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	i := t.installation
	if err := i.limits.check(); err != nil {
		return nil, err
	}
	wanted, ok := request.Context().Value(scopeKey{}).(scope)
	if !ok {
		return nil, errors.New("request without a scope")
	}
	source := i.source(wanted)
	response, err := t.authorized(request, source)
	if err != nil {
		return nil, err
	}
	i.limits.learn(response)
	return response, nil
}

// authorized sends the request, and again where the refusal may have been the
// token's fault: a token that is seconds old is waited for, an older one is
// replaced once. It needs a body that can be sent again.
func (t *installationTransport) authorized(request *http.Request, source *tokenSource) (*http.Response, error) {
	clock := t.installation.app.clock
	replaced := false
	for waits := 0; ; {
		token, err := source.get(request.Context())
		if err != nil {
			return nil, err
		}
		response, err := t.send(request, token.token)
		if err != nil || !tokenRefused(clock, response) {
			return response, err
		}
		again := replay(request)
		if again == nil {
			return response, nil
		}
		request = again
		markUnsent(request)
		unauthorized := response.StatusCode == http.StatusUnauthorized
		switch fresh := clock.local().Sub(token.madeAt) < freshFor; {
		case fresh && waits < len(lagWaits) && (unauthorized || !replaced):
			if err := clock.sleep(request.Context(), lagWaits[waits]); err != nil {
				return response, nil
			}
			waits++
		case !fresh && !replaced && (unauthorized || source.mayRemint()):
			replaced = true
			source.drop(token)
		default:
			if unauthorized {
				source.drop(token)
			}
			return response, nil
		}
		response.Body.Close()
	}
}

// send makes one authenticated request.
func (t *installationTransport) send(request *http.Request, token Token) (*http.Response, error) {
	authenticated := request.Clone(request.Context())
	authenticated.Header.Set("Authorization", "token "+token.Value)
	guard := &hostGuard{app: t.installation.app}
	return retryReads(t.installation.app.clock, traced(authenticated), guard.RoundTrip)
}

// tokenRefused says whether an answer may mean that the token is unknown or
// outdated. A 403 does where GitHub says that the App has no access; a limit,
// an archived repository and a locked conversation are 403 as well, and no
// other token would help there.
func tokenRefused(clock *clock, response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		if _, limited := limitOf(clock, response); limited {
			return false
		}
		return bytes.Contains(keepBody(response), []byte("not accessible by integration"))
	}
	return false
}

// replay returns the request with a fresh body, nil when it has a body that
// cannot be had again.
func replay(request *http.Request) *http.Request {
	again := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return again
	}
	if request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	again.Body = body
	return again
}

// readAttempts is how often a read is tried when GitHub is unwell.
const readAttempts = 3

// retryReads repeats a GET or HEAD that failed on the way or at GitHub's
// gateway. Nothing else is repeated: it may have taken effect.
func retryReads(clock *clock, request *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		response, err := send(request)
		read := request.Method == http.MethodGet || request.Method == http.MethodHead
		if !read || attempt >= readAttempts || !worthRepeating(response, err) {
			return response, err
		}
		if response != nil {
			response.Body.Close()
		}
		if waited := clock.sleep(request.Context(), backoff(attempt)); waited != nil {
			return nil, waited
		}
	}
}

func worthRepeating(response *http.Response, err error) bool {
	if err != nil {
		return !errors.Is(err, errOtherHost) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch response.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// sentKey is the context key of the flag that says whether a request has left.
type sentKey struct{}

// withSent returns a context in which the transport notes that a request
// began to leave this machine.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	flag := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, flag), flag
}

// markUnsent notes that what was sent was refused, so that nothing has taken
// effect.
func markUnsent(request *http.Request) {
	if flag, ok := request.Context().Value(sentKey{}).(*atomic.Bool); ok {
		flag.Store(false)
	}
}

// traced sets the context's flag, if it has one, as soon as the request's
// headers are written. It is set too early rather than too late.
func traced(request *http.Request) *http.Request {
	flag, ok := request.Context().Value(sentKey{}).(*atomic.Bool)
	if !ok {
		return request
	}
	trace := &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { flag.Store(true) },
		WroteHeaders:     func() { flag.Store(true) },
	}
	return request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
}

// checkName refuses names that would change the meaning of an API address.
func checkName(owner, name string) error {
	for _, part := range []string{owner, name} {
		if part == "" || part == "." || part == ".." || len(part) > 100 || strings.ContainsFunc(part, unusualInName) {
			return &Error{Code: CodeValidation, Message: fmt.Sprintf("%.60q is not a name that GitHub gives to accounts and repositories.", owner+"/"+name)}
		}
	}
	return nil
}

func unusualInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
