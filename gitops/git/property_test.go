package git

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMain samples the property tests, which start git many times, unless
// CI=true, and removes the repositories that benchmarks share.
func TestMain(m *testing.M) {
	if os.Getenv("CI") != "true" {
		if err := flag.Set("rapid.checks", "20"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if benchDirs.root != "" {
		_ = os.RemoveAll(benchDirs.root)
	}
	os.Exit(code)
}

// gitTree returns the tree that git itself writes for a directory's files on top
// of a commit.
func gitTree(t interface{ Fatal(...any) }, bare, tree, base string) string {
	index := filepath.Join(filepath.Dir(tree), "git-index")
	must(t, os.RemoveAll(index))
	run := func(args ...string) string {
		command := exec.Command("git", append([]string{"--git-dir=" + bare, "--work-tree=" + tree, "-c", "core.bare=false"}, args...)...)
		command.Dir = tree
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_INDEX_FILE=" + index, "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatal(args, err, string(out))
		}
		return strings.TrimSpace(string(out))
	}
	run("read-tree", base)
	run("add", "-A", ".")
	return run("write-tree")
}

// step is one thing that somebody does to the files.
type step struct{ do, path, text string }

func drawSteps(t *rapid.T) []step {
	name := rapid.SampledFrom([]string{"a", "b", "c.txt", "d", "run.sh", "ü", "x y", ".hidden"})
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "names"), "/")
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			do:   rapid.SampledFrom([]string{"write", "write", "write", "append", "delete", "chmod", "link", "mkdir", "rename", "touch", "ignore"}).Draw(t, "do"),
			path: path.Draw(t, "path"),
			text: rapid.SampledFrom([]string{"one\n", "two\nlines\n", "no end", "", "\x00binary", "crlf\r\nlines\r\n", strings.Repeat("line\n", 40), strings.Repeat("line\n", 40) + "more\n"}).Draw(t, "text"),
		}
	}), 1, 25).Draw(t, "steps")
}

// act does a step as far as the files allow it.
func (s step) act(tree string) {
	full := filepath.Join(tree, s.path)
	switch s.do {
	case "write":
		if info, err := os.Lstat(full); err == nil && !info.Mode().IsRegular() {
			_ = os.RemoveAll(full)
		}
		clearAbove(tree, s.path)
		_ = os.MkdirAll(filepath.Dir(full), 0o755)
		_ = os.WriteFile(full, []byte(s.text), 0o644)
	case "append":
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			old, _ := os.ReadFile(full)
			_ = os.WriteFile(full, append(old, s.text...), 0o644)
		}
	case "delete":
		_ = os.RemoveAll(full)
	case "chmod":
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(full, info.Mode()^0o111)
		}
	case "link":
		_ = os.RemoveAll(full)
		clearAbove(tree, s.path)
		_ = os.MkdirAll(filepath.Dir(full), 0o755)
		// Not to one of the names: git gives up on a file below a link to itself.
		_ = os.Symlink("elsewhere", full)
	case "mkdir":
		_ = os.MkdirAll(full, 0o755)
	case "rename":
		_ = os.Rename(full, filepath.Join(tree, "renamed"))
	case "touch":
		if content, err := os.ReadFile(full); err == nil {
			_ = os.WriteFile(full, content, 0o644)
		}
	case "ignore":
		_ = os.WriteFile(filepath.Join(tree, ".gitignore"), []byte("c.txt\n/d\n!a/c.txt\n"), 0o644)
	}
}

// clearAbove removes links and files that stand where a directory is needed.
func clearAbove(tree, path string) {
	for i, c := range path {
		if c == '/' {
			if info, err := os.Lstat(filepath.Join(tree, path[:i])); err == nil && !info.IsDir() {
				_ = os.Remove(filepath.Join(tree, path[:i]))
			}
		}
	}
}

// Whatever is done to the files: the tree is git's own; the diff applies with
// git and gives the same tree; a checkpoint resets the files and rebuilds them
// elsewhere; the sealed commit, written into a repository, passes git's checks.
func TestWhateverHappensTreesAreGitsOwn(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	bare := filepath.Join(dir, "repo.git")
	rapid.Check(t, func(rt *rapid.T) {
		must(rt, os.RemoveAll(dir))
		must(rt, os.MkdirAll(filepath.Join(dir, "seed"), 0o755))
		cli(t, dir, "init", "-q", "--bare", bare)
		seed := filepath.Join(dir, "seed")
		cli(t, seed, "init", "-q")
		for _, one := range drawSteps(rt) {
			one.act(seed)
		}
		cli(t, seed, "add", "-A")
		cli(t, seed, "commit", "-q", "--allow-empty", "-m", "base")
		cli(t, seed, "push", "-q", bare, "HEAD:refs/heads/main")
		local, err := OpenLocal(bare, Limits{})
		must(rt, err)
		commit, _, err := local.Resolve(rt.Context(), "main")
		must(rt, err)
		w, err := local.Checkout(rt.Context(), commit, filepath.Join(dir, "ws"))
		must(rt, err)
		equal(rt, "the checkout's tree", gitTree(rt, bare, w.Tree(), commit), cli(t, bare, "rev-parse", "main^{tree}"))

		for _, one := range drawSteps(rt) {
			one.act(w.Tree())
		}
		first, err := w.Checkpoint(rt.Context(), nil)
		must(rt, err)
		want := gitTree(rt, bare, w.Tree(), commit)
		equal(rt, "the tree", first.Tree, want)
		checkDiff(t, rt, w, bare, want)

		again, err := local.Open(filepath.Join(dir, "ws"))
		must(rt, err)
		tree, err := again.TreeID(rt.Context())
		must(rt, err)
		equal(rt, "the tree of the workspace opened again", tree, want)

		for _, one := range drawSteps(rt) {
			one.act(w.Tree())
		}
		must(rt, w.Reset(rt.Context(), first))
		equal(rt, "the tree after the reset", gitTree(rt, bare, w.Tree(), commit), want)
		other, err := local.Restore(rt.Context(), first, filepath.Join(dir, "other"), nil)
		must(rt, err)
		equal(rt, "the tree restored elsewhere", gitTree(rt, bare, other.Tree(), commit), want)
		checkSeal(t, rt, local, bare, w, other, want)
	})
}

func checkDiff(t *testing.T, rt *rapid.T, w *Workspace, bare, want string) {
	text, err := w.Diff(rt.Context())
	must(rt, err)
	if text == "" || strings.Contains(text, "Binary files") {
		return
	}
	clone := filepath.Join(filepath.Dir(bare), "clone")
	cli(t, filepath.Dir(bare), "clone", "-q", "--branch", "main", bare, clone)
	patch := filepath.Join(filepath.Dir(bare), "patch")
	must(rt, os.WriteFile(patch, []byte(text), 0o644))
	cli(t, clone, "apply", "--index", "--whitespace=nowarn", patch)
	equal(rt, "the tree of the applied diff", cli(t, clone, "write-tree"), want)
}

func checkSeal(t *testing.T, rt *rapid.T, local *Local, bare string, w, other *Workspace, want string) {
	sealed, err := w.Seal(rt.Context(), bot)
	if CodeOf(err) == CodeNoChange {
		return
	}
	must(rt, err)
	twin, err := other.Seal(rt.Context(), bot)
	must(rt, err)
	equal(rt, "the commit sealed elsewhere", twin.Commit, sealed.Commit)
	equal(rt, "the sealed tree", sealed.Tree, want)
	ref := "refs/heads/copilot/1-test"
	must(rt, local.CreateBranch(rt.Context(), w, sealed, ref))
	cli(t, bare, "fsck", "--strict")
	equal(rt, "the branch's tree", cli(t, bare, "rev-parse", ref+"^{tree}"), want)
}

func equal(t *rapid.T, what, got, want string) {
	if got != want {
		t.Fatalf("%s is %s, want %s", what, got, want)
	}
}

// A tree that is advanced from any commit to any other, and back, is what a
// checkout would be, and its manifest is true.
func TestAdvancedTreesAreCheckouts(t *testing.T) {
	needGit(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(rt, err)
		seed := filepath.Join(dir, "seed")
		must(rt, os.Mkdir(seed, 0o755))
		cli(t, seed, "init", "-q")
		var commits []string
		for range 2 {
			for _, one := range drawSteps(rt) {
				one.act(seed)
			}
			cli(t, seed, "add", "-A")
			cli(t, seed, "commit", "-q", "--allow-empty", "-m", "commit")
			commits = append(commits, cli(t, seed, "rev-parse", "HEAD"))
		}
		local, err := OpenLocal(seed, Limits{})
		must(rt, err)
		w, err := local.Checkout(rt.Context(), commits[0], filepath.Join(dir, "ws"))
		must(rt, err)
		for _, commit := range []string{commits[1], commits[0]} {
			must(rt, w.advance(rt.Context(), commit))
			again, err := local.Open(filepath.Join(dir, "ws"))
			must(rt, err)
			for _, one := range []*Workspace{w, again} {
				scan, err := one.Scan(rt.Context())
				must(rt, err)
				if len(scan.Changes)+len(scan.Refused) > 0 || one.Base() != commit {
					rt.Fatalf("the advanced tree of %s differs: %+v", one.Base(), scan)
				}
			}
			fresh, err := local.Checkout(rt.Context(), commit, filepath.Join(dir, commit))
			must(rt, err)
			sameFiles(t, w.Tree(), fresh.Tree())
		}
	})
}
