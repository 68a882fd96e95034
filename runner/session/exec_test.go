package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"handoff/runner/outbox"
	"handoff/runner/store"
)

// gitRules let commands see a made-up .git, and test what they see.
const gitRules = "git: synthetic\nsetup: test \"$(git rev-parse --abbrev-ref HEAD)\" = main\n" +
	"test: test \"$(git rev-parse HEAD)\" = \"$(cat base.txt)\" && test ! -e .git/hooks\n"

// A process that dies while a command runs leaves the command's .git behind,
// which may be anything by then. Whoever goes on takes it away unread.
func TestWhatACrashLeavesOfAMadeUpGitIsTakenAway(t *testing.T) {
	needGit(t)
	files := aShop()
	files[".github/handoff.yml"] = gitRules
	w := newWorld(t, files)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "HEAD"), "not ours")
	w.calls("run_command", map[string]any{"command": "git rev-parse HEAD > base.txt; rm -rf .git; ln -s " + outside + " .git"})
	w.pushes()
	id := w.asked()
	w.works()
	w.is(id, store.StateAwaitingApproval)
	if prompt := w.prompt(id); !strings.Contains(prompt, "✅ passed") {
		t.Errorf("the host's own run saw another .git:\n%s", prompt)
	}
	left := filepath.Join(w.conductor.workspaceDir(id), "tree", ".git")
	gone(t, left)
	for what, leave := range map[string]func() error{
		"a link":    func() error { return os.Symlink(outside, left) },
		"a gitfile": func() error { return os.WriteFile(left, []byte("gitdir: "+outside+"\n"), 0o644) },
		"a hook": func() error {
			write(t, filepath.Join(left, "hooks", "post-checkout"), "#!/bin/sh\ntouch "+outside+"/ran\n")
			return os.Chmod(filepath.Join(left, "hooks", "post-checkout"), 0o755)
		},
	} {
		w.ok(leave())
		row := w.question(id)
		_, err := w.store.Decide(t.Context(), row.ID, store.Decision{State: store.ApprovalSuperseded, By: "host", Via: store.ViaTerminal, Reason: what})
		w.ok(err)
		w.works()
		w.is(id, store.StateAwaitingApproval)
		gone(t, left)
	}
	gone(t, filepath.Join(outside, "ran"))
	if kept := read(t, filepath.Join(outside, "HEAD")); kept != "not ours" {
		t.Errorf("outside there is %q", kept)
	}
}

// The tags of the base are those on GitHub when the session began, for the crew
// and for the host's own tests.
func TestTagsOfTheBaseArePinned(t *testing.T) {
	needGit(t)
	w := newWorld(t, map[string]string{
		"README.md": "A shop.\n", ".github/handoff.yml": "git: synthetic\ntest: test \"$(git tag)\" = \"$(cat version.txt)\"\n",
	})
	repository, _ := w.github.State().Repository(owner + "/" + name)
	tag := func(tag, commit string) {
		w.ok(w.app.Installation(w.installation).Committer(w.repository).CreateBranch(t.Context(), "refs/tags/"+tag, commit))
	}
	base := repository.Branches["main"]
	w.commits("main", "NEWS.md", "Later.\n")
	repository, _ = w.github.State().Repository(owner + "/" + name)
	tag("v0.9.0", base)
	tag("v1.0.0", repository.Branches["main"])
	w.calls("run_command", map[string]any{"command": "git tag > version.txt"})
	w.pushes()
	id := w.asked()
	w.works()
	tag("v2.0.0", repository.Branches["main"])
	_, err := w.store.Decide(t.Context(), w.question(id).ID, store.Decision{State: store.ApprovalSuperseded, By: "host", Via: store.ViaTerminal, Reason: "again"})
	w.ok(err)
	w.works(w.newConductor())
	w.is(id, store.StateAwaitingApproval)
	if prompt := w.prompt(id); !strings.Contains(prompt, "✅ passed") || !strings.Contains(prompt, "+v1.0.0") || strings.Contains(prompt, "v2.0.0") || strings.Contains(prompt, "v0.9.0") {
		t.Errorf("the prompt says\n%s", prompt)
	}
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed: a made-up .git was not looked at")
	}
}

func gone(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", name, err)
	}
}

// prompt returns what maintainers are asked last in a session.
func (w *world) prompt(id string) string {
	w.Helper()
	effects, err := w.store.EffectsOfSession(w.Context(), id)
	w.ok(err)
	for _, effect := range slices.Backward(effects) {
		var payload outbox.CommentCreate
		if effect.Kind == outbox.KindCommentCreate && json.Unmarshal(effect.Payload, &payload) == nil && payload.ApprovalID != "" {
			return payload.Body
		}
	}
	w.Fatal("nobody was asked")
	return ""
}
