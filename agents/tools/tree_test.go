package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Paths that could mean anything but a file of the repository are refused by
// every tool, before any file is touched.
func TestHostilePaths(t *testing.T) {
	hostile := []string{
		"/etc/passwd", "/proc/self/environ", "~/.netrc", "../x", "a/../../x", "..", "a/../..",
		".git/config", ".GIT/config", "a/.git/hooks/pre-commit", ".git./x", ".git /x", "git~1/config", ".git::$INDEX_ALLOCATION/x",
		".g\u200cit/config", "a\x00b", "a\nb", "a\tb", "a\u202eb", "a\\b", strings.Repeat("a/", 3000) + "x", strings.Repeat("a", 300),
	}
	calls := []func(b *bench, path string) string{
		func(b *bench, path string) string { return b.fails("read_file", arguments{"path": path}) },
		func(b *bench, path string) string { return b.fails("list_files", arguments{"path": path}) },
		func(b *bench, path string) string {
			return b.fails("search_files", arguments{"pattern": "x", "path": path})
		},
		func(b *bench, path string) string {
			return b.fails("write_file", arguments{"path": path, "content": "x"})
		},
		func(b *bench, path string) string {
			return b.fails("edit", arguments{"path": path, "old": "a", "new": "b"})
		},
		func(b *bench, path string) string {
			return b.fails("apply_patch", arguments{"path": path, "diff": "@@\n+x\n"})
		},
		func(b *bench, path string) string { return b.fails("delete_file", arguments{"path": path}) },
		func(b *bench, path string) string {
			return b.fails("run_command", arguments{"command": "true", "dir": path})
		},
	}
	b := newBench(t, map[string]string{"a/x": "x"}, func(c *Config) { c.Commander = &commander{} })
	for _, path := range hostile {
		for i, call := range calls {
			if output := call(b, path); strings.Contains(output, b.dir) {
				t.Errorf("call %d on %q names a place of the host: %s", i, path, output)
			}
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(b.dir)); len(entries) != 1 {
		t.Errorf("something was written beside the tree: %v", entries)
	}
}

// A diff's own headers are paths too.
func TestHostilePathsInDiffs(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	two := "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+1\n--- a/%s\n+++ b/%s\n@@\n-root\n+toor\n"
	for _, path := range []string{"../../etc/passwd", ".git/config", "x/../../y"} {
		b.fails("apply_patch", arguments{"path": "a.txt", "diff": strings.ReplaceAll(two, "%s", path)})
	}
	b.fails("apply_patch", arguments{"path": "a.txt", "diff": "diff --git a/a.txt b/.git/x\nsimilarity index 100%\nrename from a.txt\nrename to .git/x\n"}, ".git")
	b.fails("apply_patch", arguments{"path": "a.txt", "diff": "--- a/b.txt\n+++ b/b.txt\n@@\n-two\n+2\n"}, "path is a.txt", "names b.txt")
	if b.get("a.txt") != "one\n" || b.get("b.txt") != "two\n" {
		t.Error("something was changed")
	}
}

// Nothing is read or written through a link, and nothing that is no regular
// file is opened.
func TestLinksAndSpecialFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, map[string]string{"real/file.txt": "inside\n"})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, "absolute")
	link("../../../../../../etc/passwd", "climbing")
	link("/proc/self/environ", "environment")
	link("real", "folder")
	link("real/file.txt", "alias")
	link(".", "loop")
	if err := os.Link(outside, filepath.Join(b.dir, "hard")); err != nil {
		lacking(t, "hard links, which this file system refuses: %v", err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusals := map[string]string{
		"absolute": "leaves the repository", "climbing": "leaves the repository", "environment": "leaves the repository",
		"alias": "symbolic link to real/file.txt", "folder/file.txt": "symbolic link to real", "loop/loop/real/file.txt": "symbolic link",
		"hard": "hard links", "fifo": "no regular file", "real": "is a folder",
	}
	for path, reason := range refusals {
		done := make(chan string, 1)
		go func() { done <- b.use("read_file", arguments{"path": path}).Output }()
		select {
		case output := <-done:
			if !strings.Contains(output, reason) || strings.Contains(output, "canary") {
				t.Errorf("read_file %s says %q, want %q", path, output, reason)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("reading %s hangs", path)
		}
		if path == "real" {
			continue
		}
		b.fails("write_file", arguments{"path": path, "content": "x"})
		b.fails("edit", arguments{"path": path, "old": "inside", "new": "x"})
	}
	if output := b.works("search_files", arguments{"pattern": "canary|inside|PATH="}); strings.Contains(output, "canary") || !strings.Contains(output, "real/file.txt") {
		t.Errorf("the search went through a link:\n%s", output)
	}
	if content, _ := os.ReadFile(outside); string(content) != "canary" {
		t.Errorf("the file outside is %q", content)
	}
}

// A folder that becomes a link between the check and the access leads nowhere.
func TestAFolderSwappedForALinkIsNotFollowed(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file.txt"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, map[string]string{"dir/file.txt": "inside\n"})
	dir, parked := filepath.Join(b.dir, "dir"), filepath.Join(b.dir, "parked")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(dir, parked)
			_ = os.Symlink(outside, dir)
			_ = os.Remove(dir)
			_ = os.Rename(parked, dir)
		}
	}()
	for range 2000 {
		if file, err := b.box.config.Tree.Read("dir/file.txt"); err == nil && string(file.Data) != "inside\n" {
			t.Errorf("read %q", file.Data)
			break
		}
	}
	close(stop)
	<-stopped
}

func TestTreeWritesAtomicallyAndKeepsTheExecutableBit(t *testing.T) {
	b := newBench(t, map[string]string{"run.sh": "old\n"})
	if err := os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	tree := b.box.config.Tree
	if err := tree.Write("run.sh", []byte("new\n")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Write("deep/down/file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, "deep/down/file": 0o644} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, ".handoff-*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestTreeRefusesNamesThatDifferInCaseOnly(t *testing.T) {
	b := newBench(t, map[string]string{"README.md": "x\n", "Docs/a.md": "x\n"})
	for path, existing := range map[string]string{"readme.md": "README.md", "docs/b.md": "Docs"} {
		err := b.box.config.Tree.Write(path, []byte("y"))
		if _, refused := errors.AsType[*accessError](err); !refused || !strings.Contains(err.Error(), existing) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTreeLimits(t *testing.T) {
	b := newBench(t, nil)
	large := filepath.Join(b.dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil { // sparse
		lacking(t, "a file of a terabyte: %v", err)
	}
	b.fails("read_file", arguments{"path": "large"}, "1099511627776 bytes")
	b.works("search_files", arguments{"pattern": "x"}, "Nothing matches")
}

func FuzzCleanPath(f *testing.F) {
	for _, path := range []string{"a/b", "./x", "", "..", "a//b/../c", ".git", "x/.GIT ", "…"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		clean, err := CleanPath(path)
		if err != nil {
			return
		}
		if !fs.ValidPath(clean) || !filepath.IsLocal(filepath.FromSlash(clean)) {
			t.Errorf("%q became %q", path, clean)
		}
		if again, err := CleanPath(clean); err != nil || again != clean {
			t.Errorf("%q became %q, which becomes %q, %v", path, clean, again, err)
		}
		for component := range strings.SplitSeq(clean, "/") {
			if strings.EqualFold(component, ".git") {
				t.Errorf("%q leads to git's files", path)
			}
		}
	})
}

// lacking skips the rest of a test for what this machine does not have; in CI
// the lack is a failure.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("not tested: "+format, args...)
	}
	t.Skipf("not tested: "+format, args...)
}
