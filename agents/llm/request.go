package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"handoff/agents"
)

// emptyOutput stands for a tool's empty output: some providers refuse a tool
// message without content (rule R29).
const emptyOutput = "(no output)"

// A requestHead is everything of a request but its tools and its messages,
// which follow as the body's last fields. go-openai's ChatCompletionRequest cannot say a
// temperature of 0 nor a provider's own fields.
type requestHead struct {
	Model               string                               `json:"model"`
	Stream              bool                                 `json:"stream"`
	StreamOptions       openai.StreamOptions                 `json:"stream_options"`
	Temperature         *float64                             `json:"temperature,omitempty"`
	MaxTokens           int                                  `json:"max_tokens,omitempty"`
	MaxCompletionTokens int                                  `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string                               `json:"reasoning_effort,omitempty"`
	Thinking            *thinking                            `json:"thinking,omitempty"`
	ParallelToolCalls   *bool                                `json:"parallel_tool_calls,omitempty"`
	ToolChoice          any                                  `json:"tool_choice,omitempty"`
	ResponseFormat      *openai.ChatCompletionResponseFormat `json:"response_format,omitempty"`
	Routing             *routing                             `json:"provider,omitempty"`
	Accounting          *accounting                          `json:"usage,omitempty"`
	CacheControl        *cacheControl                        `json:"cache_control,omitempty"`
}

// thinking is zai's switch for reasoning.
type thinking struct {
	Type string `json:"type"`
}

// routing is openrouter's choice of upstreams.
type routing struct {
	DataCollection string   `json:"data_collection,omitempty"`
	Only           []string `json:"only,omitempty"`
}

// accounting asks openrouter for the cost of the call.
type accounting struct {
	Include bool `json:"include"`
}

// cacheControl asks for the prompt's cache where it is not the rule. Said once
// for the whole request, it moves on as the history grows.
type cacheControl struct {
	Type string `json:"type"`
}

// encodeRequest makes the body of a request. Requests with the same head and
// a history that grew have the same bytes up to where the history grew.
//
// It is one piece of memory, because net/http writes at once what it knows to be
// in memory; usually that of the request before, written on (see draft).
func encodeRequest(e *endpoint, info ModelInfo, request agents.Request) (*requestBody, error) {
	head, err := encodeHead(e, info, request)
	if err != nil {
		return nil, err
	}
	d := drafts.Get().(*draft)
	d.write(e, info, append(head[:len(head)-1], `,"messages":[`...), request.Messages)
	end := "]}"
	if note := outputNote(info, request.Output); note != nil {
		end = string(e.encodeMessage(note)) + end
		if len(request.Messages) > 0 {
			end = "," + end
		}
	}
	return newRequestBody(d, end), nil
}

func encodeHead(e *endpoint, info ModelInfo, request agents.Request) ([]byte, error) {
	settings := request.Settings
	head := requestHead{Model: info.ID, Stream: true, StreamOptions: openai.StreamOptions{IncludeUsage: true}}
	if info.Temperature {
		head.Temperature = settings.Temperature
	}
	if info.CompletionTokens {
		head.MaxCompletionTokens = settings.MaxTokens
	} else {
		head.MaxTokens = settings.MaxTokens
	}
	switch {
	case settings.ReasoningEffort == "":
	case !e.provider.ThinkingSwitch:
		head.ReasoningEffort = settings.ReasoningEffort
	case settings.ReasoningEffort == openai.ReasoningEffortNone:
		head.Thinking = &thinking{Type: "disabled"}
	default:
		head.Thinking = &thinking{Type: "enabled"}
	}
	if e.provider.Routing {
		setRouting(&head, e, info)
	}
	if err := encodeOutput(&head, info, request.Output); err != nil {
		return nil, err
	}
	if len(request.Tools) == 0 {
		return marshal(head)
	}
	tools, err := e.tools.encode(request.Tools)
	if err != nil {
		return nil, err
	}
	setToolUse(&head, e, info, request.Settings)
	encoded, err := marshal(head)
	if err != nil {
		return nil, err
	}
	// Tools are appended as they are: as a field they would be read and
	// written again with every call.
	encoded = append(encoded[:len(encoded)-1], `,"tools":`...)
	return append(append(encoded, tools...), '}'), nil
}

// setRouting says what openrouter alone understands.
func setRouting(head *requestHead, e *endpoint, info ModelInfo) {
	head.Accounting = &accounting{Include: true}
	head.Routing = &routing{Only: e.config.Upstreams}
	if !e.config.AllowDataCollection {
		head.Routing.DataCollection = "deny"
	}
	if info.CacheOnRequest {
		head.CacheControl = &cacheControl{Type: "ephemeral"}
	}
}

func setToolUse(head *requestHead, e *endpoint, info ModelInfo, settings agents.ModelSettings) {
	if info.ParallelTools {
		head.ParallelToolCalls = settings.ParallelToolCalls
	}
	switch choice := settings.ToolChoice; {
	case choice == "" || (e.provider.OnlyAutoToolChoice && choice != "auto"):
	case choice == "auto" || choice == "none" || choice == "required":
		head.ToolChoice = choice
	default:
		head.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: choice}}
	}
}

// encodeOutput asks for JSON (rule R30): by strict schema where the provider
// holds it, otherwise as a JSON object, with the schema in a note at the end.
func encodeOutput(head *requestHead, info ModelInfo, output *agents.OutputSchema) error {
	if output == nil {
		return nil
	}
	if len(output.Schema) > 0 && !json.Valid(output.Schema) {
		return fmt.Errorf("the schema of the output %s is not JSON", output.Name)
	}
	if strictOutput(info, output) {
		name := output.Name
		if name == "" {
			name = "answer"
		}
		head.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: name, Schema: output.Schema, Strict: true},
		}
		return nil
	}
	head.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	return nil
}

func strictOutput(info ModelInfo, output *agents.OutputSchema) bool {
	return info.StrictSchema && !output.Lenient && len(output.Schema) > 0
}

// encoded returns a message as it is on the wire. Opening says that only system
// messages stand before it.
func (e *endpoint) encoded(info ModelInfo, message *agents.Message, opening bool) []byte {
	switch {
	case message.Role == agents.RoleSystem && !opening && !info.SystemNotes:
		return message.EncodedAs(e.forms.userNote, encodeNoteAsUser)
	case message.Model != "" && message.Model != info.ID:
		return message.EncodedAs(e.forms.foreign, encodeForeign)
	}
	return message.EncodedAs(e.forms.plain, e.encodeMessage)
}

// outputNote asks for JSON in words, nil where that is not needed.
func outputNote(info ModelInfo, output *agents.OutputSchema) *agents.Message {
	if output == nil || strictOutput(info, output) {
		return nil
	}
	note := "Answer with one JSON object and nothing else."
	if len(output.Schema) > 0 {
		note = "Answer with one JSON object and nothing else. It must fit this JSON schema: " + string(output.Schema)
	}
	return &agents.Message{Role: agents.RoleUser, Content: note}
}

// A wireMessage is a message on the wire. go-openai's drops an empty content,
// which several providers refuse in tool messages.
type wireMessage struct {
	Role       agents.Role       `json:"role"`
	Content    *string           `json:"content"`
	ToolCalls  []openai.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
}

func (e *endpoint) encodeMessage(m *agents.Message) []byte {
	if m.Role == agents.RoleAssistant && len(m.Raw) > 0 && (m.Provider == "" || m.Provider == e.provider.Name) {
		if raw, ok := replay(m); ok {
			return raw
		}
	}
	return encodeFields(m, m.Role)
}

// encodeNoteAsUser is for models that take system messages only at the front.
func encodeNoteAsUser(m *agents.Message) []byte { return encodeFields(m, agents.RoleUser) }

// encodeForeign is for answers of another model. Thoughts are signed for the
// model that had them, and others refuse the whole history for a signature
// that is not theirs.
func encodeForeign(m *agents.Message) []byte { return encodeFields(m, m.Role) }

func encodeFields(m *agents.Message, role agents.Role) []byte {
	wire := wireMessage{Role: role, Content: &m.Content, ToolCallID: m.ToolCallID}
	for _, call := range m.ToolCalls {
		wire.ToolCalls = append(wire.ToolCalls, openai.ToolCall{
			ID: call.ID, Type: openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.Name, Arguments: cmp.Or(call.Arguments, "{}")},
		})
	}
	switch {
	case m.Content != "":
	case role == agents.RoleTool:
		output := emptyOutput
		wire.Content = &output
	case len(wire.ToolCalls) > 0:
		wire.Content = nil
	}
	// Strings and lists of them can always be encoded.
	encoded, _ := marshal(wire)
	return encoded
}

// replay returns the raw message with the ids by which the runner knows its
// calls. It declines when the raw message has other calls than the history,
// as it does when calls were cut off or dropped.
func replay(m *agents.Message) ([]byte, bool) {
	var head struct {
		ToolCalls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(m.Raw, &head) != nil || len(head.ToolCalls) != len(m.ToolCalls) {
		return nil, false
	}
	same := true
	for i, call := range m.ToolCalls {
		same = same && head.ToolCalls[i].ID == call.ID
	}
	if same {
		return m.Raw, true
	}
	return replaceIDs(m)
}

func replaceIDs(m *agents.Message) ([]byte, bool) {
	var message map[string]json.RawMessage
	var calls []map[string]json.RawMessage
	if json.Unmarshal(m.Raw, &message) != nil || json.Unmarshal(message["tool_calls"], &calls) != nil {
		return nil, false
	}
	for i, call := range m.ToolCalls {
		if calls[i] == nil {
			return nil, false
		}
		id, err := marshal(call.ID)
		if err != nil {
			return nil, false
		}
		calls[i]["id"] = id
	}
	encoded, err := marshal(calls)
	if err != nil {
		return nil, false
	}
	message["tool_calls"] = encoded
	whole, err := marshal(message)
	return whole, err == nil
}

// marshal is json.Marshal without the escapes for HTML, which would make code
// in prompts longer.
func marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return slices.Clip(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}
