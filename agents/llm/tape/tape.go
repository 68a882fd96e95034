// Package tape records model calls and plays them back as if it were a
// provider of models.
//
// A tape is a text file with one JSON object a line; each is one model call:
// who asked (session, agent, turn), what was asked in a normalised form, what
// was answered, what it cost and how long it took. A [Recorder] writes such
// lines while a real model answers. A [Player] is an HTTP handler that speaks
// chat completions, so that a session on tape goes through the same client
// code as a session with a real provider. One file drives a demonstration,
// the tests of whole conversations and the replay of what happened.
//
// A tape can be written by hand. A line needs an agent and an answer:
//
//	{"agent":"copilot","response":{"tool_calls":[{"name":"read_file","arguments":{"path":"main.go"}}]}}
//	{"agent":"copilot","response":{"content":"Done."}}
//
// A line without a turn follows the line before it in its session. A line
// without a session serves every session. Session numbers are ordinals: 1 is
// the first session that the player sees, unless the first line of a session
// has a "task", a text that must then appear in the user's messages. Where the
// same turn can go several ways, lines with "when" are tried first: it must
// appear in the last message of a user or a tool. A session that counts its
// turns anew, because it was tried again, has several recorded lines for a
// turn; the request tells them apart. "error" makes a call fail, for ever or as
// many times as it says. Blank lines and lines that begin with
// # are for people.
//
// The player promises to be idempotent: the same session, agent and turn get
// the same answer however often they ask, so that a session that crashed can
// resume. A strict player compares what is asked with what was asked when the
// line was made, after replacing what differs from run to run, and refuses
// with a readable difference. A line that was never compared with a request,
// as one written by hand, claims nothing and fits; playing a tape once in the
// updating mode fills in what it lacks.
package tape

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Line is one model call.
type Line struct {
	// Session is the ordinal of the session, 0 for every session.
	Session int `json:"session,omitempty"`
	// Agent is the slug of the agent that asks.
	Agent string `json:"agent"`
	// Turn is the number of the call as the agent's host counts, from 1; 0 in
	// a file means one more than the line before.
	Turn int `json:"turn,omitempty"`
	// Task, on the first line of a session, chooses the session by a text in
	// its user's messages.
	Task string `json:"task,omitempty"`
	// When chooses the line by a text in the last message of a user or tool.
	When string `json:"when,omitempty"`
	// Failure, when set, is answered in place of Response.
	Failure *Failure `json:"error,omitempty"`
	// Response is the answer.
	Response *Response `json:"response,omitempty"`
	// Usage is what the call cost, nil if it is not known.
	Usage *Usage `json:"usage,omitempty"`
	// LatencyMS is how long the answer took, in milliseconds.
	LatencyMS int `json:"latency_ms,omitempty"`
	// RequestHash is the hash of the normalised request, "" if it was never
	// seen.
	RequestHash string `json:"request_hash,omitempty"`
	// Request is the normalised request, nil if it was never seen. It comes last,
	// because it is long and people read the answers.
	Request *Request `json:"request,omitempty"`
}

// A Response is an assistant's answer.
type Response struct {
	Content      string     `json:"content,omitempty"`
	Reasoning    string     `json:"reasoning,omitempty"`
	Refusal      string     `json:"refusal,omitempty"`
	ToolCalls    []ToolCall `json:"tool_calls,omitempty"`
	FinishReason string     `json:"finish_reason,omitempty"`
	// Raw is what the provider's message says beyond the fields above:
	// reasoning details, signatures of calls. It is laid under them.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// A ToolCall is one call of an answer.
type ToolCall struct {
	// ID is minted from session, turn and place when it is empty.
	ID        string    `json:"id,omitempty"`
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments,omitempty"`
}

// Arguments are a tool call's arguments as they stand on the wire. In a file
// they are a JSON object, or a string if they are anything else.
type Arguments string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Arguments) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*a = Arguments(text)
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	*a = Arguments(compact.String())
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (a Arguments) MarshalJSON() ([]byte, error) {
	if strings.HasPrefix(string(a), "{") && json.Valid([]byte(a)) {
		return []byte(a), nil
	}
	return marshal(string(a))
}

// A Failure makes a call fail.
type Failure struct {
	// Status is the HTTP status, 400 to 599.
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"`
	// RetryAfter is sent as the header of that name, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// Times is how many attempts fail before Response is given; 0 means all.
	Times int `json:"times,omitempty"`
}

// A Usage counts tokens and the price in millionths of a US dollar.
type Usage struct {
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	Cached     int64  `json:"cached,omitempty"`
	Reasoning  int64  `json:"reasoning,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"`
}

// A Tape is a file of lines, in order. A tape must not be changed while a
// player plays it.
type Tape struct {
	entries []entry
}

// An entry is a line or a remark with its place in the file.
type entry struct {
	number int
	remark string
	line   *Line
}

// New returns a tape of lines, as [Read] would of a file that has them.
func New(lines ...*Line) (*Tape, error) {
	tape := &Tape{}
	for i, line := range lines {
		tape.entries = append(tape.entries, entry{number: i + 1, line: line})
	}
	tape.number()
	return tape, errors.Join(tape.check()...)
}

// Lines returns the calls of the tape in order. They are not copies.
func (t *Tape) Lines() []*Line {
	var lines []*Line
	for _, entry := range t.entries {
		if entry.line != nil {
			lines = append(lines, entry.line)
		}
	}
	return lines
}

// A Fault is something wrong with a line of a tape.
type Fault struct {
	// Line counts from 1.
	Line    int
	Message string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Message) }

// maxLine bounds one line of a tape.
const maxLine = 64 << 20

// Read reads a tape. The error joins one [*Fault] for each line that is wrong.
func Read(source io.Reader) (*Tape, error) {
	tape := &Tape{}
	var faults []error
	reader := bufio.NewReader(source)
	for number := 1; ; number++ {
		text, err := readLine(reader)
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, &Fault{number, err.Error()}
		}
		trimmed := bytes.TrimSpace(text)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			tape.entries = append(tape.entries, entry{number: number, remark: string(trimmed)})
			continue
		}
		line, err := parseLine(trimmed)
		if err != nil {
			faults = append(faults, &Fault{number, err.Error()})
			continue
		}
		tape.entries = append(tape.entries, entry{number: number, line: line})
	}
	tape.number()
	if len(faults) == 0 { // or every line after a wrong one would be wrong
		faults = append(faults, tape.expand()...)
	}
	faults = append(faults, tape.check()...)
	slices.SortStableFunc(faults, func(a, b error) int { return a.(*Fault).Line - b.(*Fault).Line })
	return tape, errors.Join(faults...)
}

func readLine(reader *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		piece, err := reader.ReadSlice('\n')
		text = append(text, piece...)
		if len(text) > maxLine {
			return nil, fmt.Errorf("longer than %d MB", maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

func parseLine(text []byte) (*Line, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	line := &Line{}
	if err := decoder.Decode(line); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON object on the line")
	}
	return line, nil
}

// Validate returns the faults of a tape, in order; none means that it can be
// played.
func Validate(source io.Reader) []*Fault {
	_, err := Read(source)
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var faults []*Fault
		for _, one := range joined.Unwrap() {
			faults = append(faults, one.(*Fault))
		}
		return faults
	}
	return []*Fault{err.(*Fault)}
}

// number gives turns to lines that have none.
func (t *Tape) number() {
	last := map[int]int{}
	for _, line := range t.Lines() {
		if line.Turn == 0 {
			line.Turn = last[line.Session] + 1
		}
		last[line.Session] = line.Turn
	}
}

// check finds faults that JSON cannot know.
func (t *Tape) check() []error {
	var faults []error
	type place struct {
		session           int
		agent, task, when string
		turn              int
		hash              string
	}
	seen := map[place]int{}
	for _, entry := range t.entries {
		if entry.line == nil {
			continue
		}
		for _, message := range entry.line.check() {
			faults = append(faults, &Fault{entry.number, message})
		}
		line := entry.line
		here := place{line.Session, line.Agent, line.Task, line.When, line.Turn, line.RequestHash}
		if first, ok := seen[here]; ok {
			faults = append(faults, &Fault{entry.number, fmt.Sprintf("answers agent %s, turn %d again, as line %d does", line.Agent, line.Turn, first)})
		}
		seen[here] = entry.number
	}
	return faults
}

func (l *Line) check() (faults []string) {
	if l.Agent == "" {
		faults = append(faults, "agent is missing")
	}
	if l.Session < 0 || l.Turn < 0 || l.LatencyMS < 0 {
		faults = append(faults, "session, turn and latency_ms must not be negative")
	}
	if l.Response == nil && l.Failure == nil {
		faults = append(faults, "response is missing")
	}
	if f := l.Failure; f != nil {
		if f.Status < 400 || f.Status > 599 {
			faults = append(faults, "error.status must be between 400 and 599")
		}
		if f.Times > 0 && l.Response == nil {
			faults = append(faults, "error.times needs a response for the attempts that follow")
		}
	}
	if l.Response != nil {
		for i, call := range l.Response.ToolCalls {
			if call.Name == "" {
				faults = append(faults, fmt.Sprintf("response.tool_calls[%d].name is missing", i))
			}
		}
	}
	return faults
}

// WriteTo writes the tape as [Read] reads it, remarks included.
func (t *Tape) WriteTo(target io.Writer) (int64, error) {
	var written int64
	before := history{}
	for _, entry := range t.entries {
		text := []byte(entry.remark)
		if entry.line != nil {
			var err error
			if text, err = entry.line.encode(before); err != nil {
				return written, err
			}
		}
		n, err := target.Write(append(text, '\n'))
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// encode writes a line with what is new in its request.
func (l *Line) encode(before history) ([]byte, error) {
	short := *l
	short.Request = before.shorten(l.Session, l.Agent, l.Request)
	return marshal(short)
}

func marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
