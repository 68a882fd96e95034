package store

import "context"

type engine int
type query string
type fileLock struct{}

// Open opens the database that a URL names:
//
//	sqlite:///var/lib/handoff/handoff.db   an absolute path
//	sqlite://handoff.db                    a path in the working directory
//	sqlite::memory:                        a database of this process, for tests
//	postgres://user@host/database?…        Postgres 15 or later
//
// It does not create tables: call Migrate. Faults are an [*Error] with a
// sentence: an unknown scheme, a missing directory, an unreachable database, a
// lock held by another process, a schema that is newer than the program (or, with
// ModeRead, older).
func Open(ctx context.Context, url string, options Options) (*Store, error) { panic("soon") }

// Migrate brings the schema up to the program's. It is safe to call again, and
// by several nodes at once.
func (s *Store) Migrate(ctx context.Context) error { panic("soon") }

// Ping says whether the database answers and can be written, for readiness.
func (s *Store) Ping(ctx context.Context) error { panic("soon") }

// Engine returns "sqlite" or "postgres".
func (s *Store) Engine() string { panic("soon") }

// Close ends all connections and gives the lock file back.
func (s *Store) Close() error { panic("soon") }
