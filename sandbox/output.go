package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A collector receives everything a command prints. It writes the raw bytes to
// the log, and keeps the head and the tail of the cleaned text for the result.
// It is used by one goroutine; result may be called after the last Write.
type collector struct {
	log      io.Writer
	onOutput func([]byte)
	label    string // how the omission line names the full log
	half     int    // bytes of head, and of tail
	strip    escapeStripper
	head     []byte
	tail     []byte // the last bytes that did not fit into head, up to twice half
	cleaned  int64  // bytes after cleaning
	raw      int64
}

func newCollector(log io.Writer, onOutput func([]byte), label string, shown int) *collector {
	return &collector{log: log, onOutput: onOutput, label: label, half: max(shown/2, 1)}
}

// Write takes the next bytes of output. It fails only if the log cannot be
// written; the text for the result is complete all the same.
func (c *collector) Write(p []byte) (int, error) {
	c.raw += int64(len(p))
	clean := c.strip.clean(p)
	c.keep(clean)
	if c.onOutput != nil && len(clean) > 0 {
		c.onOutput(clean)
	}
	return c.log.Write(p)
}

func (c *collector) keep(p []byte) {
	c.cleaned += int64(len(p))
	room := min(c.half-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	c.tail = append(c.tail, p[room:]...)
	if len(c.tail) > 2*c.half {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.half:]...)
	}
}

// result returns the text and how many cleaned bytes are missing from it.
func (c *collector) result() (text string, omitted int64) {
	if int64(len(c.head)+len(c.tail)) == c.cleaned && len(c.tail) <= c.half {
		return validText(append(bytes.Clone(c.head), c.tail...)), 0
	}
	tail := c.tail[max(0, len(c.tail)-c.half):]
	head, tail := cutHead(c.head), cutTail(tail)
	omitted = c.cleaned - int64(len(head)+len(tail))
	note := fmt.Sprintf("[… %d bytes omitted%s …]\n", omitted, c.label)
	return validText(head) + note + validText(tail), omitted
}

// cutHead ends b after a whole line; if there is none in its second half, after
// a whole character.
func cutHead(b []byte) []byte {
	if end := bytes.LastIndexByte(b, '\n'); end >= len(b)/2 {
		return b[:end+1]
	}
	for size := 1; size < utf8.UTFMax && size <= len(b); size++ {
		if start := len(b) - size; utf8.RuneStart(b[start]) {
			if !utf8.FullRune(b[start:]) {
				b = b[:start]
			}
			break
		}
	}
	return append(bytes.Clone(b), '\n')
}

// cutTail starts b at a whole line; if there is none in its first half, at a
// whole character.
func cutTail(b []byte) []byte {
	if start := bytes.IndexByte(b, '\n'); start >= 0 && start < len(b)/2 {
		return b[start+1:]
	}
	for skipped := 0; skipped < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); skipped++ {
		b = b[1:]
	}
	return b
}

func validText(b []byte) string {
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}

// An escapeStripper removes terminal escape sequences and control characters
// other than tab and newline from a stream that comes in pieces. A carriage
// return before a newline goes; a lone one becomes a newline, so that a
// progress bar reads as lines. The sequences are those of ECMA-48.
type escapeStripper struct {
	state  stripState
	length int // of the sequence that is being skipped
	cr     bool
	out    []byte
}

type stripState int

const (
	plain     stripState = iota
	escaped              // after ESC
	control              // in CSI: up to a byte in 0x40–0x7E
	text                 // in OSC, DCS, APC, PM, SOS: up to BEL or ESC \
	textEnd              // after ESC in text
	selecting            // one more byte belongs to it: ESC ( B
)

// longestSequence ends a sequence that is never closed, so that one stray
// byte cannot swallow the rest of an output.
const longestSequence = 4096

// clean returns what remains of p; the slice is valid until the next call.
func (s *escapeStripper) clean(p []byte) []byte {
	s.out = s.out[:0]
	for _, b := range p {
		if s.state == plain {
			s.plainByte(b)
			continue
		}
		s.sequenceByte(b)
	}
	return s.out
}

func (s *escapeStripper) plainByte(b byte) {
	if s.cr {
		s.cr = false
		if b != '\n' && b != '\r' {
			s.out = append(s.out, '\n')
		}
	}
	switch {
	case b == 0x1b:
		s.state, s.length = escaped, 0
	case b == '\r':
		s.cr = true
	case b == '\n' || b == '\t' || b >= 0x20 && b != 0x7f:
		s.out = append(s.out, b)
	}
}

func (s *escapeStripper) sequenceByte(b byte) {
	s.length++
	switch {
	case s.length > longestSequence, b == '\n' && s.state != text:
		s.state = plain
		s.plainByte(b)
	case s.state == escaped:
		s.state = afterEscape(b)
	case s.state == control && b >= 0x40 && b <= 0x7e:
		s.state = plain
	case s.state == selecting:
		s.state = plain
	case s.state == text && b == 0x07:
		s.state = plain
	case s.state == text && b == 0x1b:
		s.state = textEnd
	case s.state == textEnd && b == '\\':
		s.state = plain
	case s.state == textEnd && b != 0x1b:
		s.state = text
	}
}

func afterEscape(b byte) stripState {
	switch {
	case b == '[':
		return control
	case strings.IndexByte("]PX^_", b) >= 0:
		return text
	case b >= 0x20 && b <= 0x2f:
		return selecting
	case b == 0x1b:
		return escaped
	default:
		return plain
	}
}
