package runner

import (
	"context"
	"sync"
	"time"
)

// A stopwatch counts a run's active time and cancels the work when it is used
// up. It stands while the run only waits for others. It is safe for concurrent
// use.
type stopwatch struct {
	limit  time.Duration
	expire context.CancelCauseFunc

	mu    sync.Mutex
	used  time.Duration // up to since
	since time.Time     // zero while the watch stands
	timer *time.Timer
}

// startWatch returns a running stopwatch that has counted used already, and a
// context that it cancels with [errTime]. Stop it to release its timer.
func startWatch(ctx context.Context, used, limit time.Duration) (context.Context, *stopwatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &stopwatch{limit: limit, expire: cancel, used: used}
	w.resume()
	return ctx, w
}

// resume lets the watch run on.
func (w *stopwatch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
	if w.used >= w.limit {
		w.expire(errTime)
		return
	}
	w.timer = time.AfterFunc(w.limit-w.used, func() { w.expire(errTime) })
}

// pause lets the watch stand.
func (w *stopwatch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = w.elapsed()
	w.since = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends the watch and its context.
func (w *stopwatch) stop() {
	w.pause()
	w.expire(nil)
}

// active is the time counted so far.
func (w *stopwatch) active() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.elapsed()
}

func (w *stopwatch) elapsed() time.Duration {
	if w.since.IsZero() {
		return w.used
	}
	return w.used + time.Since(w.since)
}
