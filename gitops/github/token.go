package github

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v62/github"
	"golang.org/x/sync/singleflight"
)

// A Token is an installation token for git over HTTP. Its Value is a secret:
// the type prints without it.
type Token struct {
	Value     string
	ExpiresAt time.Time
}

// String hides the value from every print verb.
func (t Token) String() string { return "Token{…, expires " + t.ExpiresAt.Format(time.RFC3339) + "}" }

// GoString hides the value from %#v.
func (t Token) GoString() string { return t.String() }

// LogValue hides the value from logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// An access is a set of permissions that tokens are minted with.
type access string

const (
	// accessRead reads one repository.
	accessRead access = "read"
	// accessWrite reads, and writes issues, pull requests and checks.
	accessWrite access = "write"
	// accessPush writes contents. Nothing but git and a [Committer] uses it.
	accessPush access = "push"
)

// A scope is what one token is good for. Repository 0 means every repository
// of the installation, with no permission but metadata.
type scope struct {
	repository int64
	access     access
}

// options returns the scope in GitHub's words.
func (s scope) options(workflows bool) *gh.InstallationTokenOptions {
	read, write := new("read"), new("write")
	if s.repository == 0 {
		return &gh.InstallationTokenOptions{Permissions: &gh.InstallationPermissions{Metadata: read}}
	}
	permissions := &gh.InstallationPermissions{Metadata: read, Contents: read, Issues: read, PullRequests: read, Checks: read}
	switch s.access {
	case accessWrite:
		permissions.Issues, permissions.PullRequests, permissions.Checks = write, write, write
	case accessPush:
		permissions = &gh.InstallationPermissions{Metadata: read, Contents: write}
		if workflows {
			permissions.Workflows = write
		}
	}
	return &gh.InstallationTokenOptions{RepositoryIDs: []int64{s.repository}, Permissions: permissions}
}

// The life of tokens. GitHub's live for an hour.
const (
	// refreshEarly is how long before its end a token is replaced, so that a
	// request or a push that starts with it also ends with it.
	refreshEarly = 5 * time.Minute
	// mintTimeout bounds one minting with its repetitions.
	mintTimeout = 30 * time.Second
	// mintAttempts is how often minting is tried when GitHub is unwell.
	mintAttempts = 4
	// sourcesKept bounds the tokens kept per installation.
	sourcesKept = 256
)

// A minted token and when it was made, by the local clock.
type minted struct {
	token  Token
	madeAt time.Time
}

// A tokenSource mints and keeps the tokens of one scope.
//
// ghinstallation's Transport keeps its first token until a minute before its
// end, cannot be told that the token is dead, and makes waiters wait without
// their contexts. So each minting gets a Transport (and an AppsTransport,
// which the Transport writes to) of its own, and this type does the keeping.
type tokenSource struct {
	installation *Installation
	scope        scope
	flight       singleflight.Group

	mu         sync.Mutex
	current    minted
	used       time.Time
	remintedAt time.Time
}

// source returns the token source of a scope.
func (i *Installation) source(s scope) *tokenSource {
	i.mu.Lock()
	defer i.mu.Unlock()
	source := i.sources[s]
	if source == nil {
		source = &tokenSource{installation: i, scope: s}
		i.dropOldestSource()
		i.sources[s] = source
	}
	source.used = i.app.clock.local()
	return source
}

func (i *Installation) dropOldestSource() {
	if len(i.sources) < sourcesKept {
		return
	}
	var oldest *tokenSource
	for _, s := range i.sources {
		if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
	}
	delete(i.sources, oldest.scope)
}

// get returns a token that lives for five minutes at least, unless GitHub
// gives none and an older one still lives. Callers share one minting, and each
// leaves when its own context ends.
func (t *tokenSource) get(ctx context.Context) (minted, error) {
	t.mu.Lock()
	current := t.current
	t.mu.Unlock()
	now := t.installation.app.clock.github()
	if current.token.ExpiresAt.After(now.Add(refreshEarly)) {
		return current, nil
	}
	result := t.flight.DoChan("mint", func() (any, error) {
		return t.mint(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return minted{}, ctx.Err()
	case r := <-result:
		if r.Err == nil {
			return r.Val.(minted), nil
		}
		if current.token.ExpiresAt.After(now.Add(10 * time.Second)) {
			return current, nil
		}
		return minted{}, r.Err
	}
}

// drop forgets a token that GitHub refused, unless it was replaced meanwhile.
func (t *tokenSource) drop(dead minted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.token.Value == dead.token.Value {
		t.current = minted{}
	}
}

// mayRemint says whether a token may be replaced because of a 403. A missing
// permission answers the same way for ever, so this happens once a minute.
func (t *tokenSource) mayRemint() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.installation.app.clock.local()
	if now.Sub(t.remintedAt) < time.Minute {
		return false
	}
	t.remintedAt = now
	return true
}

// mint asks GitHub for a token until it gives one, refuses, or time is up.
func (t *tokenSource) mint(ctx context.Context) (minted, error) {
	ctx, cancel := context.WithTimeout(ctx, mintTimeout)
	defer cancel()
	app := t.installation.app
	corrected := false
	for attempt := 1; ; attempt++ {
		skew := app.clock.skew.Load()
		token, response, err := t.mintOnce(ctx)
		if err == nil {
			app.onToken(token.Value)
			made := minted{token: token, madeAt: app.clock.local()}
			t.mu.Lock()
			t.current = made
			t.mu.Unlock()
			app.log.DebugContext(ctx, "minted an installation token", "installation", t.installation.id,
				"repository", t.scope.repository, "access", string(t.scope.access), "expires", token.ExpiresAt)
			return made, nil
		}
		status := statusOf(response)
		// A refused JWT is tried again once when the refusal taught us
		// something: GitHub's time, or that the key's file has changed.
		if status == http.StatusUnauthorized && !corrected && (app.clock.skew.Load() != skew || app.key.reload()) {
			corrected = true
			continue
		}
		if attempt >= mintAttempts || (response != nil && status < 500) {
			return minted{}, mintError(app.clock, t.installation.id, response, err)
		}
		if app.clock.sleep(ctx, backoff(attempt)) != nil {
			return minted{}, mintError(app.clock, t.installation.id, response, err)
		}
	}
}

// mintOnce makes one request for a token. The response is nil when there was
// none; its body has been read and replaced.
func (t *tokenSource) mintOnce(ctx context.Context) (Token, *http.Response, error) {
	app := t.installation.app
	apps, err := ghinstallation.NewAppsTransportWithOptions(&hostGuard{app: app}, app.id,
		ghinstallation.WithSigner(signer{key: app.key, clock: app.clock}))
	if err != nil {
		return Token{}, nil, err
	}
	apps.BaseURL = strings.TrimSuffix(app.api.String(), "/")
	transport := ghinstallation.NewFromAppsTransport(apps, t.installation.id)
	transport.InstallationTokenOptions = t.scope.options(app.workflows)
	value, err := transport.Token(ctx)
	if err != nil {
		var response *http.Response
		if refused, ok := errors.AsType[*ghinstallation.HTTPError](err); ok && refused.Response != nil {
			// ghinstallation leaves the body of a refusal open.
			response = refused.Response
			keepBody(response)
		}
		return Token{}, response, err
	}
	expires, _, err := transport.Expiry()
	if err != nil || value == "" {
		return Token{}, nil, errors.New("GitHub's answer held no token")
	}
	return Token{Value: value, ExpiresAt: expires}, nil, nil
}

// bodyLimit bounds what is read of an answer that reports a failure.
const bodyLimit = 64 << 10

// keepBody reads a response's body and puts the bytes back.
func keepBody(response *http.Response) []byte {
	if response.Body == nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	response.Body.Close()
	response.Body = io.NopCloser(strings.NewReader(string(text)))
	return text
}

// backoff returns the wait before the next attempt: half a second, doubled
// each time, with jitter so that nodes do not come back together.
func backoff(attempt int) time.Duration {
	base := 500 * time.Millisecond << (attempt - 1)
	return base + rand.N(base/2)
}

func statusOf(response *http.Response) int {
	if response == nil {
		return 0
	}
	return response.StatusCode
}
