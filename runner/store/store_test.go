package store_test

import (
	"testing"

	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

func TestSmoke(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		node, err := s.Register(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestQueriesPrepare has both engines parse every query of the files.
func TestQueriesPrepare(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, err := range s.PrepareAll(t.Context()) {
			t.Errorf("%s: %v", name, err)
		}
	})
}
