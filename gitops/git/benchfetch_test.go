package git

import (
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
		b.Run("git-clone-depth-1", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				dir := filepath.Join(b.TempDir(), "git"+strconv.Itoa(n))
				cli(b, bare, "clone", "-q", "--bare", "--depth", "1", "--branch", "main", server.withToken(), dir)
			}
		})
		b.Run("fetch", func(b *testing.B) {
			for b.Loop() {
				if _, err := newCache(b, Limits{}).Fetch(b.Context(), server.remote(), "main"); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// BenchmarkWarmFetch fetches twenty commits into a repository that has what was
// before them, and also reports how much memory a process of its own needs for
// it: the most that was resident, for git with the processes that it starts.
func BenchmarkWarmFetch(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		warm := filepath.Join(b.TempDir(), "warm.git")
		cli(b, bare, "clone", "-q", "--bare", "--depth", "1", "--branch", "before", server.withToken(), warm)
		b.Run("git-fetch-depth-1", func(b *testing.B) {
			var memory int64
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				dir := copyOf(b, warm)
				command := exec.Command(needGit(b), "fetch", "-q", "--depth", "1", server.withToken(), "main")
				command.Dir = dir
				b.StartTimer()
				memory = max(memory, peak(b, command))
			}
			b.ReportMetric(float64(memory)/(1<<20), "MB-resident")
		})
		cached := filepath.Join(b.TempDir(), "cached")
		cache, err := NewCache(Options{Dir: cached})
		must(b, err)
		_, err = cache.Fetch(b.Context(), server.remote(), "before")
		must(b, err)
		must(b, cache.Close())
		b.Run("fetch", func(b *testing.B) {
			var memory int64
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				child := exec.Command(os.Args[0], "-test.run=^TestFetchAlone$")
				child.Env = append(os.Environ(), "HANDOFF_FETCH_DIR="+copyOf(b, cached), "HANDOFF_FETCH_URL="+server.URL, "HANDOFF_FETCH_TOKEN="+server.token)
				memory = max(memory, peak(b, child))
				cache, err := NewCache(Options{Dir: copyOf(b, cached)})
				must(b, err)
				b.StartTimer()
				_, err = cache.Fetch(b.Context(), server.remote(), "main")
				must(b, err)
			}
			b.ReportMetric(float64(memory)/(1<<20), "MB-resident")
		})
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

// peak runs a command and returns the most bytes that it, or a process that it
// waited for, had resident. Linux counts what a process's parent had when it was
// started, so a small process of its own starts and measures it.
func peak(b *testing.B, command *exec.Cmd) int64 {
	b.Helper()
	measure := exec.Command(os.Args[0], "-test.run=^TestMeasure$", "-test.v")
	measure.Dir, measure.Env = command.Dir, append(command.Environ(), "HANDOFF_MEASURE="+strings.Join(command.Args, "\n"))
	out, err := measure.CombinedOutput()
	_, rest, found := strings.Cut(string(out), "peak=")
	if err != nil || !found {
		b.Fatal(err, string(out))
	}
	memory, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must(b, err)
	return memory
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
