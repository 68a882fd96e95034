package store

import (
	"github.com/pressly/goose/v3"
)

// An engine holds what the two databases spell or do differently.
type engine struct {
	name    string
	dialect goose.Dialect

	// The words of the queries; see query.go.
	now, least, greatest, lock, skip string
	// numbered replaces the $ of a placeholder, "" keeps it.
	numbered string
	// chunk is how many rows one INSERT brings. A statement is a round trip to
	// Postgres; SQLite's driver takes a time that grows with the square of the
	// parameters.
	chunk int
	// notifies says that a commit can wake other processes.
	notifies bool
	// conflict says whether an error means that the transaction should be tried
	// again: nothing was written, and it may well succeed.
	conflict func(error) bool
}
