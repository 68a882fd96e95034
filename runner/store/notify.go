package store

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

type hub struct{}

// Notify returns a channel that gets a value soon after something of the topics
// was committed, by this process or, on Postgres, by any. Several in a row may
// arrive as one, and a lost connection may lose some: whoever waits polls as
// well. Call stop when done; the channel is never closed.
func (s *Store) Notify(topics ...Topic) (changed <-chan struct{}, stop func()) { panic("soon") }
