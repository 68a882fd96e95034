package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// Limits are what GitHub allows; zero fields take GitHub's figures, negative ones mean no limit.
// Sources: https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api and
// https://docs.github.com/repositories/working-with-files/managing-large-files/about-large-files-on-github
type Limits struct {
	// PerHour is the primary limit of a credential: requests per hour.
	PerHour int
	// AnonymousPerHour is the primary limit without a credential.
	AnonymousPerHour int
	// PointsPerMinute is the secondary limit: reads cost 1, writes 5.
	PointsPerMinute int
	// Concurrent is how many requests of one credential may be open at a time.
	Concurrent int
	// ContentPerMinute and ContentPerHour bound the creation of issues, comments and pull requests.
	ContentPerMinute int
	ContentPerHour   int
	// LargestFile is the size in bytes up to which a file may be pushed.
	LargestFile int
}

// DefaultLimits are GitHub's figures for an installation outside GitHub Enterprise Cloud.
var DefaultLimits = Limits{PerHour: 5000, AnonymousPerHour: 60, PointsPerMinute: 900, Concurrent: 100,
	ContentPerMinute: 80, ContentPerHour: 500, LargestFile: 100 << 20}

func (l Limits) withDefaults() Limits {
	set := func(field *int, fallback int) {
		if *field == 0 {
			*field = fallback
		}
	}
	set(&l.PerHour, DefaultLimits.PerHour)
	set(&l.AnonymousPerHour, DefaultLimits.AnonymousPerHour)
	set(&l.PointsPerMinute, DefaultLimits.PointsPerMinute)
	set(&l.Concurrent, DefaultLimits.Concurrent)
	set(&l.ContentPerMinute, DefaultLimits.ContentPerMinute)
	set(&l.ContentPerHour, DefaultLimits.ContentPerHour)
	set(&l.LargestFile, DefaultLimits.LargestFile)
	return l
}

// limiter counts per credential in fixed windows on the fake's clock.
type limiter struct {
	limits Limits
	mu     sync.Mutex
	usage  map[string]*usage
	open   map[string]int // requests that are being answered, by Authorization header
}

type usage struct {
	requests, points, contentMinute, contentHour window
}

// window is a count that starts over when its time is up.
type window struct {
	count int
	until time.Time
}

func (w *window) at(now time.Time, length time.Duration) *window {
	if !now.Before(w.until) {
		w.count, w.until = 0, now.Add(length)
	}
	return w
}

func newLimiter(limits Limits) *limiter {
	return &limiter{limits: limits.withDefaults(), usage: map[string]*usage{}, open: map[string]int{}}
}

func (l *limiter) of(bucket string) *usage {
	u := l.usage[bucket]
	if u == nil {
		u = &usage{}
		l.usage[bucket] = u
	}
	return u
}

func (l *limiter) primary(c *caller) int {
	if c.anonymous() {
		return l.limits.AnonymousPerHour
	}
	return l.limits.PerHour
}

// admit counts the request and sets the X-RateLimit headers, or refuses it as GitHub does.
func (l *limiter) admit(c *call) error {
	now, bucket := c.server.Now(), c.caller.bucket()
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(bucket)
	requests := u.requests.at(now, time.Hour)
	limit := l.primary(c.caller)
	free := c.operation.path == "/rate_limit" // asking for the limits counts against none of them
	if !free {
		requests.count++
	}
	l.headers(c, limit, requests)
	if free {
		return nil
	}
	if limit > 0 && requests.count > limit {
		return primaryLimit(bucket)
	}
	return l.secondary(c, u, now)
}

// concurrent is the middleware that bounds how many requests of one credential are open at a time. It stands before
// the planted faults, so that requests held up by one count.
func (s *Server) concurrent(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Get(isAPI) != true {
			return next(c)
		}
		leave, ok := s.limits.enter(c.Request().Header.Get("Authorization"))
		if !ok {
			return secondaryLimit(time.Minute)
		}
		defer leave()
		return next(c)
	}
}

func (l *limiter) enter(credential string) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over(l.open[credential]+1, l.limits.Concurrent) {
		return nil, false
	}
	l.open[credential]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[credential]--; l.open[credential] == 0 {
			delete(l.open, credential)
		}
	}, true
}

func primaryLimit(bucket string) error {
	return errorStatus(http.StatusForbidden, "API rate limit exceeded for %s.", bucket)
}

func (l *limiter) headers(c *call, limit int, requests *window) {
	if limit < 0 {
		limit = 1 << 30
	}
	c.header("X-RateLimit-Limit", strconv.Itoa(limit))
	c.header("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-requests.count)))
	c.header("X-RateLimit-Used", strconv.Itoa(requests.count))
	c.header("X-RateLimit-Reset", strconv.FormatInt(requests.until.Unix(), 10))
	c.header("X-RateLimit-Resource", "core")
}

func (l *limiter) secondary(c *call, u *usage, now time.Time) error {
	cost := 1
	if c.request().Method != http.MethodGet {
		cost = 5
	}
	points := u.points.at(now, time.Minute)
	points.count += cost
	if over(points.count, l.limits.PointsPerMinute) {
		return secondaryLimit(points.until.Sub(now))
	}
	if !c.operation.creates {
		return nil
	}
	minute, hour := u.contentMinute.at(now, time.Minute), u.contentHour.at(now, time.Hour)
	minute.count++
	hour.count++
	if over(minute.count, l.limits.ContentPerMinute) {
		return secondaryLimit(minute.until.Sub(now))
	}
	if over(hour.count, l.limits.ContentPerHour) {
		return secondaryLimit(hour.until.Sub(now))
	}
	return nil
}

func over(count, limit int) bool { return limit > 0 && count > limit }

// secondaryLimit is GitHub's answer to too much at once. It tells when to come back.
func secondaryLimit(wait time.Duration) *apiError {
	seconds := fmt.Sprint(max(1, int(wait/time.Second)))
	return &apiError{status: http.StatusForbidden, headers: map[string]string{"Retry-After": seconds},
		message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. " +
			"If you reach out to GitHub Support for help, please include the request ID."}
}

// giveBack undoes the count of a request that was answered with 304; those are free.
func (l *limiter) giveBack(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := &l.of(c.caller.bucket()).requests
	requests.count = max(0, requests.count-1)
	l.headers(c, l.primary(c.caller), requests)
}

// reset forgets all counts.
func (l *limiter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usage = map[string]*usage{}
}

// rates is what GET /rate_limit answers.
func (l *limiter) rates(c *call) object {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.primary(c.caller)
	if limit < 0 {
		limit = 1 << 30
	}
	requests := l.of(c.caller.bucket()).requests.at(c.server.Now(), time.Hour)
	core := object{"limit": limit, "used": requests.count, "remaining": max(0, limit-requests.count), "reset": requests.until.Unix()}
	search := object{"limit": 30, "used": 0, "remaining": 30, "reset": requests.until.Unix()}
	return object{"rate": core, "resources": object{"core": core, "search": search}}
}
