// Package migrations holds the schema of the database as goose migrations,
// embedded in the program.
//
// There is one directory for each engine, because SQLite's STRICT tables know
// no BIGINT, BYTEA or BOOLEAN. Versions, tables and columns are the same in
// both, so that package runner/store can share its queries; a test there
// compares them. A migration that was released is never changed: the next one
// mends it.
package migrations

import "embed"

// Files holds sqlite/*.sql and postgres/*.sql.
//
//go:embed sqlite/*.sql postgres/*.sql
var Files embed.FS
