package llm

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody is how much of an answer is read at most. A hundred thousand tokens
// with a chunk of their own each take about 30 MB.
const maxBody = 64 << 20

// errBodyTooLong ends an answer without end.
var errBodyTooLong = fmt.Errorf("the answer is longer than %d MB", maxBody>>20)

// Timeouts are the clocks of one attempt. The zero value of each means its
// default.
type Timeouts struct {
	// Connect bounds the connection, default 10 s. It has no effect with a
	// transport of the caller's.
	Connect time.Duration
	// FirstByte bounds the wait for the answer's header, default 2 min.
	FirstByte time.Duration
	// Idle bounds the wait for the next data line, default 3 min: reasoning
	// models think without a word. Keep-alive comments do not count.
	Idle time.Duration
	// Total bounds the attempt, default 15 min.
	Total time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Connect:   orDefault(t.Connect, 10*time.Second),
		FirstByte: orDefault(t.FirstByte, 2*time.Minute),
		Idle:      orDefault(t.Idle, 3*time.Minute),
		Total:     orDefault(t.Total, 15*time.Minute),
	}
}

func orDefault(value, fallback time.Duration) time.Duration {
	if value > 0 {
		return value
	}
	return fallback
}

// transportOf returns the transport that was configured, or one of our own.
func transportOf(config Config) http.RoundTripper {
	switch {
	case config.HTTPClient == nil:
		return newTransport(config.Timeouts.withDefaults().Connect)
	case config.HTTPClient.Transport == nil:
		return http.DefaultTransport
	default:
		return config.HTTPClient.Transport
	}
}

func newTransport(connect time.Duration) *http.Transport {
	made := http.DefaultTransport.(*http.Transport).Clone()
	made.DialContext = (&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext
	made.TLSHandshakeTimeout = connect
	// Nearly every history is written with one system call.
	made.WriteBufferSize = 256 << 10
	made.MaxIdleConnsPerHost = 32
	// A connection that died without a word would otherwise be tried again and
	// again: all calls to a host share it.
	made.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return made
}

// newPattern makes what all requests to an address have in common.
func newPattern(p provider, address string) (*http.Request, error) {
	pattern, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	pattern.Header.Set("Content-Type", "application/json")
	pattern.Header.Set("Accept", "text/event-stream, application/json")
	// What compresses a stream holds its events back.
	pattern.Header.Set("Accept-Encoding", "identity")
	pattern.Header.Set("User-Agent", "handoff")
	for name, value := range p.Headers {
		pattern.Header.Set(name, value)
	}
	return pattern, nil
}

// send posts the body of a call. It asks the transport itself, not an
// [http.Client]: nothing can lead the credential to an address other than the
// configured one.
func (e *endpoint) send(ctx context.Context, call call) (*http.Response, error) {
	request := call.body.request(ctx, e.pattern)
	if e.provider.Tape {
		request.Header.Set("X-Handoff-Session", call.request.Session)
		request.Header.Set("X-Handoff-Agent", call.request.Agent)
		request.Header.Set("X-Handoff-Turn", strconv.Itoa(call.request.Turn))
	}
	if err := e.credential.authorize(ctx, request); err != nil {
		return nil, err
	}
	answer, err := e.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body := answer.Body
	switch {
	case body == nil: // which a transport of the caller's may give
		body = http.NoBody
	case answer.StatusCode == http.StatusSwitchingProtocols:
		// The body is the connection itself: no context ends a read of it.
		_ = body.Close()
		return nil, errSwitched
	}
	bounded := &boundedBody{Reader: body, Closer: body, left: maxBody}
	if strings.EqualFold(answer.Header.Get("Content-Encoding"), "gzip") {
		bounded.Reader = &unzipped{body: body}
	}
	answer.Body = bounded
	return answer, nil
}

var errSwitched = errors.New("the server went over to another protocol")

// An unzipped body is what a server compressed without being asked. It waits
// for its first byte when it is read, not before.
type unzipped struct {
	body io.Reader
	zip  *gzip.Reader
}

func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.body); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}

// A boundedBody fails when more than left bytes are read.
type boundedBody struct {
	io.Reader
	io.Closer
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBodyTooLong
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	return n, err
}

// requestID returns the id under which the provider knows the call.
func requestID(header http.Header) string {
	for _, name := range []string{"X-Request-Id", "X-Generation-Id", "Cf-Ray"} {
		if value := header.Get(name); value != "" {
			return value[:min(len(value), 128)]
		}
	}
	return ""
}
