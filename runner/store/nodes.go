package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	insertNode       = named("insert_node")
	expireOtherNodes = named("expire_other_nodes")
	forgetNodes      = named("forget_nodes")
	beatNode         = named("beat_node")
	drainNode        = named("drain_node")
	leaveNode        = named("leave_node")
	nodeService      = named("node_service")
)

// forgetAfter is how long the row of a dead node that left nothing behind is
// kept.
const forgetAfter = 24 * time.Hour

// A Node is one incarnation of a process. It holds leases on sessions, routes
// commands and sends effects; all of that ends with its own lease. A Node is
// safe for concurrent use.
type Node struct {
	// ID is new with each registration, Name is for people.
	ID   string
	Name string

	store *Store
	lost  chan struct{}

	mutex sync.Mutex
	until time.Time
	over  bool
}

// Register makes a new node with a lease of [NodeTTL]. In a serving process of
// an embedded database the first registration takes over at once from all
// earlier nodes: the lock file proves that they are dead.
func (s *Store) Register(ctx context.Context, name string) (*Node, error) {
	node := &Node{ID: NewID(), Name: name, store: s, lost: make(chan struct{})}
	sent := s.clock()
	succeed := s.lock != nil && !s.succeeded.Load()
	var now time.Time
	err := s.transact(ctx, func(t *tx) error {
		if succeed {
			if _, err := t.exec(ctx, expireOtherNodes); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, forgetNodes, forgetAfter.Milliseconds()); err != nil {
			return err
		}
		return t.row(ctx, insertNode, node.ID, name, NodeTTL.Milliseconds()).Scan(at(&now))
	})
	if err != nil {
		return nil, err
	}
	s.succeeded.Store(true)
	node.renewed(sent, now)
	return node, nil
}

// Beat renews the lease. It fails with [ErrNodeExpired] when the lease had run
// out already: an expired node cannot come back.
func (n *Node) Beat(ctx context.Context) error {
	sent := n.store.clock()
	if !n.Alive() {
		n.giveUp()
		return ErrNodeExpired
	}
	var now time.Time
	err := n.store.transact(ctx, func(t *tx) (err error) {
		now, err = n.renew(ctx, t)
		return err
	})
	if errors.Is(err, ErrNodeExpired) {
		n.giveUp()
	}
	if err == nil {
		n.renewed(sent, now)
	}
	return err
}

// renew moves the lease's end within a transaction and returns the database's
// time.
func (n *Node) renew(ctx context.Context, t *tx) (now time.Time, err error) {
	err = t.row(ctx, beatNode, n.ID, NodeTTL.Milliseconds()).Scan(at(&now))
	if errors.Is(err, sql.ErrNoRows) {
		return now, ErrNodeExpired
	}
	return now, err
}

// onlyOne turns "no row was changed" into an error of the caller's.
func onlyOne(rows int64, err error) func(missing error) error {
	return func(missing error) error {
		if err == nil && rows == 0 {
			return missing
		}
		return err
	}
}

// Keep beats every [BeatInterval] until ctx is done (nil) or the lease is lost
// ([ErrNodeExpired]); faults of the database in between are retried while the
// lease lasts. Run it in a goroutine of its own.
func (n *Node) Keep(ctx context.Context) error {
	pause := BeatInterval
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.lost:
			return ErrNodeExpired
		case <-time.After(min(pause, n.left())):
		}
		pause = n.keepOnce(ctx)
	}
}

// left is the time until the node gives itself up.
func (n *Node) left() time.Duration { return n.Deadline().Sub(n.store.clock()) }

// keepOnce beats once and returns when to beat next. A beat that the database
// does not answer is given up at the node's deadline.
func (n *Node) keepOnce(ctx context.Context) time.Duration {
	const impatience = 500 * time.Millisecond
	left := n.left()
	if left <= 0 {
		n.giveUp()
		return 0
	}
	attempt, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := n.Beat(attempt)
	if err == nil {
		return BeatInterval
	}
	if ctx.Err() == nil && !errors.Is(err, ErrNodeExpired) {
		n.store.logger.Warn("the node's lease could not be renewed", "node", n.ID, "left", left, "error", err)
	}
	return impatience
}

// renewed counts the node's own deadline from when the request was sent, and
// learns how far this process's clock is off.
func (n *Node) renewed(sent, now time.Time) {
	n.store.offset.Store(int64(now.Sub(sent)))
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if until := sent.Add(NodeTTL - NodeMargin); until.After(n.until) {
		n.until = until
	}
}

func (n *Node) giveUp() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.over {
		n.over = true
		close(n.lost)
	}
}

// Alive says whether the node may go on: its last successful beat was sent less
// than NodeTTL minus [NodeMargin] ago by the clock of this process.
func (n *Node) Alive() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return !n.over && n.store.clock().Before(n.until)
}

// Deadline is the moment at which Alive turns false unless a beat succeeds.
func (n *Node) Deadline() time.Time {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.until
}

// Lost is closed when the node has found out that its lease is gone. Whoever
// works for it stops then.
func (n *Node) Lost() <-chan struct{} { return n.lost }

// Drain takes the node out of service: from now on it is given nothing
// ([ErrNone]) but keeps what it holds while it beats. With nothing held, call
// Leave.
func (n *Node) Drain(ctx context.Context) error {
	return n.store.transact(ctx, func(t *tx) error {
		return onlyOne(t.exec(ctx, drainNode, n.ID))(ErrNodeExpired)
	})
}

// Leave ends the node's lease now. What it still holds can be taken over at
// once.
func (n *Node) Leave(ctx context.Context) error {
	err := n.store.transact(ctx, func(t *tx) error {
		t.tell(TopicCommands, TopicSessions, TopicOutbox)
		return onlyOne(t.exec(ctx, leaveNode, n.ID))(ErrNodeExpired)
	})
	n.giveUp()
	return err
}

// mayTake fails with ErrNodeExpired when the node is dead, and with ErrNone when
// it is out of service.
func (n *Node) mayTake(ctx context.Context, t *tx) error {
	if !n.Alive() {
		return ErrNodeExpired
	}
	var alive, draining bool
	err := t.row(ctx, nodeService, n.ID).Scan(&alive, &draining)
	switch {
	case err != nil:
		return fmt.Errorf("node %s: %w", n.ID, err)
	case !alive:
		return ErrNodeExpired
	case draining:
		return ErrNone
	}
	return nil
}
