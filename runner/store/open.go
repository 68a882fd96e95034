package store

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

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
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	s := &Store{mode: options.Mode, logger: options.Logger, clock: options.Clock, hub: newHub(), unpaced: options.Unpaced}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if err := s.connect(ctx, url, options); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context, url string, options Options) error {
	open := s.openSQLite
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "sqlite":
		s.engine = sqliteEngine
	case "postgres", "postgresql":
		s.engine, open = postgresEngine, s.openPostgres
	default:
		return &Error{Code: CodeBadURL, Message: "DATABASE_URL must begin with sqlite:// or postgres://."}
	}
	now := s.engine.now
	if options.NowExpression != "" {
		now = options.NowExpression
	}
	s.queries = s.engine.translate(now)
	if err := open(ctx, url); err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	s.startListening()
	return nil
}

// reach makes the first connection, so that an unreachable database is found
// out now and not in the middle of somebody's session.
func (s *Store) reach(ctx context.Context) error {
	for _, pool := range s.pools() {
		if err := pool.PingContext(ctx); err != nil {
			return &Error{Code: CodeUnreachable, Err: err, Message: "The database does not answer (" +
				withoutSecrets(err) + "); check DATABASE_URL and that the server runs."}
		}
	}
	return nil
}

func (s *Store) startListening() {
	if s.listen == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.background.Go(func() { s.listenLoop(ctx) })
}

// Ping says whether the database answers and can be written, for readiness.
func (s *Store) Ping(ctx context.Context) error {
	if s.write == nil {
		return s.read.PingContext(ctx)
	}
	return s.transact(ctx, func(t *tx) error {
		_, err := t.exec(ctx, touchSched, "audit")
		return err
	})
}

var touchSched = named("touch_sched")

// Engine returns "sqlite" or "postgres".
func (s *Store) Engine() string { return s.engine.name }

// Close ends all connections and gives the lock file back.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.background.Wait()
	var first error
	for _, pool := range s.pools() {
		if err := pool.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.lock.release()
	return first
}
