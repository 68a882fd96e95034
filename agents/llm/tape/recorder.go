package tape

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"handoff/agents"
)

// A Recorder writes a line for each model call. It is safe for concurrent use.
type Recorder struct {
	redact func(string) string

	mu       sync.Mutex
	target   io.Writer
	sessions map[string]int
	before   history
}

// NewRecorder returns a recorder that writes to target. Every text of a line
// goes through redact before it is written, each by itself and decoded, so
// that no escape can hide a secret; nil means that there are no secrets.
func NewRecorder(target io.Writer, redact func(string) string) *Recorder {
	if redact == nil {
		redact = func(text string) string { return text }
	}
	return &Recorder{redact: redact, target: target, sessions: map[string]int{}, before: history{}}
}

// Create returns a recorder that writes a new file, readable by its owner
// only, and the function that closes the file.
func Create(path string, redact func(string) string) (*Recorder, func() error, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("the tape cannot be written: %w", err)
	}
	return NewRecorder(file, redact), file.Close, nil
}

// Record writes one call. It implements the recorder that package llm asks
// for.
func (r *Recorder) Record(request agents.Request, body []byte, response agents.Response, latency time.Duration) error {
	told, err := normalise(body)
	if err != nil {
		return err
	}
	r.clean(told)
	line := &Line{
		Agent: request.Agent, Turn: request.Turn,
		Request: told, RequestHash: told.hash(),
		Response: r.response(response), Usage: usageOf(response.Usage),
		LatencyMS: int(latency.Milliseconds()),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line.Session = r.ordinal(request.Session)
	encoded, err := line.encode(r.before)
	if err != nil {
		return err
	}
	_, err = r.target.Write(append(encoded, '\n'))
	return err
}

// ordinal numbers sessions in the order in which they are seen; calls outside
// of any session have 0.
func (r *Recorder) ordinal(session string) int {
	if session == "" {
		return 0
	}
	if _, ok := r.sessions[session]; !ok {
		r.sessions[session] = len(r.sessions) + 1
	}
	return r.sessions[session]
}

// clean redacts a request. It is redacted before it is hashed: who plays the
// tape asks with the redacted answers of the tape.
func (r *Recorder) clean(request *Request) {
	system := r.redact(*request.System)
	request.System = &system
	for i, tool := range request.Tools {
		request.Tools[i].Description = r.redact(tool.Description)
	}
	for i, message := range request.Messages {
		request.Messages[i].Content = r.redact(message.Content)
		for j, call := range message.Calls {
			message.Calls[j].Name = r.redact(call.Name)
			message.Calls[j].Arguments = r.arguments(string(call.Arguments))
		}
	}
}

func (r *Recorder) arguments(arguments string) Arguments {
	var value any
	if decode([]byte(arguments), &value) == nil {
		if encoded, err := marshal(eachText(value, r.redact)); err == nil {
			return Arguments(encoded)
		}
	}
	return Arguments(r.redact(arguments))
}

func (r *Recorder) response(response agents.Response) *Response {
	kept := &Response{
		Content: r.redact(response.Text), Reasoning: r.redact(response.Reasoning), Refusal: r.redact(response.Refusal),
		FinishReason: response.FinishReason, Raw: r.raw(response.Raw),
	}
	for _, call := range response.ToolCalls {
		kept.ToolCalls = append(kept.ToolCalls, ToolCall{ID: call.ID, Name: r.redact(call.Name), Arguments: r.arguments(call.Arguments)})
	}
	return kept
}

// spoken are the fields of a message and of a call that a line has itself.
var (
	spoken     = []string{"role", "content", "refusal", "reasoning_content"}
	spokenCall = []string{"id", "type", "function"}
)

// raw returns what a provider's message says beyond the line's own fields,
// nil for nothing.
func (r *Recorder) raw(raw []byte) []byte {
	var message object
	if decode(raw, &message) != nil {
		return nil
	}
	for _, name := range spoken {
		delete(message, name)
	}
	calls, _ := message["tool_calls"].([]any)
	unusual := false
	for _, call := range calls {
		if fields, ok := call.(object); ok {
			for _, name := range spokenCall {
				delete(fields, name)
			}
			unusual = unusual || len(fields) > 0
		}
	}
	if !unusual {
		delete(message, "tool_calls")
	}
	if len(message) == 0 {
		return nil
	}
	encoded, err := marshal(eachText(message, r.redact))
	if err != nil {
		return nil
	}
	return encoded
}

func usageOf(usage agents.Usage) *Usage {
	if len(usage.Entries) == 0 {
		return nil
	}
	last := usage.Entries[len(usage.Entries)-1]
	if last.Estimated {
		return nil
	}
	kept := &Usage{Input: last.Input, Output: last.Output, Cached: last.Cached, Reasoning: last.Reasoning}
	if !last.CostUnknown {
		kept.CostMicros = &last.CostMicros
	}
	return kept
}
