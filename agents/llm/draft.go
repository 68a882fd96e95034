package llm

import (
	"bytes"
	"slices"
	"sync"

	"handoff/agents"
)

// A draft is a body without its end: head and messages. Its memory is used
// again, and so is what it says: where the next request is the same one, grown,
// only what is new is written. Messages never change after their first use, so
// it is enough to compare who they are.
type draft struct {
	endpoint *endpoint
	bytes    []byte
	head     int // of bytes
	messages []*agents.Message
	// opening says that there are system messages only.
	opening bool
}

// drafts are of any session. A process with few of them mostly finds the
// session's own here; another one costs no more than empty memory.
var drafts = sync.Pool{New: func() any { return new(draft) }}

// keptDraft is the longest body that is kept.
const keptDraft = 1 << 20

// write makes the draft say head and messages.
func (d *draft) write(e *endpoint, info ModelInfo, head []byte, messages []*agents.Message) {
	if !d.begins(e, head, messages) {
		clear(d.messages) // of another session, perhaps
		*d = draft{endpoint: e, bytes: append(d.bytes[:0], head...), head: len(head), messages: d.messages[:0], opening: true}
	}
	for _, message := range messages[len(d.messages):] {
		d.opening = d.opening && message.Role == agents.RoleSystem
		if len(d.messages) > 0 {
			d.bytes = append(d.bytes, ',')
		}
		d.bytes = append(d.bytes, e.encoded(info, message, d.opening)...)
		d.messages = append(d.messages, message)
	}
}

// begins says whether what the draft says is how head and messages begin. The
// head names the model, on which the form of a message depends as well.
func (d *draft) begins(e *endpoint, head []byte, messages []*agents.Message) bool {
	return d.endpoint == e && bytes.Equal(d.bytes[:d.head], head) &&
		len(d.messages) <= len(messages) && slices.Equal(d.messages, messages[:len(d.messages)])
}
