package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
)

// A Thread is one conversation: the user's, that of two agents, or the
// isolated one of an agent used as a tool.
type Thread struct {
	// Owner is "" for the user's thread, "a->b" for two agents', a call key
	// for an isolated one.
	Owner string
	Items []agents.Item

	marks     []mark
	ids       map[string]bool
	responses map[int64]*responseInfo
}

// A mark is a place in a thread where the model's view of it changes.
type mark struct {
	kind markKind
	at   int // index of the item that the mark stands before
	from string
	to   string
	upto int64
}

type markKind int

const (
	markNest markKind = iota
	markFilter
	markCompaction
)

// responseInfo is what is needed to replay a response as it came.
type responseInfo struct {
	provider string
	asked    string
	raw      json.RawMessage
	items    int
}

// uniqueCalls gives every call a key and an id of its own (rule R28). It
// reports whether the calls can be replayed as the model sent them, new ids
// apart.
func (t *Thread) uniqueCalls(run string, seq int64, wire []agents.ToolCall) (calls []agents.ToolCall, asSent bool) {
	asSent = true
	for index, call := range wire {
		if call.ID != "" && slices.Contains(wire[:index], call) {
			asSent = false
			continue
		}
		call.Key = callKey(run, seq, index)
		if call.ID == "" || t.ids[call.ID] {
			call.ID = t.mintID(seq, index)
		}
		t.ids[call.ID] = true
		asSent = asSent && isObject(call.Arguments) && agents.ValidToolName(call.Name)
		calls = append(calls, call)
	}
	return calls, asSent
}

// mintID makes an id that no call of the thread has.
func (t *Thread) mintID(seq int64, index int) string {
	id := fmt.Sprintf("call_%d_%d", seq, index)
	for t.ids[id] {
		id += "_"
	}
	return id
}

// isObject says whether arguments are a JSON object, as providers demand of
// what is replayed to them.
func isObject(arguments string) bool {
	return strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") && json.Valid([]byte(arguments))
}
