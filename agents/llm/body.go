package llm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// A requestBody is the encoded request of one call. Most of what a call
// allocates would be this, so its memory is that of a draft, which goes back
// once nobody reads it.
//
// Nobody does when each time that a transport was given the bytes it has
// reported to have written them all. A transport that broke off, was cancelled,
// got its answer early or reports nothing may still be reading: that memory is
// left to the garbage collector.
type requestBody struct {
	draft          *draft
	bytes          []byte
	given, written atomic.Int32
}

// newRequestBody ends a draft.
func newRequestBody(d *draft, end string) *requestBody {
	body := append(d.bytes, end...)
	d.bytes = body[:len(d.bytes)] // which append may have moved
	return &requestBody{draft: d, bytes: body}
}

// free says that nobody reads the bytes any more.
func (b *requestBody) free() bool { return b.given.Load() == b.written.Load() }

// release must be called once, after the last attempt.
func (b *requestBody) release() {
	if b.free() && cap(b.bytes) <= keptDraft {
		drafts.Put(b.draft)
	}
	b.draft, b.bytes = nil, nil
}

// request makes the request of one attempt: the pattern with this body.
func (b *requestBody) request(ctx context.Context, pattern *http.Request) *http.Request {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			b.written.Add(1)
		}
	}})
	request := pattern.Clone(ctx)
	request.ContentLength = int64(len(b.bytes))
	request.GetBody = func() (io.ReadCloser, error) {
		b.given.Add(1)
		return io.NopCloser(bytes.NewReader(b.bytes)), nil
	}
	request.Body, _ = request.GetBody()
	return request
}
