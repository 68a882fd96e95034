package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// A world is one database with a clock that the test moves, and the few verbs in
// which the stories of these tests are told.
type world struct {
	*testing.T
	url   string
	clock *storetest.Clock
	store *store.Store
	made  int
}

// inEachWorld tells a story on each engine.
func inEachWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t, engine)
			clock := storetest.NewClock(t, url)
			story(&world{T: t, url: url, clock: clock, store: storetest.OpenURL(t, url, clock.Options())})
		})
	}
}

// another opens the world's database a second time, as another process would.
func (w *world) another() *store.Store {
	w.Helper()
	options := w.clock.Options()
	options.Mode = store.ModeShare
	return storetest.OpenURL(w.T, w.url, options)
}

// ok ends the test on an error that nobody expects.
func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fails checks that an error is the expected one.
func (w *world) fails(err, expected error) {
	w.Helper()
	if !errors.Is(err, expected) {
		w.Fatalf("got error %v, want %v", err, expected)
	}
}

func (w *world) equal(got, want any) {
	w.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Fatalf("got %v, want %v", got, want)
	}
}

func (w *world) node(name string) *store.Node { w.Helper(); return w.nodeOf(w.store, name) }

func (w *world) nodeOf(s *store.Store, name string) *store.Node {
	w.Helper()
	node, err := s.Register(w.Context(), name)
	w.ok(err)
	return node
}

// session puts a new session into the lane of an issue of repository 1.
func (w *world) session(issue int) string { w.Helper(); return w.sessionOf(7, issue) }

// sessionOf does so for an installation.
func (w *world) sessionOf(installation int64, issue int) string {
	w.Helper()
	session := store.Session{InstallationID: installation, RepositoryID: 1, Owner: "acme", Repository: "shop",
		Issue: issue, RequesterID: 5, RequesterLogin: "ann", Task: "add a login"}
	w.ok(w.store.CreateSession(w.Context(), &session))
	return session.ID
}

// comment stores the delivery of a comment and returns its command.
func (w *world) comment(issue int, verb string) store.Command {
	w.Helper()
	w.made++
	command := store.Command{ID: store.NewID(), Key: fmt.Sprintf("comment-%d", w.made), Kind: store.CommandComment,
		InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: issue, CommentID: int64(w.made),
		ActorID: 5, ActorLogin: "ann", Verb: verb, Text: "please"}
	stored, err := w.store.PutDelivery(w.Context(), store.Delivery{GUID: fmt.Sprintf("guid-%d", w.made),
		Event: "issue_comment", Action: "created", InstallationID: 7, Body: []byte("{}")}, []store.Command{command})
	w.ok(err)
	w.equal(stored, true)
	return command
}

func (w *world) acquire(node *store.Node) *store.Lease {
	w.Helper()
	lease, err := w.store.Acquire(w.Context(), node, store.Caps{})
	w.ok(err)
	return lease
}

// idle checks that there is nothing to acquire.
func (w *world) idle(node *store.Node) {
	w.Helper()
	lease, err := w.store.Acquire(w.Context(), node, store.Caps{})
	if err == nil {
		w.Fatalf("acquired %s, want nothing", lease.Session().ID)
	}
	w.fails(err, store.ErrNone)
}

func (w *world) finish(lease *store.Lease) {
	w.Helper()
	w.ok(lease.Finish(w.Context(), store.Ending{State: store.StateCompleted}))
}

func (w *world) suspend(lease *store.Lease) {
	w.Helper()
	w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StateSuspended}))
}

func (w *world) load(id string) store.Session {
	w.Helper()
	session, err := w.store.Session(w.Context(), id)
	w.ok(err)
	return session
}

// dies lets everybody's lease run out; whoever is to live registers afterwards.
func (w *world) dies() { w.Helper(); w.clock.Advance(store.NodeTTL + time.Second) }

// note is a journal record with some text.
func note(text string) runner.Record {
	payload, _ := json.Marshal(map[string]string{"text": text})
	return runner.Record{RunID: "run-1", Version: 1, Kind: runner.RecordNoteAdded, Payload: payload}
}

// intent is the record of a call that is about to run.
func intent(call string) runner.Record {
	payload, _ := json.Marshal(map[string]string{"call": call})
	return runner.Record{RunID: "run-1", Version: 1, Kind: runner.RecordToolIntent, Payload: payload}
}

func notes(texts ...string) runner.Batch {
	var batch runner.Batch
	for _, text := range texts {
		batch.Records = append(batch.Records, note(text))
	}
	return batch
}

// gapless checks that a session's journal is numbered 1, 2, 3… and returns it.
func (w *world) gapless(sessionID string) []runner.Record {
	w.Helper()
	records, err := w.store.Records(w.Context(), sessionID, 1)
	w.ok(err)
	for i, record := range records {
		if record.Seq != int64(i+1) {
			w.Fatalf("record %d has the number %d", i+1, record.Seq)
		}
	}
	return records
}

func request(key string) agents.EffectRequest {
	return agents.EffectRequest{Key: key, Kind: "push", Payload: json.RawMessage(`{"approval_id":"a"}`)}
}

// effect creates a comment with a text.
func effect(key, text string) store.Effect {
	payload, _ := json.Marshal(map[string]string{"body": text})
	return store.Effect{Key: key, Kind: "comment.create", InstallationID: 7, RepositoryID: 1, Owner: "acme",
		Repository: "shop", Priority: 1, Payload: payload}
}

// onSQLite is a world for what only the embedded database has.
func onSQLite(t *testing.T) *world {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	clock := storetest.NewClock(t, url)
	return &world{T: t, url: url, clock: clock, store: storetest.OpenURL(t, url, clock.Options())}
}

func (w *world) openWith(options store.Options) *store.Store {
	w.Helper()
	return storetest.OpenURL(w.T, w.url, options)
}

// clockOnly moves the clocks of the processes but not the database's.
func (w *world) clockOnly(by time.Duration) {
	w.Helper()
	w.clock.AdvanceDatabase(-by)
	w.clock.Advance(by)
}
