package llm

import (
	"context"
	"sync"
	"time"
)

// A watchdog ends an attempt that takes too long, as a whole or until the next
// sign of life. It is set with every data line, so it has one timer, which is
// moved only to ring earlier: one that rings too early is wound up again.
type watchdog struct {
	end   context.CancelCauseFunc
	total time.Time

	mu     sync.Mutex
	due    time.Time
	reason error
	rings  time.Time
	timer  *time.Timer
}

// newWatchdog starts a watchdog that waits for the first byte.
func newWatchdog(end context.CancelCauseFunc, timeouts Timeouts) *watchdog {
	now := time.Now()
	w := &watchdog{end: end, total: now.Add(timeouts.Total), due: now.Add(timeouts.FirstByte), reason: errFirstByte}
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := min(timeouts.Total, timeouts.FirstByte)
	w.rings, w.timer = now.Add(wait), time.AfterFunc(wait, w.ring)
	return w
}

// set is a sign of life: the next one must come within the wait, or the
// attempt ends for the reason.
func (w *watchdog) set(wait time.Duration, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due, w.reason = time.Now().Add(wait), reason
	if w.due.Before(w.rings) {
		w.rings = w.due
		w.timer.Reset(wait)
	}
}

func (w *watchdog) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch {
	case !now.Before(w.total):
		w.end(errTotal)
	case !now.Before(w.due):
		w.end(w.reason)
	default:
		w.rings = w.due
		if w.total.Before(w.due) {
			w.rings = w.total
		}
		w.timer.Reset(w.rings.Sub(now))
	}
}

// stop lets the attempt be. A timer that rings at this moment may ring once
// more, when there is nothing left to end.
func (w *watchdog) stop() { w.timer.Stop() }
