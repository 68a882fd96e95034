package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// conflictRetries is how often a transaction is tried again after the
	// database gave it up in favour of another.
	conflictRetries = 10
	// conflictPause doubles from one retry to the next, up to conflictPauseMax.
	conflictPause    = 2 * time.Millisecond
	conflictPauseMax = 200 * time.Millisecond
)

// A querier is a pool or a transaction.
type querier interface {
	ExecContext(ctx context.Context, text string, arguments ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, arguments ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, arguments ...any) *sql.Row
}

// A conn runs queries by name, with arguments as encode.go binds them.
type conn struct {
	store *Store
	on    querier
}

// exec runs a statement and returns how many rows it changed.
func (c conn) exec(ctx context.Context, name query, arguments ...any) (int64, error) {
	result, err := c.on.ExecContext(ctx, c.store.queries[name], bind(arguments)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return result.RowsAffected()
}

// insert runs a statement that ends in VALUES with as many rows as are given.
func (c conn) insert(ctx context.Context, name query, rows [][]any) error {
	for chunk := range slices.Chunk(rows, c.store.engine.chunk) {
		text := c.store.queries[name] + " " + c.store.engine.tuples(len(chunk), len(chunk[0]))
		if _, err := c.on.ExecContext(ctx, text, bind(slices.Concat(chunk...))...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// row runs a query for one row.
func (c conn) row(ctx context.Context, name query, arguments ...any) *sql.Row {
	return c.on.QueryRowContext(ctx, c.store.queries[name], bind(arguments)...)
}

// A scanner is a row to be read.
type scanner interface{ Scan(targets ...any) error }

// one reads one row, or fails with ErrNotFound.
func one[T any](ctx context.Context, c conn, read func(scanner) (T, error), name query, arguments ...any) (T, error) {
	value, err := read(c.row(ctx, name, arguments...))
	if errors.Is(err, sql.ErrNoRows) {
		return value, ErrNotFound
	}
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// all reads all rows. Nothing is returned before the last was read, so that the
// connection is free again.
func all[T any](ctx context.Context, c conn, read func(scanner) (T, error), name query, arguments ...any) ([]T, error) {
	rows, err := c.on.QueryContext(ctx, c.store.queries[name], bind(arguments)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	var values []T
	for rows.Next() {
		value, err := read(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return values, nil
}

// scanOne returns a reader of rows of a single column.
func scanOne[T any](row scanner) (T, error) {
	var value T
	err := row.Scan(&value)
	return value, err
}

// reader returns a conn for reading outside of transactions.
func (s *Store) reader() conn { return conn{s, s.read} }

// A tx is a transaction that writes.
type tx struct {
	conn
	topics  []Topic
	entries []AuditEntry
}

// audit appends an entry to the audit log when the transaction is about to be
// committed: the log is locked last and for as short as can be.
func (t *tx) audit(entry AuditEntry) { t.entries = append(t.entries, entry) }

// tell wakes who waits for the topics, once the transaction is committed.
func (t *tx) tell(topics ...Topic) {
	for _, topic := range topics {
		if !slices.Contains(t.topics, topic) {
			t.topics = append(t.topics, topic)
		}
	}
}

// transact runs work in a transaction and commits it. An error of work rolls
// everything back. Conflicts are tried again, so work may run several times.
func (s *Store) transact(ctx context.Context, work func(*tx) error) error {
	if s.write == nil {
		return ErrReadOnly
	}
	pause := conflictPause
	for attempt := 0; ; attempt++ {
		err := s.transactOnce(ctx, work)
		if err == nil || !s.engine.conflict(err) || attempt == conflictRetries {
			return err
		}
		s.logger.Debug("a transaction met another and is tried again", "attempt", attempt+1, "error", err)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, conflictPauseMax)
	}
}

func (s *Store) transactOnce(ctx context.Context, work func(*tx) error) error {
	begun, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit this does nothing.
	defer begun.Rollback()
	t := &tx{conn: conn{s, begun}}
	if err := work(t); err != nil {
		return err
	}
	if err := t.writeAudit(ctx); err != nil {
		return err
	}
	if err := t.notifyOthers(ctx); err != nil {
		return err
	}
	s.at("committing")
	if err := begun.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.at("committed")
	s.hub.tell(t.topics...)
	return nil
}

var pgNotify = named("notify")

// notifyOthers has the database tell other processes when the transaction
// commits. The journal is left out: a notification serialises commits, and
// journals grow all the time.
func (t *tx) notifyOthers(ctx context.Context) error {
	if !t.store.engine.notifies {
		return nil
	}
	for _, topic := range t.topics {
		if topic == TopicJournal {
			continue
		}
		if _, err := t.exec(ctx, pgNotify, postgresChannel, topic); err != nil {
			return err
		}
	}
	return nil
}

// at calls the hook of a test at a named point.
func (s *Store) at(point string) {
	if s.hook != nil {
		s.hook(point)
	}
}
