package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Nothing about a file but its change time tells that it has another content, or
// nothing but its place: both are found.
func TestChangesThatHide(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"same": "one\n", "a/x": "1\n", "b/x": "2\n", "c": "3\n", "d": "4\n", "linked": "5\n", "other": "6\n"})
	at := func(name string) string { return filepath.Join(w.Tree(), name) }
	long := time.Now().Add(-time.Hour)
	w.written = long // so that stamps alone decide
	expectChanges(t, w)
	w.written = time.Now().Add(time.Hour)

	info, err := os.Stat(at("same"))
	must(t, err)
	must(t, os.WriteFile(at("same"), []byte("two\n"), 0o644))
	must(t, os.Chtimes(at("same"), info.ModTime(), info.ModTime()))
	must(t, os.Rename(at("a"), at("t")))
	must(t, os.Rename(at("b"), at("a")))
	must(t, os.Rename(at("t"), at("b")))
	must(t, os.Rename(at("c"), at("t")))
	must(t, os.Rename(at("d"), at("c")))
	must(t, os.Rename(at("t"), at("d")))
	must(t, os.Remove(at("linked")))
	must(t, os.Link(at("other"), at("linked")))
	expectChanges(t, w, "modified a/x", "modified b/x", "modified c", "modified d", "modified linked", "modified same")
}

// What is put back is never written through a hard link.
func TestHardLinksAreNotWrittenThrough(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("safe"), 0o600))
	w := workOn(t, Limits{}, map[string]string{"a": "base\n"})
	must(t, os.Remove(filepath.Join(w.Tree(), "a")))
	must(t, os.Link(outside, filepath.Join(w.Tree(), "a")))
	expectChanges(t, w, "modified a")
	must(t, w.Reset(t.Context(), Checkpoint{Base: w.Base(), Tree: w.tree.String()}))
	expectChanges(t, w)
	if content, err := os.ReadFile(outside); err != nil || string(content) != "safe" {
		t.Errorf("the outside holds %q, %v", content, err)
	}
}

// Edge case 14 with the limits that are in force: a file of 100 MB and one byte is
// refused without being read, and so is a device.
func TestLimitsInForce(t *testing.T) {
	w := workOn(t, Limits{}, map[string]string{"a": "x\n"})
	put(t, w.Tree(), map[string]string{"large": "x", "allowed": "x"})
	must(t, os.Truncate(filepath.Join(w.Tree(), "large"), 100<<20+1))
	must(t, os.Truncate(filepath.Join(w.Tree(), "allowed"), 10<<20))
	want := []string{"large"}
	if err := syscall.Mknod(filepath.Join(w.Tree(), "null"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
		want = append(want, "null")
	} else {
		t.Log("devices cannot be made here: not tested with one:", err)
	}
	changes, refused := scanned(t, w)
	for _, name := range want {
		if refused[name] == "" {
			t.Errorf("%s is not refused", name)
		}
	}
	if !slices.Equal(changes, []string{"added allowed"}) || len(refused) != len(want) {
		t.Errorf("changes are %q, refused %v", changes, refused)
	}
}

// Edge case 13 over the network: names that other clients refuse a whole clone
// for are fetched, kept and changed.
func TestUglyNamesFromAServer(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", map[string]string{"new\nline": "1\n", "tab\t": "2\n", "bad\xff": "3\n", "abs": "->/etc/passwd"})
	w := hand(t, newCache(t, Limits{}), server.remote(), "main")
	expectChanges(t, w)
	if target, err := os.Readlink(filepath.Join(w.Tree(), "abs")); target != "/etc/passwd" || err != nil {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	put(t, w.Tree(), map[string]string{"tab\t": "changed\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	_, err = w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed)
	must(t, err)
	if names := cli(t, server.bare, "ls-tree", "-z", "--name-only", "copilot/1-x"); names != "abs\x00bad\xff\x00new\nline\x00tab\t\x00" {
		t.Errorf("pushed are %q", names)
	}
}

// A tree that has one name twice, first as a link and then as a directory, would
// lead writers outside.
func TestOneNameTwiceIsRefused(t *testing.T) {
	outside := t.TempDir()
	bare := filepath.Join(t.TempDir(), "x.git")
	must(t, initBare(bare))
	store := func(kind plumbing.ObjectType, content string) string {
		object := newObject(kind, []byte(content))
		must(t, writeLoose(filepath.Join(bare, "objects"), object))
		id := object.Hash()
		return string(id[:])
	}
	file, link := store(plumbing.BlobObject, "x"), store(plumbing.BlobObject, outside)
	inner := store(plumbing.TreeObject, "100644 stolen\x00"+file)
	for what, tree := range map[string]string{
		"link and directory": "120000 d\x00" + link + "40000 d\x00" + inner,
		"directory and link": "40000 d\x00" + inner + "120000 d\x00" + link,
		"two files":          "100644 d\x00" + file + "100755 d\x00" + file,
	} {
		commit, _, err := buildCommit(plumbing.Hash([]byte(store(plumbing.TreeObject, tree))), plumbing.NewHash("1111111111111111111111111111111111111111"), bot)
		must(t, err)
		must(t, writeLoose(filepath.Join(bare, "objects"), commit))
		local, err := OpenLocal(bare, Limits{})
		must(t, err)
		if _, err := local.Checkout(t.Context(), commit.Hash().String(), filepath.Join(t.TempDir(), "ws")); CodeOf(err) != CodeCorrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside are %v, %v", left, err)
	}
}

// Edge case 15, the short way: a few objects that stand for ten billion files, or
// for as many directories without any file, or for one that is very deep. They
// are fetched at the cost of their objects, and never checked out.
func TestBombs(t *testing.T) {
	for what, c := range map[string]struct {
		leaf   string // "" for an empty directory
		levels int
		each   int
		fetch  Code
	}{
		"files":       {"x", 10, 10, ""},
		"directories": {"", 10, 10, ""},
		"deep":        {"x", 1000, 1, CodeTooLarge},
	} {
		t.Run(what, func(t *testing.T) {
			server := serve(t)
			objects := filepath.Join(server.bare, "objects")
			leaf, mode := newObject(plumbing.BlobObject, []byte(c.leaf)), "100644"
			if c.leaf == "" {
				leaf, mode = newObject(plumbing.TreeObject, nil), "40000"
			}
			must(t, writeLoose(objects, leaf))
			for range c.levels {
				var tree strings.Builder
				id := leaf.Hash()
				for i := range c.each {
					fmt.Fprintf(&tree, "%s d%d\x00%s", mode, i, id[:])
				}
				leaf, mode = newObject(plumbing.TreeObject, []byte(tree.String())), "40000"
				must(t, writeLoose(objects, leaf))
			}
			commit := newObject(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor A <a@b.c> 1 +0000\ncommitter A <a@b.c> 1 +0000\n\nx\n", leaf.Hash()))
			must(t, writeLoose(objects, commit))
			must(t, os.WriteFile(filepath.Join(server.bare, "refs", "heads", "main"), []byte(commit.Hash().String()+"\n"), 0o600))
			cache := newCache(t, Limits{})
			if _, err := cache.Fetch(t.Context(), server.remote(), "main"); CodeOf(err) != c.fetch {
				t.Fatalf("fetched: %v", err)
			}
			repo, err := cache.Repository(server.remote())
			must(t, err)
			dir := filepath.Join(t.TempDir(), "ws")
			if _, err := repo.Checkout(t.Context(), commit.Hash().String(), dir); CodeOf(err) != CodeTooLarge {
				t.Errorf("checked out: %v", err)
			}
		})
	}
}
