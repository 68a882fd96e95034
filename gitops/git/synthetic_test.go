package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Builds that need git see the base commit; nothing that they do there matters.
func TestSyntheticGit(t *testing.T) {
	w := workOn(t, Limits{}, small)
	tree := w.Tree()
	put(t, tree, map[string]string{".git/config": "[remote \"origin\"]\nurl = https://evil\n", "main.go": "package main // changed\n", "new.go": "x\n"})
	want := mustTree(t, w)
	must(t, w.PutGit(t.Context(), SyntheticGit{Branch: "trunk/ünï", Tags: []string{"v1.2.3"}}))
	if got := mustTree(t, w); got != want {
		t.Errorf("it changed the tree: %s, want %s", got, want)
	}
	for _, c := range []struct{ args, want string }{
		{"rev-parse HEAD", w.Base()},
		{"rev-parse --abbrev-ref HEAD", "trunk/ünï"},
		{"describe --tags", "v1.2.3"},
		{"remote", ""},
		{"status --porcelain", " M main.go\n?? new.go"},
		{"diff --stat --", " main.go | 4 +---\n 1 file changed, 1 insertion(+), 3 deletions(-)"},
		{"fsck", ""},
		{"log --format=%s", "Add a login endpoint"},
	} {
		if got := cli(t, tree, strings.Fields(c.args)...); got != c.want {
			t.Errorf("git %s: %q, want %q", c.args, got, c.want)
		}
	}
	cli(t, tree, "add", "-A")
	cli(t, tree, "commit", "-q", "-m", "by the agent")
	if got := mustTree(t, w); got != want {
		t.Errorf("a commit in it changed the tree: %s", got)
	}
	must(t, w.PutGit(t.Context(), SyntheticGit{}))
	if got := cli(t, tree, "rev-parse", "HEAD"); got != w.Base() {
		t.Errorf("made anew it is at %s", got)
	}
	must(t, w.DropGit())
	if _, err := os.Lstat(filepath.Join(tree, ".git")); err == nil {
		t.Error("it is still there")
	}
}

// A link in its place is replaced, not followed, and names are checked.
func TestSyntheticGitIsNotWrittenThroughALink(t *testing.T) {
	w := workOn(t, Limits{}, small)
	outside := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(w.Tree(), ".git")))
	must(t, w.PutGit(t.Context(), SyntheticGit{}))
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("the outside holds %v, %v", entries, err)
	}
	for _, bad := range []SyntheticGit{{Branch: "../../x"}, {Tags: []string{"-x"}}, {Tags: []string{"a/../../../config"}}} {
		if err := w.PutGit(t.Context(), bad); CodeOf(err) != CodeInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
