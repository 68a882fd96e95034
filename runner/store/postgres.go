package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

var postgresEngine = engine{
	name:    "postgres",
	dialect: goose.DialectPostgres,
	// clock_timestamp and not now: the time of a transaction's start is stale
	// after it has waited for a lock.
	now:      "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
	least:    "least",
	greatest: "greatest",
	lock:     "FOR UPDATE",
	skip:     "FOR UPDATE SKIP LOCKED",
	chunk:    50,
	notifies: true,
	conflict: postgresConflict,
}

const (
	// postgresConnections is the size of one process's pool.
	postgresConnections = 16
	// postgresChannel is the channel of NOTIFY; its payloads are topics.
	postgresChannel = "handoff"
	// postgresPatience is how long a transaction may stand still. It is shorter
	// than a node's lease, so that a take-over need not wait.
	postgresPatience = 10 * time.Second
	// listenRetry is the pause before a lost listening connection is made anew.
	listenRetry = time.Second
)

// The conditions that Postgres resolves by giving one transaction up.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

func postgresConflict(err error) bool {
	fault, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (fault.Code == serializationFailure || fault.Code == deadlockDetected)
}

func (s *Store) openPostgres(ctx context.Context, address string) error {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The parser's error repeats the URL, password included.
		return &Error{Code: CodeBadURL, Message: "DATABASE_URL is not a valid Postgres URL; " +
			"write postgres://user:password@host:5432/database."}
	}
	for name, value := range map[string]string{
		"application_name": "handoff",
		// What was answered must survive a power loss, whatever the server's
		// default is.
		"synchronous_commit": "on",
		// A node that freezes, or whose machine dies, in the middle of a
		// transaction would hold its locks for ever.
		"idle_in_transaction_session_timeout": strconv.FormatInt(postgresPatience.Milliseconds(), 10),
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	if s.mode == ModeRead {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	s.read = stdlib.OpenDB(*config)
	s.read.SetMaxOpenConns(postgresConnections)
	s.read.SetMaxIdleConns(postgresConnections)
	if s.mode == ModeRead {
		return nil
	}
	s.write = s.read
	s.listen = config
	return nil
}

// listenLoop passes on what other processes notify, until ctx ends. After a lost
// connection everybody is woken, because notifications may have been missed.
func (s *Store) listenLoop(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		s.logger.Warn("the connection that listens for changes was lost; polling until it is back", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(listenRetry):
		}
	}
}

func (s *Store) listenOnce(ctx context.Context) error {
	connection, err := pgx.ConnectConfig(ctx, s.listen)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, "LISTEN "+postgresChannel); err != nil {
		return err
	}
	s.hub.tellAll()
	for {
		notification, err := connection.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		s.hub.tell(Topic(notification.Payload))
	}
}
