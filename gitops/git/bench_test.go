package git

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
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
	if err != nil {
		b.Fatal(err)
	}
	commit, _, err := local.Resolve(b.Context(), "main")
	if err != nil {
		b.Fatal(err)
	}
	return local, commit
}

func BenchmarkWorkspace(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		dir := b.TempDir()
		b.Run("git-worktree-add", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				tree := filepath.Join(dir, "git"+strconv.Itoa(n))
				cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
				b.StopTimer()
				cli(b, bare, "worktree", "remove", "--force", tree)
				b.StartTimer()
			}
		})
		b.Run("checkout", func(b *testing.B) {
			local, commit := openBench(b, bare)
			for n := 0; b.Loop(); n++ {
				w, err := local.Checkout(b.Context(), commit, filepath.Join(dir, "own"+strconv.Itoa(n)))
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := w.Remove(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	})
}

func BenchmarkPool(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		cache := newCache(b, Limits{})
		commit, err := cache.Fetch(b.Context(), server.remote(), "main")
		if err != nil {
			b.Fatal(err)
		}
		dir := b.TempDir()
		pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(dir, "pool")})
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			if err := pool.Prepare(b.Context(), server.remote(), commit); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			w, err := pool.Take(b.Context(), server.remote(), commit, filepath.Join(dir, strconv.Itoa(n)))
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := w.Remove(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

func BenchmarkScan(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		dir := b.TempDir()
		b.Run("git-status", func(b *testing.B) {
			tree := filepath.Join(dir, "git")
			cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
			defer cli(b, bare, "worktree", "remove", "--force", tree)
			for n := 0; b.Loop(); n++ {
				edit(b, tree, r.files, n)
				cli(b, tree, "status", "--porcelain")
			}
		})
		b.Run("scan", func(b *testing.B) {
			local, commit := openBench(b, bare)
			w, err := local.Checkout(b.Context(), commit, filepath.Join(dir, "own"))
			if err != nil {
				b.Fatal(err)
			}
			for n := 0; b.Loop(); n++ {
				edit(b, w.Tree(), r.files, n)
				scan, err := w.Scan(b.Context())
				if err != nil || len(scan.Changes) != 5 {
					b.Fatal(scan, err)
				}
			}
		})
	})
}

func BenchmarkScanCommitPush(b *testing.B) {
	eachRepo(b, func(b *testing.B, r benchRepo, bare string) {
		server := serveBench(b, bare)
		b.Run("git-add-commit-push", func(b *testing.B) {
			tree := filepath.Join(b.TempDir(), "git")
			cli(b, bare, "worktree", "add", "-q", "--detach", tree, "main")
			defer cli(b, bare, "worktree", "remove", "--force", tree)
			url := server.withToken()
			for n := 0; b.Loop(); n++ {
				edit(b, tree, r.files, n)
				cli(b, tree, "add", "-A")
				cli(b, tree, "commit", "-q", "-m", "round")
				cli(b, tree, "push", "-q", url, fmt.Sprintf("HEAD:refs/heads/copilot/git-%d", n))
			}
		})
		b.Run("seal-push", func(b *testing.B) {
			w := hand(b, newCache(b, Limits{}), server.remote(), "main")
			for n := 0; b.Loop(); n++ {
				edit(b, w.Tree(), r.files, n+1_000_000)
				sealed, err := w.Seal(b.Context(), bot)
				if err != nil {
					b.Fatal(err)
				}
				ref := fmt.Sprintf("refs/heads/copilot/own-%d", n)
				if _, err := w.Push(b.Context(), server.remote(), PushRequest{Ref: ref}, sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
