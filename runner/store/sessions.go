package store

import (
	"context"

	"handoff/runner"
)

// CreateSession puts a session that no command started into the lane of its
// issue, as [Routing] does for one that a command did. An empty ID is filled in.
func (s *Store) CreateSession(ctx context.Context, session *Session) error { panic("soon") }

// Wake makes a waiting session ready. For one that is held the call is
// remembered: its next Suspend makes it ready at once. Waking a session that
// is queued, ready or ended does nothing.
func (s *Store) Wake(ctx context.Context, sessionID string) error { panic("soon") }

// Cancel asks a session to end. One that no node ever held is cancelled at
// once and frees its lane; a held one gets the flag for its holder to see; a
// waiting one gets the flag and is woken. It returns the session as it is then,
// or [ErrNotFound]. Cancelling an ended session does nothing.
func (s *Store) Cancel(ctx context.Context, sessionID, by string) (Session, error) { panic("soon") }

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
	panic("soon")
}

// Session returns the session with that id, or [ErrNotFound].
func (s *Store) Session(ctx context.Context, id string) (Session, error) { panic("soon") }

// ActiveSession returns the session that holds the issue's lane, or
// [ErrNotFound].
func (s *Store) ActiveSession(ctx context.Context, repositoryID int64, issue int) (Session, error) {
	panic("soon")
}

// LastSession returns the issue's newest session, ended or not, or
// [ErrNotFound].
func (s *Store) LastSession(ctx context.Context, repositoryID int64, issue int) (Session, error) {
	panic("soon")
}

// Records returns the journal of a session from seq on, in order.
func (s *Store) Records(ctx context.Context, sessionID string, from int64) ([]runner.Record, error) {
	panic("soon")
}
