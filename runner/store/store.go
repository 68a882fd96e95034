// Package store keeps everything that must survive the process: deliveries,
// commands, sessions and their journals, approvals, effects, checkpoints,
// agents, usage and the audit log. It runs on SQLite, embedded, and on
// Postgres, which several nodes share; there is no other coordinator.
//
// # The idea
//
// A process is a [Node]: a row with a lease that it renews every few seconds by
// the database's clock. A node takes a session by [Store.Acquire] and holds it
// as a [Lease]. The lease carries a fence, a number that grows with each
// take-over. Every write of a session begins with one guarding UPDATE of the
// session's row, which checks fence, holder and the node's own lease, locks the
// row and hands out the next journal numbers. A node that was declared dead can
// therefore write nothing, however late it wakes up: it gets
// [runner.ErrFenced].
//
// # How the parts move
//
//	delivery ─ PutDelivery ─▶ command ─ ClaimCommand, RouteCommand ─▶ session
//	                                                                   │
//	      lane of the issue: queued ─▶ ready ─ Acquire ─▶ held ─ Finish ─▶ ended
//	                                    ▲                  │
//	                                    └─ Wake, WakeAt ─ parked ◀─ Suspend
//
// The phases queued, ready, held, parked and ended are the scheduler's own; the
// [SessionState] is what people are told. One session of an issue at most is
// ready, held or parked, by a unique index; the others stay queued in order.
// Only held sessions count against the caps.
//
// What the outside world shall see is an [Effect] in the outbox. It is written
// in the same transaction as the records that ask for it, claimed with
// [Store.ClaimEffect] and closed with [Store.EndEffect] in the same transaction
// as the outcome in the journal.
//
// # What it promises
//
// A method that returned nil has been committed durably. One that failed has
// written nothing, except where the connection broke during the commit: then
// nobody can know, and the caller reads before it tries again. Conflicts that
// the database itself resolves (a busy SQLite file, serialisation failures and
// deadlocks of Postgres) are retried inside. Text is stored without NUL and as
// valid UTF-8 on both engines; bytes are stored as they are. All methods are safe
// for concurrent use.
//
// Times are the database's, in milliseconds. A moment that a caller sets (when
// to wake, to try again, to expire) is compared with the database's clock, so it
// is counted from [Store.Now].
//
// # The rooms of the database
//
// Queries are shared: files in queries/ written for Postgres, with $N for
// arguments and @now for the time, translated when the store opens. The DDL
// differs and lives in package migrations.
package store

import (
	"context"
	"database/sql"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The lease of a node. docs/store.md gives the reasons.
const (
	// NodeTTL is how long a node lives without a beat.
	NodeTTL = 15 * time.Second
	// BeatInterval is the time between two beats of [Node.Keep].
	BeatInterval = 5 * time.Second
	// NodeMargin is how much earlier than the database a node gives itself up.
	NodeMargin = 3 * time.Second
	// CreationTimeout bounds a request that creates something on GitHub. A
	// claim of an effect renews the node's lease, and this is about half of it,
	// so that the request is over before another node may look, even by a
	// clock that runs at half speed.
	CreationTimeout = 8 * time.Second
)

// A Mode says how a process uses the database.
type Mode int

// The modes of [Options].
const (
	// ModeServe is for the one process that serves an embedded database: it
	// holds an exclusive lock beside the SQLite file. On Postgres it is the
	// same as ModeShare.
	ModeServe Mode = iota
	// ModeShare writes without the lock, for short commands beside a server.
	ModeShare
	// ModeRead only reads. The schema must be the program's own.
	ModeRead
)

// Options configure [Open]. The zero value is right for a server.
type Options struct {
	Mode Mode
	// Logger gets warnings about retries and lost connections; nil discards.
	Logger *slog.Logger
	// Clock is the clock of this process, by which a node gives itself up; nil
	// means time.Now. All other times are the database's.
	Clock func() time.Time
	// NowExpression replaces the database's clock by another SQL expression
	// that yields milliseconds since 1970. Tests use it to move time.
	NowExpression string
	// Unpaced leaves out the writer queue of installations, for effects that go
	// to no server which limits writers.
	Unpaced bool
}

// A Store is an open database. Make one with [Open].
type Store struct {
	engine engine
	mode   Mode
	// write and read are the pools; write is nil with ModeRead. On Postgres
	// they are the same.
	write   *sql.DB
	read    *sql.DB
	queries map[query]string
	logger  *slog.Logger
	clock   func() time.Time
	hub     *hub
	unpaced bool

	// path and lock belong to SQLite: the file, and what a server holds.
	path string
	lock *fileLock
	// listen belongs to Postgres: how the listening connection is made.
	listen     *pgx.ConnConfig
	stop       context.CancelFunc
	background sync.WaitGroup

	// offset is how far the database's clock is ahead of this process's, in
	// nanoseconds, as the last beat of a node has found.
	offset atomic.Int64
	// succeeded is set once a node of this process has taken over from those
	// of the process that held the lock before.
	succeeded atomic.Bool
	// hook is called at named points of a transaction, by tests only.
	hook func(point string)
}

// pools returns the pools that are open, each once.
func (s *Store) pools() []*sql.DB {
	var pools []*sql.DB
	for _, pool := range []*sql.DB{s.write, s.read} {
		if pool != nil && !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// Now returns the database's time, as far as this process knows: by its own
// clock, set right by every beat of its nodes. Moments that are stored, such as
// an expiry or a time to try again, are counted from here, so that a node whose
// clock is wrong does no harm.
func (s *Store) Now() time.Time { return s.clock().Add(time.Duration(s.offset.Load())).UTC() }

// NewID returns a new UUIDv7 as text. Ids made later sort later.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
