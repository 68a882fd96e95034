package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitecode "modernc.org/sqlite/lib"
)

var sqliteEngine = engine{
	name:     "sqlite",
	dialect:  goose.DialectSQLite3,
	now:      "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
	least:    "min",
	greatest: "max",
	numbered: "?",
	chunk:    10,
	conflict: sqliteConflict,
}

// sqliteReaders is the size of the pool of readers, which never block the
// writer in WAL mode.
const sqliteReaders = 4

// sqliteBusy is how long a connection waits for another process, in
// milliseconds.
const sqliteBusy = "10000"

func sqliteConflict(err error) bool {
	fault, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	primary := fault.Code() & 0xff
	return primary == sqlitecode.SQLITE_BUSY || primary == sqlitecode.SQLITE_LOCKED
}

// openSQLite opens the file: one connection that writes and a pool that can
// only read. With one writer there is nothing to wait for but other processes.
func (s *Store) openSQLite(ctx context.Context, address string) error {
	path := strings.TrimPrefix(strings.TrimPrefix(address, "sqlite:"), "//")
	if path == ":memory:" {
		return s.openMemory()
	}
	if path == "" || strings.Contains(path, "?") {
		return &Error{Code: CodeBadURL, Message: "The database URL " + address +
			" names no file; write sqlite:///path/to/handoff.db."}
	}
	if err := s.checkSQLiteFile(path); err != nil {
		return err
	}
	if s.mode == ModeServe {
		lock, err := lockFileNow(path + ".lock")
		if err != nil {
			return err
		}
		s.lock = lock
	}
	s.path = path
	if s.mode != ModeRead {
		if err := createPrivately(path); err != nil {
			return err
		}
		s.write = sqlitePool(path, 1, url.Values{"_txlock": {"immediate"}, "_journal_mode": {"WAL"}})
	}
	s.read = sqlitePool(path, sqliteReaders, url.Values{"_query_only": {"1"}})
	return nil
}

// openMemory opens a database that only this process sees. It lives in one
// connection, which therefore reads and writes.
func (s *Store) openMemory() error {
	s.write = sqlitePool(":memory:", 1, url.Values{"_txlock": {"immediate"}})
	s.read = s.write
	return nil
}

func (s *Store) checkSQLiteFile(path string) error {
	directory := filepath.Dir(path)
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return &Error{Code: CodeNoDirectory, Err: err, Message: "The directory " + directory +
			" of the database does not exist; create it or change DATABASE_URL."}
	}
	if _, err := os.Stat(path); s.mode == ModeRead && errors.Is(err, fs.ErrNotExist) {
		return &Error{Code: CodeUnreachable, Err: err, Message: "There is no database at " + path +
			" yet; start handoff serve once, or change DATABASE_URL."}
	}
	return nil
}

// createPrivately makes the file, if there is none, for our user alone: it will
// hold other people's code. SQLite gives its other files the same permissions.
func createPrivately(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &Error{Code: CodeUnreachable, Err: err, Message: "The database " + path +
			" cannot be opened for writing; check its permissions."}
	}
	return file.Close()
}

func sqlitePool(path string, size int, parameters url.Values) *sql.DB {
	parameters.Set("_busy_timeout", sqliteBusy)
	parameters.Set("_synchronous", "FULL")
	parameters.Set("_foreign_keys", "1")
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(),
		RawQuery: parameters.Encode()}).String())
	if err != nil {
		// The driver is linked in and Open of database/sql does not connect.
		panic(err)
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool
}
