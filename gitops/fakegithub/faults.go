package fakegithub

import (
	"bufio"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// Kinds of faults that can be planted.
const (
	FaultTooManyRequests = "429"       // 429 with Retry-After
	FaultSecondaryLimit  = "secondary" // 403 with GitHub's secondary limit text and Retry-After
	FaultPrimaryLimit    = "primary"   // 403 with X-RateLimit-Remaining: 0
	FaultBadGateway      = "502"       // a proxy's HTML page
	FaultUnavailable     = "503"
	FaultSlow            = "slow"        // answered after Delay
	FaultLostAnswer      = "lost-answer" // done, but the connection breaks before the answer
	FaultLostRequest     = "lost-request"
)

// A Fault makes the next Count requests that match go wrong.
type Fault struct {
	Kind string `json:"kind"`
	// Method and Path choose the requests; empty matches all. Path is a pattern of path.Match, except that a
	// trailing /** matches everything below. It is compared without /api/v3.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Count is how many requests; zero means one.
	Count int `json:"count,omitempty"`
	// RetryAfter is in seconds, for the kinds that tell when to come back; zero means 1, negative leaves the header out.
	RetryAfter int `json:"retry_after,omitempty"`
	// Delay is for FaultSlow; in JSON it is in nanoseconds.
	Delay time.Duration `json:"delay,omitempty"`
}

type faultList struct {
	mu     sync.Mutex
	faults []*Fault
}

// AddFault plants a fault for requests to the API and to git; pages and controls are never disturbed.
func (s *Server) AddFault(fault Fault) {
	fault.Count = max(1, fault.Count)
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.faults = append(s.faults.faults, &fault)
}

// ClearFaults removes what is planted and not yet spent.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.faults = nil
}

// take finds the first fault for the request and spends it.
func (l *faultList) take(request *http.Request) *Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, fault := range l.faults {
		if !fault.matches(request) {
			continue
		}
		fault.Count--
		spent := *fault
		if fault.Count <= 0 {
			l.faults = append(l.faults[:i:i], l.faults[i+1:]...)
		}
		return &spent
	}
	return nil
}

func (f *Fault) matches(request *http.Request) bool {
	if f.Method != "" && !strings.EqualFold(f.Method, request.Method) {
		return false
	}
	if f.Path == "" {
		return true
	}
	if below, ok := strings.CutSuffix(f.Path, "/**"); ok {
		return strings.HasPrefix(request.URL.Path, below+"/")
	}
	matched, err := path.Match(f.Path, request.URL.Path)
	return err == nil && matched
}

// faulty is the middleware that makes planted faults happen.
func (s *Server) faulty(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.disturbable(c) {
			return next(c)
		}
		fault := s.faults.take(c.Request())
		if fault == nil {
			return next(c)
		}
		s.log.Debug("planted fault", "kind", fault.Kind, "path", c.Request().URL.Path)
		return s.inject(fault, c, next)
	}
}

// disturbable tells the API and git from pages and controls.
func (s *Server) disturbable(c echo.Context) bool {
	return c.Get(isAPI) == true || strings.Contains(c.Request().URL.Path, ".git/")
}

func (s *Server) inject(fault *Fault, c echo.Context, next echo.HandlerFunc) error {
	header := c.Response().Header()
	if wait := fault.RetryAfter; wait >= 0 && fault.Kind != FaultSlow {
		header.Set("Retry-After", strconv.Itoa(max(1, wait)))
	}
	refuse := func(failure *apiError) error {
		return c.Blob(failure.status, "application/json; charset=utf-8", encode(failure.body()))
	}
	switch fault.Kind {
	case FaultTooManyRequests:
		return refuse(errorStatus(http.StatusTooManyRequests, "Too many requests"))
	case FaultSecondaryLimit:
		return refuse(secondaryLimit(time.Minute))
	case FaultPrimaryLimit:
		header.Set("X-RateLimit-Remaining", "0")
		header.Set("X-RateLimit-Reset", strconv.FormatInt(s.Now().Add(time.Hour).Unix(), 10))
		return refuse(errorStatus(http.StatusForbidden, "API rate limit exceeded"))
	case FaultUnavailable:
		return refuse(errorStatus(http.StatusServiceUnavailable, "Service unavailable"))
	case FaultSlow:
		select {
		case <-time.After(fault.Delay):
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
		return next(c)
	case FaultLostAnswer:
		return loseAnswer(c, next)
	case FaultLostRequest:
		return hangUp(c)
	default:
		return c.HTML(http.StatusBadGateway, "<html><body><h1>502 Bad Gateway</h1></body></html>")
	}
}

// loseAnswer lets the request do its work and then breaks the connection.
func loseAnswer(c echo.Context, next echo.HandlerFunc) error {
	real := c.Response().Writer
	c.Response().Writer = &discardingWriter{header: http.Header{}}
	err := next(c)
	c.Response().Writer = real
	if err != nil {
		return err
	}
	return hangUp(c)
}

// hangUp closes the connection without a word.
func hangUp(c echo.Context) error {
	connection, _, err := http.NewResponseController(c.Response().Writer).Hijack()
	if err != nil {
		return err
	}
	c.Response().Committed = true
	return connection.Close()
}

type discardingWriter struct{ header http.Header }

func (w *discardingWriter) Header() http.Header            { return w.header }
func (w *discardingWriter) Write(data []byte) (int, error) { return len(data), nil }
func (w *discardingWriter) WriteHeader(int)                {}
func (w *discardingWriter) Flush()                         {}

func (w *discardingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}
