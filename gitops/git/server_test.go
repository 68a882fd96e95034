package git

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// needGit skips a test that compares with git itself where there is none; with
// CI=true that is a failure.
func needGit(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed, and CI must compare with it")
		}
		t.Skip("git is not installed: not compared with it")
	}
	return path
}

// cli runs git in a directory with nobody's configuration and returns what it
// printed, without the last line end.
func cli(t testing.TB, dir string, args ...string) string {
	t.Helper()
	command := exec.Command(needGit(t), args...)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_CONFIG_KEY_1=core.quotePath", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always",
	}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// A gitServer is git's own server (git http-backend) in front of one bare
// repository, with a token, and with hooks into every request.
type gitServer struct {
	*httptest.Server
	bare    string
	token   string
	backend http.Handler

	mu       sync.Mutex
	requests []string
	// before may answer a request itself; it then returns true.
	before func(http.ResponseWriter, *http.Request) bool
}

// serve starts a server for a bare repository that accepts pushes.
func serve(t testing.TB) *gitServer {
	t.Helper()
	dir := t.TempDir()
	s := &gitServer{bare: filepath.Join(dir, "repo.git"), token: "ghs_" + "canary"}
	cli(t, dir, "init", "-q", "--bare", s.bare)
	cli(t, s.bare, "config", "http.receivepack", "true")
	cli(t, s.bare, "config", "uploadpack.allowReachableSHA1InWant", "true")
	s.Server = httptest.NewServer(s.handler(t, dir))
	t.Cleanup(s.Close)
	return s
}

func (s *gitServer) handler(t testing.TB, root string) http.Handler {
	s.backend = &cgi.Handler{
		Path: needGit(t), Args: []string{"http-backend"}, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0),
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		before := s.before
		s.mu.Unlock()
		if before != nil && before(w, r) {
			return
		}
		if _, password, _ := r.BasicAuth(); password != s.token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "Bad credentials", http.StatusUnauthorized)
			return
		}
		s.backend.ServeHTTP(w, r)
	})
}

func (s *gitServer) intercept(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *gitServer) remote() Remote {
	return Remote{
		Host: "github.example", InstallationID: 7, RepositoryID: 42, URL: s.URL + "/repo.git",
		Auth: func(context.Context) (string, error) { return s.token, nil },
	}
}

// commit puts files into the server's repository as a commit on a branch and
// returns its id. A file whose text is "" is removed; "->x" makes a symlink.
func (s *gitServer) commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	cli(t, work, "clone", "-q", s.bare, ".")
	if branchExists := cli(t, work, "branch", "-r", "--list", "origin/"+branch); branchExists != "" {
		cli(t, work, "checkout", "-q", "-B", branch, "origin/"+branch)
	} else {
		cli(t, work, "checkout", "-q", "-B", branch)
	}
	put(t, work, files)
	cli(t, work, "add", "-A", "-f")
	cli(t, work, "commit", "-q", "--allow-empty", "-m", "change")
	cli(t, work, "push", "-q", "origin", "HEAD:refs/heads/"+branch)
	return cli(t, work, "rev-parse", "HEAD")
}

// put writes files below a directory.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		target, isLink := strings.CutPrefix(text, "->")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		_, statErr := os.Lstat(path)
		switch {
		case text == "" || isLink:
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if isLink {
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			}
		default:
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".sh") && statErr != nil {
				if err := os.Chmod(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func newCache(t testing.TB, limits Limits) *Cache {
	t.Helper()
	cache, err := NewCache(Options{Dir: t.TempDir(), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cache.Close() })
	return cache
}

// hand fetches a branch and checks it out.
func hand(t testing.TB, cache *Cache, remote Remote, branch string) *Workspace {
	t.Helper()
	commit, err := cache.Fetch(t.Context(), remote, branch)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := cache.Repository(remote)
	if err != nil {
		t.Fatal(err)
	}
	w, err := repo.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}
