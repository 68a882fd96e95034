package git

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"golang.org/x/sync/errgroup"
)

// A receiver takes in a pack that a server sends and makes its index. go-git's
// own inflates every object up to three times and one after another; this one
// does it once for whole objects and twice for deltas, which it resolves on all
// processors, a family at a time. Memory is bounded by about 200 bytes an object,
// of which the index takes the most, and the objects that are being resolved.
//
// A pack may be thin: hold changes of objects that we said we have. Without that
// a server that is asked for one commit sends all of its files, whatever we have.
// Such objects are put behind the others, as git does, so that what is stored is
// whole in itself.
type receiver struct {
	file     *os.File
	pack     *packReader
	entries  []received
	checksum plumbing.Hash
	// deltas are the entries that are deltas of a place, by that place.
	deltas []int
	// deflater compresses what is added; it is kept, since it takes a megabyte.
	deflater *zlib.Writer

	mu sync.Mutex
	// byID are the entries that are deltas of an object named by its id, and known
	// where those objects are.
	byID  map[plumbing.Hash][]int
	known map[plumbing.Hash]int64
	// left is how many entries have no id yet.
	left int
}

// A received is one entry of the pack.
type received struct {
	offset int64
	// base is the offset of what this is a delta of; 0 for a whole object, and for
	// a delta that names its base by id.
	base int64
	id   plumbing.Hash
	crc  uint32
}

// receivePack stores a pack below objects/pack, with its index. The file appears
// under its name when all of it is there and right. What a thin pack builds on is
// taken from here. A stream without any pack gives [packfile.ErrEmptyPackfile].
func receivePack(ctx context.Context, objects string, from io.Reader, maxSize int64, here source) (err error) {
	dir := filepath.Join(objects, "pack")
	file, err := os.CreateTemp(dir, "tmp_pack_")
	if err != nil {
		return ioError(err, "the cache cannot be written")
	}
	defer func() { err = errors.Join(err, file.Close(), os.RemoveAll(file.Name())) }()
	r := &receiver{file: file, byID: map[plumbing.Hash][]int{}, known: map[plumbing.Hash]int64{}}
	if err := r.scan(ctx, from); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil || len(r.entries) == 0 {
		return ioError(err, "the cache cannot be written")
	}
	r.pack = &packReader{file: file, size: info.Size() - checksumSize, maxSize: maxSize, key: newPackKey(), find: r.find}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	if err := r.complete(ctx, here); err != nil {
		return err
	}
	name := filepath.Join(dir, "pack-"+r.checksum.String())
	if err := errors.Join(file.Chmod(0o444), os.Rename(file.Name(), name+".pack")); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	return ioError(r.writeIndex(name+".idx"), "the cache cannot be written")
}

// maxPackObjects bounds what a fetch keeps in memory, at 200 bytes an object: the
// tip of the largest repositories known has a tenth of it.
const maxPackObjects = 5_000_000

// checksumSize is the size of the checksum at the end of a pack.
const checksumSize = 20

// scan reads the stream to its end, copies it to the file, and notes every entry.
func (r *receiver) scan(ctx context.Context, from io.Reader) error {
	out := bufio.NewWriterSize(r.file, 1<<16)
	tail := &lastBytes{}
	stream := io.TeeReader(from, io.MultiWriter(out, tail))
	scanner := packfile.NewScanner(stream)
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if count > maxPackObjects {
		return failf(CodeTooLarge, nil, "the git server sends %d objects at once, more than %d", count, maxPackObjects)
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := r.scanEntry(scanner); err != nil {
			return err
		}
	}
	if r.checksum, err = scanner.Checksum(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return err
	}
	if plumbing.Hash(tail.last) != r.checksum {
		return errPack // there is something behind the pack
	}
	return ioError(out.Flush(), "the cache cannot be written")
}

// lastBytes keeps the last bytes of what is written, as many as a checksum has.
type lastBytes struct{ last [checksumSize]byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	if len(p) >= len(l.last) {
		copy(l.last[:], p[len(p)-len(l.last):])
		return len(p), nil
	}
	copy(l.last[:], l.last[len(p):])
	copy(l.last[len(l.last)-len(p):], p)
	return len(p), nil
}

func (r *receiver) scanEntry(scanner *packfile.Scanner) error {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return err
	}
	entry := received{offset: header.Offset}
	switch header.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hasher := plumbing.NewHasher(header.Type, header.Length)
		var n int64
		if n, entry.crc, err = scanner.NextObject(hasher); err != nil || n != header.Length {
			return cmp.Or(err, errPack)
		}
		entry.id = hasher.Sum()
		r.entries = append(r.entries, entry)
		return nil
	case plumbing.OFSDeltaObject:
		entry.base = header.OffsetReference
	case plumbing.REFDeltaObject:
		r.byID[header.Reference] = append(r.byID[header.Reference], len(r.entries))
	default:
		return errPack
	}
	if _, entry.crc, err = scanner.NextObject(io.Discard); err != nil {
		return err
	}
	r.left++
	r.entries = append(r.entries, entry)
	return nil
}

// find returns where an object is that a delta names by its id.
func (r *receiver) find(id plumbing.Hash) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	offset, ok := r.known[id]
	if !ok {
		return 0, errPack
	}
	return offset, nil
}

// resolve gives every delta its id: family by family, each from its whole object
// down, so that a base is remembered when its deltas are read.
func (r *receiver) resolve(ctx context.Context) error {
	var whole []int
	for i, entry := range r.entries {
		switch {
		case entry.base != 0:
			r.deltas = append(r.deltas, i)
		case entry.id != plumbing.ZeroHash:
			whole = append(whole, i)
		}
	}
	slices.SortFunc(r.deltas, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.entries[a].base, r.entries[b].base), cmp.Compare(a, b))
	})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxReaders))
	for _, n := range whole {
		if children := r.children(n); len(children) > 0 {
			group.Go(func() error { return r.family(ctx, children) })
		}
	}
	return group.Wait()
}

// children returns the entries that are deltas of the n-th, whose id is known.
func (r *receiver) children(n int) []int {
	offset, id := r.entries[n].offset, r.entries[n].id
	first, _ := slices.BinarySearchFunc(r.deltas, offset, func(i int, base int64) int { return cmp.Compare(r.entries[i].base, base) })
	last := first
	for last < len(r.deltas) && r.entries[r.deltas[last]].base == offset {
		last++
	}
	children := r.deltas[first:last:last]
	r.mu.Lock()
	defer r.mu.Unlock()
	if named, ok := r.byID[id]; ok {
		r.known[id] = offset
		delete(r.byID, id)
		children = append(children, named...)
	}
	return children
}

// family resolves deltas and all that is relative to them, depth first.
func (r *receiver) family(ctx context.Context, members []int) error {
	pending := slices.Clone(members)
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entry := &r.entries[n]
		kind, content, err := r.pack.read(entry.offset)
		if err != nil {
			return err
		}
		entry.id = plumbing.ComputeHash(kind, content)
		children := r.children(n)
		if len(children) > 0 {
			r.pack.remember(entry.offset, kind, content)
		}
		pending = append(pending, children...)
		r.mu.Lock()
		r.left--
		r.mu.Unlock()
	}
	return nil
}

func (r *receiver) writeIndex(name string) error {
	writer := &idxfile.Writer{}
	if err := writer.OnHeader(uint32(len(r.entries))); err != nil {
		return err
	}
	for _, entry := range r.entries {
		writer.Add(entry.id, uint64(entry.offset), entry.crc)
	}
	if err := writer.OnFooter(r.checksum); err != nil {
		return err
	}
	index, err := writer.Index()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "tmp_idx_")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // unless it was renamed
	out := bufio.NewWriterSize(file, 1<<16)
	_, err = idxfile.NewEncoder(out).Encode(index)
	if err := errors.Join(err, out.Flush(), file.Chmod(0o444), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
