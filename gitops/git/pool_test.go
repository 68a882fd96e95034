package git

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A pooled tree follows its branch and is then handed out as if it had just been
// checked out, by renaming: its files are the very same ones.
func TestPooledTreesAreHandedOutByRename(t *testing.T) {
	server := servePlain(t)
	first := server.commit(t, "main", map[string]string{"stays": "1\n", "changes": "1\n", "goes": "1\n", "dir/x": "1\n", "link": "->stays", "becomes/dir": "1\n"})
	cache := newCache(t, Limits{})
	cache.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	fetch(t, cache, server)
	pool := pools(t, cache, PoolOptions{Dir: filepath.Join(t.TempDir(), "pool")})
	must(t, pool.Prepare(t.Context(), server.remote(), first))
	second := server.commit(t, "main", map[string]string{"stays": "1\n", "changes": "2\n", "new/file": "1\n", "dir": "now a file\n", "link": "->changes", "becomes": "file\n"})
	fetch(t, cache, server)
	inode := func(tree, name string) os.FileInfo {
		t.Helper()
		info, err := os.Lstat(filepath.Join(tree, name))
		must(t, err)
		return info
	}
	before := inode(filepath.Join(trees(t, pool)[0], "tree"), "stays")
	must(t, pool.Prepare(t.Context(), server.remote(), second))
	dir := filepath.Join(t.TempDir(), "ws")
	w, err := pool.Take(t.Context(), server.remote(), second, dir)
	must(t, err)
	if !os.SameFile(before, inode(w.Tree(), "stays")) {
		t.Error("the tree was made anew")
	}
	expectChanges(t, w)
	repo, err := cache.Repository(server.remote())
	must(t, err)
	fresh, err := repo.Checkout(t.Context(), second, filepath.Join(t.TempDir(), "fresh"))
	must(t, err)
	sameFiles(t, w.Tree(), fresh.Tree())
	again, err := repo.Open(dir)
	must(t, err)
	expectChanges(t, again)
	put(t, w.Tree(), map[string]string{"stays": "changed\n"})
	expectChanges(t, w, "modified stays")
	_, err = w.Seal(t.Context(), bot)
	must(t, err)

	// The pool is empty now; the next one is a checkout, at whatever commit.
	other, err := pool.Take(t.Context(), server.remote(), first, filepath.Join(t.TempDir(), "other"))
	must(t, err)
	expectChanges(t, other)
	// A directory that holds a workspace is not taken.
	must(t, pool.Prepare(t.Context(), server.remote(), second))
	if _, err := pool.Take(t.Context(), server.remote(), second, dir); CodeOf(err) != CodeInvalid {
		t.Errorf("a second workspace in one directory: %v", err)
	}
	if _, err := pool.Take(t.Context(), server.remote(), first, filepath.Join(t.TempDir(), "back")); err != nil {
		t.Errorf("advanced at the moment of taking: %v", err)
	}
}

func fetch(t *testing.T, cache *Cache, server *plainServer) {
	t.Helper()
	_, err := cache.Fetch(t.Context(), server.remote(), "main")
	must(t, err)
}

// sameFiles compares two trees by what find would print of them.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	list := func(root string) string {
		var out strings.Builder
		must(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			must(t, err)
			info, err := entry.Info()
			must(t, err)
			content, _ := os.ReadFile(path)
			target, _ := os.Readlink(path)
			out.WriteString(strings.TrimPrefix(path, root) + " " + info.Mode().String() + " " + target + "\n" + string(content) + "\n")
			return nil
		}))
		return out.String()
	}
	if a, b := list(a), list(b); a != b {
		t.Errorf("trees differ:\n%s\n---\n%s", a, b)
	}
}

// trees returns the directories of all trees on the pool's disk.
func trees(t *testing.T, pool *Pool) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(pool.options.Dir, "[^.]*", "*", "*", "*"))
	must(t, err)
	return dirs
}

// pools makes a pool in a directory, which the test may close before its end.
func pools(t *testing.T, cache *Cache, options PoolOptions) *Pool {
	t.Helper()
	pool, err := cache.NewPool(options)
	must(t, err)
	t.Cleanup(func() { must(t, pool.Close()) })
	return pool
}

// Two sessions never get the same tree, and only a few repositories are kept.
func TestPoolUnderContention(t *testing.T) {
	cache := newCache(t, Limits{})
	pool := pools(t, cache, PoolOptions{Dir: filepath.Join(t.TempDir(), "pool"), PerRepository: 2, Repositories: 2})
	var commits []string
	var remotes []Remote
	for i := range 3 {
		server := servePlain(t)
		commits = append(commits, server.commit(t, "main", small))
		remote := server.remote()
		remote.RepositoryID = int64(i + 1)
		remotes = append(remotes, remote)
		_, err := cache.Fetch(t.Context(), remote, "main")
		must(t, err)
		must(t, pool.Prepare(t.Context(), remote, commits[i]))
	}
	if count, _ := pool.Usage(); count != 4 || len(trees(t, pool)) != 4 {
		t.Errorf("%d trees are kept, on the disk %q", count, trees(t, pool))
	}
	dir := t.TempDir()
	var mu sync.Mutex
	taken := map[uint64]bool{}
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			if i%3 == 2 {
				if err := pool.Prepare(t.Context(), remotes[2], commits[2]); err != nil {
					t.Error(err)
				}
			}
			w, err := pool.Take(t.Context(), remotes[2], commits[2], filepath.Join(dir, string(rune('a'+i))))
			if err != nil {
				t.Error(err)
				return
			}
			info, err := os.Stat(w.Tree())
			must(t, err)
			mu.Lock()
			defer mu.Unlock()
			inode := info.Sys().(*syscall.Stat_t).Ino
			if taken[inode] {
				t.Error("one tree was handed out twice")
			}
			taken[inode] = true
		})
	}
	group.Wait()
	for i := range 6 {
		repo, err := cache.Repository(remotes[2])
		must(t, err)
		w, err := repo.Open(filepath.Join(dir, string(rune('a'+i))))
		must(t, err)
		expectChanges(t, w)
	}
}

// Ids of repositories say nothing without the installation that they belong to.
func TestPooledTreesStayWithTheirInstallation(t *testing.T) {
	cache := newCache(t, Limits{})
	pool := pools(t, cache, PoolOptions{Dir: filepath.Join(t.TempDir(), "pool")})
	server := servePlain(t)
	commit := server.commit(t, "main", small)
	one, other := server.remote(), server.remote()
	one.InstallationID, other.InstallationID = 1, 2
	for _, remote := range []Remote{one, other} {
		_, err := cache.Fetch(t.Context(), remote, "main")
		must(t, err)
	}
	must(t, pool.Prepare(t.Context(), one, commit))
	_, err := pool.Take(t.Context(), other, commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	if count, _ := pool.Usage(); count != 1 {
		t.Errorf("the other installation took a tree; %d are left", count)
	}
	_, err = pool.Take(t.Context(), one, commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	if count, _ := pool.Usage(); count != 0 {
		t.Errorf("the installation did not get its own tree; %d are left", count)
	}
}

// Finished trees outlive the process that made them; nothing else does, and
// nothing at all outlives the machine's restart.
func TestPooledTreesAreAdopted(t *testing.T) {
	server := servePlain(t)
	commit := server.commit(t, "main", map[string]string{"stays": "1\n", "dir/x": "1\n"})
	cache := newCache(t, Limits{})
	fetch(t, cache, server)
	options := PoolOptions{Dir: filepath.Join(t.TempDir(), "pool"), PerRepository: 2}
	first := pools(t, cache, options)
	must(t, first.Prepare(t.Context(), server.remote(), commit))
	second := pools(t, cache, options)
	must(t, second.Prepare(t.Context(), server.remote(), commit))
	if count, _ := second.Usage(); count != 0 {
		t.Errorf("two pools share %d trees", count)
	}
	before := trees(t, first)
	must(t, os.Remove(filepath.Join(before[1], "meta", "workspace.json")))
	must(t, first.Close())

	w, err := second.Take(t.Context(), server.remote(), commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	expectChanges(t, w)
	if after := trees(t, second); len(after) != 0 {
		t.Errorf("of %q the one that was finished should be taken and the other put aside, but these are left: %q", before, after)
	}
	must(t, second.Prepare(t.Context(), server.remote(), commit))
	if aside, err := os.ReadDir(second.asideDir()); err != nil || len(aside) != 0 {
		t.Errorf("what was put aside is still there: %v, %v", aside, err)
	}
	must(t, second.Close())

	must(t, os.WriteFile(second.bootFile(), []byte("an earlier start"), 0o600))
	third := pools(t, cache, options)
	third.Sweep(t.Context(), time.Hour)
	if left := trees(t, third); len(left) != 0 {
		t.Errorf("after a restart of the machine %q are still there", left)
	}
	if entries, err := os.ReadDir(third.asideDir()); err != nil || len(entries) != 0 {
		t.Errorf("what was put aside is still there: %v, %v", entries, err)
	}
}

// The pool holds what it was allowed, and gives up what nobody uses.
func TestPoolIsBounded(t *testing.T) {
	cache := newCache(t, Limits{})
	options := PoolOptions{Dir: filepath.Join(t.TempDir(), "pool"), Bytes: 10}
	pool := pools(t, cache, options)
	for i, content := range []string{"four", "fours", "much too much"} {
		server := servePlain(t)
		commit := server.commit(t, "main", map[string]string{"file": content})
		remote := server.remote()
		remote.RepositoryID = int64(i + 1)
		_, err := cache.Fetch(t.Context(), remote, "main")
		must(t, err)
		must(t, pool.Prepare(t.Context(), remote, commit))
		must(t, pool.Prepare(t.Context(), remote, commit))
		count, bytes := pool.Usage()
		if want := []int{1, 2, 0}[i]; count != want || bytes > 10 || len(trees(t, pool)) != want {
			t.Errorf("after %d repositories %d trees of %d bytes are kept, want %d of at most 10; on the disk %q", i+1, count, bytes, want, trees(t, pool))
		}
	}
	server := servePlain(t)
	commit := server.commit(t, "main", map[string]string{"file": "1"})
	fetch(t, cache, server)
	must(t, pool.Prepare(t.Context(), server.remote(), commit))
	pool.Sweep(t.Context(), time.Hour)
	if count, _ := pool.Usage(); count != 1 {
		t.Errorf("a tree was swept away at once; %d are left", count)
	}
	pool.Sweep(t.Context(), 0)
	if left := trees(t, pool); len(left) != 0 {
		t.Errorf("trees out of use are still there: %q", left)
	}
}

// A branch that became larger than a checkout may be is not reached by advancing
// either, and a file that cannot be written leaves no half-made tree behind.
func TestPoolKeepsToTheLimits(t *testing.T) {
	server := servePlain(t)
	first := server.commit(t, "main", map[string]string{"file": "1\n"})
	cache := newCache(t, Limits{Bytes: 1000})
	fetch(t, cache, server)
	pool := pools(t, cache, PoolOptions{Dir: filepath.Join(t.TempDir(), "pool")})
	must(t, pool.Prepare(t.Context(), server.remote(), first))
	second := server.commit(t, "main", map[string]string{"file": "1\n", "large": strings.Repeat("x", 2000)})
	fetch(t, cache, server)
	if err := pool.Prepare(t.Context(), server.remote(), second); CodeOf(err) != CodeTooLarge {
		t.Errorf("a tree beyond the limit: %v", err)
	}
	if left := trees(t, pool); len(left) != 0 {
		t.Errorf("half-made trees are left: %q", left)
	}
}
