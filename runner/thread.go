package runner

import (
	"encoding/json"
	"slices"
	"strconv"
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
		minted := "call_" + strconv.FormatInt(seq, 10) + "_" + strconv.Itoa(index)
		for call.ID == "" || t.ids[call.ID] {
			call.ID, minted = minted, minted+"_"
		}
		t.ids[call.ID] = true
		asSent = asSent && isObject(call.Arguments) && agents.ValidToolName(call.Name)
		calls = append(calls, call)
	}
	return calls, asSent
}

// isObject says whether arguments are a JSON object, as providers demand of
// what is replayed to them.
func isObject(arguments string) bool {
	return strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") && json.Valid([]byte(arguments))
}
