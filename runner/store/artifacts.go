package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"handoff/runner"
)

var (
	putArtifact   = named("put_artifact")
	artifactByID  = named("artifact")
	listArtifacts = named("artifacts")
	checkpointOf  = named("checkpoint")
	blobByID      = named("blob")
)

// An Artifact is a file that belongs to a session but not to its workspace.
type Artifact struct {
	ID        string
	SessionID string
	// Name is unique within the session.
	Name      string
	MediaType string
	Body      []byte
	// Size is the body's length in bytes, known also where Body is left out.
	Size      int64
	CreatedAt time.Time
}

func (t *tx) putArtifact(ctx context.Context, a Artifact) (string, error) {
	return one(ctx, t.conn, scanOne[string], putArtifact, cmp.Or(a.ID, NewID()), a.SessionID, a.Name, a.MediaType,
		a.Body, len(a.Body))
}

// Artifact returns the artifact with its body, or [ErrNotFound].
func (s *Store) Artifact(ctx context.Context, id string) (Artifact, error) {
	return one(ctx, s.reader(), scanArtifact, artifactByID, id)
}

// Artifacts returns a session's artifacts without their bodies, oldest first.
func (s *Store) Artifacts(ctx context.Context, sessionID string) ([]Artifact, error) {
	return all(ctx, s.reader(), scanArtifact, listArtifacts, sessionID)
}

func scanArtifact(row scanner) (Artifact, error) {
	var a Artifact
	err := row.Scan(&a.ID, &a.SessionID, &a.Name, &a.MediaType, &a.Body, &a.Size, at(&a.CreatedAt))
	return a, err
}

// Checkpoint returns a session's last checkpoint without its blobs, nil when
// there is none.
func (s *Store) Checkpoint(ctx context.Context, sessionID string) (*runner.Checkpoint, error) {
	checkpoint, err := one(ctx, s.reader(), func(row scanner) (*runner.Checkpoint, error) {
		var c runner.Checkpoint
		return &c, row.Scan(&c.Base, &c.Tree, text(&c.Changes))
	}, checkpointOf, sessionID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return checkpoint, err
}

// Blob returns contents by git blob id, or [ErrNotFound]. Nothing is shared
// between installations.
func (s *Store) Blob(ctx context.Context, installationID int64, id string) ([]byte, error) {
	packed, err := one(ctx, s.reader(), scanOne[[]byte], blobByID, installationID, id)
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}
