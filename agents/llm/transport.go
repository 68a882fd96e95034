package llm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// newHTTPClient wraps a transport for one provider.
func newHTTPClient(p provider, base *url.URL, credential credential, config Config) *http.Client {
	var next http.RoundTripper
	if config.HTTPClient != nil {
		next = config.HTTPClient.Transport
		if next == nil {
			next = http.DefaultTransport
		}
	} else {
		next = newTransport(config.Timeouts.withDefaults().Connect)
	}
	return &http.Client{
		Transport: &transport{next: next, host: base.Host, credential: credential, headers: p.Headers},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
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

// A transport adds to every call what go-openai's client cannot: credentials
// that expire, the provider's headers, a bound on the answer.
type transport struct {
	next       http.RoundTripper
	host       string
	credential credential
	headers    map[string]string
}

var errForeignHost = errors.New("the call was led to another host")

// RoundTrip implements [http.RoundTripper]. The credential goes to the
// configured host and nowhere else.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != t.host {
		return nil, errForeignHost
	}
	signed := request.Clone(request.Context())
	for name, value := range t.headers {
		signed.Header.Set(name, value)
	}
	if err := t.credential.authorize(request.Context(), signed); err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(signed)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: maxBody}
	return response, nil
}

// A boundedBody fails when more than left bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBodyTooLong
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
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
