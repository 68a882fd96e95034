package llm

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdogEndsAnAttemptInTimeAndForItsReason(t *testing.T) {
	timeouts := Timeouts{FirstByte: 10 * time.Second, Total: time.Minute}
	for name, test := range map[string]struct {
		attempt func(*watchdog)
		after   time.Duration
		reason  error
	}{
		"nothing comes": {func(*watchdog) {}, 10 * time.Second, errFirstByte},
		"a pause that may be longer than the first": {func(w *watchdog) {
			time.Sleep(5 * time.Second)
			w.set(20*time.Second, errIdle)
		}, 25 * time.Second, errIdle},
		"a pause that may be shorter than the one before": {func(w *watchdog) {
			w.set(20*time.Second, errIdle)
			time.Sleep(time.Second)
			w.set(time.Second, errIdle)
		}, 2 * time.Second, errIdle},
		"lines without end": {func(w *watchdog) {
			for range 100 {
				w.set(5*time.Second, errIdle)
				time.Sleep(4 * time.Second)
			}
		}, time.Minute, errTotal},
		"a pause that outlasts the whole": {func(w *watchdog) { w.set(time.Hour, errIdle) }, time.Minute, errTotal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				start := time.Now()
				watch := newWatchdog(end, timeouts)
				defer watch.stop()
				var attempt sync.WaitGroup
				defer attempt.Wait()
				attempt.Go(func() { test.attempt(watch) })
				<-ctx.Done()
				if took := time.Since(start); took != test.after || context.Cause(ctx) != test.reason {
					t.Errorf("ended after %v: %v", took, context.Cause(ctx))
				}
			})
		})
	}
}

func TestWatchdogThatWasStoppedEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		watch := newWatchdog(end, Timeouts{}.withDefaults())
		watch.stop()
		time.Sleep(24 * time.Hour)
		if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
	})
}
