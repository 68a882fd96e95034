package store

import (
	"context"
	"time"

	"handoff/runner"
)

// An Artifact is a file that belongs to a session but not to its workspace.
type Artifact struct {
	ID        string
	SessionID string
	// Name is unique within the session.
	Name      string
	MediaType string
	Body      []byte
	Size      int64
	CreatedAt time.Time
}

// Artifact returns the artifact with its body, or [ErrNotFound].
func (s *Store) Artifact(ctx context.Context, id string) (Artifact, error) { panic("soon") }

// Artifacts returns a session's artifacts without their bodies, oldest first.
func (s *Store) Artifacts(ctx context.Context, sessionID string) ([]Artifact, error) { panic("soon") }

// Checkpoint returns a session's last checkpoint without its blobs, nil when
// there is none.
func (s *Store) Checkpoint(ctx context.Context, sessionID string) (*runner.Checkpoint, error) {
	panic("soon")
}

// Blob returns contents by git blob id. Nothing is shared between
// installations.
func (s *Store) Blob(ctx context.Context, installationID int64, id string) ([]byte, error) {
	panic("soon")
}
