package runner_test

import (
	"context"
	"testing"
	"time"

	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// A sessionStore makes sessions for cases. There is one for each engine, and
// one in memory that is quick enough for long sweeps.
type sessionStore struct {
	name string
	// sample is which of the journal's boundaries a sweep tries: every n-th.
	sample int
	// durable says that appends wait for a disk.
	durable bool
	// connect opens the store for the length of a test. Its result makes a
	// session: take gives the session's lease to a new node, done ends it.
	connect func(t *testing.T) (open func(t *testing.T) (take func() runner.Journal, done func()))
}

func stores() []sessionStore {
	stores := []sessionStore{{name: "memory", sample: 1, connect: inMemory}}
	for _, engine := range storetest.Engines {
		stores = append(stores, sessionStore{name: engine, sample: 4, durable: true, connect: func(t *testing.T) func(*testing.T) (func() runner.Journal, func()) {
			return inDatabase(t, engine)
		}})
	}
	return stores
}

func inMemory(*testing.T) func(*testing.T) (func() runner.Journal, func()) {
	return func(*testing.T) (func() runner.Journal, func()) {
		session := &memorySession{}
		return session.take, func() {}
	}
}

// inDatabase opens a store whose clock the test moves: a lease is taken over
// by letting those of all nodes run out first.
func inDatabase(t *testing.T, engine string) func(*testing.T) (func() runner.Journal, func()) {
	url := storetest.URL(t, engine)
	clock := storetest.NewClock(t, url)
	opened := storetest.OpenURL(t, url, clock.Options())
	issue := 0
	return func(t *testing.T) (func() runner.Journal, func()) {
		issue++
		session := store.Session{InstallationID: 1, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: issue, RequesterID: 5, RequesterLogin: "ann", Task: "a case"}
		if err := opened.CreateSession(t.Context(), &session); err != nil {
			t.Fatal(err)
		}
		var lease *store.Lease
		take := func() runner.Journal {
			clock.Advance(store.NodeTTL + time.Second)
			node, err := opened.Register(t.Context(), "node")
			if err != nil {
				t.Fatal(err)
			}
			if lease, err = opened.Acquire(t.Context(), node, store.Caps{}); err != nil {
				t.Fatal(err)
			}
			if lease.Session().ID != session.ID {
				t.Fatalf("acquired session %s, want %s", lease.Session().ID, session.ID)
			}
			return lease
		}
		return take, func() {
			if err := lease.Finish(context.WithoutCancel(t.Context()), store.Ending{State: store.StateCompleted}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestStoreJournal holds the journals of the database to the contract.
func TestStoreJournal(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			open := inDatabase(t, engine)
			runner.TestJournal(t, func(t *testing.T) (runner.Journal, func(t *testing.T) runner.Journal) {
				take, done := open(t)
				t.Cleanup(done)
				return take(), func(*testing.T) runner.Journal { return take() }
			})
		})
	}
}
