package git

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A fetch of one commit with little that is new brings little, as changes of what
// is here; and what is stored is whole in itself, to git's own eyes too.
func TestAWarmFetchBringsOnlyWhatIsNew(t *testing.T) {
	server := serve(t)
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("dir%d/file%d", i%10, i)] = strings.Repeat(fmt.Sprintf("line of %d, not to be compressed away: %d\n", i, i*7919), 100)
	}
	server.commit(t, "main", files)
	var log bytes.Buffer
	cache, err := NewCache(Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	defer cache.Close()
	for n := range 4 {
		if n > 0 {
			files[fmt.Sprintf("dir%d/file%d", n, n)] += "one more line\n"
			server.commit(t, "main", map[string]string{fmt.Sprintf("dir%d/file%d", n, n): files[fmt.Sprintf("dir%d/file%d", n, n)]})
		}
		w := hand(t, cache, server.remote(), "main")
		expectChanges(t, w)
		content, err := os.ReadFile(filepath.Join(w.Tree(), fmt.Sprintf("dir%d/file%d", n, n)))
		if err != nil || string(content) != files[fmt.Sprintf("dir%d/file%d", n, n)] {
			t.Errorf("after fetch %d a file is %q, %v", n, clip(string(content), 100), err)
		}
	}
	sizes := regexp.MustCompile(`bytes=(\d+)`).FindAllStringSubmatch(log.String(), -1)
	if len(sizes) != 4 {
		t.Fatalf("there were %d fetches:\n%s", len(sizes), log.String())
	}
	for _, size := range sizes[1:] {
		if n, err := strconv.Atoi(size[1]); n > 2000 || err != nil {
			t.Errorf("a changed line took %s bytes, all files %s", size[1], sizes[0][1])
		}
	}
	dir, err := cache.path(server.remote())
	must(t, err)
	cli(t, dir, "fsck", "--strict")
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	must(t, err)
	if len(packs) != 4 {
		t.Errorf("the packs are %q", packs)
	}
	for _, pack := range packs {
		index := filepath.Join(t.TempDir(), "git.idx")
		cli(t, dir, "index-pack", "-o", index, pack)
		sameContent(t, index, strings.TrimSuffix(pack, ".pack")+".idx")
	}
}

// blobs are a source of a few blobs.
type blobs []string

func (b blobs) get(id plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, content := range b {
		if blobID(content) == id {
			return newObject(plumbing.BlobObject, []byte(content)), nil
		}
	}
	return nil, missing(id)
}

// What a thin pack builds on is put into it, however the changes are chained.
func TestAThinPackIsCompleted(t *testing.T) {
	parts := []part{
		named(blobID("second"), insert(6, "third")),
		named(blobID("here"), insert(4, "second")),
		named(blobID("also here"), insert(9, "fourth")),
		whole("own"),
	}
	objects := receiving(t)
	must(t, receivePack(t.Context(), objects, bytes.NewReader(summed(handMade(len(parts), parts...))), 1000, blobs{"here", "also here", "not needed"}))
	if count := everyObject(t, objects, 1000); count != 6 {
		t.Errorf("%d objects are there, want the four that came and the two they build on", count)
	}
	packs, err := filepath.Glob(filepath.Join(objects, "pack", "*.pack"))
	must(t, err)
	cli(t, objects, "index-pack", "--strict", "-o", filepath.Join(t.TempDir(), "idx"), packs[0])

	objects = receiving(t)
	err = receivePack(t.Context(), objects, bytes.NewReader(summed(handMade(len(parts), parts...))), 1000, blobs{"here"})
	if CodeOf(err) != CodeTransport {
		t.Errorf("a base that is nowhere: %v", err)
	}
	leavesNoPack(t, objects)
}

// A server that leaves a file out is found out when it is fetched, asked once more
// for all of it, and then refused: no session begins on half a repository.
func TestWhatAServerLeavesOutIsFoundAtOnce(t *testing.T) {
	server := servePlain(t)
	commit := server.commit(t, "main", map[string]string{"a": "1\n", "dir/b": "2\n"})
	must(t, os.Remove(loosePath(filepath.Join(server.bare, "objects"), blobID("2\n"))))
	cache := newCache(t, Limits{})
	if _, err := cache.Fetch(t.Context(), server.remote(), "main"); CodeOf(err) != CodeTransport {
		t.Errorf("got %v", err)
	}
	dir, err := cache.path(server.remote())
	must(t, err)
	if hasTip(dir, plumbing.NewHash(commit)) {
		t.Error("the commit passes for whole")
	}
}
