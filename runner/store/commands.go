package store

import (
	"context"
	"time"
)

// A Routing is what becomes of a command. RouteCommand writes all of it in one
// transaction.
type Routing struct {
	// State is "routed" or "refused"; Outcome says in a word or sentence what
	// became of the command.
	State   string
	Outcome string
	// Session, when set, is a new session in the lane of its issue. An empty
	// ID is filled in; so are the state and the times.
	Session *Session
	// Message, when set, is text for a running session, which is woken.
	Message *Message
	// CancelSession and WakeSession name sessions to be cancelled or woken.
	CancelSession string
	WakeSession   string
	// Effects belong to the command unless they name a session.
	Effects []Effect
}

// ClaimCommand gives the node a command to route, or [ErrNone]. Commands of
// dead nodes come back. Installations take turns; within an issue the order of
// arrival is kept, so that a command waits for an earlier one that is being
// routed or retried. Attempts counts the claims.
func (s *Store) ClaimCommand(ctx context.Context, node *Node) (Command, error) { panic("soon") }

// RouteCommand ends the routing of a command that the node has claimed. It
// fails with [runner.ErrFenced] when the node has lost it, and with
// [ErrSessionEnded] when the message's session ended meanwhile; nothing is
// written then, and the caller may route again.
func (s *Store) RouteCommand(ctx context.Context, node *Node, id string, routing Routing) error {
	panic("soon")
}

// ReleaseCommand gives a claimed command back, to be claimed again at retryAt
// (zero: at once). The reason is kept in Outcome until it is routed.
func (s *Store) ReleaseCommand(ctx context.Context, node *Node, id string, retryAt time.Time, reason string) error {
	panic("soon")
}

// Command returns the command with that id, or [ErrNotFound].
func (s *Store) Command(ctx context.Context, id string) (Command, error) { panic("soon") }
