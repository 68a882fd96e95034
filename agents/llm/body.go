package llm

import (
	"io"
)

// A body is an encoded request: a head, the messages with commas between them
// and the end. It is never joined, because a long history would be copied with
// every call.
type body struct {
	head     []byte
	messages [][]byte
	size     int
}

var bodyEnd = []byte("]}")

// newBody puts messages of a size behind a head, which is a JSON object.
func newBody(head []byte, messages [][]byte, size int) body {
	opened := append(head[:len(head)-1:len(head)-1], `,"messages":[`...)
	return body{head: opened, messages: messages, size: len(opened) + size + max(0, len(messages)-1) + len(bodyEnd)}
}

// part returns a part of the body: 0 is the head, then come the messages, the
// last is the end.
func (b body) part(i int) []byte {
	switch {
	case i == 0:
		return b.head
	case i <= len(b.messages):
		return b.messages[i-1]
	default:
		return bodyEnd
	}
}

// bytes joins the body.
func (b body) bytes() []byte {
	joined := make([]byte, b.size)
	_, _ = io.ReadFull(b.reader(), joined)
	return joined
}

func (b body) reader() io.ReadCloser { return &bodyReader{body: b} }

// A bodyReader reads a body once.
type bodyReader struct {
	body body
	// part and offset are where to go on; a comma is due before every message
	// but the first.
	part, offset int
	comma        bool
}

// Read implements [io.Reader].
func (r *bodyReader) Read(p []byte) (n int, err error) {
	last := len(r.body.messages) + 1
	for n < len(p) && r.part <= last {
		if r.comma {
			p[n] = ','
			n++
			r.comma = false
			continue
		}
		part := r.body.part(r.part)
		copied := copy(p[n:], part[r.offset:])
		n += copied
		r.offset += copied
		if r.offset == len(part) {
			r.part++
			r.offset = 0
			r.comma = r.part > 1 && r.part < last
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements [io.Closer].
func (r *bodyReader) Close() error { return nil }
