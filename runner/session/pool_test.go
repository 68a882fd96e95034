package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"handoff/gitops/fakegithub"
	"handoff/gitops/git"
	"handoff/runner/store"
)

// The second session of a repository gets a tree that the first one had made
// ready: the very same directory, advanced to where the branch is now. The first
// found none, and one that goes on later asks for none.
func TestASessionTakesTheTreeThatIsReady(t *testing.T) {
	w := newWorld(t, aShop())
	pool := w.conductor.Pool.(*git.Pool)
	ready := func(want int) {
		t.Helper()
		w.conductor.warm(t.Context())
		if trees, _ := pool.Usage(); trees != want {
			t.Fatalf("%d trees are ready, want %d", trees, want)
		}
	}
	first := w.asked()
	w.works()
	w.is(first, store.StateCompleted)
	ready(1)
	found, err := filepath.Glob(filepath.Join(w.conductor.DataDir, "pool", "*", "*", "*", "*", "tree"))
	w.ok(err)
	made, err := os.Stat(found[0])
	w.ok(err)

	_, err = w.github.Commit(fakegithub.CommitSpec{
		Repository: owner + "/" + name, Branch: "main", Author: "mona", Message: "On", Files: map[string]string{"new.txt": "new\n", "README.md": "Another shop.\n"},
	})
	w.ok(err)
	w.writes("greeting.txt", "hello\n")
	w.pushes()
	second := w.asked()
	w.sends(func() { w.works(); w.approves(second) })
	tree := filepath.Join(w.conductor.workspaceDir(second), "tree")
	taken, err := os.Stat(tree)
	w.ok(err)
	if !os.SameFile(made, taken) {
		t.Error("the session's tree was made anew although one was ready")
	}
	for file, want := range map[string]string{"new.txt": "new\n", "README.md": "Another shop.\n", "greeting.txt": "hello\n"} {
		if content, err := os.ReadFile(filepath.Join(tree, file)); string(content) != want || err != nil {
			t.Errorf("%s is %q, %v", file, content, err)
		}
	}
	ready(1)
	row := w.question(second)
	w.sends(func() { w.works() })
	w.is(second, store.StateCompleted)
	w.conductor.warmer.mu.Lock()
	defer w.conductor.warmer.mu.Unlock()
	if len(w.conductor.warmer.wanted) != 0 {
		t.Error("a session that went on asks for a tree of the branch as it was")
	}
	repository, _ := w.github.State().Repository(owner + "/" + name)
	if files, err := w.github.CommitFiles(owner+"/"+name, row.Commit); err != nil || files["new.txt"] != "new\n" || files["greeting.txt"] != "hello\n" {
		t.Errorf("pushed were %q, %v, the branches are %v", files, err, repository.Branches)
	}
}

// Nobody wants more than one tree of a repository, and that of its newest commit.
func TestTheNewestWishForATreeCounts(t *testing.T) {
	w := newWarmer()
	one, other := git.Remote{InstallationID: 1, RepositoryID: 1}, git.Remote{InstallationID: 2, RepositoryID: 1}
	for _, wish := range []warmth{{one, "a"}, {other, "b"}, {one, "c"}} {
		w.want(wish)
	}
	for _, want := range []string{"c", "b"} {
		if got, ok := w.next(); !ok || got.commit != want {
			t.Errorf("the next is %q, %v, want %q", got.commit, ok, want)
		}
	}
	if got, ok := w.next(); ok {
		t.Errorf("there is still %q", got.commit)
	}
}

// A brokenPool has a fault that a repository brings out.
type brokenPool struct {
	Pool
	asked int
}

func (p *brokenPool) Prepare(context.Context, git.Remote, string) error {
	p.asked++
	panic("index out of range")
}

// A repository whose tree brings out a fault ends neither the node nor the work
// for others.
func TestAFaultInMakingTreesReadyEndsNothing(t *testing.T) {
	w := newWorld(t, aShop())
	pool := &brokenPool{Pool: w.conductor.Pool}
	w.conductor.Pool = pool
	for installation := range int64(2) {
		w.conductor.warmer.want(warmth{git.Remote{InstallationID: installation, RepositoryID: 1}, "a"})
	}
	w.conductor.warm(t.Context())
	if pool.asked != 2 {
		t.Errorf("%d of two trees were asked for", pool.asked)
	}
}
