package store_test

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"handoff/migrations"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// TestQueriesPrepare has both engines parse every query of the files.
func TestQueriesPrepare(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, err := range s.PrepareAll(t.Context()) {
			t.Errorf("%s: %v", name, err)
		}
	})
}

func TestMigratingTwiceChangesNothing(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		w.ok(w.store.Migrate(w.Context()))
		w.equal(w.load(id).ID, id)
	})
}

func TestTwoNodesMigrateAtOnce(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			url := storetest.URL(t, engine)
			var wait sync.WaitGroup
			for range 4 {
				s, err := store.Open(t.Context(), url, store.Options{Mode: store.ModeShare})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				wait.Go(func() {
					if err := s.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
		})
	}
}

func TestSchemaNewerThanTheProgram(t *testing.T) {
	inEachWorld(t, func(w *world) {
		w.ok(w.store.Execute(w.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)"))
		for _, mode := range []store.Mode{store.ModeShare, store.ModeRead} {
			_, err := store.Open(w.Context(), w.url, store.Options{Mode: mode})
			w.fault(err, store.CodeNewerSchema)
		}
	})
}

func TestReaderNeedsTheSchema(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			w := &world{T: t, url: storetest.URL(t, engine)}
			s, err := store.Open(t.Context(), w.url, store.Options{})
			w.ok(err)
			w.ok(s.Close())
			_, err = store.Open(t.Context(), w.url, store.Options{Mode: store.ModeRead})
			w.fault(err, store.CodeOlderSchema)
			storetest.OpenURL(t, w.url, store.Options{})
			reader := storetest.OpenURL(t, w.url, store.Options{Mode: store.ModeRead})
			w.ok(reader.Ping(t.Context()))
			w.fails(reader.Wake(t.Context(), "x"), store.ErrReadOnly)
			w.fails(reader.Migrate(t.Context()), store.ErrReadOnly)
			if err := reader.ExecuteReading(t.Context(), "DELETE FROM marks"); err == nil {
				t.Error("a reader's connection wrote")
			}
		})
	}
}

// fault checks that an error is one for the operator, with that code and a
// sentence.
func (w *world) fault(err error, code string) {
	w.Helper()
	fault, ok := errors.AsType[*store.Error](err)
	if !ok || fault.Code != code {
		w.Fatalf("got %v, want an error with code %s", err, code)
	}
	if !strings.HasSuffix(fault.Message, ".") || strings.Count(fault.Message, "\n") > 0 {
		w.Errorf("not a sentence for a person: %q", fault.Message)
	}
}

var (
	tablePattern  = regexp.MustCompile(`(?ms)^CREATE TABLE (\w+) \((.*?)^\)`)
	columnPattern = regexp.MustCompile(`(?m)^    ([a-z_]+) +[A-Z]`)
	indexPattern  = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX .*$`)
)

// schemaOf returns what queries can see of an engine's migrations: versions,
// tables with their columns, and indexes.
func schemaOf(t *testing.T, engine string) map[string][]string {
	t.Helper()
	names, err := fs.Glob(migrations.Files, engine+"/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("no migrations for %s: %v", engine, err)
	}
	schema := map[string][]string{}
	for _, name := range names {
		content, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(content), "-- +goose Down")
		schema["versions"] = append(schema["versions"], strings.TrimPrefix(name, engine+"/"))
		for _, table := range tablePattern.FindAllStringSubmatch(up, -1) {
			for _, column := range columnPattern.FindAllStringSubmatch(table[2], -1) {
				schema[table[1]] = append(schema[table[1]], column[1])
			}
		}
		schema["indexes"] = append(schema["indexes"], indexPattern.FindAllString(up, -1)...)
	}
	return schema
}

func TestBothEnginesHaveTheSameSchema(t *testing.T) {
	sqlite, postgres := schemaOf(t, "sqlite"), schemaOf(t, "postgres")
	if difference := cmp.Diff(sqlite, postgres); difference != "" {
		t.Errorf("sqlite (-) and postgres (+) differ:\n%s", difference)
	}
	for _, table := range []string{"deliveries", "sessions", "run_items", "outbox", "approvals"} {
		if !slices.Contains(sqlite[table], "installation_id") && table != "run_items" {
			t.Errorf("%s does not say which installation a row belongs to", table)
		}
	}
}

func TestForeignKeysHold(t *testing.T) {
	inEachWorld(t, func(w *world) {
		orphans := effect("k", "x")
		orphans.SessionID = "no such session"
		if _, err := w.store.PutEffect(w.Context(), orphans); err == nil {
			w.Error("an effect of a session that does not exist was stored")
		}
		session := store.Session{InstallationID: 7, RepositoryID: 1, Issue: 1, CommandID: "no such command"}
		if err := w.store.CreateSession(w.Context(), &session); err == nil {
			w.Error("a session of a command that does not exist was stored")
		}
	})
}

// What every node asks all the time must not slow down as the past grows: no
// table that keeps the past is read whole.
func TestPollsDoNotReadThePast(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite)
	for _, name := range []string{"next_command", "next_orphan", "next_ready", "acquire_session", "guard_session",
		"next_unsettled_effect", "next_pending_effect", "due_polls", "expired_approvals", "pending_messages",
		"active_session", "last_session", "promote_session", "insert_session", "end_dependents", "records", "usage_agents", "forget_nodes", "effects_of_session"} {
		plan, err := s.Plan(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range plan {
			whole := strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "USING")
			small := slices.Contains([]string{"SCAN n", "SCAN nodes", "SCAN i", "SCAN CONSTANT ROW"}, step)
			if whole && !small {
				t.Errorf("%s: %s", name, strings.Join(plan, "; "))
			}
		}
	}
}
