package store

import (
	"slices"
	"sync"
)

// A Topic is something that a waiting loop wants to hear of.
type Topic string

// The topics.
const (
	// TopicCommands: there may be a command to route.
	TopicCommands Topic = "commands"
	// TopicSessions: there may be a session to acquire, a message or a stop for
	// a held one.
	TopicSessions Topic = "sessions"
	// TopicOutbox: there may be an effect to send.
	TopicOutbox Topic = "outbox"
	// TopicApprovals: an approval was asked for, prompted or decided.
	TopicApprovals Topic = "approvals"
	// TopicJournal: a journal grew. Heard within the process only.
	TopicJournal Topic = "journal"
)

// Notify returns a channel that gets a value soon after something of the topics
// was committed, by this process or, on Postgres, by any. Several in a row may
// arrive as one, and a lost connection may lose some: whoever waits polls as
// well. Call stop when done; the channel is never closed.
func (s *Store) Notify(topics ...Topic) (changed <-chan struct{}, stop func()) {
	return s.hub.subscribe(topics)
}

// A hub passes on what was committed to who waits for it in this process.
type hub struct {
	mutex       sync.Mutex
	subscribers map[*subscriber]struct{}
}

type subscriber struct {
	topics  []Topic
	changed chan struct{}
}

func newHub() *hub { return &hub{subscribers: map[*subscriber]struct{}{}} }

func (h *hub) subscribe(topics []Topic) (<-chan struct{}, func()) {
	s := &subscriber{topics: slices.Clone(topics), changed: make(chan struct{}, 1)}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.subscribers[s] = struct{}{}
	return s.changed, func() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		delete(h.subscribers, s)
	}
}

// tell wakes who waits for any of the topics.
func (h *hub) tell(topics ...Topic) {
	h.each(func(s *subscriber) bool {
		return slices.ContainsFunc(topics, func(topic Topic) bool { return slices.Contains(s.topics, topic) })
	})
}

// tellAll wakes everybody.
func (h *hub) tellAll() { h.each(func(*subscriber) bool { return true }) }

func (h *hub) each(wants func(*subscriber) bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for s := range h.subscribers {
		if !wants(s) {
			continue
		}
		select {
		case s.changed <- struct{}{}:
		default:
			// One value already waits, which is enough.
		}
	}
}
