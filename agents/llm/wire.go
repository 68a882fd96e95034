package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"handoff/agents"
)

const (
	// maxFault is how much of a failed answer is read.
	maxFault = 256 << 10
	// settle is how long the end of a stream may take after the finish reason:
	// the usage comes there, but the answer is complete without it.
	settle = 5 * time.Second
	// linger is how long we read on after the last line, so that the
	// connection can be used again.
	linger = 250 * time.Millisecond
)

// The reasons of the clocks.
var (
	errFirstByte = errors.New("no answer began in time")
	errIdle      = errors.New("the stream stood still for too long")
	errTotal     = errors.New("the answer took too long")
	errCut       = errors.New("the stream ended before the answer was complete")
	errNoChoices = errors.New("the answer has no choices")
	errFinish    = errors.New("the provider ended the answer with an error")
	errWindow    = errors.New("the answer does not fit the rest of the context window")
)

// attempt makes one attempt. Shown says that pieces of it went to OnDelta.
// The response of a failed attempt holds what is known of its size.
func (c *Client) attempt(ctx context.Context, call call) (response agents.Response, shown bool, err error) {
	timeouts := c.config.Timeouts.withDefaults()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	watch := newWatchdog(end, timeouts)
	defer watch.stop()

	e := call.endpoint
	answer, err := e.send(ctx, call)
	if err != nil {
		return agents.Response{}, false, e.broken(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, maxFault))
		return agents.Response{}, false, e.refused(answer.StatusCode, answer.Header, body)
	}
	kind := mediaType(answer.Header)
	if isPage(kind) {
		return agents.Response{}, false, e.page(answer.Header)
	}
	watch.set(timeouts.Idle, errIdle)
	reading := reading{ctx: ctx, call: call, watch: watch, idle: timeouts.Idle}
	if isJSON(kind) {
		err = reading.whole(answer.Body)
	} else {
		err = reading.stream(answer.Body)
	}
	if err != nil {
		return reading.partial(), reading.shown, e.unread(ctx, answer.Header, err)
	}
	response, err = reading.response()
	if err != nil {
		return reading.partial(), reading.shown, e.unread(ctx, answer.Header, err)
	}
	response.Provider = e.provider.Name
	if id := requestID(answer.Header); id != "" {
		response.RequestID = id
	}
	return response, reading.shown, nil
}

// mediaType is what an answer says that it is, without parameters.
func mediaType(header http.Header) string {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return kind
}

func isJSON(kind string) bool {
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// isPage says that the answer is for people: of a proxy, a login or a server
// whose API is at another path.
func isPage(kind string) bool {
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// A reading is the answer of one attempt as it is read.
type reading struct {
	assembly
	ctx   context.Context
	call  call
	watch *watchdog
	idle  time.Duration
	shown bool
}

// stream reads an answer that comes in pieces. It is complete when the finish
// reason was seen, and read on to the end for the usage.
func (r *reading) stream(body io.Reader) error {
	events := newEventReader(body)
	defer events.release()
	for {
		data, err := events.next()
		if err != nil {
			if r.finish != "" {
				return nil
			}
			if errors.Is(err, io.EOF) {
				return errCut
			}
			return err
		}
		// What was received already is read without waiting, so the clocks are
		// looked at here as well.
		if r.ctx.Err() != nil && r.finish == "" {
			return context.Cause(r.ctx)
		}
		if string(data) == endOfStream {
			r.watch.set(linger, errIdle)
			events.drain()
			if r.finish == "" {
				return errCut
			}
			return nil
		}
		finished := r.finish != ""
		delta, err := r.add(data)
		if err != nil {
			return err
		}
		r.show(delta)
		// After the finish reason the clock is set for the last time.
		switch {
		case r.finish == "":
			r.watch.set(r.idle, errIdle)
		case !finished:
			r.watch.set(min(settle, r.idle), errIdle)
		}
	}
}

// whole reads an answer that was not streamed.
func (r *reading) whole(body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return errCut
	}
	// Some servers call a stream JSON.
	if data[0] == ':' || bytes.HasPrefix(data, []byte("data:")) {
		return r.stream(bytes.NewReader(data))
	}
	delta, err := r.add(data)
	if err != nil {
		return err
	}
	if r.choices && r.finish == "" {
		return errCut
	}
	r.show(delta)
	return nil
}

func (r *reading) show(delta agents.Delta) {
	if onDelta := r.call.request.OnDelta; onDelta != nil && delta != (agents.Delta{}) {
		r.shown = true
		onDelta(delta)
	}
}

func (r *reading) response() (agents.Response, error) {
	switch {
	case !r.choices:
		return agents.Response{}, errNoChoices
	case r.finish == finishError:
		return agents.Response{}, errFinish
	case r.finish == finishWindow:
		return agents.Response{}, errWindow
	}
	response, err := r.assembly.response()
	if err != nil {
		return agents.Response{}, err
	}
	response.Usage = r.reported(r.call)
	return response, nil
}

// broken makes the error of an attempt that had no answer.
func (e *endpoint) broken(ctx context.Context, err error) error {
	if cause := clockOf(ctx); cause != nil {
		err = cause
	}
	return e.transportFailure(err)
}

// unread makes the error of an answer that began well and could not be used.
func (e *endpoint) unread(ctx context.Context, header http.Header, err error) error {
	if line, ok := errors.AsType[*faultLine](err); ok {
		return e.refused(http.StatusOK, header, line.body)
	}
	if cause := clockOf(ctx); cause != nil {
		err = cause
	}
	kind := agents.KindTransport
	if errors.Is(err, errWindow) {
		kind = agents.KindContextTooLong
	}
	for _, malformed := range []error{errNoJSON, errNoChoices, errTooManyCalls, errLineTooLong, errBodyTooLong} {
		if errors.Is(err, malformed) {
			kind = agents.KindMalformed
		}
	}
	text := e.clean(err.Error())
	failure := e.failure(kind, errors.New(text), fmt.Sprintf("The answer of %s cannot be used: %s.", e.provider.Name, text))
	failure.Status = http.StatusOK
	failure.RequestID = requestID(header)
	failure.Retryable = kind != agents.KindContextTooLong
	return failure
}

// clockOf returns the clock that ended an attempt, nil if none did.
func clockOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	for _, reason := range []error{errFirstByte, errIdle, errTotal} {
		if errors.Is(cause, reason) {
			return reason
		}
	}
	return nil
}
