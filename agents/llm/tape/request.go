package tape

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Request is what a model was told, normalised: without what differs between
// providers (names of models, limits, ids of calls, reasoning that is sent
// back) and with placeholders for what differs from run to run.
//
// In a file a request holds only what is new in its session: a nil System or
// nil Tools are as in the last line of the same agent, the first Same messages
// as in the last line of any. In memory it is whole.
type Request struct {
	System   *string   `json:"system,omitempty"`
	Tools    []Tool    `json:"tools,omitempty"`
	Same     int       `json:"same,omitempty"`
	Messages []Message `json:"messages,omitempty"`
}

// A Tool is an offered tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// A Message is one message of a history.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content,omitempty"`
	// Calls are an assistant's calls; Answers is the place of the call that a
	// tool message answers, counted through the request from 1.
	Calls   []ToolCall `json:"calls,omitempty"`
	Answers int        `json:"answers,omitempty"`
}

// hash returns the hash of a whole request.
func (r *Request) hash() string {
	encoded, err := marshal(r)
	if err != nil {
		// Only raw JSON that is no JSON can fail, and normalise made it.
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16])
}

// normalise makes the normalised form of a chat completions body.
func normalise(body []byte) (*Request, error) {
	var wire struct {
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string    `json:"name"`
					Arguments Arguments `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, fmt.Errorf("the request is not chat completions: %w", err)
	}
	request := &Request{Tools: []Tool{}, Messages: []Message{}}
	for _, tool := range wire.Tools {
		request.Tools = append(request.Tools, Tool{
			Name: tool.Function.Name, Description: placeholders(tool.Function.Description), Parameters: canonical(tool.Function.Parameters),
		})
	}
	var system []string
	calls, places := 0, map[string]int{}
	for i, message := range wire.Messages {
		content := placeholders(contentText(message.Content))
		if message.Role == "system" && len(system) == i {
			system = append(system, content)
			continue
		}
		made := Message{Role: noteRole(message.Role, content), Content: content, Answers: places[message.ToolCallID]}
		for _, call := range message.ToolCalls {
			calls++
			places[call.ID] = calls
			made.Calls = append(made.Calls, ToolCall{Name: call.Function.Name, Arguments: normalArguments(string(call.Function.Arguments))})
		}
		request.Messages = append(request.Messages, made)
	}
	joined := strings.Join(system, "\n\n")
	request.System = &joined
	return request, nil
}

// noteRole undoes what is done for models that take no system messages in the
// middle of a history.
func noteRole(role, content string) string {
	if role == "user" && strings.HasPrefix(content, "[System] ") {
		return "system"
	}
	return role
}

// contentText returns a content's text: a string, or the texts of its parts.
func contentText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var joined strings.Builder
	for _, part := range parts {
		joined.WriteString(part.Text)
	}
	return joined.String()
}

// normalArguments replaces what varies and sorts the keys. Placeholders stand
// inside of strings, so that the arguments stay JSON.
func normalArguments(arguments string) Arguments {
	var value any
	if decode([]byte(arguments), &value) != nil {
		return Arguments(placeholders(arguments))
	}
	encoded, err := marshal(eachText(value, placeholders))
	if err != nil {
		return Arguments(placeholders(arguments))
	}
	return Arguments(encoded)
}

// canonical writes JSON with sorted keys and without white space.
func canonical(raw json.RawMessage) json.RawMessage {
	var value any
	if decode(raw, &value) != nil {
		return nil
	}
	encoded, err := marshal(value)
	if err != nil {
		return nil
	}
	return encoded
}

func decode(raw []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(value)
}

// eachText returns a decoded JSON value with every text replaced.
func eachText(value any, replace func(string) string) any {
	switch value := value.(type) {
	case string:
		return replace(value)
	case []any:
		for i := range value {
			value[i] = eachText(value[i], replace)
		}
	case map[string]any:
		for name := range value {
			value[name] = eachText(value[name], replace)
		}
	}
	return value
}

// A history knows the last request of each session, and the last one of each
// agent in it.
type history map[voice]*Request

// A voice is an agent in a session, or the session with the agent "".
type voice struct {
	session int
	agent   string
}

// shorten returns what is new in a request and remembers the request.
func (h history) shorten(session int, agent string, whole *Request) *Request {
	if whole == nil {
		return nil
	}
	before, own := h.swap(session, agent, whole)
	short := *whole
	if whole.System != nil && own.System != nil && *own.System == *whole.System {
		short.System = nil
	}
	if len(whole.Tools) > 0 && slices.EqualFunc(own.Tools, whole.Tools, sameTool) {
		short.Tools = nil
	}
	for short.Same < min(len(before.Messages), len(whole.Messages)) && sameMessage(before.Messages[short.Same], whole.Messages[short.Same]) {
		short.Same++
	}
	short.Messages = whole.Messages[short.Same:]
	return &short
}

// swap remembers a request and returns the last ones of the session and of its
// agent; those of a beginning are empty.
func (h history) swap(session int, agent string, whole *Request) (before, own *Request) {
	before, own = h[voice{session: session}], h[voice{session, agent}]
	h[voice{session: session}], h[voice{session, agent}] = whole, whole
	return cmp.Or(before, &Request{}), cmp.Or(own, &Request{})
}

// errSame says that a line refers to messages that are not there, as it does
// when the line before it was taken out of the file.
var errSame = errors.New("request.same counts more messages than the line before it has; update the tape")

// expand makes a request whole that was read from a file.
func (h history) expand(session int, agent string, short *Request) error {
	before, own := h.swap(session, agent, short)
	if short.Same < 0 || short.Same > len(before.Messages) {
		return errSame
	}
	if short.System == nil {
		short.System = own.System
	}
	if short.Tools == nil {
		short.Tools = own.Tools
	}
	short.Messages = slices.Concat(before.Messages[:short.Same], short.Messages)
	short.Same = 0
	return nil
}

// expand makes the requests of all lines whole.
func (t *Tape) expand() []error {
	var faults []error
	before := history{}
	for _, entry := range t.entries {
		if entry.line == nil || entry.line.Request == nil {
			continue
		}
		if err := before.expand(entry.line.Session, entry.line.Agent, entry.line.Request); err != nil {
			faults = append(faults, &Fault{entry.number, err.Error()})
		}
	}
	return faults
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}

func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Answers == b.Answers && slices.Equal(a.Calls, b.Calls)
}
