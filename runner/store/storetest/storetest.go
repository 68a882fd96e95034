// Package storetest opens stores for tests, on both engines.
//
//	storetest.Each(t, func(t *testing.T, s *store.Store) { … })
//
// runs a test on SQLite and on Postgres, each with a fresh database that holds
// the schema and nothing else. Postgres is a private server that the first test
// of the process starts and that ends with the process; where the machine has
// none the test is skipped with a line that says so, and with CI=true it fails.
// HANDOFF_TEST_POSTGRES names another server to use: the URL of a database whose
// user may create schemas.
package storetest

import (
	"os"
	"path/filepath"
	"testing"

	"handoff/runner/store"
)

// The engines.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Engines are all engines, in the order in which Each runs them.
var Engines = []string{SQLite, Postgres}

// Each runs a test on a fresh store of each engine, as subtests with the
// engine's name.
func Each(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) { test(t, Open(t, engine)) })
	}
}

// Open returns a fresh, migrated store of an engine, closed when the test ends.
// The test is skipped when the machine lacks the engine.
func Open(t testing.TB, engine string) *store.Store {
	t.Helper()
	return OpenURL(t, URL(t, engine), store.Options{})
}

// OpenURL opens and migrates a database that URL returned, with options. Several
// stores of one URL are several processes to each other; on SQLite the second
// one needs [store.ModeShare].
func OpenURL(t testing.TB, url string, options store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	if options.Mode != store.ModeRead {
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// URL returns the URL of a fresh, empty database, removed when the test ends.
func URL(t testing.TB, engine string) string {
	t.Helper()
	if engine == Postgres {
		return freshSchema(t)
	}
	return "sqlite://" + filepath.Join(t.TempDir(), "handoff.db")
}

// missing skips a test for what the machine lacks, or fails it in CI, which has
// everything.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("not tested on Postgres: %s", what)
	}
	t.Skipf("not tested on Postgres: %s", what)
}
