package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of a stream.
const maxLine = 16 << 20

var errLineTooLong = fmt.Errorf("a line of the stream is longer than %d MB", maxLine>>20)

// endOfStream is the data line that ends a stream.
const endOfStream = "[DONE]"

// An eventReader reads the data of a stream of events. It knows what the
// standard allows (comments, CRLF, other fields, data over several lines) and
// what servers do besides: data lines with no blank line between them, an
// error as bare JSON without "data:". Any number of comments and blank lines
// is skipped; the attempt's clocks bound them.
type eventReader struct {
	lines   *bufio.Reader
	pending []byte
	eof     bool
}

func newEventReader(body io.Reader) *eventReader {
	return &eventReader{lines: bufio.NewReaderSize(body, 32<<10)}
}

// next returns the data of the next event, io.EOF after the last. The bytes
// are valid until the next call.
func (r *eventReader) next() ([]byte, error) {
	r.pending = r.pending[:0]
	for !r.eof {
		line, err := r.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		r.eof = err != nil
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			if len(r.pending) > 0 {
				return r.pending, nil
			}
			continue
		}
		data, ok := payload(line)
		if !ok {
			continue
		}
		if len(r.pending) > 0 {
			r.pending = append(r.pending, '\n')
		}
		r.pending = append(r.pending, data...)
		if len(r.pending) > maxLine {
			return nil, errLineTooLong
		}
		if whole(r.pending) {
			return r.pending, nil
		}
	}
	if len(r.pending) > 0 {
		return r.pending, nil
	}
	return nil, io.EOF
}

// payload returns the data of a line, false for comments and other fields.
func payload(line []byte) ([]byte, bool) {
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		data = bytes.TrimSpace(data)
		return data, len(data) > 0
	}
	return line, line[0] == '{' || line[0] == '['
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
