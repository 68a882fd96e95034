package store

import (
	"context"
)

// MaxAttempts is how often a session is taken over or retried without having
// reached a pause or an end before its holder may only finish it.
const MaxAttempts = 5

// Caps limit how many sessions are held at the same time, over all nodes.
// Sessions that wait count for nothing. Zero means no limit.
type Caps struct {
	Global          int
	PerInstallation int
}

// Acquire gives the node a session to work on, or [ErrNone]. First come the
// sessions of dead nodes, which keep their place under the caps; then those
// that were woken or whose WakeAt has come, then queued ones whose turn it is
// in their lane; installations take turns. The caps are exact on both engines.
//
// A queued session becomes preparing; any other keeps its state. Fence and
// Attempts grow by one.
func (s *Store) Acquire(ctx context.Context, node *Node, caps Caps) (*Lease, error) { panic("soon") }
