package agents

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
)

// A Model answers a request. It is implemented by package agents/llm and by
// fakes in tests.
//
// Contract: Respond is safe for concurrent use; it honours ctx promptly; it
// never panics on what a provider sends; it retries by itself what is worth
// retrying (rule R83) and reports every attempt in Response.Usage or
// Error.Usage. An error is always an *[Error] with code [CodeLLM] or
// [CodeCancelled]. A Response without an error is complete: its finish
// reason was seen on the wire.
type Model interface {
	Respond(ctx context.Context, request Request) (Response, error)
}

// A Role is the sender of a message, as chat completions name it.
type Role string

// The roles of chat completions.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one entry of the history that a model sees. A Message must not
// be changed after its first use in a request and must be shared by pointer:
// its encoded form is kept, so that a history is encoded once and the prefix
// of consecutive requests is byte for byte the same.
type Message struct {
	Role    Role
	Content string
	// ToolCalls are an assistant's calls.
	ToolCalls []ToolCall
	// ToolCallID names the call that a tool message answers.
	ToolCallID string
	// Raw is an assistant message as its provider sent it, replayed unchanged
	// so that reasoning fields and thought signatures survive. It is used only
	// for the provider that sent it.
	Raw json.RawMessage
	// Provider is the provider that sent Raw ([Response.Provider]); "" means
	// the one that is asked.
	Provider string
	// Model is the model that Raw was asked of ([Response.Asked]); another
	// model is told the words and the calls, not the thoughts. "" means any.
	Model string

	// forms is the first of a list to which forms are added at the front: a
	// history is read at every call, and written once.
	mu    sync.Mutex
	forms atomic.Pointer[encodedForm]
}

// An encodedForm is a message as one family of endpoints reads it.
type encodedForm struct {
	name  string
	bytes []byte
	next  *encodedForm
}

// Encoded returns the message's encoded form, calling encode the first time
// only. It is safe for concurrent use.
func (m *Message) Encoded(encode func(*Message) []byte) []byte {
	return m.EncodedAs("", encode)
}

// EncodedAs is [Message.Encoded] where providers read messages differently:
// each named form is encoded once and kept. The bytes must not be changed. It
// is safe for concurrent use.
func (m *Message) EncodedAs(form string, encode func(*Message) []byte) []byte {
	if bytes, ok := m.form(form); ok {
		return bytes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes, ok := m.form(form); ok {
		return bytes
	}
	bytes := encode(m)
	m.forms.Store(&encodedForm{form, bytes, m.forms.Load()})
	return bytes
}

func (m *Message) form(name string) ([]byte, bool) {
	for known := m.forms.Load(); known != nil; known = known.next {
		if known.name == name {
			return known.bytes, true
		}
	}
	return nil, false
}

// A ToolSpec is what a model is told about a tool.
type ToolSpec struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments.
	Schema json.RawMessage
}

// A Request asks for one response.
type Request struct {
	Model ModelRef
	// Session, Agent and Turn name the call. They are sent as headers to tape
	// endpoints only, so that a tape can find its line.
	Session string
	Agent   string
	Turn    int

	Messages []*Message
	Tools    []ToolSpec
	Settings ModelSettings
	Output   *OutputSchema
	// OnDelta receives pieces of text as they arrive, when set. It is called
	// from one goroutine at a time and must not block.
	OnDelta func(Delta)
}

// A Delta is a piece of a response in the making.
type Delta struct {
	Text      string
	Reasoning string
	// Restart says that an attempt failed half-way and another one begins:
	// what was shown so far is void.
	Restart bool
}

// A Response is a model's complete answer.
type Response struct {
	// Text is the assistant's text, "" allowed.
	Text string
	// Reasoning is what the model showed of its reasoning, for people only.
	Reasoning string
	// Refusal is the provider's refusal text, "" when there was none.
	Refusal   string
	ToolCalls []ToolCall
	// FinishReason is the wire's: stop, tool_calls, length, content_filter…
	FinishReason string
	// Raw is the assistant message as sent, for replay.
	Raw json.RawMessage
	// Provider is the provider that answered, for [Message.Provider].
	Provider string
	// Asked is the id of the model that was asked, for [Message.Model].
	Asked string
	// Model is the model that answered, as the provider names it.
	Model string
	// RequestID is the provider's id of the call, "" when it gave none.
	RequestID string
	Usage     Usage
}

// GenerateOptions are the knobs of a one-shot question outside of a session,
// as the helpers (rules, plan) ask it. The zero value is valid.
type GenerateOptions struct {
	// Model names the model; the zero value means the default.
	Model ModelRef
	// Name says who asks, for tapes and the usage ledger; "" means "helper".
	Name string
	// Temperature is sent when set, 0 included.
	Temperature *float64
	// MaxTokens bounds the answer; 0 means the provider's default.
	MaxTokens int
	// Output asks for JSON of a given shape.
	Output *OutputSchema
	// Tools may be used by the model before it answers. Only tools without
	// effect ([EffectNone]) are allowed here.
	Tools []Tool
	// MaxTurns bounds the model calls of one question; 0 means 12.
	MaxTurns int
}
