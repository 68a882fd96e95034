package git

import (
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func BenchmarkFetch(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		root := b.TempDir()
		beside(b, func(n int) func() {
			dir := filepath.Join(root, "git"+strconv.Itoa(n))
			cli(b, bare, "clone", "-q", "--bare", "--depth", "1", "--branch", "main", server.withToken(), dir)
			return func() { must(b, os.RemoveAll(dir)) }
		}, func(int) func() {
			dir := filepath.Join(root, "own")
			cache, err := NewCache(Options{Dir: dir})
			must(b, err)
			_, err = cache.Fetch(b.Context(), server.remote(), "main")
			must(b, err)
			return func() { must(b, errors.Join(cache.Close(), os.RemoveAll(dir))) }
		})
		peaks(b, server, bare, filepath.Join(root, "fresh"), "clone", "-q", "--bare", "--depth", "1", "--branch", "main", server.withToken(), filepath.Join(root, "git"))
	})
}

// peaks reports how much memory processes of their own need: git with some
// arguments, and ours for a fetch into a cache.
func peaks(b *testing.B, server *gitServer, gitDir, ownDir string, arguments ...string) {
	b.Helper()
	command := exec.Command(needGit(b), arguments...)
	command.Dir = gitDir
	b.ReportMetric(peak(b, command), "git-MB")
	child := exec.Command(os.Args[0], "-test.run=^TestFetchAlone$")
	child.Env = append(os.Environ(), "HANDOFF_FETCH_DIR="+ownDir, "HANDOFF_FETCH_URL="+server.URL, "HANDOFF_FETCH_TOKEN="+server.token)
	b.ReportMetric(peak(b, child), "own-MB")
}

// BenchmarkWarmFetch fetches twenty commits into a repository that has what was
// before them.
func BenchmarkWarmFetch(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		warm, cached := filepath.Join(b.TempDir(), "warm.git"), filepath.Join(b.TempDir(), "cached")
		cli(b, bare, "clone", "-q", "--bare", "--depth", "1", "--branch", "before", server.withToken(), warm)
		cache, err := NewCache(Options{Dir: cached})
		must(b, err)
		_, err = cache.Fetch(b.Context(), server.remote(), "before")
		must(b, err)
		must(b, cache.Close())
		var gitDir, ownDir string
		renew := func() { gitDir, ownDir = copyOf(b, warm), copyOf(b, cached) }
		renew()
		beside(b, func(n int) func() {
			cli(b, gitDir, "fetch", "-q", "--depth", "1", server.withToken(), "main")
			return nothing
		}, func(int) func() {
			cache, err := NewCache(Options{Dir: ownDir})
			must(b, err)
			_, err = cache.Fetch(b.Context(), server.remote(), "main")
			must(b, err)
			return func() {
				must(b, cache.Close())
				renew()
			}
		})
		peaks(b, server, gitDir, ownDir, "fetch", "-q", "--depth", "1", server.withToken(), "main")
	})
}

// TestFetchAlone is the process whose memory is measured.
func TestFetchAlone(t *testing.T) {
	dir := os.Getenv("HANDOFF_FETCH_DIR")
	if dir == "" {
		t.SkipNow() // a part of BenchmarkWarmFetch
	}
	cache, err := NewCache(Options{Dir: dir})
	must(t, err)
	server := &gitServer{Server: &httptest.Server{URL: os.Getenv("HANDOFF_FETCH_URL")}, token: os.Getenv("HANDOFF_FETCH_TOKEN")}
	_, err = cache.Fetch(t.Context(), server.remote(), "main")
	must(t, err)
}

func copyOf(b *testing.B, dir string) string {
	b.Helper()
	to := filepath.Join(b.TempDir(), "copy")
	must(b, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// peak runs a command and returns the most megabytes that it, or a process that it
// waited for, had resident. Linux counts what a process's parent had when it was
// started, so a small process of its own starts and measures it.
func peak(b *testing.B, command *exec.Cmd) float64 {
	b.Helper()
	measure := exec.Command(os.Args[0], "-test.run=^TestMeasure$", "-test.v")
	measure.Dir, measure.Env = command.Dir, append(command.Environ(), "HANDOFF_MEASURE="+strings.Join(command.Args, "\n"))
	out, err := measure.CombinedOutput()
	_, rest, found := strings.Cut(string(out), "peak=")
	if err != nil || !found {
		b.Fatal(err, string(out))
	}
	memory, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	must(b, err)
	return memory / (1 << 20)
}

// TestMeasure is the small process.
func TestMeasure(t *testing.T) {
	arguments := strings.Split(os.Getenv("HANDOFF_MEASURE"), "\n")
	if arguments[0] == "" {
		t.SkipNow() // a part of BenchmarkWarmFetch
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	t.Logf("peak=%d", command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
}
