package store_test

import (
	"bytes"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

func TestFaultsOfOpeningAreSentences(t *testing.T) {
	directory := t.TempDir()
	const password = "hunter2canary"
	for name, test := range map[string]struct {
		url  string
		mode store.Mode
		code string
	}{
		"empty":             {"", 0, store.CodeBadURL},
		"another scheme":    {"mysql://localhost/handoff", 0, store.CodeBadURL},
		"no scheme":         {"/var/lib/handoff.db", 0, store.CodeBadURL},
		"no file":           {"sqlite://", 0, store.CodeBadURL},
		"parameters":        {"sqlite://" + directory + "/a.db?_synchronous=OFF", 0, store.CodeBadURL},
		"missing directory": {"sqlite://" + directory + "/missing/a.db", 0, store.CodeNoDirectory},
		"nothing to read":   {"sqlite://" + directory + "/missing.db", store.ModeRead, store.CodeUnreachable},
		"a directory":       {"sqlite://" + directory, store.ModeShare, store.CodeUnreachable},
		"nobody listens":    {"postgres://me:" + password + "@127.0.0.1:1/handoff?connect_timeout=2", 0, store.CodeUnreachable},
		"malformed":         {"postgres://me:" + password + "@[::1/handoff", 0, store.CodeBadURL},
		"bad port":          {"postgres://me:" + password + "@localhost:port/handoff", 0, store.CodeBadURL},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t}
			_, err := store.Open(t.Context(), test.url, store.Options{Mode: test.mode})
			w.fault(err, test.code)
			if strings.Contains(err.Error(), password) {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestUnreachableServerIsNamedWithoutItsPassword(t *testing.T) {
	w := &world{T: t}
	missing, err := url.Parse(storetest.URL(t, storetest.Postgres))
	w.ok(err)
	missing.Path = "/no_such_database"
	_, err = store.Open(t.Context(), missing.String(), store.Options{})
	w.fault(err, store.CodeUnreachable)
}

func TestSecondServerIsRefusedAndShortCommandsAreNot(t *testing.T) {
	w := onSQLite(t)
	id := w.session(1)
	_, err := store.Open(t.Context(), w.url, w.clock.Options())
	w.fault(err, store.CodeLocked)
	if !strings.Contains(err.Error(), "(number ") {
		t.Errorf("nobody can tell who holds the lock: %v", err)
	}

	options := w.clock.Options()
	options.Mode = store.ModeRead
	reader := w.openWith(options)
	session, err := reader.Session(t.Context(), id)
	w.ok(err)
	w.equal(session.ID, id)
	// A command beside the server writes, and the server sees it.
	_, err = w.another().Cancel(t.Context(), id, "operator")
	w.ok(err)
	w.equal(w.load(id).CancelBy, "operator")

	w.ok(w.store.Close())
	w.store = w.openWith(w.clock.Options())
	w.equal(w.load(id).ID, id)
}

func TestTwoProcessesWriteToOneFile(t *testing.T) {
	w := onSQLite(t)
	id := w.session(1)
	lease := w.acquire(w.node("a"))
	other := w.another()
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 30 {
			if _, err := lease.Append(w.Context(), notes("x")); err != nil {
				w.Error(err)
			}
		}
	})
	wait.Go(func() {
		for i := range 30 {
			if err := other.CreateSession(w.Context(), &store.Session{InstallationID: 7, RepositoryID: 2, Issue: i}); err != nil {
				w.Error(err)
			}
		}
	})
	wait.Wait()
	w.equal(len(w.gapless(id)), 30)
}

func TestMemoryDatabase(t *testing.T) {
	w := &world{T: t, store: storetest.OpenURL(t, "sqlite::memory:", store.Options{})}
	id := w.session(1)
	lease := w.acquire(w.node("a"))
	_, err := lease.Append(t.Context(), notes("x"))
	w.ok(err)
	w.equal(len(w.gapless(id)), 1)
}

func TestStrangeFileNames(t *testing.T) {
	for _, name := range []string{"with space.db", "100%25.db", "a#b.db", "ümlaut.db", "a;b&c=d.db"} {
		w := &world{T: t, url: "sqlite://" + filepath.Join(t.TempDir(), name)}
		w.store = w.openWith(store.Options{})
		id := w.session(1)
		w.ok(w.store.Close())
		found, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(w.url, "sqlite://")), "*.db"))
		w.ok(err)
		w.equal(found, []string{strings.TrimPrefix(w.url, "sqlite://")})
		w.store = w.openWith(store.Options{})
		w.equal(w.load(id).ID, id)
	}
}

func TestFilesAreForOurUserAlone(t *testing.T) {
	w := &world{T: t, url: storetest.URL(t, storetest.SQLite)}
	w.store = w.openWith(store.Options{})
	w.session(1)
	path := strings.TrimPrefix(w.url, "sqlite://")
	for _, file := range []string{path, path + "-wal", path + "-shm", path + ".lock", path + ".migrate"} {
		info, err := os.Stat(file)
		w.ok(err)
		if readable := info.Mode().Perm() &^ 0o600; readable != 0 {
			t.Errorf("%s can be used by others: %v", filepath.Base(file), info.Mode())
		}
	}
}

// The promises rest on these.
func TestConnectionsAreDurable(t *testing.T) {
	for engine, settings := range map[string]map[string]string{
		storetest.SQLite: {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": "2", "PRAGMA foreign_keys": "1",
			"PRAGMA busy_timeout": "10000"},
		storetest.Postgres: {"SHOW synchronous_commit": "on", "SHOW idle_in_transaction_session_timeout": "10s",
			"SHOW application_name": "handoff"},
	} {
		t.Run(engine, func(t *testing.T) {
			s := storetest.Open(t, engine)
			for question, want := range settings {
				for _, reading := range []bool{false, true} {
					if got, err := s.Setting(t.Context(), reading, question); err != nil || got != want {
						t.Errorf("%s: got %s, %v, want %s", question, got, err, want)
					}
				}
			}
			if engine == storetest.SQLite {
				if got, err := s.Setting(t.Context(), true, "PRAGMA query_only"); err != nil || got != "1" {
					t.Errorf("readers can write: %s, %v", got, err)
				}
			}
		})
	}
}

// Two transactions lock two rows in opposite order: Postgres gives one up, the
// store tries it again, and both are done.
func TestDeadlockIsTriedAgain(t *testing.T) {
	url := storetest.URL(t, storetest.Postgres)
	var log bytes.Buffer
	var logging sync.Mutex
	logger := slog.New(slog.NewTextHandler(lockedWriter{&logging, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := storetest.OpenURL(t, url, store.Options{Logger: logger})
	if err := s.Execute(t.Context(), "CREATE TABLE pair (id INT PRIMARY KEY, n INT); INSERT INTO pair VALUES (1, 0), (2, 0)"); err != nil {
		t.Fatal(err)
	}
	var first [2]sync.Once
	var bothHold, wait sync.WaitGroup
	bothHold.Add(2)
	for i, order := range [][2]string{{"1", "2"}, {"2", "1"}} {
		wait.Go(func() {
			err := s.Transact(t.Context(), func(execute func(string) error) error {
				if err := execute("UPDATE pair SET n = n + 1 WHERE id = " + order[0]); err != nil {
					return err
				}
				first[i].Do(func() { bothHold.Done(); bothHold.Wait() })
				return execute("UPDATE pair SET n = n + 1 WHERE id = " + order[1])
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	logging.Lock()
	defer logging.Unlock()
	if !strings.Contains(log.String(), "40P01") {
		t.Errorf("no deadlock was met, so nothing was tested: %s", log.String())
	}
}

// Two serialisable transactions read what the other writes.
func TestSerializationFailureIsTriedAgain(t *testing.T) {
	s := storetest.Open(t, storetest.Postgres)
	if err := s.Execute(t.Context(), "CREATE TABLE pair (id INT PRIMARY KEY, n INT); INSERT INTO pair VALUES (1, 0), (2, 0)"); err != nil {
		t.Fatal(err)
	}
	var first [2]sync.Once
	var runs [2]int
	var bothRead, wait sync.WaitGroup
	bothRead.Add(2)
	for i, ids := range [][2]string{{"1", "2"}, {"2", "1"}} {
		wait.Go(func() {
			err := s.Transact(t.Context(), func(execute func(string) error) error {
				runs[i]++
				if err := execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"); err != nil {
					return err
				}
				if err := execute("SELECT n FROM pair WHERE id = " + ids[0]); err != nil {
					return err
				}
				first[i].Do(func() { bothRead.Done(); bothRead.Wait() })
				return execute("UPDATE pair SET n = n + 1 WHERE id = " + ids[1])
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if runs[0]+runs[1] < 3 {
		t.Error("no serialisation failure was met, so nothing was tested")
	}
}

// Another process holds the file's write lock for a while.
func TestBusyFileIsWaitedFor(t *testing.T) {
	w := onSQLite(t)
	other := w.another()
	holds, done := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		err := other.Transact(w.Context(), func(func(string) error) error {
			close(holds)
			<-done
			return nil
		})
		if err != nil {
			w.Error(err)
		}
	})
	<-holds
	wait.Go(func() { w.session(1) })
	close(done)
	wait.Wait()
	_, err := w.store.ActiveSession(w.Context(), 1, 1)
	w.ok(err)
}

type lockedWriter struct {
	mutex  *sync.Mutex
	buffer *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.buffer.Write(p)
}

func TestNothingIsLeftRunningAfterClose(t *testing.T) {
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			url := storetest.URL(t, engine)
			before := goleak.IgnoreCurrent()
			s, err := store.Open(t.Context(), url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// hears makes changes until a listener is told of one. A change that comes before
// the listening connection stands is not heard, so there are several.
func hears(t *testing.T, changed <-chan struct{}, change func(i int) error) {
	t.Helper()
	for i := range 200 {
		if err := change(i); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("nothing was heard")
}

func TestPostgresTellsOtherProcesses(t *testing.T) {
	url := storetest.URL(t, storetest.Postgres)
	changed, stop := storetest.OpenURL(t, url, store.Options{}).Notify(store.TopicSessions)
	defer stop()
	other := storetest.OpenURL(t, url, store.Options{})
	hears(t, changed, func(i int) error {
		return other.CreateSession(t.Context(), &store.Session{InstallationID: 7, RepositoryID: 1, Issue: i})
	})
}

func TestLostListenerComesBack(t *testing.T) {
	url := storetest.URL(t, storetest.Postgres)
	changed, stop := storetest.OpenURL(t, url, store.Options{}).Notify(store.TopicOutbox)
	defer stop()
	other := storetest.OpenURL(t, url, store.Options{})
	put := func(i int) error {
		_, err := other.PutEffect(t.Context(), effect(store.NewID(), "x"))
		return err
	}
	hears(t, changed, put)
	err := other.Execute(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
		"WHERE query = 'LISTEN handoff' AND pid <> pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	hears(t, changed, put)
}
