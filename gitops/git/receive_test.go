package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Packs as git makes them, with short and long chains of deltas, by place and by
// name, get the very index that git would give them, and every object can be
// read.
func TestReceivedPacksAreIndexedAsGitDoes(t *testing.T) {
	needGit(t)
	bare := filepath.Join(t.TempDir(), "history.git")
	cli(t, filepath.Dir(bare), "init", "-q", "--bare", bare)
	stream := filepath.Join(bare, "stream")
	must(t, os.WriteFile(stream, growing(300), 0o600))
	cli(t, bare, "-c", "alias.import=!git fast-import --quiet < "+stream, "import")
	must(t, os.WriteFile(stream, []byte("refs/heads/main\n"), 0o600))
	for _, arguments := range []string{"", "--delta-base-offset", "--delta-base-offset --depth=4000 --window=200", "--window=0", "--depth=4000"} {
		t.Run(arguments, func(t *testing.T) {
			dir := t.TempDir()
			script := "!git pack-objects -q --revs --no-reuse-delta " + arguments + " " + dir + "/pack < " + stream
			cli(t, bare, "-c", "alias.pack="+script, "pack")
			packs, err := filepath.Glob(filepath.Join(dir, "*.pack"))
			must(t, err)
			content, err := os.ReadFile(packs[0])
			must(t, err)
			objects := receiving(t)
			must(t, receivePack(t.Context(), objects, bytes.NewReader(content), 10<<20, layered{}))
			sum := sha1.Sum(content[:len(content)-20])
			name := filepath.Join(objects, "pack", fmt.Sprintf("pack-%x", sum))
			sameContent(t, packs[0], name+".pack")
			sameContent(t, strings.TrimSuffix(packs[0], ".pack")+".idx", name+".idx")
			if read := everyObject(t, objects, 10<<20); read < 900 {
				t.Errorf("only %d objects are there", read)
			}
		})
	}
}

// growing is a fast-import stream in which two files change with every commit,
// one of them at its end and one everywhere.
func growing(commits int) []byte {
	var out bytes.Buffer
	var log strings.Builder
	for n := range commits {
		fmt.Fprintf(&log, "line %d of a file that grows\n", n)
		fmt.Fprintf(&out, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata 2\nc\n\n", 1_700_000_000+n)
		for name, text := range map[string]string{"log": log.String(), fmt.Sprintf("d%d/f", n%9): strings.Repeat(fmt.Sprintf("%d\n", n), 500)} {
			fmt.Fprintf(&out, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
	}
	return out.Bytes()
}

func receiving(t testing.TB) string {
	t.Helper()
	objects := filepath.Join(t.TempDir(), "objects")
	must(t, os.MkdirAll(filepath.Join(objects, "pack"), 0o700))
	return objects
}

func sameContent(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	must(t, err)
	b, err := os.ReadFile(other)
	must(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("%s and %s differ", filepath.Base(one), filepath.Base(other))
	}
}

// everyObject reads all objects that are indexed, and checks that each is what
// its id says.
func everyObject(t testing.TB, objects string, maxSize int64) (count int) {
	t.Helper()
	store := newObjectStore(maxSize, objects)
	defer store.close()
	packs, err := store.loadPacks(false)
	must(t, err)
	for _, one := range packs {
		entries, err := one.index.Entries()
		must(t, err)
		for entry, err := entries.Next(); err == nil; entry, err = entries.Next() {
			object, err := store.get(entry.Hash)
			if CodeOf(err) == CodeTooLarge {
				continue
			}
			must(t, err)
			if object.Hash() != entry.Hash {
				t.Errorf("object %s has the content of %s", entry.Hash, object.Hash())
			}
			count++
		}
	}
	return count
}

// A part is one entry of a pack made by hand.
type part struct {
	kind     plumbing.ObjectType
	declared int // length that is declared; 0 for the content's
	before   []byte
	content  []byte
}

// whole is an object, back a delta of what stands so many bytes before it, named a
// delta of the object with an id.
func whole(content string) part { return part{kind: plumbing.BlobObject, content: []byte(content)} }

func back(distance byte, delta []byte) part {
	return part{kind: plumbing.OFSDeltaObject, before: []byte{distance}, content: delta}
}

func named(base plumbing.Hash, delta []byte) part {
	return part{kind: plumbing.REFDeltaObject, before: base[:], content: delta}
}

// insert is a delta that replaces a base of some length by a text.
func insert(base int, text string) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(base)), uint64(len(text)))
	return append(append(delta, byte(len(text))), text...)
}

// handMade is a pack without its checksum.
func handMade(count int, parts ...part) []byte {
	out := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), uint32(count))
	for _, one := range parts {
		length := one.declared
		if length == 0 {
			length = len(one.content)
		}
		first := byte(one.kind)<<4 | byte(length&15)
		for length >>= 4; length > 0; length >>= 7 {
			out = append(out, first|0x80)
			first = byte(length & 0x7f)
		}
		out = append(append(out, first), one.before...)
		var packed bytes.Buffer
		writer := zlib.NewWriter(&packed)
		_, _ = writer.Write(one.content)
		_ = writer.Close()
		out = append(out, packed.Bytes()...)
	}
	return out
}

func summed(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(bytes.Clone(pack), sum[:]...)
}

func blobID(content string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(content))
}

// Deltas by name are resolved in whatever order they come, also several deep.
func TestDeltasByNameInAnyOrder(t *testing.T) {
	parts := []part{
		named(blobID("second"), insert(6, "third")),
		named(blobID("first"), insert(5, "second")),
		whole("first"), whole("first"),
		named(blobID("third"), insert(5, "fourth")),
	}
	objects := receiving(t)
	must(t, receivePack(t.Context(), objects, bytes.NewReader(summed(handMade(len(parts), parts...))), 1000, layered{}))
	if count := everyObject(t, objects, 1000); count != 4 {
		t.Errorf("%d objects are there, want 4", count)
	}
	store := newObjectStore(1000, objects)
	defer store.close()
	for _, content := range []string{"first", "second", "third", "fourth"} {
		if got, err := readObject(store, blobID(content), plumbing.BlobObject, 100); string(got) != content || err != nil {
			t.Errorf("%q is %q, %v", content, got, err)
		}
	}
}

// What is not right is refused as a whole and leaves nothing behind.
func TestHostilePacksAreRefused(t *testing.T) {
	good := handMade(2, whole("first"), named(blobID("first"), insert(5, "second")))
	huge := binary.AppendUvarint(binary.AppendUvarint(nil, 5), 1<<40)
	flipped := summed(good)
	flipped[20] ^= 1
	for what, one := range map[string]struct {
		pack []byte
		code Code
	}{
		"not a pack":                     {[]byte("HTTP/1.1 200 OK"), ""},
		"a byte was changed":             {flipped, ""},
		"the checksum is another":        {append(bytes.Clone(good), make([]byte, 20)...), ""},
		"something behind it":            {append(summed(good), "more"...), ""},
		"fewer objects than said":        {summed(handMade(3, whole("first"))), ""},
		"more objects than said":         {summed(handMade(1, whole("first"), whole("second"))), ""},
		"an absurd count":                {summed(handMade(1<<32-1, whole("first"))), CodeTooLarge},
		"a kind that is not":             {summed(handMade(1, part{kind: 5, content: []byte("x")})), ""},
		"no kind":                        {summed(handMade(1, part{kind: 0, content: []byte("x")})), ""},
		"longer than declared":           {summed(handMade(1, part{kind: plumbing.BlobObject, declared: 2, content: []byte("four")})), ""},
		"shorter than declared":          {summed(handMade(1, part{kind: plumbing.BlobObject, declared: 9, content: []byte("four")})), ""},
		"a delta of what is not sent":    {summed(handMade(1, named(blobID("elsewhere"), insert(9, "x")))), CodeTransport},
		"deltas in a circle":             {summed(handMade(2, named(blobID("b"), insert(1, "a")), named(blobID("a"), insert(1, "b")))), CodeTransport},
		"a delta of itself":              {summed(handMade(1, back(0, insert(1, "x")))), ""},
		"a delta of the header":          {summed(handMade(1, back(5, insert(1, "x")))), ""},
		"a delta of what is before":      {summed(handMade(1, back(100, insert(1, "x")))), ""},
		"a delta of no object's start":   {summed(handMade(2, whole("first"), back(3, insert(5, "x")))), ""},
		"a delta for another length":     {summed(handMade(2, whole("first"), named(blobID("first"), insert(6, "x")))), ""},
		"a delta cut off":                {summed(handMade(2, whole("first"), named(blobID("first"), []byte{5}))), ""},
		"a result beyond all measure":    {summed(handMade(2, whole("first"), named(blobID("first"), append(huge, 1, 'x')))), CodeTooLarge},
		"a delta larger than an object":  {summed(handMade(2, whole("first"), part{kind: plumbing.REFDeltaObject, before: idBytes("first"), content: make([]byte, 2000)})), CodeTooLarge},
		"a base larger than is accepted": {summed(handMade(2, whole(strings.Repeat("x", 2000)), named(blobID(strings.Repeat("x", 2000)), insert(2000, "y")))), CodeTooLarge},
	} {
		t.Run(what, func(t *testing.T) {
			objects := receiving(t)
			err := receivePack(t.Context(), objects, bytes.NewReader(one.pack), 1000, layered{})
			if err == nil || one.code != "" && CodeOf(err) != one.code {
				t.Errorf("got %v, want %s", err, one.code)
			}
			leavesNoPack(t, objects)
		})
	}
	for length := range len(summed(good)) {
		objects := receiving(t)
		err := receivePack(t.Context(), objects, bytes.NewReader(summed(good)[:length]), 1000, layered{})
		if err == nil || (length == 0) != errors.Is(err, packfile.ErrEmptyPackfile) {
			t.Errorf("cut off after %d bytes: %v", length, err)
		}
		leavesNoPack(t, objects)
	}
}

func idBytes(content string) []byte {
	id := blobID(content)
	return id[:]
}

func leavesNoPack(t testing.TB, objects string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(objects, "pack"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("%d files are left, such as %s", len(left), left[0].Name())
	}
}

// An object that is too large to be read is refused before its bytes are.
func TestLargeObjectsAreRefusedByTheirDeclaredSize(t *testing.T) {
	objects := receiving(t)
	large := strings.Repeat("x", 5000)
	must(t, receivePack(t.Context(), objects, bytes.NewReader(summed(handMade(2, whole(large), whole("small")))), 1000, layered{}))
	store := newObjectStore(1000, objects)
	defer store.close()
	if _, err := store.get(blobID(large)); CodeOf(err) != CodeTooLarge {
		t.Errorf("got %v", err)
	}
	if _, err := store.get(blobID("small")); err != nil {
		t.Error(err)
	}
}

// Whatever a server sends, with a right checksum: either nothing is stored, or
// every stored object is what its id says.
func FuzzReceivePack(f *testing.F) {
	f.Add(handMade(2, whole("first"), named(blobID("first"), insert(5, "second"))))
	f.Add(handMade(2, whole("first"), back(14, insert(5, "second"))))
	f.Add(handMade(1, part{kind: plumbing.TreeObject, content: []byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa")}))
	f.Fuzz(func(t *testing.T, pack []byte) {
		objects := receiving(t)
		if err := receivePack(t.Context(), objects, bytes.NewReader(summed(pack)), 10_000, layered{}); err != nil {
			leavesNoPack(t, objects)
			return
		}
		everyObject(t, objects, 10_000)
	})
}
