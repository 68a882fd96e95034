package llm

import (
	"io"
)

// A body is an encoded request: a head, the messages with commas between them
// and the end. It is never joined, because a long history would be copied with
// every call.
type body struct {
	// parts are the head, the messages, the end.
	parts [][]byte
	size  int
}

var bodyEnd = []byte("]}")

// newBody puts messages of a size behind a head, which is a JSON object.
func newBody(head []byte, messages [][]byte, size int) body {
	opened := append(head[:len(head)-1:len(head)-1], `,"messages":[`...)
	parts := make([][]byte, 0, len(messages)+2)
	parts = append(parts, opened)
	parts = append(parts, messages...)
	parts = append(parts, bodyEnd)
	return body{parts: parts, size: len(opened) + size + max(0, len(messages)-1) + len(bodyEnd)}
}

// bytes joins the body.
func (b body) bytes() []byte {
	joined := make([]byte, b.size)
	_, _ = io.ReadFull(b.reader(), joined)
	return joined
}

func (b body) reader() io.ReadCloser { return &bodyReader{parts: b.parts} }

// A bodyReader reads a body once.
type bodyReader struct {
	parts [][]byte
	// part and offset are where to go on; a comma is due before every message
	// but the first.
	part, offset int
	comma        bool
}

// Read implements [io.Reader].
func (r *bodyReader) Read(p []byte) (n int, err error) {
	for n < len(p) && r.part < len(r.parts) {
		if r.comma {
			p[n] = ','
			n++
			r.comma = false
			continue
		}
		copied := copy(p[n:], r.parts[r.part][r.offset:])
		n += copied
		r.offset += copied
		if r.offset == len(r.parts[r.part]) {
			r.part++
			r.offset = 0
			r.comma = r.part > 1 && r.part < len(r.parts)-1
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements [io.Closer].
func (r *bodyReader) Close() error { return nil }
