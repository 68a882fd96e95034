package store_test

import (
	"context"
	"fmt"

	"handoff/runner"
	"handoff/runner/store"
)

// A comment arrives, becomes a session, and the session runs to its end.
func Example() {
	ctx := context.Background()
	s, err := store.Open(ctx, "sqlite::memory:", store.Options{})
	check(err)
	defer s.Close()
	check(s.Migrate(ctx))

	// The front door stores what GitHub sent before it answers.
	command := store.Command{Key: "acme/shop comment 1 created", RepositoryID: 1, Issue: 12, Verb: "task", Text: "add a login"}
	stored, err := s.PutDelivery(ctx, store.Delivery{GUID: "72d3162e", InstallationID: 7}, []store.Command{command})
	check(err)
	fmt.Println("stored:", stored)

	// A node routes the command: here it becomes a session.
	node, err := s.Register(ctx, "node-1")
	check(err)
	command, err = s.ClaimCommand(ctx, node)
	check(err)
	check(s.RouteCommand(ctx, node, command.ID, store.Routing{
		State:   store.CommandRouted,
		Session: &store.Session{InstallationID: 7, RepositoryID: 1, Issue: 12, Task: command.Text},
	}))

	// Any node takes the session and keeps its journal.
	lease, err := s.Acquire(ctx, node, store.Caps{Global: 10})
	check(err)
	fmt.Println("working on:", lease.Session().Task, "-", lease.Session().State)
	first, err := lease.Append(ctx, runner.Batch{Records: []runner.Record{{Kind: runner.RecordRunCreated, Payload: []byte(`{}`)}}})
	check(err)
	fmt.Println("first record:", first)
	check(lease.Finish(ctx, store.Ending{State: store.StateCompleted}))

	session, err := s.LastSession(ctx, 1, 12)
	check(err)
	fmt.Println("it is", session.State)
	// Output:
	// stored: true
	// working on: add a login - preparing
	// first record: 1
	// it is completed
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
