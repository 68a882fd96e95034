// Package fakegithub is a GitHub that runs inside this process: real HTTP on a loopback port, real git
// repositories on disk, real signatures and tokens, and nothing of github.com's own. The demo is played on it and
// every test of the product talks to it, so it is strict where GitHub is strict: what passes here has been
// authenticated, authorised, limited and validated the way GitHub documents it.
//
// # How its parts move
//
// One [Server] holds everything in memory behind one mutex, except git. Branches, commits and files live in bare
// repositories below Options.DataDir and are read from there each time; no ref is ever stored a second time.
//
// Four doors lead to that state, and all four pass through the same domain functions (createComment,
// createCheckRun, createPull …), so that a comment is the same comment whoever posts it:
//
//   - the REST API, at /, at /api/v3/ (where GitHub Enterprise Server has it) and at /repositories/{id}/…;
//     the table in operations.go says for each operation who may call it and with which permission;
//   - git over smart HTTP at /{owner}/{repo}.git, served by git's own http-backend or by go-git. Which of the two
//     moves the objects makes no difference to the rules: git_rules.go judges every push before either sees it;
//   - the pages, where a person reads, comments, reacts and clicks; the page's "acting as" switch says as whom;
//   - the Go methods of Server and [Person], for seeding and for tests.
//
// Whatever changes emits webhooks. They are queued per App in order, signed, sent once with a time limit of ten
// seconds and kept in the delivery log, from which they can be redelivered. Reactions emit nothing, as on GitHub.
//
// # What it promises
//
//   - Nothing listens beyond loopback, and the controls under /_fake/ want a token of their own.
//   - Answers fit GitHub's published description of its API; the tests check each one against it.
//   - Every method may be called from any goroutine. State that was returned is a copy.
//   - The clock can be moved and faults can be planted, so that a test needs no waiting to see a token expire.
//
// It keeps no state across restarts: it is the world outside the program under test, not a part of it.
package fakegithub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
)

// Options says how a Server is set up. The zero value is usable: a temporary directory, a free port, the machine's
// clock, GitHub's own limits.
type Options struct {
	// DataDir holds the bare repositories. Empty means a temporary directory that Close removes.
	DataDir string
	// Listen is the address to listen on, host:port. The host must be loopback; empty means 127.0.0.1 and a free port.
	Listen string
	// Clock tells the time; nil means time.Now. Everything the fake dates or expires asks it.
	Clock func() time.Time
	// Logger receives what the fake has to say; nil discards it. Tokens and keys never appear in it.
	Logger *slog.Logger
	// Git chooses what serves git over HTTP; the zero value is GitAuto.
	Git GitBackend
	// ControlToken guards /_fake/; empty means a random one, see Server.ControlToken.
	ControlToken string
	// ActingAs is the login that a browser acts as on the pages until it chooses; empty means nobody.
	ActingAs string
	// Limits are the request limits to enforce; the zero value means GitHub's (see DefaultLimits).
	Limits Limits
	// HookTimeout is how long a webhook receiver may take; zero means GitHub's 10 seconds.
	HookTimeout time.Duration
}

// A Server is one fake GitHub. Create it with New, seed it, and Start it. Safe for concurrent use.
type Server struct {
	options Options
	log     *slog.Logger
	git     gitTransport
	echo    *echo.Echo
	clock   clock

	dataDir       string
	removeDataDir bool
	listener      net.Listener
	http          *http.Server
	serving       sync.WaitGroup
	forget        func() bool // lets go of Start's context

	limits *limiter
	faults *faultList
	hooks  *hookSender

	signingKey []byte
	unsigned   atomic.Bool // see LeaveUnsigned

	mu    sync.Mutex // guards world; taken after a repository's gitMu, never before
	world *world
}

// New prepares a Server: its address is bound (so URL works and can be handed to an App's configuration), but
// nothing is answered before Start. It fails when the address is not loopback or the directory cannot be made.
func New(options Options) (*Server, error) {
	s := &Server{options: options, log: options.Logger, world: newWorld(), signingKey: []byte(randomToken(""))}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.clock.now = options.Clock
	if s.clock.now == nil {
		s.clock.now = time.Now
	}
	if s.options.ControlToken == "" {
		s.options.ControlToken = randomToken("ctl_")
	}
	if s.options.HookTimeout == 0 {
		s.options.HookTimeout = hookTimeout
	}
	transport, err := newGitTransport(options.Git, s)
	if err != nil {
		return nil, err
	}
	s.git = transport
	s.limits = newLimiter(options.Limits)
	s.faults = &faultList{}
	s.hooks = newHookSender(s)
	if err := s.prepareDataDir(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.cleanDataDir())
	}
	s.echo = s.router()
	return s, nil
}

func (s *Server) prepareDataDir() error {
	s.dataDir = s.options.DataDir
	if s.dataDir == "" {
		directory, err := os.MkdirTemp("", "fakegithub-")
		if err != nil {
			return fmt.Errorf("fakegithub: no temporary directory: %w", err)
		}
		s.dataDir, s.removeDataDir = directory, true
	}
	absolute, err := filepath.Abs(s.dataDir)
	if err != nil {
		return fmt.Errorf("fakegithub: data directory: %w", err)
	}
	s.dataDir = absolute
	if err := os.MkdirAll(filepath.Join(s.dataDir, "repositories"), 0o700); err != nil {
		return fmt.Errorf("fakegithub: data directory: %w", err)
	}
	return nil
}

func (s *Server) cleanDataDir() error {
	if !s.removeDataDir {
		return nil
	}
	return os.RemoveAll(s.dataDir)
}

// listen binds the address and refuses one that others could reach: the fake hands out tokens on request.
func (s *Server) listen() error {
	address := s.options.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("fakegithub: listen address %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("fakegithub: listen address %q is not loopback; this server is for one machine only", address)
	}
	s.listener, err = net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("fakegithub: %w", err)
	}
	return nil
}

// Start begins to answer requests and to send webhooks, and returns at once. The server stops when ctx ends or
// Close is called, whichever comes first; Close must be called in either case.
func (s *Server) Start(ctx context.Context) error {
	if s.http != nil {
		return errors.New("fakegithub: started twice")
	}
	s.http = &http.Server{
		Handler:           s.echo,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the fake GitHub stopped", "error", err)
		}
	})
	s.hooks.start()
	s.forget = context.AfterFunc(ctx, func() { _ = s.http.Close() })
	return nil
}

// Close stops the server: open requests are cut, unsent webhooks are dropped, a temporary directory is removed.
func (s *Server) Close() error {
	var err error
	if s.http != nil {
		s.forget()
		err = s.http.Close()
	} else {
		err = s.listener.Close()
	}
	s.serving.Wait()
	s.hooks.stop()
	return errors.Join(err, s.cleanDataDir())
}

// URL is the server's root without a trailing slash, for example http://127.0.0.1:41234. The API answers there and
// below URL()+"/api/v3/".
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// ControlToken is the bearer token that the endpoints below /_fake/ want.
func (s *Server) ControlToken() string { return s.options.ControlToken }

// Now is the time on the fake's clock, to the second as GitHub shows it.
func (s *Server) Now() time.Time { return s.clock.read() }

// Advance moves the fake's clock forward, or back for a negative duration.
func (s *Server) Advance(by time.Duration) { s.clock.advance(by) }

// WaitIdle returns when every webhook that was queued has been sent, or with ctx's error.
func (s *Server) WaitIdle(ctx context.Context) error { return s.hooks.waitIdle(ctx) }
