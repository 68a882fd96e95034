package runner

import (
	"bytes"
	"encoding/json"
	"slices"

	"handoff/agents"
)

// redact takes secrets out of a text that is to be recorded.
func (l *loop) redact(text string) string {
	if l.Hooks.Redact == nil {
		return text
	}
	return l.Hooks.Redact(text)
}

// redactCalls takes the host's own secrets out of what a model calls. The
// arguments are taken apart for it: what hides a secret in JSON must not hide
// it here, and what is left must still be JSON.
func (l *loop) redactCalls(calls []agents.ToolCall) []agents.ToolCall {
	if l.Hooks.RedactCall == nil {
		return calls
	}
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Name = l.Hooks.RedactCall(calls[i].Name)
		calls[i].Arguments = redactJSON(calls[i].Arguments, l.Hooks.RedactCall)
	}
	return calls
}

// redactJSON redacts every text of a JSON value, and names as well. What needs
// nothing stays as it is, byte for byte; what is no JSON is one text.
func redactJSON(encoded string, redact func(string) string) string {
	decoder := json.NewDecoder(bytes.NewReader([]byte(encoded)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return redact(encoded)
	}
	changed := false
	value = redactValue(value, func(text string) string {
		clean := redact(text)
		changed = changed || clean != text
		return clean
	})
	if !changed && redact(encoded) == encoded {
		return encoded // and not only what a name that comes twice left over
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return redact(encoded)
	}
	return string(bytes.TrimRight(out.Bytes(), "\n"))
}

func redactValue(value any, redact func(string) string) any {
	switch value := value.(type) {
	case string:
		return redact(value)
	case []any:
		for i := range value {
			value[i] = redactValue(value[i], redact)
		}
	case map[string]any:
		clean := make(map[string]any, len(value))
		for name, field := range value {
			clean[redact(name)] = redactValue(field, redact)
		}
		return clean
	}
	return value
}
