package git

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// snapshot lists every file below a directory with its content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		must(t, err)
		if !entry.IsDir() {
			content, err := os.ReadFile(path)
			must(t, err)
			files[strings.TrimPrefix(path, dir+"/")] = string(content)
		}
		return nil
	}))
	return files
}

// A person's own repository is read, and gets one branch with its objects, and
// nothing else in it is touched.
func TestLocalRepositoryGetsOneBranchAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	cli(t, dir, "init", "-q")
	put(t, dir, small)
	cli(t, dir, "add", "-A", "-f")
	cli(t, dir, "commit", "-q", "-m", "base")
	base := cli(t, dir, "rev-parse", "HEAD")
	cli(t, dir, "gc", "-q") // packs and packed refs
	put(t, dir, map[string]string{"main.go": "uncommitted work\n", "untracked": "x\n"})
	before := snapshot(t, dir)

	local, err := OpenLocal(dir, Limits{})
	must(t, err)
	commit, branch, err := local.Resolve(t.Context(), "")
	if err != nil || commit != base || branch != "refs/heads/main" {
		t.Fatalf("%s, %s, %v", commit, branch, err)
	}
	w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	put(t, w.Tree(), map[string]string{"login/login.go": "package login\n", "run.sh": ""})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	ref := "refs/heads/" + BranchName(0, "Add login", "x")
	must(t, local.CreateBranch(t.Context(), w, sealed, ref))
	must(t, local.CreateBranch(t.Context(), w, sealed, ref)) // again is fine

	after := snapshot(t, dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s was changed", name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok && !strings.HasPrefix(name, ".git/objects/") && name != ".git/"+ref {
			t.Errorf("%s appeared", name)
		}
	}
	cli(t, dir, "fsck", "--strict")
	if got := cli(t, dir, "diff", "--name-status", "main", ref); got != "A\tlogin/login.go\nD\trun.sh" {
		t.Errorf("git shows %q", got)
	}
	put(t, w.Tree(), map[string]string{"more": "x\n"})
	next, err := w.Seal(t.Context(), bot)
	must(t, err)
	if err := local.CreateBranch(t.Context(), w, next, ref); CodeOf(err) != CodeStale {
		t.Errorf("a branch that exists: %v", err)
	}
	if err := local.CreateBranch(t.Context(), w, next, "refs/heads/main"); CodeOf(err) != CodeInvalid {
		t.Errorf("the main branch: %v", err)
	}
}

// Linked worktrees, shared clones, detached heads and bare repositories work.
func TestKindsOfLocalRepository(t *testing.T) {
	dir := t.TempDir()
	origin := filepath.Join(dir, "origin")
	cli(t, dir, "init", "-q", origin)
	put(t, origin, small)
	cli(t, origin, "add", "-A", "-f")
	cli(t, origin, "commit", "-q", "-m", "base")
	base := cli(t, origin, "rev-parse", "HEAD")
	cli(t, origin, "tag", "-a", "-m", "release", "v1")
	cli(t, origin, "tag", "-a", "-m", "signed twice", "v2", "v1")
	cli(t, origin, "repack", "-q", "-a", "-d")
	cli(t, dir, "clone", "-q", "--shared", origin, "shared")
	cli(t, dir, "clone", "-q", "--bare", origin, "bare.git")
	cli(t, origin, "worktree", "add", "-q", "-b", "side", filepath.Join(dir, "linked"))
	cli(t, dir, "clone", "-q", origin, "detached")
	cli(t, filepath.Join(dir, "detached"), "checkout", "-q", "--detach")
	for name, wantBranch := range map[string]string{
		"origin": "refs/heads/main", "shared": "refs/heads/main", "bare.git": "refs/heads/main", "linked": "refs/heads/side", "detached": "",
	} {
		local, err := OpenLocal(filepath.Join(dir, name), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		commit, branch, err := local.Resolve(t.Context(), "HEAD")
		if err != nil || commit != base || branch != wantBranch {
			t.Errorf("%s: %s, %q, %v", name, commit, branch, err)
		}
		if tagged, branch, err := local.Resolve(t.Context(), "refs/tags/v2"); err != nil || tagged != base || branch != "" {
			t.Errorf("%s: the tag is at %s, %q, %v", name, tagged, branch, err)
		}
		w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
		must(t, err)
		put(t, w.Tree(), map[string]string{"new": name})
		sealed, err := w.Seal(t.Context(), bot)
		must(t, err)
		must(t, local.CreateBranch(t.Context(), w, sealed, RefPrefix+"1-"+slugOf(name)))
		cli(t, filepath.Join(dir, name), "fsck")
	}
}

// What cannot be worked on is said in a sentence.
func TestLocalRepositoriesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenLocal(dir, Limits{}); CodeOf(err) != CodeNotFound {
		t.Errorf("no repository: %v", err)
	}
	if _, err := OpenLocal(filepath.Join(dir, "missing"), Limits{}); CodeOf(err) != CodeNotFound {
		t.Errorf("no directory: %v", err)
	}
	cli(t, dir, "init", "-q", "--object-format=sha256", "sha256")
	if _, err := OpenLocal(filepath.Join(dir, "sha256"), Limits{}); CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("SHA-256: %v", err)
	}
	cli(t, dir, "init", "-q", "empty")
	local, err := OpenLocal(filepath.Join(dir, "empty"), Limits{})
	must(t, err)
	if _, _, err := local.Resolve(t.Context(), ""); CodeOf(err) != CodeEmpty {
		t.Errorf("no commit: %v", err)
	}
	if _, _, err := local.Resolve(t.Context(), "nope"); CodeOf(err) != CodeNotFound {
		t.Errorf("no branch: %v", err)
	}
	if _, _, err := local.Resolve(t.Context(), "../x"); CodeOf(err) != CodeInvalid {
		t.Errorf("a hostile branch: %v", err)
	}
}

// Files are read from the base, never through links.
func TestReadFileOfACommit(t *testing.T) {
	local, commit := localOf(t, Limits{}, map[string]string{"AGENTS.md": "rules\n", "dir/x": "y\n", "link": "->/proc/self/environ", "up": "->dir"})
	read := func(path string, limit int64) (string, Code) {
		content, err := local.ReadFile(t.Context(), commit, path, limit)
		return string(content), CodeOf(err)
	}
	for _, c := range []struct {
		path  string
		limit int64
		want  string
		code  Code
	}{
		{"AGENTS.md", 100, "rules\n", ""}, {"dir/x", 100, "y\n", ""}, {"AGENTS.md", 3, "", CodeTooLarge},
		{"link", 100, "", CodeNotFound}, {"up/x", 100, "", CodeNotFound}, {"dir", 100, "", CodeNotFound}, {"nope", 100, "", CodeNotFound},
		{"../AGENTS.md", 100, "", CodeNotFound}, {"", 100, "", CodeNotFound}, {"AGENTS.md/x", 100, "", CodeNotFound},
	} {
		if got, code := read(c.path, c.limit); got != c.want || code != c.code {
			t.Errorf("%q: %q, %q", c.path, got, code)
		}
	}
	files, err := local.Files(t.Context(), commit)
	if want := []string{"AGENTS.md", "dir/x", "link", "up"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%q, %v", files, err)
	}
}

// A checkout that was cut off is no workspace and is done again; damaged
// descriptions are said to be damaged.
func TestUnfinishedAndDamagedWorkspaces(t *testing.T) {
	local, commit := localOf(t, Limits{}, small)
	dir := filepath.Join(t.TempDir(), "ws")
	put(t, dir, map[string]string{"tree/left": "over\n", "meta/index": "rubbish"})
	if _, err := local.Open(dir); CodeOf(err) != CodeNotFound {
		t.Errorf("unfinished: %v", err)
	}
	w, err := local.Checkout(t.Context(), commit, dir)
	must(t, err)
	expectChanges(t, w)
	if _, err := local.Checkout(t.Context(), commit, dir); CodeOf(err) != CodeInvalid {
		t.Errorf("a second checkout: %v", err)
	}
	put(t, w.Tree(), map[string]string{"main.go": "changed\n"})
	again, err := local.Open(dir)
	must(t, err)
	expectChanges(t, again, "modified main.go")
	put(t, dir, map[string]string{"meta/index": "rubbish"})
	if _, err := local.Open(dir); CodeOf(err) != CodeCorrupt {
		t.Errorf("a damaged manifest: %v", err)
	}
	put(t, dir, map[string]string{"meta/workspace.json": "{"})
	if _, err := local.Open(dir); CodeOf(err) != CodeCorrupt {
		t.Errorf("a damaged description: %v", err)
	}
}

// What comes from a database is checked before a file is touched.
func TestHostileCheckpoints(t *testing.T) {
	w := workOn(t, Limits{}, small)
	blob := "ce013625030ba8dba906f756967f9e9ca394464a" // "hello\n"
	for what, c := range map[string]struct {
		change CheckpointChange
		code   Code
	}{
		"parent":    {CheckpointChange{Path: "../x", Mode: "100644", Blob: blob}, CodeCorrupt},
		"absolute":  {CheckpointChange{Path: "/etc/x", Mode: "100644", Blob: blob}, CodeCorrupt},
		"git":       {CheckpointChange{Path: ".git/hooks/x", Mode: "100755", Blob: blob}, CodeCorrupt},
		"empty":     {CheckpointChange{Mode: "100644", Blob: blob}, CodeCorrupt},
		"submodule": {CheckpointChange{Path: "x", Mode: "160000", Blob: blob}, CodeCorrupt},
		"device":    {CheckpointChange{Path: "x", Mode: "020000", Blob: blob}, CodeCorrupt},
		"id":        {CheckpointChange{Path: "x", Mode: "100644", Blob: "../../x"}, CodeInvalid},
		"missing":   {CheckpointChange{Path: "x", Mode: "100644", Blob: blob}, CodeNotFound},
	} {
		err := w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String(), Changes: []CheckpointChange{c.change}})
		if CodeOf(err) != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.Reset(t.Context(), Checkpoint{Base: blob}); CodeOf(err) != CodeInvalid {
		t.Errorf("another base: %v", err)
	}
	good := CheckpointChange{Path: "x", Mode: "100644", Blob: blob}
	if err := w.Reset(t.Context(), Checkpoint{Base: w.Base(), Changes: []CheckpointChange{good}, Blobs: map[string][]byte{blob: []byte("other\n")}}); CodeOf(err) != CodeCorrupt {
		t.Errorf("a blob with another content: %v", err)
	}
	expectChanges(t, w)
}
