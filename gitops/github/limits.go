package github

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// limitUnknown is the wait when GitHub does not say how long: its
// documentation asks for a minute at least.
const limitUnknown = time.Minute

// limitLongest bounds a wait that an answer asks for; GitHub's primary limit
// is hourly.
const limitLongest = time.Hour + time.Minute

// limitOf says whether an answer reports a rate limit, primary or secondary,
// and until when, and not a missing permission: both come as 403.
func limitOf(clock *clock, response *http.Response) (until time.Time, limited bool) {
	if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusTooManyRequests {
		return time.Time{}, false
	}
	header, now := response.Header, clock.local()
	until = now.Add(limitUnknown)
	if seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 64); err == nil && seconds >= 0 {
		return now.Add(min(time.Duration(min(seconds, 1<<30))*time.Second, limitLongest)), true
	}
	if header.Get("X-RateLimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			until = later(now.Add(time.Second), clock.toLocal(time.Unix(reset, 0)))
		}
		return earlier(until, now.Add(limitLongest)), true
	}
	if response.StatusCode == http.StatusTooManyRequests {
		return until, true
	}
	text := strings.ToLower(string(keepBody(response)))
	if strings.Contains(text, "rate limit") || strings.Contains(text, "rate-limits") || strings.Contains(text, "abuse") {
		return until, true
	}
	return time.Time{}, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// limits remembers until when an installation must be quiet. go-github
// remembers only what comes as a 403 with a time in it.
type limits struct {
	clock *clock
	mu    sync.Mutex
	until time.Time
}

// check returns the error of a limit that still holds.
func (l *limits) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.clock.local().Before(l.until) {
		return nil
	}
	return &Error{Code: CodeRateLimited, Status: http.StatusTooManyRequests, RetryAt: l.until,
		Message: fmt.Sprintf("GitHub's request limit is used up; waiting until %s.", l.until.UTC().Format("15:04 MST"))}
}

// learn notes the limit that an answer reports.
func (l *limits) learn(response *http.Response) {
	until, limited := limitOf(l.clock, response)
	if !limited {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = later(l.until, until)
}
