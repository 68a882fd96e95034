package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// Whatever a command leaves under that name: the host neither follows nor reads
// nor runs it, takes all of it away, and the next command gets a fresh one.
func TestWhatCommandsLeaveInASyntheticGitIsGone(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, map[string]string{"config": "mine", "refs/heads/main": "mine"})
	script := "#!/bin/sh\ntouch " + filepath.Join(outside, "ran") + "\n"
	for what, leave := range map[string]func(t *testing.T, tree string){
		"a link": func(t *testing.T, tree string) { must(t, os.Symlink(outside, filepath.Join(tree, ".git"))) },
		"a gitfile": func(t *testing.T, tree string) {
			put(t, tree, map[string]string{".git": "gitdir: " + outside + "\n"})
		},
		"a file in a closed directory": func(t *testing.T, tree string) {
			put(t, tree, map[string]string{".git/deep/er": "x"})
			must(t, os.Chmod(filepath.Join(tree, ".git/deep"), 0))
		},
		"hooks, filters and a monitor": func(t *testing.T, tree string) {
			put(t, tree, map[string]string{
				".git/hooks/pre-commit": script, ".git/hooks/post-checkout": script, ".git/HEAD": "ref: refs/heads/evil\n",
				".git/config":       "[core]\nfsmonitor = " + filepath.Join(outside, "x") + "\nhooksPath = hooks\nsshCommand = touch " + outside + "/ran\n[filter \"x\"]\nclean = touch " + outside + "/ran\n[url \"http://evil/\"]\ninsteadOf = https://\n[include]\npath = /etc/passwd\n",
				".git/info/exclude": "*\n", ".git/info/attributes": "* filter=x\n", ".git/objects/info/alternates": outside + "\n", ".git/index": "not an index",
				".gitattributes": "* filter=x\n",
			})
		},
		"nothing": func(*testing.T, string) {},
	} {
		t.Run(what, func(t *testing.T) {
			w := workOn(t, Limits{}, small)
			tree := w.Tree()
			must(t, w.PutGit(t.Context(), SyntheticGit{Branch: "main"}))
			must(t, os.RemoveAll(filepath.Join(tree, ".git")))
			leave(t, tree)
			put(t, tree, map[string]string{"main.go": "package main // changed\n"})
			before, err := os.ReadFile(filepath.Join(tree, "main.go"))
			must(t, err)
			changes, err := w.Changes(t.Context())
			must(t, err)
			if !slices.ContainsFunc(changes, func(c Change) bool { return c.Path == "main.go" }) ||
				slices.ContainsFunc(changes, func(c Change) bool { return strings.HasPrefix(c.Path, ".git/") || c.Path == ".git" }) {
				t.Errorf("the changes are %+v", changes)
			}
			sealed, err := w.Seal(t.Context(), bot)
			must(t, err)
			if sealed.Parent != w.Base() {
				t.Errorf("it is sealed on %s", sealed.Parent)
			}
			must(t, w.PutGit(t.Context(), SyntheticGit{Branch: "main"}))
			if got := cli(t, tree, "rev-parse", "HEAD"); got != w.Base() {
				t.Errorf("the next command's HEAD is %s", got)
			}
			if got, _ := os.ReadFile(filepath.Join(tree, ".git/config")); string(got) != syntheticConfig {
				t.Errorf("the next command's settings are %q", got)
			}
			must(t, w.DropGit())
			if _, err := os.Lstat(filepath.Join(tree, ".git")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
			if after, err := os.ReadFile(filepath.Join(tree, "main.go")); err != nil || string(after) != string(before) {
				t.Errorf("the host changed a file to %q, %v", after, err)
			}
			if _, err := os.Lstat(filepath.Join(outside, "ran")); err == nil {
				t.Error("the host ran something")
			}
			if kept, err := os.ReadFile(filepath.Join(outside, "refs/heads/main")); err != nil || string(kept) != "mine" {
				t.Errorf("outside there is %q, %v", kept, err)
			}
		})
	}
}

// A command that changes its copy of the objects changes nobody else's.
func TestEachCommandHasItsOwnObjects(t *testing.T) {
	w := workOn(t, Limits{}, small)
	must(t, w.PutGit(t.Context(), SyntheticGit{}))
	packs, err := filepath.Glob(filepath.Join(w.Tree(), ".git/objects/pack/*"))
	must(t, err)
	if len(packs) < 2 {
		t.Fatalf("the objects are %q", packs)
	}
	for _, name := range packs {
		must(t, os.Chmod(name, 0o644))
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		must(t, err)
		_, err = file.WriteAt([]byte("poison"), 0)
		must(t, errors.Join(err, file.Close()))
	}
	must(t, w.PutGit(t.Context(), SyntheticGit{}))
	cli(t, w.Tree(), "fsck", "--strict")
}

// One that was not finished, because its process died, is begun again.
func TestAnInterruptedSyntheticGitIsMadeAgain(t *testing.T) {
	w := workOn(t, Limits{}, small)
	put(t, w.dir, map[string]string{"meta/synthetic.git/HEAD": "half", "meta/base.fresh/objects/pack/half": "x"})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := w.PutGit(stopped, SyntheticGit{}); err == nil {
		t.Error("it was made although nobody waits for it")
	}
	must(t, w.PutGit(t.Context(), SyntheticGit{}))
	cli(t, w.Tree(), "fsck", "--strict")
}

// Tags are those of the commit, annotated ones too, on a server and here.
func TestTagsOfACommit(t *testing.T) {
	server := serve(t)
	old := server.commit(t, "main", map[string]string{"file": "1\n"})
	head := server.commit(t, "main", map[string]string{"file": "2\n"})
	cli(t, server.bare, "tag", "v1.0.0", old)
	cli(t, server.bare, "tag", "v2.0.0", head)
	cli(t, server.bare, "tag", "-a", "-m", "released", "release/ünï", head)
	cli(t, server.bare, "tag", "-a", "-m", "again", "twice", "release/ünï")
	want := []string{"release/ünï", "twice", "v2.0.0"}
	cache := newCache(t, Limits{})
	if got, err := cache.Tags(t.Context(), server.remote(), head); err != nil || !slices.Equal(got, want) {
		t.Errorf("the server's are %q, %v", got, err)
	}
	local, err := OpenLocal(server.bare, Limits{})
	must(t, err)
	if got, err := local.Tags(t.Context(), head); err != nil || !slices.Equal(got, want) {
		t.Errorf("the local ones are %q, %v", got, err)
	}
	if got, err := local.Tags(t.Context(), strings.Repeat("1", 40)); err != nil || len(got) != 0 {
		t.Errorf("those of nothing are %q, %v", got, err)
	}
}

// A build in a checkout of the sealed commit is told what it was told before.
func TestASealedCommitIsBuiltOnTheSameSyntheticGit(t *testing.T) {
	w := workOn(t, Limits{}, small)
	put(t, w.Tree(), map[string]string{"main.go": "package main // changed\n", "new.go": "x\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	checked, err := w.CheckoutSealed(t.Context(), sealed, t.TempDir())
	must(t, err)
	what := SyntheticGit{Branch: "main", Tags: []string{"v1"}, Of: w}
	must(t, w.PutGit(t.Context(), what))
	must(t, checked.PutGit(t.Context(), what))
	for _, args := range []string{"rev-parse HEAD", "describe --tags --dirty", "status --porcelain", "diff", "ls-files -s", "fsck --strict"} {
		before, now := cli(t, w.Tree(), strings.Fields(args)...), cli(t, checked.Tree(), strings.Fields(args)...)
		if before != now {
			t.Errorf("git %s: %q, was %q", args, now, before)
		}
	}
	if now := mustTree(t, checked); now != sealed.Tree {
		t.Errorf("the checkout's tree is %s", now)
	}
}
