package store

import (
	"context"
	"sync"
	"time"
)

// A Node is one incarnation of a process. It holds leases on sessions, routes
// commands and sends effects; all of that ends with its own lease. A Node is
// safe for concurrent use.
type Node struct {
	// ID is new with each registration, Name is for people.
	ID   string
	Name string

	store *Store
	mutex sync.Mutex
	until time.Time
	lost  chan struct{}
	over  bool
}

// Register makes a new node with a lease of [NodeTTL]. In a serving process of
// an embedded database the first registration takes over at once from all
// earlier nodes: the lock file proves that they are dead.
func (s *Store) Register(ctx context.Context, name string) (*Node, error) { panic("soon") }

// Beat renews the lease. It fails with [ErrNodeExpired] when the lease had run
// out already: an expired node cannot come back.
func (n *Node) Beat(ctx context.Context) error { panic("soon") }

// Keep beats every [BeatInterval] until ctx is done (nil) or the lease is lost
// ([ErrNodeExpired]); faults of the database in between are retried while the
// lease lasts. Run it in a goroutine of its own.
func (n *Node) Keep(ctx context.Context) error { panic("soon") }

// Alive says whether the node may go on: its last successful beat was sent less
// than NodeTTL minus [NodeMargin] ago by the clock of this process.
func (n *Node) Alive() bool { panic("soon") }

// Deadline is the moment at which Alive turns false unless a beat succeeds.
func (n *Node) Deadline() time.Time { panic("soon") }

// Lost is closed when the node has found out that its lease is gone. Whoever
// works for it stops then.
func (n *Node) Lost() <-chan struct{} { panic("soon") }

// Drain takes the node out of service: it acquires and claims nothing more but
// keeps what it holds while it beats. With nothing held, call Leave.
func (n *Node) Drain(ctx context.Context) error { panic("soon") }

// Leave ends the node's lease now. What it still holds can be taken over at
// once.
func (n *Node) Leave(ctx context.Context) error { panic("soon") }
