package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// scanned returns a scan's changes as "kind path" and its refusals by path.
func scanned(t *testing.T, w *Workspace) (changes []string, refused map[string]string) {
	t.Helper()
	scan, err := w.Scan(t.Context())
	must(t, err)
	refused = map[string]string{}
	for _, one := range scan.Refused {
		refused[one.Path] = one.Reason
	}
	for _, change := range scan.Changes {
		changes = append(changes, string(change.Kind)+" "+change.Path)
	}
	return changes, refused
}

func expectChanges(t *testing.T, w *Workspace, want ...string) {
	t.Helper()
	got, refused := scanned(t, w)
	if !slices.Equal(got, want) {
		t.Errorf("changes are %q, want %q", got, want)
	}
	if len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

// Edge case 9: links of the base are kept, not followed; links that somebody
// made are refused when they lead out, and nothing is written through them.
func TestSymlinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("safe"), 0o644))
	w := workOn(t, Limits{}, map[string]string{
		"abs": "->" + outside, "up": "->../../../etc/passwd", "dir/ok": "->../file", "file": "x\n",
	})
	expectChanges(t, w)
	before, err := w.Checkpoint(t.Context(), nil)
	must(t, err)

	put(t, w.Tree(), map[string]string{"good": "->dir/ok", "bad-abs": "->/etc/passwd", "dir/bad-up": "->../../x", "tricky": "->dir/../../x", "hook": "->.git/hooks/x", ".gitattributes": "->file"})
	got, refused := scanned(t, w)
	if !slices.Equal(got, []string{"added good"}) {
		t.Errorf("changes are %q", got)
	}
	for _, path := range []string{"bad-abs", "dir/bad-up", "tricky", "hook", ".gitattributes"} {
		if refused[path] == "" {
			t.Errorf("%s is not refused", path)
		}
	}
	if _, err := w.Seal(t.Context(), bot); CodeOf(err) != CodeRefused {
		t.Errorf("sealing it: %v", err)
	}

	// The agent replaces a directory by a link to the outside; putting the
	// directory's file back must not write there.
	must(t, os.RemoveAll(filepath.Join(w.Tree(), "dir")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(w.Tree(), "dir")))
	must(t, os.Remove(filepath.Join(w.Tree(), "file")))
	must(t, os.Symlink(outside, filepath.Join(w.Tree(), "file")))
	must(t, w.Reset(t.Context(), before))
	if content, err := os.ReadFile(outside); err != nil || string(content) != "safe" {
		t.Errorf("the outside holds %q, %v", content, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(outside)); err != nil || len(entries) != 1 {
		t.Errorf("something was written outside: %v, %v", entries, err)
	}
}

// Edge case 10: a directory that is swapped for a link between scan and open.
func TestDirectorySwappedForALink(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"dir/file": "inside\n"})
	secret := t.TempDir()
	put(t, secret, map[string]string{"file": "outside\n"})
	put(t, w.Tree(), map[string]string{"dir/file": "changed\n"})
	s, err := w.scan(t.Context(), nil)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(w.Tree(), "dir")))
	must(t, os.Symlink(secret, filepath.Join(w.Tree(), "dir")))
	if content, err := w.keep("dir/file", s.differ["dir/file"]); err == nil {
		t.Errorf("it was read through the link: %q", content)
	}
}

// Edge cases 11 and 12: names that fall together elsewhere are flagged.
func TestCollidingNames(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"README.md": "x\n", "caf\u00e9": "composed\n"})
	put(t, w.Tree(), map[string]string{"readme.md": "y\n", "cafe\u0301": "decomposed\n", "fine": "z\n", "two/A": "1\n", "two/a": "2\n"})
	scan, err := w.Scan(t.Context())
	must(t, err)
	for _, change := range scan.Changes {
		if got, want := slices.Contains(change.Flags, FlagCollision), change.Path != "fine"; got != want {
			t.Errorf("%s: flagged %v", change.Path, got)
		}
	}
}

// Edge case 13: a base with impossible names is refused as a whole, one with
// ugly names is kept byte for byte; new ugly names are refused.
func TestUglyNames(t *testing.T) {
	for _, name := range []string{".git/config", "a/.GIT/hooks/x", "git~1", ".g\u200cit", "..", "a/../b", ".", "a\x00b"} {
		bare := filepath.Join(t.TempDir(), "x.git")
		must(t, initBare(bare))
		commit := commitRaw(t, bare, name)
		local, err := OpenLocal(bare, Limits{})
		must(t, err)
		dir := filepath.Join(t.TempDir(), "ws")
		if _, err := local.Checkout(t.Context(), commit, dir); err == nil {
			t.Errorf("%q was checked out", name)
		} else if code := CodeOf(err); code != CodeRefused && code != CodeCorrupt {
			t.Errorf("%q: %v", name, err)
		}
	}
	ugly := map[string]string{"new\nline": "1\n", "tab\t": "2\n", `back\slash`: "3\n", "bad\xff": "4\n", " space ": "5\n"}
	w := workOn(t, Limits{}, ugly)
	expectChanges(t, w)
	put(t, w.Tree(), map[string]string{"new\nline": "changed\n", `back\slash`: ""})
	expectChanges(t, w, `deleted back\slash`, "modified new\nline")
	put(t, w.Tree(), map[string]string{"bad\xff": "changed\n", "also\nnew": "x\n", "\xfe": "y\n", `x\y`: "z\n", "b\u202ei\u202cdi": "w\n"})
	_, refused := scanned(t, w)
	for _, name := range []string{"bad\xff", "also\nnew", "\xfe", `x\y`, "b\u202ei\u202cdi"} {
		if refused[name] == "" {
			t.Errorf("%q is not refused", name)
		}
	}
	must(t, os.Remove(filepath.Join(w.Tree(), "bad\xff")))
	if _, refused := scanned(t, w); refused["bad\xff"] == "" {
		t.Error("deleting a file whose name cannot be written down is not refused")
	}
}

// commitRaw writes a commit of one file whose path is nested in trees exactly
// as given, which go-git and git would not do.
func commitRaw(t *testing.T, bare, name string) string {
	t.Helper()
	objects := filepath.Join(bare, "objects")
	inner := newObject(plumbing.BlobObject, []byte("x"))
	must(t, writeLoose(objects, inner))
	mode := "100644"
	parts := strings.Split(name, "/")
	for _, part := range slices.Backward(parts) {
		id := inner.Hash()
		inner = newObject(plumbing.TreeObject, append([]byte(mode+" "+part+"\x00"), id[:]...))
		must(t, writeLoose(objects, inner))
		mode = "40000"
	}
	commit, _, err := buildCommit(inner.Hash(), plumbing.NewHash("1111111111111111111111111111111111111111"), bot)
	must(t, err)
	must(t, writeLoose(objects, commit))
	return commit.Hash().String()
}

// Edge case 14: what is too large, and what is no file.
func TestLargeFilesAndDevices(t *testing.T) {
	limits := Limits{ChangedFileBytes: 1000, ChangedBytes: 5000}
	w := workOn(t, limits, map[string]string{"big": strings.Repeat("x", 3000), "tracked": "x\n"})
	expectChanges(t, w)
	must(t, os.Chtimes(filepath.Join(w.Tree(), "big"), w.written, w.written)) // suspect, but the same
	expectChanges(t, w)
	put(t, w.Tree(), map[string]string{"huge": strings.Repeat("y", 1001)})
	must(t, os.Truncate(filepath.Join(w.Tree(), "huge"), 1<<40)) // sparse
	must(t, syscall.Mkfifo(filepath.Join(w.Tree(), "fifo"), 0o600))
	must(t, os.Remove(filepath.Join(w.Tree(), "tracked")))
	must(t, syscall.Mkfifo(filepath.Join(w.Tree(), "tracked"), 0o600))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(socket)
	must(t, os.MkdirAll(filepath.Join(w.Tree(), "s"), 0o755))
	t.Chdir(filepath.Join(w.Tree(), "s")) // a socket's path must be short
	must(t, syscall.Bind(socket, &syscall.SockaddrUnix{Name: "socket"}))
	changes, refused := scanned(t, w)
	for _, name := range []string{"huge", "fifo", "tracked", "s/socket"} {
		if refused[name] == "" {
			t.Errorf("%s is not refused", name)
		}
	}
	if len(changes) > 0 {
		t.Errorf("changes are %q", changes)
	}
	_, err = w.Seal(t.Context(), bot)
	if CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), "cannot be pushed") {
		t.Errorf("sealing it: %v", err)
	}
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)

	for i := range 6 {
		put(t, w.Tree(), map[string]string{fmt.Sprintf("part%d", i): strings.Repeat("z", 990)})
	}
	if _, err := w.Scan(t.Context()); CodeOf(err) != CodeTooLarge {
		t.Errorf("changes of 5,940 bytes: %v", err)
	}
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)
}

// Edge case 15: too many files, and directories too deep, in base and tree.
func TestTooManyAndTooDeep(t *testing.T) {
	deep := strings.Repeat("d/", 300) + "file"
	many := map[string]string{}
	for i := range 50 {
		many[fmt.Sprintf("f%d", i)] = "x"
	}
	for what, c := range map[string]struct {
		limits Limits
		files  map[string]string
	}{
		"deep":  {Limits{}, map[string]string{deep: "x"}},
		"many":  {Limits{Files: 49}, many},
		"bytes": {Limits{Bytes: 1000}, map[string]string{"a": strings.Repeat("x", 600), "b": strings.Repeat("y", 600)}},
		"file":  {Limits{FileBytes: 500}, map[string]string{"a": strings.Repeat("x", 600)}},
	} {
		local, commit := localOf(t, c.limits, c.files)
		if _, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws")); CodeOf(err) != CodeTooLarge {
			t.Errorf("%s: %v", what, err)
		}
	}
	w := workOn(t, Limits{Files: 100}, map[string]string{"a": "x\n"})
	at, err := os.OpenRoot(w.Tree())
	must(t, err)
	for range 4000 {
		must(t, at.Mkdir("d", 0o755))
		next, err := at.OpenRoot("d")
		must(t, err)
		must(t, at.Close())
		at = next
	}
	must(t, at.Close())
	if _, refused := scanned(t, w); len(refused) != 1 {
		t.Errorf("4,000 directories deep: refused %v", refused)
	}
	put(t, w.Tree(), map[string]string{"b": "y\n"})
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)
	for i := range 500 {
		put(t, w.Tree(), map[string]string{fmt.Sprintf("x%d", i): "x"})
	}
	if _, err := w.Scan(t.Context()); CodeOf(err) != CodeTooLarge {
		t.Errorf("five hundred files: %v", err)
	}
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)
	must(t, w.Remove())
}

// Edge cases 16 and 17: attributes, filters and drivers have no effect.
func TestAttributesAndFiltersDoNothing(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{
		".gitattributes": "* text=auto eol=crlf filter=evil diff=evil merge=evil\n*.x -text ident\n",
		"lf.txt":         "one\ntwo\n", "crlf.txt": "one\r\ntwo\r\n", "a.x": "$Id$\n",
	})
	expectChanges(t, w)
	for _, name := range []string{"lf.txt", "crlf.txt", "a.x"} {
		content, err := os.ReadFile(filepath.Join(w.Tree(), name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(w.Tree(), name), content, 0o644))
	}
	put(t, w.Tree(), map[string]string{".git/config": "[filter \"evil\"]\nclean = touch /tmp/evil\nsmudge = touch /tmp/evil\n[diff \"evil\"]\ncommand = touch /tmp/evil\n"})
	expectChanges(t, w)
}

// Edge case 18: only the owner's executable bit counts.
func TestModes(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"a": "x\n", "b": "x\n", "c": "x\n"})
	must(t, os.Chmod(filepath.Join(w.Tree(), "a"), 0o777|os.ModeSetuid))
	must(t, os.Chmod(filepath.Join(w.Tree(), "b"), 0o600))
	must(t, os.Chmod(filepath.Join(w.Tree(), "c"), 0o611))
	scan, err := w.Scan(t.Context())
	must(t, err)
	if len(scan.Changes) != 1 || scan.Changes[0].Kind != ModeChanged || scan.Changes[0].Mode != "100755" || scan.Changes[0].OldMode != "100644" ||
		!slices.Contains(scan.Changes[0].Flags, FlagExecutable) {
		t.Errorf("changes are %+v", scan.Changes)
	}
	text, err := w.Diff(t.Context())
	must(t, err)
	if text != "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n" {
		t.Errorf("the diff is %q", text)
	}
}

// A tree whose owner was locked out is opened up, read, and removed.
func TestClosedDirectories(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("running as root, for whom nothing is closed: only the calls are tested")
	}
	w := workOn(t, Limits{}, map[string]string{"dir/a": "x\n", "b": "y\n"})
	put(t, w.Tree(), map[string]string{"dir/new": "z\n", "b": "changed\n"})
	must(t, os.Chmod(filepath.Join(w.Tree(), "b"), 0))
	must(t, os.Chmod(filepath.Join(w.Tree(), "dir"), 0))
	expectChanges(t, w, "modified b", "added dir/new")
	must(t, os.Chmod(filepath.Join(w.Tree(), "dir"), 0))
	must(t, w.Remove())
}

// Edge case 19: no .git that a sandbox writes means anything.
func TestGitDirectoriesInTheTreeAreIgnored(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"a": "x\n"})
	put(t, w.Tree(), map[string]string{
		".git/config": "[core]\nfsmonitor = touch /tmp/evil\n[url \"https://evil\"]\ninsteadOf = https://\n", ".git/HEAD": "ref: refs/heads/x\n",
		".git/info/exclude": "*\n", "nested/.git/HEAD": "x\n", "nested/file": "kept\n", "linked/.git": "gitdir: /etc\n", "linked/file": "kept\n",
	})
	expectChanges(t, w, "added linked/file", "added nested/file")
	put(t, w.Tree(), map[string]string{"x/.GIT/config": "x\n", "git~1": "x\n"})
	if _, refused := scanned(t, w); len(refused) != 2 {
		t.Errorf("refused: %v", refused)
	}
}

// Edge case 20: every way in which one kind of thing becomes another.
func TestKindsOfChange(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{
		"gone": "x\n", "old/name": "moved\n", "file-dir": "x\n", "dir-file/a": "x\n", "dir-file/b/c": "x\n",
		"file-link": "x\n", "link-file": "->gone", "only/child": "x\n",
	})
	tree := w.Tree()
	put(t, tree, map[string]string{"gone": "", "file-dir": "", "dir-file": "", "link-file": "", "only": ""})
	put(t, tree, map[string]string{"file-dir/x": "y\n", "dir-file": "y\n", "file-link": "->old/new", "link-file": "text\n"})
	must(t, os.Rename(filepath.Join(tree, "old/name"), filepath.Join(tree, "old/new")))
	must(t, os.MkdirAll(filepath.Join(tree, "empty/directory"), 0o755))
	expectChanges(t, w, "added dir-file", "deleted dir-file/a", "deleted dir-file/b/c", "deleted file-dir", "added file-dir/x",
		"type file-link", "deleted gone", "type link-file", "deleted old/name", "added old/new", "deleted only/child")
}

// Edge case 21: what is ignored, what is not, and what was hidden.
func TestIgnoredFiles(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{
		".gitignore": "*.log\nbuild/\n!keep.log\n/vendor/\n", "tracked.log": "x\n", "vendor/mod.go": "x\n", "sub/.gitignore": "*.tmp\n",
	})
	put(t, w.Tree(), map[string]string{
		"a.log": "x", "build/out": "x", "keep.log": "x", "tracked.log": "changed\n", "vendor/mod.go": "changed\n",
		"vendor/new.go": "x", "sub/a.tmp": "x", "a.tmp": "x",
	})
	expectChanges(t, w, "added a.tmp", "added keep.log", "modified tracked.log", "modified vendor/mod.go")

	put(t, w.Tree(), map[string]string{".gitignore": "*\n"})
	scan, err := w.Scan(t.Context())
	must(t, err)
	if want := []string{"a.tmp", "keep.log"}; !slices.Equal(scan.Hidden, want) {
		t.Errorf("hidden are %q, want %q", scan.Hidden, want)
	}
	if !slices.Contains(scan.Changes[0].Flags, FlagGitFile) {
		t.Errorf("the change of .gitignore is not flagged: %+v", scan.Changes[0])
	}
}

// Edge case 7: a submodule is kept, never filled; work inside it is not lost in
// silence; replacing it is flagged.
func TestSubmodules(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "sub.git")
	must(t, initBare(bare))
	edit := newTreeEdit()
	blob := newObject(plumbing.BlobObject, []byte("[submodule \"lib\"]\n\tpath = lib\n\turl = https://evil.example/steal\n"))
	must(t, writeLoose(filepath.Join(bare, "objects"), blob))
	edit.set(".gitmodules", fileState{filemode.Regular, blob.Hash()})
	edit.set("lib", fileState{filemode.Submodule, plumbing.NewHash("2222222222222222222222222222222222222222")})
	commit := commitEdit(t, bare, "main", edit)
	local, err := OpenLocal(bare, Limits{})
	must(t, err)
	w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	expectChanges(t, w)
	put(t, w.Tree(), map[string]string{"lib/file": "work\n"})
	if _, refused := scanned(t, w); refused["lib"] == "" {
		t.Error("work in a submodule is not refused")
	}
	must(t, os.RemoveAll(filepath.Join(w.Tree(), "lib")))
	put(t, w.Tree(), map[string]string{"lib": "a file\n"})
	scan, err := w.Scan(t.Context())
	must(t, err)
	if len(scan.Changes) != 1 || !slices.Contains(scan.Changes[0].Flags, FlagSubmodule) || scan.Changes[0].Kind != TypeChanged {
		t.Errorf("changes are %+v", scan.Changes)
	}
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)
}

// Edge case 8: pointers into large file storage are files like others, flagged
// when they change.
func TestLargeFilePointers(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 12\n"
	w := workOn(t, Limits{}, map[string]string{"a.bin": pointer, "b.bin": pointer, ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
	expectChanges(t, w)
	put(t, w.Tree(), map[string]string{"b.bin": "real content\n", "c.bin": pointer, "d.bin": "new content\n"})
	scan, err := w.Scan(t.Context())
	must(t, err)
	for _, change := range scan.Changes {
		if got, want := slices.Contains(change.Flags, FlagLFS), change.Path != "d.bin"; got != want {
			t.Errorf("%s: flagged %v", change.Path, got)
		}
	}
}

// Workflows are flagged however they are spelt.
func TestWorkflowsAreFlagged(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"a": "x\n", ".github/workflows/old.yml": "x\n"})
	put(t, w.Tree(), map[string]string{".github/workflows/ci.yml": "x\n", ".GitHub/Workflows/x.yml": "x\n", ".github/workflows/old.yml": "", ".github/other": "x\n"})
	scan, err := w.Scan(t.Context())
	must(t, err)
	for _, change := range scan.Changes {
		if got, want := slices.Contains(change.Flags, FlagWorkflow), change.Path != ".github/other"; got != want {
			t.Errorf("%s: flagged %v", change.Path, got)
		}
	}
}

// Paths outside of an agent's scope are put back, and it is said which.
func TestRevertOutside(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"main.go": "x\n", "main_test.go": "x\n", "dir/a": "x\n", ".gitignore": "*.o\n"})
	put(t, w.Tree(), map[string]string{"main.go": "by the implementer\n", "new.go": "by the implementer\n"})
	before, err := w.Checkpoint(t.Context(), nil)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(w.Tree(), "dir")))
	put(t, w.Tree(), map[string]string{
		"main.go": "by the tester\n", "new.go": "", "main_test.go": "test\n", "x_test.go": "test\n", "dir": "a file\n",
		".gitignore": "sneaky\n", "sneaky": "hidden\n", "y.go": "by the tester\n",
	})
	must(t, syscall.Mkfifo(filepath.Join(w.Tree(), "fifo"), 0o600))
	isTest := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	reverted, err := w.RevertOutside(t.Context(), before, isTest)
	must(t, err)
	if want := []string{".gitignore", "dir", "dir/a", "fifo", "main.go", "new.go", "sneaky", "y.go"}; !slices.Equal(reverted, want) {
		t.Errorf("reverted %q, want %q", reverted, want)
	}
	expectChanges(t, w, "modified main.go", "modified main_test.go", "added new.go", "added x_test.go")
	content, err := os.ReadFile(filepath.Join(w.Tree(), "main.go"))
	if err != nil || string(content) != "by the implementer\n" {
		t.Errorf("main.go holds %q, %v", content, err)
	}
}
