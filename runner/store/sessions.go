package store

import (
	"context"
	"fmt"
	"strings"

	"handoff/runner"
)

var (
	insertLane       = named("insert_lane")
	lockLane         = named("lock_lane")
	insertSession    = named("insert_session")
	promoteSession   = named("promote_session")
	lockSession      = named("lock_session")
	sessionLane      = named("session_lane")
	wakeSession      = named("wake_session")
	cancelUnstarted  = named("cancel_unstarted")
	flagCancel       = named("flag_cancel")
	sessionByID      = named("session_by_id")
	sessionsByPrefix = named("sessions_by_prefix")
	activeSession    = named("active_session")
	lastSession      = named("last_session")
	listSessions     = named("sessions")
	listRecords      = named("records")
)

// phaseEnded is the one phase that the code has to know; the others are the
// queries' own.
const phaseEnded = "ended"

// CreateSession puts a session that no command started into the lane of its
// issue, as [Routing] does for one that a command did. An empty ID is filled in.
func (s *Store) CreateSession(ctx context.Context, session *Session) error {
	return s.transact(ctx, func(t *tx) error { return t.createSession(ctx, session) })
}

func (t *tx) createSession(ctx context.Context, n *Session) error {
	if n.ID == "" {
		n.ID = NewID()
	}
	if _, err := t.exec(ctx, ensureInstallation, n.InstallationID); err != nil {
		return err
	}
	if err := t.lockLane(ctx, n.RepositoryID, n.Issue); err != nil {
		return err
	}
	variables := n.Variables
	if variables == nil {
		variables = map[string]string{}
	}
	t.tell(TopicSessions)
	_, err := t.exec(ctx, insertSession, n.ID, n.InstallationID, n.RepositoryID, n.Owner, n.Repository, n.Issue,
		n.CommandID, n.RequesterID, n.RequesterLogin, n.Task, n.IssueTitle, n.IssueBody, n.ActiveAgent, encode(variables))
	return err
}

// lockLane makes this the only transaction that starts or ends sessions of the
// issue. It comes before any lock on a session's row.
func (t *tx) lockLane(ctx context.Context, repositoryID int64, issue int) error {
	if _, err := t.exec(ctx, insertLane, repositoryID, issue); err != nil {
		return err
	}
	_, err := one(ctx, t.conn, scanOne[int], lockLane, repositoryID, issue)
	return err
}

// freeLane makes the lane's next session ready after one has ended.
func (t *tx) freeLane(ctx context.Context, repositoryID int64, issue int) error {
	t.tell(TopicSessions)
	_, err := t.exec(ctx, promoteSession, repositoryID, issue)
	return err
}

// Wake makes a waiting session ready. For one that is held the call is
// remembered: its next Suspend makes it ready at once. Waking a session that
// is queued, ready or ended does nothing.
func (s *Store) Wake(ctx context.Context, sessionID string) error {
	return s.transact(ctx, func(t *tx) error { return t.wake(ctx, sessionID) })
}

func (t *tx) wake(ctx context.Context, sessionID string) error {
	t.tell(TopicSessions)
	_, err := t.exec(ctx, wakeSession, sessionID)
	return err
}

// Cancel asks a session to end. One that no node ever held is cancelled at
// once and frees its lane; a held one gets the flag for its holder to see; a
// waiting one gets the flag and is woken. It returns the session as it is then,
// or [ErrNotFound]. Cancelling an ended session does nothing.
func (s *Store) Cancel(ctx context.Context, sessionID, by string) (Session, error) {
	var session Session
	err := s.transact(ctx, func(t *tx) (err error) {
		session, err = t.cancel(ctx, sessionID, by)
		return err
	})
	return session, err
}

func (t *tx) cancel(ctx context.Context, sessionID, by string) (Session, error) {
	lane, err := one(ctx, t.conn, scanLane, sessionLane, sessionID)
	if err != nil {
		return Session{}, fmt.Errorf("session %s: %w", sessionID, err)
	}
	if err := t.lockLane(ctx, lane.repositoryID, lane.issue); err != nil {
		return Session{}, err
	}
	t.tell(TopicSessions)
	ended, err := t.exec(ctx, cancelUnstarted, sessionID, by, "stopped by "+by+" before it began")
	if err != nil {
		return Session{}, err
	}
	if ended == 1 {
		err = t.freeLane(ctx, lane.repositoryID, lane.issue)
	} else {
		_, err = t.exec(ctx, flagCancel, sessionID, by)
	}
	if err != nil {
		return Session{}, err
	}
	return one(ctx, t.conn, scanSession, sessionByID, sessionID)
}

// A lane is one issue, whose sessions follow each other.
type lane struct {
	repositoryID int64
	issue        int
}

func scanLane(row scanner) (lane, error) {
	var l lane
	err := row.Scan(&l.repositoryID, &l.issue)
	return l, err
}

// A SessionFilter selects sessions; empty fields select all.
type SessionFilter struct {
	InstallationID int64
	RepositoryID   int64
	Issue          int
	States         []SessionState
	// Live leaves out the ended ones.
	Live bool
}

// Sessions returns the newest sessions that match, newest first, at most limit.
func (s *Store) Sessions(ctx context.Context, filter SessionFilter, limit int) ([]Session, error) {
	var states strings.Builder
	for _, state := range filter.States {
		states.WriteString("," + string(state) + ",")
	}
	return all(ctx, s.reader(), scanSession, listSessions, filter.InstallationID, filter.RepositoryID,
		int64(filter.Issue), states.String(), filter.Live, limit)
}

// Session returns the session with that id, or [ErrNotFound].
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	return one(ctx, s.reader(), scanSession, sessionByID, id)
}

// MinSessionPrefix is the fewest characters that [Store.SessionByPrefix] takes
// for the beginning of an id, so that a slip names nothing.
const MinSessionPrefix = 4

// SessionByPrefix returns the session whose id begins so, [ErrNotFound] for none
// or a prefix shorter than [MinSessionPrefix], or [ErrAmbiguous]. It reads all
// sessions, so it is for people and not for what happens often.
func (s *Store) SessionByPrefix(ctx context.Context, prefix string) (Session, error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) < MinSessionPrefix {
		return Session{}, ErrNotFound
	}
	found, err := all(ctx, s.reader(), scanSession, sessionsByPrefix, prefix)
	switch {
	case err != nil:
		return Session{}, err
	case len(found) == 0:
		return Session{}, ErrNotFound
	case len(found) > 1:
		return Session{}, ErrAmbiguous
	}
	return found[0], nil
}

// ActiveSession returns the session that holds the issue's lane, or
// [ErrNotFound].
func (s *Store) ActiveSession(ctx context.Context, repositoryID int64, issue int) (Session, error) {
	return one(ctx, s.reader(), scanSession, activeSession, repositoryID, issue)
}

// LastSession returns the issue's newest session, ended or not, or
// [ErrNotFound].
func (s *Store) LastSession(ctx context.Context, repositoryID int64, issue int) (Session, error) {
	return one(ctx, s.reader(), scanSession, lastSession, repositoryID, issue)
}

// Records returns the journal of a session from seq on, in order.
func (s *Store) Records(ctx context.Context, sessionID string, from int64) ([]runner.Record, error) {
	return all(ctx, s.reader(), scanRecord, listRecords, sessionID, from)
}

func scanSession(row scanner) (Session, error) {
	var s Session
	err := row.Scan(&s.ID, &s.InstallationID, &s.RepositoryID, &s.Owner, &s.Repository, &s.Issue, &s.CommandID,
		&s.RequesterID, &s.RequesterLogin, &s.Task, &s.IssueTitle, &s.IssueBody, &s.State, &s.Reason, &s.Code,
		&s.ActiveAgent, text(&s.Variables), text(&s.AgentVersions), &s.Usage.Requests, &s.Usage.Input, &s.Usage.Output,
		&s.Usage.Total, &s.Usage.Cached, &s.Usage.Reasoning, &s.Usage.CostMicros, &s.Usage.CostUnknown,
		&s.ActiveMillis, &s.Node, &s.Fence, &s.NextSeq, at(&s.WakeAt), &s.CancelRequested, &s.CancelBy, &s.Attempts,
		at(&s.CreatedAt), at(&s.UpdatedAt), at(&s.EndedAt))
	return s, err
}

func scanRecord(row scanner) (runner.Record, error) {
	var r runner.Record
	err := row.Scan(&r.Seq, &r.RunID, &r.ParentRunID, &r.Epoch, at(&r.Time), &r.Version, &r.Kind, text(&r.Payload))
	return r, err
}
