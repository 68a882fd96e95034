package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"handoff/agents"
)

// A callList merges the pieces of tool calls.
//
// Providers number the pieces of a call by index, but not all do: some leave
// the index away, some give 0 to every call. A piece that brings another id
// than the call at its index begins a new call.
type callList struct {
	entries []any
	// at is where the call of an index of the wire stands in entries.
	at map[int]int
	// whole says that the pieces are complete calls, never continuations.
	whole bool
}

var errTooManyCalls = fmt.Errorf("the answer has more than %d tool calls", maxCalls)

func (l *callList) merge(pieces []any) error {
	for _, piece := range pieces {
		fields, ok := piece.(map[string]any)
		if !ok {
			return errNoJSON
		}
		if function, ok := fields["function"].(map[string]any); ok {
			flattenArguments(function)
		}
		entry, err := l.entry(fields)
		if err != nil {
			return err
		}
		delete(fields, "index")
		if !repeats(entry, fields) {
			mergeFields(entry, fields)
		}
	}
	return nil
}

// entry returns the call that a piece belongs to.
func (l *callList) entry(piece map[string]any) (map[string]any, error) {
	index, numbered := indexOf(piece)
	position := len(l.entries) - 1
	switch id := asText(piece["id"]); {
	case numbered:
		known, ok := l.at[index]
		if !ok {
			known = -1
		}
		position = known
	case id != "":
		position = l.named(id)
	}
	if position >= 0 && !l.whole {
		if entry := l.entries[position].(map[string]any); !begins(entry, piece, numbered) {
			return entry, nil
		}
	}
	if len(l.entries) >= maxCalls {
		return nil, errTooManyCalls
	}
	entry := map[string]any{}
	l.entries = append(l.entries, entry)
	if l.at == nil {
		l.at = map[int]int{}
	}
	if numbered {
		l.at[index] = len(l.entries) - 1
	}
	return entry, nil
}

// named returns the place of the last call with an id, -1 if there is none:
// pieces of several calls may come in turns, told apart by nothing else.
func (l *callList) named(id string) int {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if asText(l.entries[i].(map[string]any)["id"]) == id {
			return i
		}
	}
	return -1
}

// begins says that a piece begins a new call instead of continuing the one
// that stands where it points.
func begins(entry, piece map[string]any, numbered bool) bool {
	old, id := asText(entry["id"]), asText(piece["id"])
	name, arguments := functionOf(piece)
	knownName, known := functionOf(entry)
	if old != "" && id != "" {
		return old != id || (name != "" && name != knownName && json.Valid([]byte(known)))
	}
	if !numbered {
		return name != ""
	}
	return name != "" && arguments != "" && json.Valid([]byte(known))
}

// repeats says that a piece only says again, word for word, the whole call
// that it belongs to, as some gateways do at the end of a stream.
func repeats(entry, piece map[string]any) bool {
	name, arguments := functionOf(piece)
	knownName, known := functionOf(entry)
	return name != "" && name == knownName && arguments == known && strings.HasPrefix(arguments, "{") && json.Valid([]byte(arguments))
}

func functionOf(call map[string]any) (name, arguments string) {
	function, _ := call["function"].(map[string]any)
	return asText(function["name"]), asText(function["arguments"])
}

func indexOf(piece map[string]any) (int, bool) {
	number, ok := piece["index"].(json.Number)
	if !ok {
		return 0, false
	}
	index, err := number.Int64()
	return int(index), err == nil
}

// flattenArguments makes a string of arguments that came as an object, as
// some local servers send them.
func flattenArguments(function map[string]any) {
	switch arguments := function["arguments"].(type) {
	case map[string]any, []any:
		if encoded, err := marshal(arguments); err == nil {
			function["arguments"] = string(encoded)
		}
	}
}

// finish returns the calls with ids that are present and unique within the
// answer, and makes the raw entries agree (rule R28): an empty or reused id is
// replaced; a call that is said twice, id and arguments alike, is kept once.
func (l *callList) finish() ([]agents.ToolCall, error) {
	var calls []agents.ToolCall
	var kept []any
	seen := map[string]agents.ToolCall{}
	for i, entry := range l.entries {
		fields := entry.(map[string]any)
		function, ok := fields["function"].(map[string]any)
		if !ok {
			return nil, errors.New("the answer has a tool call without a function")
		}
		call := agents.ToolCall{Name: asText(function["name"]), Arguments: asText(function["arguments"])}
		call.ID, _ = fields["id"].(string)
		if call.Arguments == "" {
			call.Arguments = "{}"
			function["arguments"] = call.Arguments
		}
		if known, reused := seen[call.ID]; call.ID != "" && reused && known == call {
			continue
		} else if call.ID == "" || reused {
			call.ID = mint(seen, i)
			fields["id"] = call.ID
		}
		fields["type"] = "function"
		seen[call.ID] = call
		calls = append(calls, call)
		kept = append(kept, entry)
	}
	l.entries = kept
	return calls, nil
}

// mint makes an id that the answer does not have. It depends on nothing but
// the answer, so that a replay is the same.
func mint(seen map[string]agents.ToolCall, index int) string {
	for n := index; ; n++ {
		id := fmt.Sprintf("call_%d", n)
		if _, used := seen[id]; !used {
			return id
		}
	}
}

func asText(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case *growingText:
		return value.String()
	default:
		return ""
	}
}
