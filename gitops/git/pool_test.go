package git

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A pooled tree follows its branch and is then handed out as if it had just been
// checked out, by renaming: its files are the very same ones.
func TestPooledTreesAreHandedOutByRename(t *testing.T) {
	server := servePlain(t)
	first := server.commit(t, "main", map[string]string{"stays": "1\n", "changes": "1\n", "goes": "1\n", "dir/x": "1\n", "link": "->stays", "becomes/dir": "1\n"})
	cache := newCache(t, Limits{})
	cache.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	fetch(t, cache, server)
	pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(t.TempDir(), "pool")})
	must(t, err)
	must(t, pool.Prepare(t.Context(), server.remote(), first))
	second := server.commit(t, "main", map[string]string{"stays": "1\n", "changes": "2\n", "new/file": "1\n", "dir": "now a file\n", "link": "->changes", "becomes": "file\n"})
	fetch(t, cache, server)
	inode := func(tree, name string) os.FileInfo {
		info, err := os.Lstat(filepath.Join(tree, name))
		must(t, err)
		return info
	}
	before := inode(filepath.Join(pool.options.Dir, "1", "tree"), "stays")
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

// Two sessions never get the same tree, and only a few repositories are kept.
func TestPoolUnderContention(t *testing.T) {
	cache := newCache(t, Limits{})
	pool, err := cache.NewPool(PoolOptions{Dir: filepath.Join(t.TempDir(), "pool"), PerRepository: 2, Repositories: 2})
	must(t, err)
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
	if entries, err := os.ReadDir(pool.options.Dir); err != nil || len(entries) != 4 {
		t.Errorf("%d trees are kept, %v", len(entries), err)
	}
	dir := t.TempDir()
	var mu sync.Mutex
	trees := map[uint64]bool{}
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
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
			if trees[inode] {
				t.Error("one tree was handed out twice")
			}
			trees[inode] = true
		})
	}
	group.Wait()
}
