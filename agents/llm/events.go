package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxLine bounds one line of a stream.
const maxLine = 16 << 20

var errLineTooLong = fmt.Errorf("a line of the stream is longer than %d MB", maxLine>>20)

// endOfStream is the data line that ends a stream.
const endOfStream = "[DONE]"

// An eventReader reads the data of a stream of events. It knows what the
// standard allows (comments, CRLF, other fields, data over several lines) and
// what servers do besides: data lines with no blank line between them, an
// error as bare JSON, on one line or several, without "data:". Any number of
// comments and blank lines is skipped; the attempt's clocks bound them.
type eventReader struct {
	lines   *bufio.Reader
	pending []byte
	eof     bool
}

// buffers are used again: one of its own for each call would be most of what a
// call allocates.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

func newEventReader(body io.Reader) *eventReader {
	lines := buffers.Get().(*bufio.Reader)
	lines.Reset(body)
	return &eventReader{lines: lines}
}

// release gives the buffer back. The reader and what it returned must not be
// used afterwards.
func (r *eventReader) release() {
	r.lines.Reset(nil)
	buffers.Put(r.lines)
	r.lines = nil
}

// drain reads on to the end of the body, where that is near.
func (r *eventReader) drain() { _, _ = r.lines.Discard(4 << 10) }

// next returns the data of the next event, io.EOF after the last. The bytes
// are valid until the next call.
func (r *eventReader) next() ([]byte, error) {
	r.pending = r.pending[:0]
	bare := false
	for !r.eof {
		line, err := r.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		r.eof = err != nil
		line = bytes.TrimSpace(line)
		first := len(r.pending) == 0
		if len(line) == 0 && !first {
			return r.pending, nil
		}
		data, tagged := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		bare = bare || (first && !tagged && len(line) > 0 && (line[0] == '{' || line[0] == '['))
		if len(data) == 0 || (!tagged && !bare) {
			continue
		}
		if !first {
			r.pending = append(r.pending, '\n')
		}
		r.pending = append(r.pending, data...)
		if len(r.pending) > maxLine {
			return nil, errLineTooLong
		}
		// Only the first line is looked at, because looking at all that is
		// there with every line would take for ever on a hostile stream.
		if first && (r.endsHere() || whole(data)) {
			return r.pending, nil
		}
	}
	if len(r.pending) > 0 {
		return r.pending, nil
	}
	return nil, io.EOF
}

// endsHere says that the event's end, a blank line, was received already.
func (r *eventReader) endsHere() bool {
	if r.lines.Buffered() == 0 {
		return false
	}
	next, _ := r.lines.Peek(1)
	return next[0] == '\n' || next[0] == '\r'
}

// whole says that data needs no further line.
func whole(data []byte) bool {
	return string(data) == endOfStream || json.Valid(data)
}

// line reads one line of any length up to maxLine.
func (r *eventReader) line() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > maxLine {
			return nil, errLineTooLong
		}
		line, err = r.lines.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}
