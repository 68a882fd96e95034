// Package github talks to GitHub's REST API as a GitHub App. It is the only
// package that knows go-github and ghinstallation; no type of theirs appears
// in an exported signature.
//
// The idea is that a caller holds exactly the power it needs. An [App] knows
// the private key and can do almost nothing but mint tokens. An
// [Installation] is the App on somebody's account. A [Client] is one
// installation narrowed to one repository and to reading
// ([Installation.ReadOnly]) or to reading, commenting and checks
// ([Installation.Writer]); permission to write contents is in neither and is
// minted only when a push is due, by [Client.Token] for git or for a [Committer]. The tokens themselves are
// scoped so at GitHub, so that a mistake here cannot widen them.
//
// Requests flow through these parts, one file each:
//
//   - client.go finds the repository's names by its id (ids are stable, names
//     are not), bounds the time, and turns every failure into an [*Error].
//   - go-github writes the request and reads the answer. There is one
//     go-github client per installation, because it remembers limits.
//   - transport.go adds the Authorization header, for the API's own scheme and
//     host only, waits out the replication lag of fresh tokens, replaces dead
//     ones, repeats reads that failed on the way, and remembers rate limits.
//   - token.go keeps one token per installation, repository and set of
//     permissions, minted by ghinstallation, renewed five minutes early.
//   - key.go reads the private key and signs with a clock corrected by GitHub's.
//
// What it promises: nothing is sent twice that creates something; a creation
// whose answer was lost is reported as [CodeUnknownOutcome], never guessed;
// rate limits are told apart from missing permissions; no token or key appears
// in an error or a log; redirects to another host are refused. All types are
// safe for concurrent use.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// Config is what an [App] needs to know.
type Config struct {
	// AppID is the App's numeric id, as its settings page shows it.
	AppID int64
	// PrivateKey is the App's key: PEM (PKCS #1 or PKCS #8), PEM with literal
	// \n for line ends, base64 of PEM, or a path to a file with any of these.
	// A file is read again when GitHub refuses the key, so that a key can be
	// rotated without a restart.
	PrivateKey string
	// BaseURL is where GitHub is: "" for github.com, otherwise the web address
	// of a GitHub Enterprise Server or of a data-residency tenant. Plain HTTP
	// is accepted for loopback addresses only.
	BaseURL string
	// Workflows asks for permission to change workflow files with every push
	// token. The App must have been given it.
	Workflows bool
	// OnToken is given the value of every token that is minted, before anybody
	// uses it, so that it can be kept out of whatever leaves; may be nil.
	OnToken func(value string)
	// UserAgent names the program to GitHub; "" means "handoff".
	UserAgent string
	// Logger receives what happens below the API's surface; nil means nothing
	// is logged.
	Logger *slog.Logger
	// Transport carries the requests; nil means a transport of the package's
	// own with sensible time limits.
	Transport http.RoundTripper
}

// An App is a GitHub App with its private key.
type App struct {
	id        int64
	key       *privateKey
	api       *url.URL
	web       *url.URL
	base      http.RoundTripper
	clock     *clock
	userAgent string
	workflows bool
	onToken   func(value string)
	log       *slog.Logger
	jwt       *gh.Client

	mu            sync.Mutex
	installations map[int64]*Installation
	self          atomic.Pointer[Identity]
}

// installationsKept bounds the installations in memory; the one that was not
// used for longest is dropped, which costs it a new token.
const installationsKept = 1024

// NewApp checks the configuration and returns the App. It makes no request.
// The error joins one sentence per fault.
func NewApp(config Config) (*App, error) {
	var faults []error
	if config.AppID <= 0 {
		faults = append(faults, errors.New("the App's id is missing: set GITHUB_APP_ID to the number on the App's settings page"))
	}
	key, err := readPrivateKey(config.PrivateKey)
	if err != nil {
		faults = append(faults, err)
	}
	api, web, err := addresses(config.BaseURL)
	if err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	a := &App{
		id: config.AppID, key: key, api: api, web: web,
		base:          config.Transport,
		clock:         newClock(),
		userAgent:     cmp.Or(config.UserAgent, "handoff"),
		workflows:     config.Workflows,
		onToken:       config.OnToken,
		log:           config.Logger,
		installations: make(map[int64]*Installation),
	}
	if a.base == nil {
		a.base = newTransport()
	}
	if a.onToken == nil {
		a.onToken = func(string) {}
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.jwt = a.newClient(&appTransport{app: a})
	return a, nil
}

// newTransport returns a transport whose limits are shorter than the callers'
// so that a dead connection is told apart from a slow answer.
func newTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 5 * time.Second
	t.MaxIdleConnsPerHost = 16
	return t
}

// newClient returns a go-github client that sends through transport and
// follows redirects on the API's own host only.
func (a *App) newClient(transport http.RoundTripper) *gh.Client {
	client := gh.NewClient(&http.Client{Transport: transport, CheckRedirect: a.checkRedirect})
	client.BaseURL = a.api
	client.UploadURL = a.api
	client.UserAgent = a.userAgent
	return client
}

// ID returns the App's id.
func (a *App) ID() int64 { return a.id }

// WebURL returns the address of GitHub's pages, without a slash at its end.
func (a *App) WebURL() string { return strings.TrimSuffix(a.web.String(), "/") }

// addresses returns the API's and the web's address for what a person
// configured.
func addresses(configured string) (api, web *url.URL, err error) {
	switch strings.TrimSuffix(configured, "/") {
	case "", "https://github.com", "https://www.github.com", "https://api.github.com":
		api, _ = url.Parse("https://api.github.com/")
		web, _ = url.Parse("https://github.com")
		return api, web, nil
	}
	u, err := url.Parse(configured)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, nil, errors.New("GITHUB_URL is not an address like https://github.example.com")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, nil, fmt.Errorf("GITHUB_URL must start with https:// (tokens would travel in clear to %s)", u.Host)
	}
	web = &url.URL{Scheme: u.Scheme, Host: u.Host}
	api = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/api/v3/"}
	// Data residency: the API has a host of its own and no prefix.
	if tenant, ok := strings.CutSuffix(u.Hostname(), ".ghe.com"); ok {
		tenant = strings.TrimPrefix(tenant, "api.")
		web.Host = tenant + ".ghe.com"
		api = &url.URL{Scheme: u.Scheme, Host: "api." + web.Host, Path: "/"}
	}
	return api, web, nil
}

// isLoopback says whether a host name is this machine without asking DNS.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// An Installation is the App on one account.
type Installation struct {
	app    *App
	id     int64
	client *gh.Client
	limits *limits

	mu      sync.Mutex
	sources map[scope]*tokenSource
	names   map[int64]repositoryName
	used    time.Time
}

// Installation returns the installation with this id. It makes no request; an
// id that does not exist shows as [CodeNotInstalled] at the first call.
func (a *App) Installation(id int64) *Installation {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.installations[id]
	if i == nil {
		i = a.newInstallation(id)
		a.dropOldest()
		a.installations[id] = i
	}
	i.used = a.clock.local()
	return i
}

func (a *App) newInstallation(id int64) *Installation {
	i := &Installation{
		app: a, id: id,
		limits:  &limits{clock: a.clock},
		sources: make(map[scope]*tokenSource),
		names:   make(map[int64]repositoryName),
	}
	i.client = a.newClient(&installationTransport{installation: i})
	return i
}

// dropOldest makes room for one installation.
func (a *App) dropOldest() {
	if len(a.installations) < installationsKept {
		return
	}
	var oldest *Installation
	for _, i := range a.installations {
		if oldest == nil || i.used.Before(oldest.used) {
			oldest = i
		}
	}
	delete(a.installations, oldest.id)
}

// Forget drops everything kept for an installation, tokens included. It is
// called when the App was uninstalled or suspended.
func (a *App) Forget(installation int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.installations, installation)
}

// ID returns the installation's id.
func (i *Installation) ID() int64 { return i.id }

// ReadOnly returns a client whose token can read one repository and nothing
// else. Its writing methods fail with [CodeForbidden] without a request.
func (i *Installation) ReadOnly(repository int64) *Client {
	return &Client{installation: i, scope: scope{repository: repository, access: accessRead}}
}

// Writer returns a client whose token can read one repository, comment on its
// issues and pull requests, open pull requests and report checks. It cannot
// change contents; see [Client.Token].
func (i *Installation) Writer(repository int64) *Client {
	return &Client{installation: i, scope: scope{repository: repository, access: accessWrite}}
}

// call runs one request with the App's own credentials.
func (a *App) call(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return errorOf(a.clock, what, do(ctx), false)
}
