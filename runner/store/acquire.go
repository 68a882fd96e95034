package store

import (
	"context"
	"errors"
	"fmt"
)

var (
	nextOrphan     = named("next_orphan")
	nextReady      = named("next_ready")
	acquireSession = named("acquire_session")
	deadLetter     = named("dead_letter")
	sessionTurn    = named("session_turn")
)

const (
	// MaxAttempts is how often a session is taken over or retried without
	// having got anywhere (a record, a pause, an end) before its holder may only
	// finish it.
	MaxAttempts = 5
	// maxLastWords is how many further attempts a holder gets for that. A
	// session that brings the process down even then is ended by the store.
	maxLastWords = 3
)

// CodeAttempts is the code of a session that failed because every attempt at it
// ended early, with its process or with a fault of ours.
const CodeAttempts = "ATTEMPTS"

// Caps limit how many sessions are held at the same time, over all nodes.
// Sessions that wait count for nothing. Zero means no limit.
type Caps struct {
	Global          int
	PerInstallation int
}

// A candidate is a session that may be acquired.
type candidate struct {
	id       string
	fence    int64
	attempts int
	lane     lane
}

// Acquire gives the node a session to work on, or [ErrNone]. First come the
// sessions of dead nodes, which keep their place under the caps; then those
// that were woken or whose WakeAt has come and queued ones whose turn it is in
// their lane, where installations take turns. The caps are exact on both
// engines.
//
// A queued session becomes preparing; any other keeps its state. Fence and
// Attempts grow by one. One that was attempted [MaxAttempts] times is handed
// out [Lease.Exhausted]; the store ends it itself if no holder manages to.
func (s *Store) Acquire(ctx context.Context, node *Node, caps Caps) (*Lease, error) {
	var session Session
	err := s.transact(ctx, func(t *tx) (err error) {
		if err := t.lockSched(ctx, "sessions"); err != nil {
			return err
		}
		if err := node.mayTake(ctx, t); err != nil {
			return err
		}
		session, err = t.takeNext(ctx, node, caps)
		return err
	})
	if err != nil {
		return nil, err
	}
	if session.ID == "" {
		return nil, ErrNone
	}
	return &Lease{store: s, node: node, session: session}, nil
}

// takeNext takes the first candidate that is still to be had. It returns the
// zero session when there is none, and no error, because sessions that it ended
// on the way must stay ended.
func (t *tx) takeNext(ctx context.Context, node *Node, caps Caps) (Session, error) {
	for {
		next, err := t.candidate(ctx, caps)
		if errors.Is(err, ErrNotFound) {
			return Session{}, nil
		}
		if err != nil {
			return Session{}, err
		}
		if next.attempts >= MaxAttempts+maxLastWords {
			if err := t.bury(ctx, next); err != nil {
				return Session{}, err
			}
			continue
		}
		session, err := one(ctx, t.conn, scanSession, acquireSession, next.id, next.fence, node.ID)
		if errors.Is(err, ErrNotFound) {
			// Somebody cancelled it in between.
			continue
		}
		if err != nil {
			return Session{}, err
		}
		return session, t.takeTurn(ctx, "sessions", sessionTurn, session.InstallationID)
	}
}

func (t *tx) candidate(ctx context.Context, caps Caps) (candidate, error) {
	orphan, err := one(ctx, t.conn, scanCandidate, nextOrphan)
	if !errors.Is(err, ErrNotFound) {
		return orphan, err
	}
	return one(ctx, t.conn, scanCandidate, nextReady, int64(caps.Global), int64(caps.PerInstallation))
}

// bury ends a session that no node survives, so that its lane goes on.
func (t *tx) bury(ctx context.Context, c candidate) error {
	if err := t.lockLane(ctx, c.lane.repositoryID, c.lane.issue); err != nil {
		return err
	}
	reason := fmt.Sprintf("given up after %d attempts in a row that ended early; "+
		"the work so far is kept, and /copilot retry goes on from there", c.attempts)
	rows, err := t.exec(ctx, deadLetter, c.id, c.fence, CodeAttempts, reason)
	if err != nil || rows == 0 {
		return err
	}
	t.store.logger.Error("a session was given up", "session", c.id, "attempts", c.attempts)
	if _, err := t.supersedeAll(ctx, c.id, "the session was given up"); err != nil {
		return err
	}
	return t.freeLane(ctx, c.lane.repositoryID, c.lane.issue)
}

func scanCandidate(row scanner) (candidate, error) {
	var c candidate
	err := row.Scan(&c.id, &c.fence, &c.attempts, &c.lane.repositoryID, &c.lane.issue)
	return c, err
}
