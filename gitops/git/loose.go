package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
)

// loosePath returns where git keeps a loose object.
func loosePath(dir string, id plumbing.Hash) string {
	hex := id.String()
	return filepath.Join(dir, hex[:2], hex[2:])
}

// readLoose reads a loose object of at most maxSize bytes and checks its id.
func readLoose(dir string, id plumbing.Hash, maxSize int64) (plumbing.EncodedObject, error) {
	file, err := os.Open(loosePath(dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, plumbing.ErrObjectNotFound
	}
	if err != nil {
		return nil, ioError(err, "object %s cannot be opened", id)
	}
	defer file.Close()
	reader, err := objfile.NewReader(file)
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s is damaged", id)
	}
	defer reader.Close()
	kind, size, err := reader.Header()
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s is damaged", id)
	}
	if size > maxSize {
		return nil, failf(CodeTooLarge, nil, "object %s has %d bytes, more than the limit of %d", id, size, maxSize)
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, failf(CodeCorrupt, err, "object %s is cut short", id)
	}
	object := newObject(kind, content)
	if object.Hash() != id {
		return nil, failf(CodeCorrupt, nil, "object %s has the content of another", id)
	}
	return object, nil
}

// newObject returns an object of the given content.
func newObject(kind plumbing.ObjectType, content []byte) plumbing.EncodedObject {
	object := &plumbing.MemoryObject{}
	object.SetType(kind)
	_, _ = object.Write(content) // a MemoryObject's Write only appends
	return object
}

// writeLoose stores an object where git would, atomically, unless it is there
// and whole: like git it does not wait for the disk, so a power failure may leave
// an empty file under the name, which is replaced.
func writeLoose(dir string, object plumbing.EncodedObject) error {
	name := loosePath(dir, object.Hash())
	if _, err := readLoose(dir, object.Hash(), object.Size()); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return ioError(err, "an object cannot be stored")
	}
	file, err := os.CreateTemp(filepath.Dir(name), "tmp_obj_")
	if err != nil {
		return ioError(err, "an object cannot be stored")
	}
	defer os.Remove(file.Name())
	err = encodeLoose(file, object)
	if err == nil {
		err = file.Chmod(0o444)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	return ioError(err, "object %s cannot be stored", object.Hash())
}

func encodeLoose(to io.Writer, object plumbing.EncodedObject) error {
	from, err := object.Reader()
	if err != nil {
		return err
	}
	defer from.Close()
	writer := objfile.NewWriter(to)
	if err := writer.WriteHeader(object.Type(), object.Size()); err != nil {
		return err
	}
	if _, err := io.Copy(writer, from); err != nil {
		return err
	}
	return writer.Close()
}
