package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// complete puts what a thin pack builds on behind its own objects, and gives the
// deltas of that their ids.
func (r *receiver) complete(ctx context.Context, here source) error {
	added := 0
	for r.left > 0 {
		id, object, err := r.lookFor(here)
		if err == nil {
			err = r.add(id, object)
		}
		if err != nil {
			return err
		}
		added++
		if err := r.family(ctx, r.children(len(r.entries)-1)); err != nil {
			return err
		}
	}
	if added == 0 {
		return nil
	}
	return ioError(r.sum(), "the cache cannot be written")
}

// lookFor returns an object that deltas name, that has not come, and that is here.
// Others that they name may be deltas of it.
func (r *receiver) lookFor(here source) (plumbing.Hash, plumbing.EncodedObject, error) {
	for id := range r.byID {
		object, err := here.get(id)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return id, object, err
		}
	}
	return plumbing.ZeroHash, nil, failf(CodeTransport, nil, "the git server sent changes of objects without the objects; try again later")
}

// add writes an object behind the last one, over the checksum.
func (r *receiver) add(id plumbing.Hash, object plumbing.EncodedObject) error {
	content, err := contentOf(object, id)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	first, size := byte(object.Type())<<4|byte(len(content)&15), len(content)>>4
	for ; size > 0; size >>= 7 {
		out.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	out.WriteByte(first)
	if r.deflater == nil {
		r.deflater = zlib.NewWriter(nil)
	}
	r.deflater.Reset(&out)
	_, err = r.deflater.Write(content)
	if err = errors.Join(err, r.deflater.Close()); err != nil {
		return err
	}
	if _, err := r.file.WriteAt(out.Bytes(), r.pack.size); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	r.entries = append(r.entries, received{offset: r.pack.size, id: id, crc: crc32.ChecksumIEEE(out.Bytes())})
	r.pack.remember(r.pack.size, object.Type(), content)
	r.pack.size += int64(out.Len())
	return nil
}

// sum writes the number of objects and the checksum of a pack that got more.
func (r *receiver) sum() error {
	if _, err := r.file.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(len(r.entries))), 8); err != nil {
		return err
	}
	hasher := hash.New(crypto.SHA1)
	if _, err := io.Copy(hasher, io.NewSectionReader(r.file, 0, r.pack.size)); err != nil {
		return err
	}
	r.checksum = plumbing.Hash(hasher.Sum(nil))
	_, err := r.file.WriteAt(r.checksum[:], r.pack.size)
	return err
}
