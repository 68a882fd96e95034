package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Edge case 3: the default branch may have any name, and may be renamed.
func TestDefaultBranchOfAnyName(t *testing.T) {
	server := serve(t)
	first := server.commit(t, "trunk/ünï", small)
	cli(t, server.bare, "symbolic-ref", "HEAD", "refs/heads/trunk/ünï")
	cache := newCache(t, Limits{})
	for _, name := range []string{"", "trunk/ünï", "refs/heads/trunk/ünï"} {
		if commit, err := cache.Fetch(t.Context(), server.remote(), name); err != nil || commit != first {
			t.Errorf("%q: %s, %v", name, commit, err)
		}
	}
	cli(t, server.bare, "branch", "-m", "trunk/ünï", "main")
	if commit, err := cache.Fetch(t.Context(), server.remote(), ""); err != nil || commit != first {
		t.Errorf("renamed: %s, %v", commit, err)
	}
	if _, err := cache.Fetch(t.Context(), server.remote(), "trunk/ünï"); CodeOf(err) != CodeNotFound {
		t.Errorf("the old name: %v", err)
	}
	cli(t, server.bare, "tag", "-a", "-m", "release", "v1", "main")
	if commit, err := cache.Fetch(t.Context(), server.remote(), "refs/tags/v1"); err != nil || commit != first {
		t.Errorf("an annotated tag: %s, %v", commit, err)
	}
}

// Edge cases 5 and 6: no commit at all, and a HEAD that leads nowhere.
func TestEmptyRepositoryAndMissingHead(t *testing.T) {
	server := serve(t)
	cache := newCache(t, Limits{})
	if _, err := cache.Fetch(t.Context(), server.remote(), ""); CodeOf(err) != CodeEmpty {
		t.Errorf("empty: %v", err)
	}
	if refs, err := cache.RemoteRefs(t.Context(), server.remote()); err != nil || len(refs) != 0 {
		t.Errorf("empty: %v, %v", refs, err)
	}
	server.commit(t, "other", small) // HEAD stays at main, which does not exist
	if _, err := cache.Fetch(t.Context(), server.remote(), ""); CodeOf(err) != CodeNotFound {
		t.Errorf("missing HEAD: %v", err)
	}
	if _, err := cache.Fetch(t.Context(), server.remote(), "other"); err != nil {
		t.Errorf("another branch: %v", err)
	}
	if _, err := cache.Fetch(t.Context(), server.remote(), "--upload-pack=x"); CodeOf(err) != CodeInvalid {
		t.Errorf("a hostile name: %v", err)
	}
}

// Only the newest commit comes, later fetches bring only what is new, and a
// second fetch of the same commit brings nothing.
func TestFetchIsShallowAndIncremental(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	first := server.commit(t, "main", map[string]string{"main.go": "package main // 2\n"})
	cache := newCache(t, Limits{})
	var log bytes.Buffer
	cache.log = slog.New(slog.NewTextHandler(&log, nil))
	if _, err := cache.Fetch(t.Context(), server.remote(), "main"); err != nil {
		t.Fatal(err)
	}
	repo, err := cache.Repository(server.remote())
	must(t, err)
	commit, err := repo.Commit(t.Context(), first)
	must(t, err)
	if _, err := repo.Commit(t.Context(), commit.Parents[0]); CodeOf(err) != CodeNotFound {
		t.Errorf("the history came as well: %v", err)
	}
	for _, c := range []struct{ branch, file string }{{"main", "a"}, {"side", "b"}, {"main", "c"}} {
		want := server.commit(t, c.branch, map[string]string{c.file: c.file})
		if got, err := cache.Fetch(t.Context(), server.remote(), c.branch); err != nil || got != want {
			t.Fatalf("%s: %s, %v", c.branch, got, err)
		}
		w, err := repo.Checkout(t.Context(), want, filepath.Join(t.TempDir(), "ws"))
		must(t, err)
		if got, want := mustTree(t, w), cli(t, server.bare, "rev-parse", want+"^{tree}"); got != want {
			t.Errorf("tree %s, want %s", got, want)
		}
	}
	count := func() int { return strings.Count(log.String(), "fetched") }
	before := count()
	if _, err := cache.Fetch(t.Context(), server.remote(), "main"); err != nil || count() != before {
		t.Errorf("fetched again: %v\n%s", err, log.String())
	}
	if strings.Contains(log.String(), server.token) {
		t.Error("the token is in the log")
	}
	dir, _ := cache.path(server.remote())
	cli(t, dir, "fsck", "--connectivity-only")
}

func mustTree(t *testing.T, w *Workspace) string {
	t.Helper()
	tree, err := w.TreeID(t.Context())
	must(t, err)
	return tree
}

// A branch that goes back to a commit whose objects are all here already.
func TestFetchOfWhatIsHereAlready(t *testing.T) {
	server := servePlain(t) // whole history comes
	old := server.commit(t, "main", small)
	server.commit(t, "main", map[string]string{"x": "y\n"})
	cache := newCache(t, Limits{})
	_, err := cache.Fetch(t.Context(), server.remote(), "main")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(server.bare, "refs/heads/main"), []byte(old+"\n"), 0o644))
	if got, err := cache.Fetch(t.Context(), server.remote(), "main"); err != nil || got != old {
		t.Errorf("%s, %v", got, err)
	}
}

// Many sessions that start at once cause one transfer; two processes (here: two
// caches on one directory) do not disturb each other.
func TestFetchesTakeTurns(t *testing.T) {
	server := serve(t)
	want := server.commit(t, "main", small)
	dir := t.TempDir()
	var posts atomic.Int32
	server.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		return false
	})
	var group sync.WaitGroup
	for range 2 {
		cache, err := NewCache(Options{Dir: dir})
		must(t, err)
		defer cache.Close()
		for range 4 {
			group.Go(func() {
				if got, err := cache.Fetch(t.Context(), server.remote(), "main"); err != nil || got != want {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
	}
	group.Wait()
	if n := posts.Load(); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// A fetch that waits for another gives up when its context ends.
func TestWaitingForALockEnds(t *testing.T) {
	cache := newCache(t, Limits{})
	remote := Remote{Host: "h", RepositoryID: 1, URL: "https://h/o/r"}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	err := cache.exclusively(t.Context(), remote, func(string) error {
		cancel(why)
		return cache.exclusively(ctx, remote, func(string) error { return nil })
	})
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// A server that is unwell has not dropped a commit: what it has is there later.
func TestAnUnwellServerHasDroppedNothing(t *testing.T) {
	server := serve(t)
	base := server.commit(t, "main", small)
	for what, trouble := range map[string]func(http.ResponseWriter){
		"an error": func(w http.ResponseWriter) { http.Error(w, "try later", http.StatusBadGateway) },
		"silence":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "0034shallow "+base)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(what, func(t *testing.T) {
			cache := newCache(t, Limits{})
			server.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					trouble(w)
				}
				return r.Method == http.MethodPost
			})
			if err := cache.FetchCommit(t.Context(), server.remote(), base); CodeOf(err) != CodeTransport {
				t.Errorf("%v", err)
			}
			server.intercept(nil)
			must(t, cache.FetchCommit(t.Context(), server.remote(), base))
		})
	}
}

// Edge case 25: the base was force-pushed away, and collected.
func TestBaseForcePushedAway(t *testing.T) {
	server := serve(t)
	base := server.commit(t, "main", small)
	cache := newCache(t, Limits{})
	w := hand(t, cache, server.remote(), "main")
	put(t, w.Tree(), map[string]string{"main.go": "changed\n"})
	checkpoint, err := w.Checkpoint(t.Context(), nil)
	must(t, err)
	cli(t, server.bare, "update-ref", "-d", "refs/heads/main")
	server.commit(t, "main", map[string]string{"other": "x\n"})

	// The machine that has it goes on.
	must(t, cache.FetchCommit(t.Context(), server.remote(), base))
	// Another one cannot have it and says so.
	other := newCache(t, Limits{})
	if err := other.FetchCommit(t.Context(), server.remote(), base); CodeOf(err) != CodeNotFound || !strings.Contains(err.Error(), "force-pushed") {
		t.Errorf("%v", err)
	}
	// While it is kept on any branch, it is found by id alone.
	cli(t, server.bare, "update-ref", "refs/heads/kept", base)
	must(t, other.FetchCommit(t.Context(), server.remote(), base))
	repo, err := other.Repository(server.remote())
	must(t, err)
	rebuilt, err := repo.Restore(t.Context(), checkpoint, filepath.Join(t.TempDir(), "ws"), nil)
	must(t, err)
	if got := mustTree(t, rebuilt); got != checkpoint.Tree {
		t.Errorf("tree %s, want %s", got, checkpoint.Tree)
	}
}

// Edge case 24: a redirect to another host is not followed and carries nothing.
func TestRedirectsNeverCarryTheToken(t *testing.T) {
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization")+" "+r.URL.String())
	}))
	defer thief.Close()
	server := serve(t)
	server.commit(t, "main", small)
	w := hand(t, newCache(t, Limits{}), server.remote(), "main")
	put(t, w.Tree(), map[string]string{"x": "y\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	server.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		http.Redirect(rw, r, thief.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		return true
	})
	if _, err := newCache(t, Limits{}).Fetch(t.Context(), server.remote(), "main"); CodeOf(err) != CodeRedirect {
		t.Errorf("fetch: %v", err)
	}
	request := PushRequest{Ref: RefPrefix + "1-x"}
	if _, err := w.Push(t.Context(), server.remote(), request, sealed); CodeOf(err) != CodeRedirect {
		t.Errorf("push: %v", err)
	}
	server.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			http.Redirect(rw, r, thief.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}
		return r.Method == http.MethodPost
	})
	if _, err := w.Push(t.Context(), server.remote(), request, sealed); err == nil {
		t.Error("the pack was sent to another host")
	}
	if len(stolen) > 0 {
		t.Errorf("the other host was asked: %q", stolen)
	}
}

// A renamed repository redirects within its host; that is followed.
func TestRedirectWithinTheHost(t *testing.T) {
	server := serve(t)
	want := server.commit(t, "main", small)
	remote := server.remote()
	remote.URL = server.URL + "/renamed.git"
	server.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/renamed.git"); ok {
			http.Redirect(rw, r, "/repo.git"+rest, http.StatusMovedPermanently)
			return true
		}
		return false
	})
	if got, err := newCache(t, Limits{}).Fetch(t.Context(), remote, "main"); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}

// What servers answer instead of a repository, and what a person is told.
func TestServersThatRefuse(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   Code
		words  string
	}{
		{http.StatusUnauthorized, "Bad credentials", CodeAuth, "Bad credentials"},
		{http.StatusForbidden, "Resource not accessible by integration\x1b[31m", CodeAuth, "Resource not accessible by integration[31m"},
		{http.StatusNotFound, "Not Found", CodeNotFound, ""},
		{http.StatusBadGateway, "<html>Unicorn</html>", CodeTransport, ""},
		{http.StatusServiceUnavailable, strings.Repeat("x", 1<<20), CodeTransport, strings.Repeat("x", 4<<10) + "…"},
		{http.StatusOK, "not git at all", CodeTransport, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		remote := Remote{Host: "h", RepositoryID: 1, URL: server.URL + "/o/r", Auth: func(context.Context) (string, error) { return "ghs_secret", nil }}
		_, err := newCache(t, Limits{}).Fetch(t.Context(), remote, "")
		server.Close()
		fail, ok := errors.AsType[*Error](err)
		if !ok || fail.Code != c.code || fail.Server != c.words {
			t.Errorf("%d: %v", c.status, err)
		}
		if strings.Contains(err.Error(), "ghs_secret") {
			t.Errorf("the token is in the error: %v", err)
		}
	}
	remote := Remote{Host: "h", RepositoryID: 1, URL: "http://127.0.0.1:1/o/r"}
	if _, err := newCache(t, Limits{}).Fetch(t.Context(), remote, ""); CodeOf(err) != CodeTransport {
		t.Errorf("nobody there: %v", err)
	}
	remote.Auth = func(context.Context) (string, error) { return "", errors.New("no installation") }
	if _, err := newCache(t, Limits{}).Fetch(t.Context(), remote, ""); CodeOf(err) != CodeAuth {
		t.Errorf("no token: %v", err)
	}
}

// A token that has expired is renewed once.
func TestExpiredTokenIsRenewedOnce(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	remote := server.remote()
	asked := 0
	remote.Auth = func(context.Context) (string, error) {
		if asked++; asked == 1 {
			return "ghs_expired", nil
		}
		return server.token, nil
	}
	if _, err := newCache(t, Limits{}).Fetch(t.Context(), remote, "main"); err != nil || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	asked = 0
	remote.Auth = func(context.Context) (string, error) { asked++; return "ghs_revoked", nil }
	if _, err := newCache(t, Limits{}).Fetch(t.Context(), remote, "main"); CodeOf(err) != CodeAuth || asked != 2 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// A repository that is larger than allowed is not taken in.
func TestFetchLimit(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", map[string]string{"noise": randomText(200_000)})
	cache := newCache(t, Limits{FetchBytes: 50_000})
	if _, err := cache.Fetch(t.Context(), server.remote(), "main"); CodeOf(err) != CodeTooLarge {
		t.Errorf("%v", err)
	}
}

// randomText is text that does not compress well, the same every time.
func randomText(n int) string {
	out := make([]byte, n)
	state := uint32(1)
	for i := range out {
		state = state*1664525 + 1013904223
		out[i] = ' ' + byte(state>>24)%95
	}
	return string(out)
}

// A cached repository that has grown is built anew from what is in use, under
// the eyes of those who read it.
func TestCacheIsBuiltAnew(t *testing.T) {
	server := serve(t)
	cache := newCache(t, Limits{CachePacks: 4})
	var log bytes.Buffer
	cache.log = slog.New(slog.NewTextHandler(&log, nil))
	stale := server.commit(t, "main", small)
	var workspaces []*Workspace
	for i := range 7 {
		if i > 0 {
			server.commit(t, "main", map[string]string{"main.go": strings.Repeat("x", i) + "\n"})
		}
		workspaces = append(workspaces, hand(t, cache, server.remote(), "main"))
		if i == 0 {
			dir, err := cache.path(server.remote())
			must(t, err)
			long := time.Now().Add(-2 * keepTips)
			must(t, os.Chtimes(tipPath(dir, plumbing.NewHash(stale)), long, long))
		}
	}
	if !strings.Contains(log.String(), "built anew") {
		t.Fatalf("it was not built anew:\n%s", log.String())
	}
	dir, err := cache.path(server.remote())
	must(t, err)
	if hasTip(dir, plumbing.NewHash(stale)) {
		t.Error("what nobody uses was kept")
	}
	cli(t, dir, "fsck", "--connectivity-only")
	for _, w := range workspaces[1:] {
		put(t, w.Tree(), map[string]string{"main.go": "changed\n"})
		if text, err := w.Diff(t.Context()); err != nil || !strings.Contains(text, "+changed") {
			t.Errorf("%s, %v", text, err)
		}
	}
	must(t, os.RemoveAll(filepath.Join(dir, "objects"))) // as if the machine had stopped half-way
	cache.repos[dir].objects.close()
	must(t, cache.FetchCommit(t.Context(), server.remote(), stale))
	put(t, workspaces[0].Tree(), map[string]string{"main.go": "changed\n"})
	expectChanges(t, workspaces[0], "modified main.go")
}

// A server that stops in the middle is given up on.
func TestServerThatStalls(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/half") {
			_, _ = w.Write([]byte("001e# service=git-upload-pack\n"))
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	cache := newCache(t, Limits{})
	cache.transport = newTransport(http.DefaultTransport, 1<<20, 50*time.Millisecond)
	for _, path := range []string{"/silent", "/half"} {
		remote := Remote{Host: "h", RepositoryID: 1, URL: server.URL + path}
		if _, err := cache.Fetch(t.Context(), remote, ""); CodeOf(err) != CodeTransport {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What a power failure left half-written is written again.
func TestEmptyObjectIsReplaced(t *testing.T) {
	w := workOn(t, Limits{}, small)
	put(t, w.Tree(), map[string]string{"main.go": "changed\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	for _, id := range []string{sealed.Commit, sealed.Tree, sealed.Files[0].Blob} {
		name := loosePath(w.ownObjects(), plumbing.NewHash(id))
		must(t, os.Chmod(name, 0o644))
		must(t, os.Truncate(name, 0))
	}
	again, err := w.Seal(t.Context(), bot)
	must(t, err)
	clean, err := w.CheckoutSealed(t.Context(), again, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	if got := mustTree(t, clean); got != sealed.Tree {
		t.Errorf("tree %s, want %s", got, sealed.Tree)
	}
}
