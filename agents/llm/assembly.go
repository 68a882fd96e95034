package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"handoff/agents"
)

// keptLine is the longest line whose decoder is used again.
const keptLine = 64 << 10

// maxCalls bounds the tool calls of one answer.
const maxCalls = 256

// A chunk is one data line of a stream, or a whole answer that was not
// streamed. Only what must be understood is typed; the message itself is
// merged field by field, so that fields of any provider survive. Fields that
// do not matter enough to fail over may be of any type.
type chunk struct {
	ID      any             `json:"id"`
	Model   any             `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   *wireUsage      `json:"usage"`
	Choices []struct {
		Index        int            `json:"index"`
		Delta        map[string]any `json:"delta"`
		Message      map[string]any `json:"message"`
		FinishReason any            `json:"finish_reason"`
		// Error is where openrouter reports the upstream's failure in an answer
		// that is otherwise whole.
		Error json.RawMessage `json:"error"`
	} `json:"choices"`
}

// A chunkDecoder decodes data lines, one after the other. It is used again for
// the next answer, because it grows a buffer of its own.
type chunkDecoder struct {
	line    bytes.Reader
	decoder *json.Decoder
	given   int64 // bytes, all lines together
	longest int   // line, in bytes
}

var decoders = sync.Pool{New: func() any {
	d := &chunkDecoder{}
	d.decoder = json.NewDecoder(&d.line)
	// Numbers that we do not know are given back digit by digit.
	d.decoder.UseNumber()
	return d
}}

// release gives the decoder back, unless its buffer has grown large. It must
// not be called after an error, nor the decoder used afterwards.
func (d *chunkDecoder) release() {
	d.line.Reset(nil)
	if d.longest <= keptLine {
		decoders.Put(d)
	}
}

// decode reads one line. After an error it must not be called again.
func (d *chunkDecoder) decode(data []byte) (piece chunk, err error) {
	d.line.Reset(data)
	d.given += int64(len(data))
	d.longest = max(d.longest, len(data))
	// What stood behind the value would be taken for the next line's beginning.
	if d.decoder.Decode(&piece) != nil || d.decoder.InputOffset() != d.given {
		// It may be the reason in plain words.
		return chunk{}, fmt.Errorf("%w: %s", errNoJSON, strings.ToValidUTF8(string(data[:min(len(data), 120)]), ""))
	}
	return piece, nil
}

// An assembly merges the pieces of an answer.
type assembly struct {
	chunks            *chunkDecoder
	id, model, finish string
	usage             *wireUsage
	message           map[string]any
	calls             callList
	choices           bool
	// pieces says that the message came in pieces: a whole one after them only
	// repeats it.
	pieces bool
	size   int
}

// errNoJSON says that a data line could not be read.
var errNoJSON = errors.New("the stream has a line that is not JSON")

// A faultLine is an error object in a data line (rule R84).
type faultLine struct{ body []byte }

func (f *faultLine) Error() string { return "the stream reports an error" }

// add merges one data line and returns what it adds to the texts.
func (a *assembly) add(data []byte) (agents.Delta, error) {
	if data[0] == '[' {
		return agents.Delta{}, &faultLine{bytes.Clone(data)}
	}
	if a.chunks == nil {
		a.chunks = decoders.Get().(*chunkDecoder)
	}
	piece, err := a.chunks.decode(data)
	if err != nil {
		return agents.Delta{}, err
	}
	if !isNull(piece.Error) {
		return agents.Delta{}, &faultLine{bytes.Clone(data)}
	}
	a.size += len(data)
	a.id = cmp.Or(asText(piece.ID), a.id)
	a.model = cmp.Or(asText(piece.Model), a.model)
	if piece.Usage != nil {
		a.usage = piece.Usage
	}
	var delta agents.Delta
	for _, choice := range piece.Choices {
		if choice.Index != 0 {
			continue
		}
		a.choices = true
		if !isNull(choice.Error) {
			return agents.Delta{}, &faultLine{slices.Concat([]byte(`{"error":`), choice.Error, []byte("}"))}
		}
		if reason := asText(choice.FinishReason); reason != "" {
			a.finish = finishOf(reason)
		}
		more, err := a.mergeChoice(choice.Delta, choice.Message)
		if err != nil {
			return agents.Delta{}, err
		}
		delta.Text += more.Text
		delta.Reasoning += more.Reasoning
	}
	return delta, nil
}

// mergeChoice merges a piece, or a whole message where no pieces came before.
func (a *assembly) mergeChoice(piece, message map[string]any) (agents.Delta, error) {
	if piece != nil && (len(piece) > 0 || message == nil) {
		a.pieces = true
		a.calls.whole = false
		return a.merge(piece)
	}
	if message == nil || a.pieces {
		return agents.Delta{}, nil
	}
	// A whole message lists whole calls: two of one id are two.
	a.calls.whole = true
	return a.merge(message)
}

func (a *assembly) merge(fields map[string]any) (agents.Delta, error) {
	if a.message == nil {
		a.message = map[string]any{}
	}
	if calls, ok := fields["tool_calls"]; ok {
		delete(fields, "tool_calls")
		if list, ok := calls.([]any); ok {
			if err := a.calls.merge(list); err != nil {
				return agents.Delta{}, err
			}
		}
	}
	delta := agents.Delta{Text: plainText(fields["content"]), Reasoning: reasoningOf(fields)}
	mergeFields(a.message, fields)
	return delta, nil
}

// concatenated names the text fields that come in pieces. Any other field is
// said once or repeated: ids, types, formats, signatures.
var concatenated = map[string]bool{
	"content": true, "reasoning": true, "reasoning_content": true, "refusal": true, "arguments": true,
	"text": true, "summary": true, "thinking": true,
}

// A growingText is a text that comes in pieces.
type growingText struct{ strings.Builder }

// grown makes strings of the growing texts in a value, in place.
func grown(value any) any {
	switch value := value.(type) {
	case *growingText:
		return value.String()
	case map[string]any:
		for name, inner := range value {
			value[name] = grown(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = grown(inner)
		}
	}
	return value
}

func mergeFields(into, fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			if _, known := into[name]; !known {
				into[name] = nil
			}
		case string:
			mergeText(into, name, value)
		case map[string]any:
			inner, ok := into[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				into[name] = inner
			}
			mergeFields(inner, value)
		case []any:
			into[name] = mergeList(partsOf(into[name]), value)
		default:
			into[name] = value
		}
	}
}

func mergeText(into map[string]any, name, piece string) {
	if parts, ok := into[name].([]any); ok {
		// Some models think in parts of a list and then speak in plain text.
		if piece != "" {
			into[name] = mergeList(parts, []any{map[string]any{"type": "text", "text": piece}})
		}
		return
	}
	if !concatenated[name] {
		if old, _ := into[name].(string); piece != "" || old == "" {
			into[name] = piece
		}
		return
	}
	text, ok := into[name].(*growingText)
	if !ok {
		text = &growingText{}
		into[name] = text
	}
	text.WriteString(piece)
}

// mergeList appends to a list, or continues its last entry: openrouter sends
// one entry of reasoning_details in many pieces of the same index and type.
func mergeList(known, pieces []any) []any {
	for _, piece := range pieces {
		fields, ok := piece.(map[string]any)
		if !ok {
			known = append(known, piece)
			continue
		}
		if len(known) > 0 {
			if last, ok := known[len(known)-1].(map[string]any); ok && continues(last, fields) {
				mergeFields(last, fields)
				continue
			}
		}
		entry := map[string]any{}
		mergeFields(entry, fields)
		known = append(known, entry)
	}
	return known
}

// partsOf returns what a field holds as a list of parts.
func partsOf(field any) []any {
	switch field := field.(type) {
	case []any:
		return field
	case *growingText:
		if field.Len() > 0 {
			return []any{map[string]any{"type": "text", "text": field}}
		}
	}
	return nil
}

// continues says that a piece belongs to the entry before it. Encrypted
// entries are always whole.
func continues(last, piece map[string]any) bool {
	kind, _ := piece["type"].(string)
	if kind != "reasoning.text" && kind != "reasoning.summary" && kind != "text" && kind != "thinking" {
		return false
	}
	return scalar(last["type"]) == kind && scalar(last["index"]) == scalar(piece["index"]) &&
		(last["id"] == nil || piece["id"] == nil || scalar(last["id"]) == scalar(piece["id"]))
}

// scalar writes a value that names something, so that it can be compared.
func scalar(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	default:
		return ""
	}
}

// plainText returns the text of a content field: a string or a list of parts.
func plainText(content any) string {
	switch content := content.(type) {
	case string:
		return content
	case *growingText:
		return content.String()
	case []any:
		var text strings.Builder
		for _, part := range content {
			if fields, ok := part.(map[string]any); ok && fields["type"] == "text" {
				text.WriteString(plainText(fields["text"]))
			}
		}
		return text.String()
	default:
		return ""
	}
}

// reasoningOf returns the reasoning as text under the name that each provider
// has for it; openrouter sends it under two names at once.
func reasoningOf(fields map[string]any) string {
	if text := plainText(fields["reasoning"]); text != "" {
		return text
	}
	if text := plainText(fields["reasoning_content"]); text != "" {
		return text
	}
	details, _ := fields["reasoning_details"].([]any)
	var text strings.Builder
	for _, detail := range details {
		if fields, ok := detail.(map[string]any); ok {
			text.WriteString(plainText(fields["text"]))
			text.WriteString(plainText(fields["summary"]))
		}
	}
	return text.String()
}

// response makes the complete answer.
func (a *assembly) response() (agents.Response, error) {
	if a.chunks != nil {
		a.chunks.release()
		a.chunks = nil
	}
	calls, err := a.calls.finish()
	if err != nil {
		return agents.Response{}, err
	}
	if a.message == nil {
		a.message = map[string]any{}
	}
	a.message["role"] = "assistant"
	if len(calls) > 0 {
		a.message["tool_calls"] = a.calls.entries
	}
	if _, ok := a.message["content"]; !ok && len(calls) == 0 {
		a.message["content"] = ""
	}
	raw, err := marshal(grown(a.message))
	if err != nil {
		return agents.Response{}, err
	}
	return agents.Response{
		Text:         plainText(a.message["content"]),
		Reasoning:    reasoningOf(a.message),
		Refusal:      plainText(a.message["refusal"]),
		ToolCalls:    calls,
		FinishReason: a.finish,
		Raw:          slices.Clip(raw),
		Model:        a.model,
		RequestID:    a.id,
	}, nil
}
