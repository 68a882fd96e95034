package git

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// hostileFiles are in the base commit and again in the tree: whatever git, or a
// tool around it, takes as an order to run or to fetch something.
func hostileFiles(script, thief string) map[string]string {
	settings := "[core]\n\tfsmonitor = " + script + "\n\thooksPath = hooks\n\tsshCommand = " + script + "\n\tattributesFile = .gitattributes\n\tgitProxy = " + script +
		"\n[filter \"x\"]\n\tclean = " + script + "\n\tsmudge = " + script + "\n\tprocess = " + script + "\n\trequired = true\n[diff \"x\"]\n\tcommand = " + script + "\n\ttextconv = " + script +
		"\n[merge \"x\"]\n\tdriver = " + script + "\n[url \"" + thief + "/\"]\n\tinsteadOf = http://\n\tinsteadOf = https://\n\tpushInsteadOf = http://\n[remote \"origin\"]\n\turl = " + thief +
		"/x.git\n\tuploadpack = " + script + "\n[credential]\n\thelper = " + script + "\n[http]\n\tproxy = " + thief + "\n\textraHeader = X: y\n[include]\n\tpath = /etc/passwd\n[protocol \"ext\"]\n\tallow = always\n"
	return map[string]string{
		".gitattributes": "* filter=x diff=x merge=x text=auto eol=crlf ident\n", ".gitconfig": settings, ".lfsconfig": "[lfs]\n\turl = " + thief + "\n",
		".gitmodules":      "[submodule \"m\"]\n\tpath = m\n\turl = ext::" + script + "\n\tupdate = !" + script + "\n",
		"hooks/pre-commit": "#!/bin/sh\n" + script + "\n", ".githooks/post-checkout": "#!/bin/sh\n" + script + "\n",
		"pointer.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 3\n", "plain.txt": "one\ntwo\n",
	}
}

// The host's own life with a hostile tree, from the checkout to the push: it
// runs nothing, asks nobody else, changes no byte, and its own account's settings
// count for nothing either.
func TestNothingInATreeHasAnEffectOnTheHost(t *testing.T) {
	outside := t.TempDir()
	ran := filepath.Join(outside, "ran")
	script := filepath.Join(outside, "evil.sh")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755))
	var asked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	hostile := hostileFiles(script, thief.URL)
	server := serve(t)
	server.commit(t, "main", hostile)

	home := t.TempDir()
	put(t, home, map[string]string{".gitconfig": hostile[".gitconfig"], ".config/git/config": hostile[".gitconfig"], ".netrc": "machine 127.0.0.1 login evil password evil\n"})
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for name, value := range map[string]string{
		"GIT_DIR": filepath.Join(outside, "none"), "GIT_EXEC_PATH": outside, "GIT_SSH_COMMAND": script, "GIT_EXTERNAL_DIFF": script, "GIT_ASKPASS": script,
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url." + thief.URL + "/.insteadOf", "GIT_CONFIG_VALUE_0": "http://",
	} {
		t.Setenv(name, value)
	}

	w := hand(t, newCache(t, Limits{}), server.remote(), "main")
	expectChanges(t, w)
	base, err := w.Checkpoint(t.Context(), nil)
	must(t, err)
	put(t, w.Tree(), map[string]string{
		".git/config": hostile[".gitconfig"], ".git/HEAD": "ref: refs/heads/evil\n", ".git/objects/info/alternates": outside + "\n",
		".git/hooks/pre-push": hostile["hooks/pre-commit"], ".git/hooks/reference-transaction": hostile["hooks/pre-commit"], ".git/info/attributes": "* filter=x\n",
		"sub/.git": "gitdir: " + outside + "\n", "sub/a.txt": "kept\r\n", "plain.txt": "one\r\nTWO\n", "deep/.git/config": hostile[".gitconfig"], "deep/b.txt": "$Id$\n",
	})
	want := []string{"added deep/b.txt", "modified plain.txt", "added sub/a.txt"}
	expectChanges(t, w, want...)
	if diff, err := w.Diff(t.Context()); err != nil || !strings.Contains(diff, "+TWO\n") {
		t.Errorf("the diff is %q, %v", diff, err)
	}
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	checked, err := w.CheckoutSealed(t.Context(), sealed, t.TempDir())
	must(t, err)
	for name, content := range map[string]string{"plain.txt": "one\r\nTWO\n", "sub/a.txt": "kept\r\n", "deep/b.txt": "$Id$\n", ".gitattributes": hostile[".gitattributes"]} {
		if got, err := os.ReadFile(filepath.Join(checked.Tree(), name)); err != nil || string(got) != content {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	_, err = w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed)
	must(t, err)
	if _, err := w.NewObjects(t.Context(), sealed); err != nil {
		t.Error(err)
	}
	must(t, w.PutGit(t.Context(), SyntheticGit{Branch: "main"}))
	must(t, w.DropGit())
	reverted, err := w.RevertOutside(t.Context(), base, func(path string) bool { return path == "plain.txt" })
	must(t, err)
	if !slices.Equal(reverted, []string{"deep/b.txt", "sub/a.txt"}) {
		t.Errorf("reverted: %q", reverted)
	}
	must(t, w.Reset(t.Context(), base))
	expectChanges(t, w)

	if _, err := os.Lstat(ran); err == nil {
		t.Error("the host ran something")
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("somebody else was asked %d times", n)
	}
	if got := cli(t, server.bare, "rev-parse", "copilot/1-x^{tree}"); got != sealed.Tree {
		t.Errorf("pushed was the tree %s, sealed %s", got, sealed.Tree)
	}
}
