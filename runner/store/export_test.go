package store

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SetHook has a function called at named points of every transaction.
func (s *Store) SetHook(hook func(point string)) { s.hook = hook }

// PrepareAll yields the queries that the engine cannot parse.
func (s *Store) PrepareAll(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, text := range s.queries {
			switch {
			case strings.HasSuffix(string(name), "_columns"), strings.HasPrefix(string(name), "schema_table"),
				s.Engine() == "sqlite" && slices.Contains([]query{"notify", "lock_migration", "unlock_migration"}, name):
				continue
			case strings.HasSuffix(text, "VALUES"):
				text += " " + s.engine.tuples(1, strings.Count(text[:strings.Index(text, ")")], ",")+1)
			}
			statement, err := s.write.PrepareContext(ctx, text)
			if err != nil {
				if !yield(string(name), err) {
					return
				}
				continue
			}
			statement.Close()
		}
	}
}

// Execute runs a statement on the writing pool.
func (s *Store) Execute(ctx context.Context, statement string) error {
	_, err := s.write.ExecContext(ctx, statement)
	return err
}

// ExecuteReading runs a statement on the reading pool.
func (s *Store) ExecuteReading(ctx context.Context, statement string) error {
	_, err := s.read.ExecContext(ctx, statement)
	return err
}

// Transact runs statements in one transaction of the store, with its retries.
func (s *Store) Transact(ctx context.Context, statements func(execute func(statement string) error) error) error {
	return s.transact(ctx, func(t *tx) error {
		return statements(func(statement string) error {
			_, err := t.on.ExecContext(ctx, statement)
			return err
		})
	})
}

// Plan returns the steps in which SQLite runs a query.
func (s *Store) Plan(ctx context.Context, name string) ([]string, error) {
	text := s.queries[named(name)]
	var arguments []any
	for _, match := range regexp.MustCompile(`\?\d+`).FindAllString(text, -1) {
		if number, _ := strconv.Atoi(match[1:]); number > len(arguments) {
			arguments = append(arguments, make([]any, number-len(arguments))...)
		}
	}
	rows, err := s.write.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, arguments...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// Setting asks a connection for one of its settings, in the engine's words.
func (s *Store) Setting(ctx context.Context, reading bool, question string) (string, error) {
	pool := s.write
	if reading {
		pool = s.read
	}
	var value string
	err := pool.QueryRowContext(ctx, question).Scan(&value)
	return value, err
}
