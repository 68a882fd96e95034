package llm

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"handoff/agents"
)

// Retry says how often and when a failed attempt is made again (rule R83):
// 408, 409, 429, 5xx and broken connections, never what will fail again. The
// zero value of each field means its default.
type Retry struct {
	// Attempts is the greatest number of attempts, default 4. 1 means no retry.
	Attempts int
	// Base is the wait after the first failure, default 1 s; it doubles with
	// each failure and varies by up to half of itself. It is ten times as long
	// where the provider is asked too often.
	Base time.Duration
	// Cap is the longest wait, also of one that a provider asks for; default
	// 60 s.
	Cap time.Duration
	// Sleep waits; nil means a timer. It must return early when ctx ends.
	Sleep func(ctx context.Context, wait time.Duration) error
}

func (r Retry) attempts() int {
	if r.Attempts > 0 {
		return r.Attempts
	}
	return 4
}

// rateFactor makes the waits longer where a provider says that it is asked too
// often and not for how long: what it counts, it counts by the minute.
const rateFactor = 10

// wait returns how long to wait after the failure of an attempt (1, 2, …).
func (r Retry) wait(attempt int, failure *agents.Error) time.Duration {
	longest := r.Cap
	if longest <= 0 {
		longest = time.Minute
	}
	if failure.RetryAfter > 0 {
		return min(failure.RetryAfter, longest)
	}
	base := r.Base
	if base <= 0 {
		base = time.Second
	}
	if failure.Kind == agents.KindRateLimited {
		base *= rateFactor
	}
	grown := math.Min(float64(base)*math.Exp2(float64(attempt-1)), float64(longest))
	return time.Duration(grown * (0.5 + rand.Float64()/2))
}

func (r Retry) sleep(ctx context.Context, wait time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A call is one request on its way to one endpoint.
type call struct {
	endpoint *endpoint
	info     ModelInfo
	request  agents.Request
	body     *requestBody
}

// attempts makes attempts until one succeeds, the error is final or the
// number is used up. The usage of all of them is in the answer or the error.
func (c *Client) attempts(ctx context.Context, call call) (agents.Response, error) {
	var spent agents.Usage
	e, retry := call.endpoint, c.config.Retry
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return agents.Response{}, withUsage(e.cancelled(ctx), spent)
		}
		start := time.Now()
		response, shown, err := c.attempt(ctx, call)
		spent.Add(c.usageOf(call, attempt, response, err))
		c.logAttempt(ctx, call, attempt, time.Since(start), err)
		if err == nil {
			response.Usage = spent
			return response, nil
		}
		failure, ok := errors.AsType[*agents.Error](err)
		if !ok || ctx.Err() != nil {
			return agents.Response{}, withUsage(e.cancelled(ctx), spent)
		}
		if !failure.Retryable || attempt >= retry.attempts() {
			return agents.Response{}, withUsage(failure, spent)
		}
		if retry.sleep(ctx, retry.wait(attempt, failure)) != nil {
			return agents.Response{}, withUsage(e.cancelled(ctx), spent)
		}
		if shown && call.request.OnDelta != nil {
			call.request.OnDelta(agents.Delta{Restart: true})
		}
	}
}

func withUsage(failure *agents.Error, usage agents.Usage) error {
	failure.Usage = usage
	return failure
}

func (c *Client) logAttempt(ctx context.Context, call call, attempt int, took time.Duration, err error) {
	if err == nil && !c.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	fields := []any{
		"provider", call.endpoint.provider.Name, "model", call.info.ID, "agent", call.request.Agent,
		"turn", call.request.Turn, "attempt", attempt, "took", took,
	}
	if err != nil {
		c.log.Warn("a model call failed", append(fields, "error", err)...)
		return
	}
	c.log.Debug("a model answered", fields...)
}

// retryAfter reads when to try again: in milliseconds as OpenAI says it, in
// seconds, or as a date. 0 means that nothing (or nothing sensible) was said.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if value, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && value > 0 {
		return seconds(value / 1000)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if number, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds(number)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

// seconds converts without overflow; a day is for ever here.
func seconds(value float64) time.Duration {
	if !(value > 0) {
		return 0
	}
	return time.Duration(math.Min(value, 24*60*60) * float64(time.Second))
}
