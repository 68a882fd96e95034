package verdict

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxNames is how many failed tests a log remembers. A change that breaks
	// more is not understood by reading names.
	maxNames = 500
	// maxName is how long a name may be, in bytes; one that is longer is cut,
	// and a hash keeps it apart from others that begin the same.
	maxName = 300
	// maxLine is the longest line that is read, in bytes. A longer one is left
	// out: no test runner names a test in it.
	maxLine = 64 << 10
)

// A format reads the lines of one family of test runners.
type format interface {
	// line takes a line if it says something in this format; what it names as
	// failed goes to found.
	line(line string, found *names) (taken bool)
	// end is called after the last line.
	end(found *names)
}

// A Log is an [io.Writer] that reads the output of one test command as it
// comes and remembers which tests it names as failed. It holds a bounded part
// of it, whatever is written. The zero value is not ready; use [NewLog]. It is
// not safe for concurrent use.
type Log struct {
	formats []format
	found   names
	partial []byte
	// tooLong says that the line that is being written is left out.
	tooLong bool
}

// NewLog returns a log that nothing was written to.
func NewLog() *Log {
	return &Log{formats: []format{&goJSON{}, &goText{}, &cargo{}, python{}, others{}, &javaScript{}}}
}

// Write implements [io.Writer]; it never fails.
func (l *Log) Write(output []byte) (int, error) {
	written := len(output)
	for {
		head, rest, ended := bytes.Cut(output, []byte{'\n'})
		l.tooLong = l.tooLong || len(l.partial)+len(head) > maxLine
		if !l.tooLong {
			l.partial = append(l.partial, head...)
		}
		if !ended {
			return written, nil
		}
		l.endLine()
		output = rest
	}
}

func (l *Log) endLine() {
	if !l.tooLong {
		l.read(string(l.partial))
	}
	l.partial, l.tooLong = l.partial[:0], false
}

// read gives a line to the first format that takes it.
func (l *Log) read(line string) {
	line = strings.TrimRight(line, "\r")
	// A line that was written over shows what was written last.
	line = strings.ToValidUTF8(line[strings.LastIndexByte(line, '\r')+1:], "\uFFFD")
	for _, format := range l.formats {
		if format.line(line, &l.found) {
			return
		}
	}
}

// Failures ends the log and returns the tests that failed, each once, in the
// order of the output, without line breaks. Complete is false if there were
// more than are remembered.
func (l *Log) Failures() (tests []string, complete bool) {
	l.endLine()
	for _, format := range l.formats {
		format.end(&l.found)
	}
	return l.found.all, !l.found.more
}

// names is a bounded list in which each name is once.
type names struct {
	all  []string
	seen map[string]bool
	more bool
}

func (n *names) add(name string) {
	name = strings.TrimSpace(name)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:maxName], "") + "… " + hex.EncodeToString(sum[:4])
	}
	switch {
	case name == "" || n.seen[name]:
	case len(n.all) == maxNames:
		n.more = true
	default:
		if n.seen == nil {
			n.seen = map[string]bool{}
		}
		n.seen[name] = true
		n.all = append(n.all, name)
	}
}

// A batch collects names until it is known what they belong to, such as the
// package that go test names below its tests. It is bounded as [names] are.
type batch struct{ names }

// flush moves what was collected into found, each as the given form of it, and
// says whether there was anything.
func (b *batch) flush(found *names, form func(string) string) bool {
	for _, name := range b.all {
		found.add(form(name))
	}
	found.more = found.more || b.more
	some := len(b.all) > 0
	b.names = names{}
	return some
}
