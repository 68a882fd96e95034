package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"handoff/migrations"
)

var schemaTable = map[string]query{
	"sqlite":   named("schema_table_sqlite"),
	"postgres": named("schema_table_postgres"),
}

var schemaVersion = named("schema_version")

// Migrate brings the schema up to the program's. It is safe to call again, and
// by several nodes at once.
func (s *Store) Migrate(ctx context.Context) error {
	if s.write == nil {
		return ErrReadOnly
	}
	if err := s.migrate(ctx); err != nil {
		return &Error{Code: CodeMigration, Err: err,
			Message: fmt.Sprintf("The database schema could not be brought up to date: %v.", err)}
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	if s.path != "" {
		// SQLite locks each statement, not the question which migrations are
		// due; a second process waits here.
		alone, err := waitForFileLock(s.path + ".migrate")
		if err != nil {
			return err
		}
		defer alone.release()
	}
	_, err = provider.Up(ctx)
	return err
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := fs.Sub(migrations.Files, s.engine.name)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithSlog(s.logger), goose.WithDisableGlobalRegistry(true)}
	if s.engine.dialect == goose.DialectPostgres {
		options = append(options, goose.WithSessionLocker(migrationLock{s}))
	}
	return goose.NewProvider(s.engine.dialect, s.write, files, options...)
}

// A migrationLock lets one node migrate a schema at a time. Goose's own lock
// asks every few seconds; this one is told by Postgres, so that nodes that start
// together are up together.
type migrationLock struct{ store *Store }

var (
	lockMigration   = named("lock_migration")
	unlockMigration = named("unlock_migration")
)

// SessionLock implements goose's lock.SessionLocker.
func (l migrationLock) SessionLock(ctx context.Context, connection *sql.Conn) error {
	_, err := conn{l.store, connection}.exec(ctx, lockMigration)
	return err
}

// SessionUnlock implements goose's lock.SessionLocker.
func (l migrationLock) SessionUnlock(ctx context.Context, connection *sql.Conn) error {
	_, err := conn{l.store, connection}.exec(ctx, unlockMigration)
	return err
}

// checkSchema refuses a schema that is newer than the program, which it could
// only damage, and for a reader also an older one, which it cannot change.
func (s *Store) checkSchema(ctx context.Context) error {
	have, err := s.schema(ctx)
	if err != nil {
		return &Error{Code: CodeUnreachable, Err: err, Message: "The database's schema cannot be read (" +
			withoutSecrets(err) + "); check that it belongs to handoff."}
	}
	want, err := newestMigration(s.engine.name)
	if err != nil {
		return err
	}
	switch {
	case have > want:
		return &Error{Code: CodeNewerSchema, Message: fmt.Sprintf("The database's schema is version %d, newer than "+
			"this program's %d; use the newer program, or restore a backup made before the upgrade.", have, want)}
	case have < want && s.mode == ModeRead:
		return &Error{Code: CodeOlderSchema, Message: fmt.Sprintf("The database's schema is version %d and this "+
			"program needs %d; start handoff serve once to bring it up to date.", have, want)}
	}
	return nil
}

// schema returns the version of the schema, 0 for an empty database.
func (s *Store) schema(ctx context.Context) (int64, error) {
	var exists bool
	var version int64
	if err := s.reader().row(ctx, schemaTable[s.engine.name]).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err := s.reader().row(ctx, schemaVersion).Scan(&version)
	return version, err
}

func newestMigration(engine string) (int64, error) {
	names, err := fs.Glob(migrations.Files, engine+"/*.sql")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	if newest == 0 {
		return 0, errors.New("the program holds no migrations for " + engine)
	}
	return newest, nil
}
