package git

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The benchmarks put the git CLI beside each operation, in the same run:
//
//	go test -run xxx -bench . ./gitops/git
//
// HANDOFF_BENCH_COMMITS cuts the large repository's history, to make it faster;
// the figures of the documentation are with all of it.

type benchRepo struct {
	name    string
	files   int
	commits int
}

var benchRepos = []benchRepo{{"small", 300, 500}, {"large", 13_000, 50_000}}

var benchDirs = struct {
	sync.Mutex
	root  string
	built map[string]string
}{built: map[string]string{}}

// generate returns a bare repository with that many files, built once a run.
func (r benchRepo) generate(b *testing.B) string {
	b.Helper()
	benchDirs.Lock()
	defer benchDirs.Unlock()
	if dir, ok := benchDirs.built[r.name]; ok {
		return dir
	}
	if benchDirs.root == "" {
		root, err := os.MkdirTemp("", "handoff-bench-")
		if err != nil {
			b.Fatal(err)
		}
		benchDirs.root = root
	}
	bare := filepath.Join(benchDirs.root, r.name+".git")
	cli(b, benchDirs.root, "init", "-q", "--bare", bare)
	stream := filepath.Join(benchDirs.root, r.name+".stream")
	r.write(b, stream)
	script := "git fast-import --quiet < " + stream
	cli(b, bare, "-c", "alias.import=!"+script, "import")
	cli(b, bare, "branch", "before", "main~20")
	if err := os.Remove(stream); err != nil {
		b.Fatal(err)
	}
	benchDirs.built[r.name] = bare
	return bare
}

// write makes a fast-import stream: files of about four kilobytes, twenty to a
// directory, then commits that change one file each.
func (r benchRepo) write(b *testing.B, name string) {
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	commits := r.commits
	if limit, err := strconv.Atoi(os.Getenv("HANDOFF_BENCH_COMMITS")); err == nil {
		commits = max(21, min(commits, limit))
	}
	put := func(i, version int) {
		var text []byte
		for line := range 80 + i%60 {
			text = fmt.Appendf(text, "func f%d_%d(x int) int { return x*%d + %d }\n", i, line, line*7919%1000, version*line%97)
		}
		fmt.Fprintf(out, "M 100644 inline %s\ndata %d\n%s\n", benchPath(i), len(text), text)
	}
	for n := range commits {
		fmt.Fprintf(out, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata 2\nc\n\n", 1_600_000_000+n)
		if n == 0 {
			for i := range r.files {
				put(i, 0)
			}
		} else {
			put(n*7919%r.files, n)
		}
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
}

func benchPath(i int) string {
	return fmt.Sprintf("pkg%02d/mod%02d/file%05d.go", i/20/25, i/20%25, i)
}

// edit changes five files.
func edit(b *testing.B, tree string, files, round int) {
	b.Helper()
	for i := range 5 {
		name := filepath.Join(tree, benchPath(i*files/5))
		if err := os.WriteFile(name, fmt.Appendf(nil, "// round %d\n", round), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func eachRepo(b *testing.B, run func(b *testing.B, r benchRepo, bare string)) {
	needGit(b)
	for _, r := range benchRepos {
		b.Run(r.name, func(b *testing.B) { run(b, r, r.generate(b)) })
	}
}

// serveBench serves a copy of a repository, whose objects it shares.
func serveBench(b *testing.B, bare string) *gitServer {
	b.Helper()
	server := serve(b)
	if err := os.RemoveAll(filepath.Join(server.bare, "objects")); err != nil {
		b.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(bare, "objects"), filepath.Join(server.bare, "objects")); err != nil {
		b.Fatal(err)
	}
	for _, branch := range []string{"main", "before"} {
		cli(b, server.bare, "update-ref", "refs/heads/"+branch, cli(b, bare, "rev-parse", branch))
	}
	return server
}

func (s *gitServer) withToken() string {
	return "http://x:" + s.token + "@" + s.Listener.Addr().String() + "/repo.git"
}

func openBench(b *testing.B, bare string) (*Local, string) {
	b.Helper()
	local, err := OpenLocal(bare, Limits{})
	must(b, err)
	commit, _, err := local.Resolve(b.Context(), "main")
	must(b, err)
	return local, commit
}

// beside measures git and ours in turn, so that both see the same machine, and
// reports the medians of their times, and of the processors' time with that of all
// processes started. What a function returns tidies up after it and is not
// measured.
func beside(b *testing.B, git, own func(n int) (after func())) {
	b.Helper()
	var times, busy [2][]float64
	for n := 0; b.Loop(); n++ {
		for i, work := range []func(int) func(){git, own} {
			start, used := time.Now(), processorTime()
			after := work(n)
			times[i] = append(times[i], float64(time.Since(start).Microseconds())/1000)
			busy[i] = append(busy[i], float64((processorTime()-used).Microseconds())/1000)
			after()
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, one := range []struct {
		name   string
		values [2][]float64
	}{{"ms", times}, {"cpu", busy}} {
		git, own := median(one.values[0]), median(one.values[1])
		b.ReportMetric(git, "git-"+one.name)
		b.ReportMetric(own, "own-"+one.name)
		b.ReportMetric(own/git, "ratio-"+one.name)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// processorTime is what this process and those that it waited for have used.
func processorTime() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if syscall.Getrusage(who, &usage) == nil {
			total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return total
}

func nothing() {}

// worktree returns git's way to a directory of files.
func worktree(b *testing.B, bare, dir string) func(int) func() {
	return func(n int) func() {
		tree := filepath.Join(dir, "git"+strconv.Itoa(n))
		cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
		return func() { cli(b, bare, "worktree", "remove", "--force", tree) }
	}
}

// BenchmarkWorkspace has both begin from what a fetch of the branch's tip left: the
// pack with which git is fastest as well.
func BenchmarkWorkspace(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		dir := b.TempDir()
		server := serveBench(b, bare)
		clone := filepath.Join(dir, "clone.git")
		cli(b, bare, "clone", "-q", "--bare", "--depth", "1", "--branch", "main", server.withToken(), clone)
		cache := newCache(b, Limits{})
		commit, err := cache.Fetch(b.Context(), server.remote(), "main")
		must(b, err)
		repo, err := cache.Repository(server.remote())
		must(b, err)
		beside(b, worktree(b, clone, dir), func(n int) func() {
			w, err := repo.Checkout(b.Context(), commit, filepath.Join(dir, "own"+strconv.Itoa(n)))
			must(b, err)
			return func() { must(b, w.Remove()) }
		})
	})
}

func BenchmarkPool(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		cache := newCache(b, Limits{})
		commit, err := cache.Fetch(b.Context(), server.remote(), "main")
		must(b, err)
		dir := b.TempDir()
		pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(dir, "pool")})
		must(b, err)
		prepare := func() { must(b, pool.Prepare(b.Context(), server.remote(), commit)) }
		prepare()
		beside(b, worktree(b, bare, dir), func(n int) func() {
			w, err := pool.Take(b.Context(), server.remote(), commit, filepath.Join(dir, strconv.Itoa(n)))
			must(b, err)
			return func() {
				must(b, w.Remove())
				prepare()
			}
		})
	})
}

func BenchmarkScan(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		dir := b.TempDir()
		tree := filepath.Join(dir, "git")
		cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
		defer cli(b, bare, "worktree", "remove", "--force", tree)
		local, commit := openBench(b, bare)
		w, err := local.Checkout(b.Context(), commit, filepath.Join(dir, "own"))
		must(b, err)
		beside(b, func(n int) func() {
			edit(b, tree, r.files, n)
			cli(b, tree, "status", "--porcelain")
			return nothing
		}, func(n int) func() {
			edit(b, w.Tree(), r.files, n)
			if scan, err := w.Scan(b.Context()); err != nil || len(scan.Changes) != 5 {
				b.Fatal(scan, err)
			}
			return nothing
		})
	})
}

func BenchmarkScanCommitPush(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		tree := filepath.Join(b.TempDir(), "git")
		cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
		defer cli(b, bare, "worktree", "remove", "--force", tree)
		w := hand(b, newCache(b, Limits{}), server.remote(), "main")
		beside(b, func(n int) func() {
			edit(b, tree, r.files, n)
			cli(b, tree, "add", "-A")
			cli(b, tree, "commit", "-q", "-m", "round")
			cli(b, tree, "push", "-q", server.withToken(), fmt.Sprintf("HEAD:refs/heads/copilot/git-%d", n))
			return nothing
		}, func(n int) func() {
			edit(b, w.Tree(), r.files, n+1_000_000)
			sealed, err := w.Seal(b.Context(), bot)
			must(b, err)
			_, err = w.Push(b.Context(), server.remote(), PushRequest{Ref: fmt.Sprintf("refs/heads/copilot/own-%d", n)}, sealed)
			must(b, err)
			return nothing
		})
	})
}

// A made-up .git for one command, beside the shallow clone that it looks like.
func BenchmarkSyntheticGit(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		dir := b.TempDir()
		local, commit := openBench(b, bare)
		w, err := local.Checkout(b.Context(), commit, filepath.Join(dir, "own"))
		must(b, err)
		what := SyntheticGit{Branch: "main", Tags: []string{"v1.0.0"}}
		must(b, w.PutGit(b.Context(), what)) // the first one encodes the base
		beside(b, func(n int) func() {
			clone := filepath.Join(dir, "git"+strconv.Itoa(n))
			cli(b, dir, "clone", "-q", "--bare", "--depth", "1", "--branch", "main", "file://"+bare, clone)
			return func() { must(b, os.RemoveAll(clone)) }
		}, func(int) func() {
			must(b, w.PutGit(b.Context(), what))
			return func() { must(b, w.DropGit()) }
		})
	})
}
