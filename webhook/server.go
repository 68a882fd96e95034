package webhook

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/sync/semaphore"
)

// Options configure [New].
type Options struct {
	// Path is where GitHub posts; "" means /webhook.
	Path string
	// Secrets are the App's webhook secrets: the current one and, while
	// rotating, the previous one. One at least is needed.
	Secrets []string
	// AppID is our App's id: other Apps' check runs are not ours.
	AppID int64
	// Inbox keeps what matters.
	Inbox Inbox
	// Ready says whether the process can take work, with the reason when it
	// cannot; nil means always. It must answer within seconds.
	Ready func(context.Context) error
	// Observe, when set, is told what became of each request: a [Verdict], or
	// refused_ and the status. It must not block.
	Observe func(result string)
	// Logger is told what was stored and what failed; nil means nothing.
	Logger *slog.Logger
}

// A Server is the program's HTTP server: the webhook, health and readiness,
// and whatever package webhook/pages adds. It is safe for concurrent use.
type Server struct {
	echo    *echo.Echo
	path    string
	secrets [][]byte
	appID   int64
	inbox   Inbox
	ready   func(context.Context) error
	observe func(string)
	logger  *slog.Logger
	bodies  *semaphore.Weighted
}

// secretShort is the length below which a secret is warned about: a short one
// can be found by trying on a single recorded delivery.
const secretShort = 16

// New returns a server. It refuses to be without a secret. The error joins one
// sentence per fault.
func New(options Options) (*Server, error) {
	s := &Server{
		path: cmp.Or(options.Path, "/webhook"), appID: options.AppID, inbox: options.Inbox,
		ready: options.Ready, observe: options.Observe, logger: options.Logger,
		bodies: semaphore.NewWeighted(bodiesAtOnce),
	}
	var faults []error
	for _, secret := range options.Secrets {
		if secret != "" {
			s.secrets = append(s.secrets, []byte(secret))
		}
	}
	if len(s.secrets) == 0 {
		faults = append(faults, errors.New("the webhook secret is missing: set GITHUB_WEBHOOK_SECRET to the secret in the App's settings"))
	}
	if s.appID <= 0 {
		faults = append(faults, errors.New("the App's id is missing: set GITHUB_APP_ID"))
	}
	if s.inbox == nil {
		faults = append(faults, errors.New("the webhook server has no inbox"))
	}
	if !strings.HasPrefix(s.path, "/") {
		faults = append(faults, errors.New("the webhook's path must start with a slash"))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	s.defaults()
	s.routes()
	return s, nil
}

func (s *Server) defaults() {
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
	}
	if s.observe == nil {
		s.observe = func(string) {}
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	for _, secret := range s.secrets {
		if len(secret) < secretShort {
			s.logger.Warn("the webhook secret is short and could be guessed: make one with openssl rand -hex 32")
		}
	}
}

func (s *Server) routes() {
	s.echo = echo.New()
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: s.recovered}))
	s.echo.POST(s.path, s.receive)
	s.echo.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	s.echo.GET("/readyz", s.readyz)
}

// readyz answers 503 with the reason while the process cannot take work.
func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), 3*time.Second)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		s.logger.WarnContext(ctx, "not ready", "error", err)
		return c.String(http.StatusServiceUnavailable, "not ready\n")
	}
	return c.String(http.StatusOK, "ready\n")
}

// fail answers errors that handlers return and requests that no route takes.
// Causes go to the log, not to the client.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status := http.StatusInternalServerError
	if known, ok := errors.AsType[*echo.HTTPError](err); ok {
		status = known.Code
	}
	if status >= http.StatusInternalServerError {
		s.logger.ErrorContext(c.Request().Context(), "a request failed", "method", c.Request().Method, "route", c.Path(), "error", err)
	}
	if err := c.JSON(status, map[string]string{"message": http.StatusText(status)}); err != nil {
		s.logger.DebugContext(c.Request().Context(), "could not answer", "error", err)
	}
}

// recovered logs a panic of a handler. There is none that we know of.
func (s *Server) recovered(c echo.Context, err error, stack []byte) error {
	s.logger.ErrorContext(c.Request().Context(), "a handler panicked", "route", c.Path(), "error", err, "stack", string(stack))
	return echo.ErrInternalServerError
}

// Group returns a group of routes below a path, for pages. Middleware given
// here applies to the group alone, so that nothing stands between GitHub and
// the webhook.
func (s *Server) Group(path string, layers ...echo.MiddlewareFunc) *echo.Group {
	return s.echo.Group(path, layers...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// shutdownTime is how long requests in flight may take once the server stops:
// longer than a webhook's transaction.
const shutdownTime = storeTimeout + 2*time.Second

// Serve answers requests on the listener until ctx ends, then lets those in
// flight finish and returns nil. An error means that it could not serve.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		// No ReadTimeout: it would also end the streams of pages. The webhook
		// sets a deadline for its own body.
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		// Streams of pages never end by themselves.
		server.Close()
	}
	<-served
	return nil
}
