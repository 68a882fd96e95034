package git

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var bot = CommitInfo{
	Author:    Identity{"handoff[bot]", "1+handoff[bot]@users.noreply.github.com"},
	CoAuthors: []Identity{{"Ada", "ada@example.com"}},
	Trailers:  []Trailer{{"Session", "https://handoff.example/sessions/1"}},
	When:      time.Unix(1_700_000_100, 0),
	Message:   "Add a login endpoint",
}

var small = map[string]string{
	"README.md":       "# service\n",
	"main.go":         "package main\n\nfunc main() {}\n",
	"run.sh":          "#!/bin/sh\n",
	"docs/link":       "->../README.md",
	"internal/a/a.go": "package a\n",
	"internal/b/b.go": "package b\n",
	".gitignore":      "*.log\nbuild/\n",
}

// A session's whole life: fetch, work, seal, test on a clean checkout, push; and
// what git itself then sees is what was meant.
func TestFromFetchToPush(t *testing.T) {
	server := serve(t)
	base := server.commit(t, "main", small)
	cache := newCache(t, Limits{})
	w := hand(t, cache, server.remote(), "main")
	if w.Base() != base {
		t.Fatalf("base is %s, want %s", w.Base(), base)
	}
	if changes, err := w.Changes(t.Context()); err != nil || len(changes) != 0 {
		t.Fatalf("a fresh workspace has changes %v, %v", changes, err)
	}
	put(t, w.Tree(), map[string]string{
		"main.go":         "package main\n\nfunc main() { serve() }\n",
		"login/login.go":  "package login\n",
		"internal/b/b.go": "",
		"debug.log":       "noise",
		"build/out":       "noise",
	})
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]ChangeKind{}
	for _, change := range changes {
		kinds[change.Path] = change.Kind
	}
	want := map[string]ChangeKind{"main.go": Modified, "login/login.go": Added, "internal/b/b.go": Deleted}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}

	sealed, err := w.Seal(t.Context(), bot)
	if err != nil {
		t.Fatal(err)
	}
	if tree, err := w.TreeID(t.Context()); err != nil || tree != sealed.Tree {
		t.Errorf("tree %s, %v; sealed %s", tree, err, sealed.Tree)
	}
	clean, err := w.CheckoutSealed(t.Context(), sealed, filepath.Join(t.TempDir(), "test"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(clean.Tree(), "debug.log")); err == nil {
		t.Error("an ignored file is part of the sealed tree")
	}

	ref := "refs/heads/" + BranchName(12, "Add a login endpoint", "ab12")
	result, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref, Protected: []string{"refs/heads/main"}}, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if result.Objects != 6 { // commit, root, internal, main.go, login, login.go
		t.Errorf("%d objects were sent", result.Objects)
	}
	if there, err := cache.RemoteRef(t.Context(), server.remote(), ref); err != nil || there != sealed.Commit {
		t.Errorf("the server has %s, %v", there, err)
	}
	cli(t, server.bare, "fsck", "--strict", "--no-dangling")
	if got := cli(t, server.bare, "show", "-s", "--format=%an|%ae|%at|%P|%B", ref); got != "handoff[bot]|1+handoff[bot]@users.noreply.github.com|1700000100|"+base+
		"|Add a login endpoint\n\nSession: https://handoff.example/sessions/1\nCo-authored-by: Ada <ada@example.com>\n" {
		t.Errorf("git shows %q", got)
	}
	again, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref}, sealed)
	if err != nil || !again.AlreadyThere {
		t.Errorf("a repeated push: %+v, %v", again, err)
	}
}
