package github

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// A clock knows the local time and how far GitHub's differs from it, learnt
// from the Date header of answers. Tests replace its two functions.
type clock struct {
	local func() time.Time
	// sleep waits, or returns the context's error.
	sleep func(context.Context, time.Duration) error
	skew  atomic.Int64
}

func newClock() *clock { return &clock{local: time.Now, sleep: sleep} }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// skewIgnored is the difference that may come from the Date header's
// resolution of a second and from a slow answer.
const skewIgnored = 5 * time.Second

// learn takes the Date header of an answer that arrived now.
func (c *clock) learn(header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	skew := date.Sub(c.local())
	if skew.Abs() < skewIgnored {
		skew = 0
	}
	c.skew.Store(int64(skew))
}

// github returns the time as GitHub sees it.
func (c *clock) github() time.Time { return c.local().Add(time.Duration(c.skew.Load())) }

// toLocal turns a time of GitHub's into one of this machine.
func (c *clock) toLocal(t time.Time) time.Time { return t.Add(-time.Duration(c.skew.Load())) }
