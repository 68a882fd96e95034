package git

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// A packReader reads the objects of one pack by their offsets. go-git's own
// reader hashes each object and each compressed byte on the way, belongs to one
// goroutine, and inflates an object before anybody can ask for its size; this
// one reads what is asked for, is shared, and refuses by the size that is
// declared. Deltas are applied by go-git.
//
// It is safe for concurrent use.
type packReader struct {
	file *os.File
	size int64
	// maxSize is the largest object that is read.
	maxSize int64
	// key makes an offset unique in bases.
	key int64
	// find returns the offset of an object of this pack, for deltas that name
	// their base by id.
	find func(id plumbing.Hash) (int64, error)
}

// maxChain is git's own limit on the length of a chain of deltas.
const maxChain = 4095

var errPack = errors.New("malformed pack")

// A packEntry is what stands before an object's compressed bytes.
type packEntry struct {
	kind plumbing.ObjectType
	size int64
	// base is where the object is that a delta is relative to.
	base int64
}

func (e packEntry) isDelta() bool {
	return e.kind == plumbing.OFSDeltaObject || e.kind == plumbing.REFDeltaObject
}

// An inflater reads one pack entry after another.
type inflater struct {
	buffer *bufio.Reader
	zlib   io.ReadCloser // also a zlib.Resetter; nil before its first use
}

// inflaters are kept, since each brings 40 kB of tables.
var inflaters = sync.Pool{New: func() any { return &inflater{buffer: bufio.NewReaderSize(nil, 8<<10)} }}

// read returns the object at an offset, whose bytes nobody may change.
func (p *packReader) read(offset int64) (plumbing.ObjectType, []byte, error) {
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	kind, content, chain, err := p.unwind(in, offset)
	if err != nil {
		return kind, nil, err
	}
	for i := len(chain) - 1; i >= 0; i-- {
		if err := p.checkResult(chain[i].delta); err != nil {
			return kind, nil, err
		}
		if content, err = packfile.PatchDelta(content, chain[i].delta); err != nil {
			return kind, nil, err
		}
		if i > 0 {
			p.remember(chain[i].offset, kind, content)
		}
	}
	return kind, content, nil
}

// remember keeps an object because it is the base of others, with its kind as one
// more byte at the end.
func (p *packReader) remember(offset int64, kind plumbing.ObjectType, content []byte) {
	bases.Put(p.key|offset, append(content, byte(kind)))
}

// A link of a chain is a delta and where it stands.
type chainLink struct {
	offset int64
	delta  []byte
}

// unwind follows deltas until something whole: an object, or a base that is
// remembered.
func (p *packReader) unwind(in *inflater, offset int64) (plumbing.ObjectType, []byte, []chainLink, error) {
	var chain []chainLink
	var held int64
	for range maxChain {
		if kept, ok := bases.Get(p.key | offset); ok {
			last := len(kept) - 1
			return plumbing.ObjectType(kept[last]), kept[:last:last], chain, nil
		}
		entry, err := p.entry(in, offset)
		if err != nil {
			return 0, nil, nil, err
		}
		if held += entry.size; held > 2*p.maxSize {
			return 0, nil, nil, tooLargeObject(held, p.maxSize)
		}
		content, err := p.inflate(in, entry)
		if err != nil {
			return 0, nil, nil, err
		}
		if !entry.isDelta() {
			if len(chain) > 0 {
				p.remember(offset, entry.kind, content)
			}
			return entry.kind, content, chain, nil
		}
		chain = append(chain, chainLink{offset, content})
		offset = entry.base
	}
	return 0, nil, nil, errPack
}

// entry reads what stands before an object; the inflater is then at its bytes.
func (p *packReader) entry(in *inflater, offset int64) (packEntry, error) {
	if offset < 0 || offset >= p.size {
		return packEntry{}, errPack
	}
	in.buffer.Reset(io.NewSectionReader(p.file, offset, p.size-offset))
	first, err := in.buffer.ReadByte()
	if err != nil {
		return packEntry{}, err
	}
	entry := packEntry{kind: plumbing.ObjectType(first >> 4 & 7), size: int64(first & 15)}
	for shift, next := 4, first; next&0x80 != 0; shift += 7 {
		if next, err = in.buffer.ReadByte(); err != nil || shift > 56 {
			return packEntry{}, errors.Join(errPack, err)
		}
		entry.size |= int64(next&0x7f) << shift
	}
	if entry.size < 0 || entry.size > p.maxSize {
		return packEntry{}, tooLargeObject(entry.size, p.maxSize)
	}
	switch entry.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return entry, nil
	case plumbing.OFSDeltaObject:
		back, err := readBack(in.buffer)
		if err != nil || back <= 0 || back >= offset {
			return packEntry{}, errors.Join(errPack, err)
		}
		entry.base = offset - back
		return entry, nil
	case plumbing.REFDeltaObject:
		var id plumbing.Hash
		if _, err := io.ReadFull(in.buffer, id[:]); err != nil {
			return packEntry{}, err
		}
		entry.base, err = p.find(id)
		return entry, err
	}
	return packEntry{}, errPack
}

// readBack reads how far before a delta its base stands, in git's own variant of a
// variable-length number.
func readBack(in *bufio.Reader) (int64, error) {
	next, err := in.ReadByte()
	back := int64(next & 0x7f)
	for next&0x80 != 0 && err == nil {
		if back > 1<<48 {
			return 0, errPack
		}
		next, err = in.ReadByte()
		back = (back+1)<<7 | int64(next&0x7f)
	}
	return back, err
}

// inflate returns the bytes of the entry that was read last. One byte more is
// allocated, for the kind.
func (p *packReader) inflate(in *inflater, entry packEntry) ([]byte, error) {
	var err error
	if in.zlib == nil {
		in.zlib, err = zlib.NewReader(in.buffer)
	} else {
		err = in.zlib.(zlib.Resetter).Reset(in.buffer, nil)
	}
	if err != nil {
		return nil, err
	}
	content := make([]byte, entry.size, entry.size+1)
	if _, err := io.ReadFull(in.zlib, content); err != nil {
		return nil, err
	}
	var more [1]byte
	if n, err := in.zlib.Read(more[:]); n > 0 || err != io.EOF {
		return nil, errors.Join(errPack, err) // longer than declared, or with a wrong checksum
	}
	return content, nil
}

// checkResult refuses a delta whose result would be too large, before it is made.
func (p *packReader) checkResult(delta []byte) error {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return errPack
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return errPack
	}
	if size > uint64(p.maxSize) {
		return tooLargeObject(int64(min(size, 1<<62)), p.maxSize)
	}
	return nil
}

func tooLargeObject(size, limit int64) error {
	return failf(CodeTooLarge, nil, "an object of the repository has %d bytes, more than the limit of %d", size, limit)
}
