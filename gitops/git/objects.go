package git

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// A source gives objects by id. Its get is safe for concurrent use and fails
// with [plumbing.ErrObjectNotFound] (wrapped) for an object that it lacks.
type source interface {
	get(id plumbing.Hash) (plumbing.EncodedObject, error)
}

// layered asks one source after another.
type layered []source

func (l layered) get(id plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, one := range l {
		object, err := one.get(id)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return object, err
		}
	}
	return nil, missing(id)
}

func missing(id plumbing.Hash) error {
	return failf(CodeNotFound, plumbing.ErrObjectNotFound, "object %s is not here", id)
}

// readObject returns an object's bytes, at most limit of them.
func readObject(from source, id plumbing.Hash, kind plumbing.ObjectType, limit int64) ([]byte, error) {
	object, err := from.get(id)
	if err != nil {
		return nil, err
	}
	if object.Type() != kind {
		return nil, failf(CodeCorrupt, nil, "object %s is a %s where a %s was expected", id, object.Type(), kind)
	}
	if object.Size() > limit {
		return nil, failf(CodeTooLarge, nil, "object %s has %d bytes, more than the limit of %d", id, object.Size(), limit)
	}
	return contentOf(object, id)
}

// contentOf returns the bytes of an object, with room for one more.
func contentOf(object plumbing.EncodedObject, id plumbing.Hash) ([]byte, error) {
	reader, err := object.Reader()
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s cannot be read", id)
	}
	defer reader.Close()
	content := make([]byte, object.Size(), object.Size()+1)
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, failf(CodeCorrupt, err, "object %s is cut short", id)
	}
	return content, nil
}

// maxReaders is how many goroutines may read the objects of a repository at the
// same time.
const maxReaders = 4

// bases remembers objects that others are stored as deltas of, for all packs of
// the process together, so that their memory does not grow with the number of
// repositories.
var bases = cache.NewBufferLRU(64 * cache.MiByte)

// packBits is how many bits of a key of bases are an offset; the others number the
// pack.
const packBits = 40

var packsOpened atomic.Int64

// newPackKey returns what makes the offsets of one more pack unique in bases. The
// numbers last for eight million packs, and then begin again with nothing
// remembered.
func newPackKey() int64 {
	number := packsOpened.Add(1) % (1 << (63 - packBits))
	if number == 0 {
		bases.Clear()
	}
	return number << packBits
}

// objectStore reads the objects of one or more object directories: packs
// through one shared index each, then loose files. Memory is bounded by the
// indexes (about 28 bytes an object) and the objects that are being read, which
// are refused by their declared size.
type objectStore struct {
	dirs    []string
	maxSize int64
	slots   chan struct{}

	// reading is held while packs are read, so that close waits for it.
	reading sync.RWMutex

	mu     sync.Mutex
	loaded bool
	packs  []*pack
}

// A pack is a pack file with its index.
type pack struct {
	path  string
	index *idxfile.MemoryIndex

	mu     sync.Mutex
	reader *packReader // nil until the first object is read
}

func newObjectStore(maxSize int64, dirs ...string) *objectStore {
	return &objectStore{dirs: dirs, maxSize: maxSize, slots: make(chan struct{}, maxReaders)}
}

// get looks in the packs, then among loose objects, and looks for new packs
// once before it gives up.
func (s *objectStore) get(id plumbing.Hash) (plumbing.EncodedObject, error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	for attempt := range 2 {
		object, err := s.find(id, attempt > 0)
		if errors.Is(err, fs.ErrNotExist) {
			s.close() // the repository was built anew by another process
			continue
		}
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return object, err
		}
	}
	return nil, missing(id)
}

// has says whether an object is here, without reading it.
func (s *objectStore) has(id plumbing.Hash) (bool, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	packs, err := s.loadPacks(false)
	if err != nil {
		return false, err
	}
	for _, one := range packs {
		if there, err := one.index.Contains(id); there || err != nil {
			return there, err
		}
	}
	for _, dir := range s.dirs {
		if _, err := os.Lstat(loosePath(dir, id)); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// find looks once, in the packs that are known or, again, in those that are there.
func (s *objectStore) find(id plumbing.Hash, again bool) (plumbing.EncodedObject, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	packs, err := s.loadPacks(again)
	if err != nil {
		return nil, err
	}
	for _, one := range packs {
		offset, err := one.index.FindOffset(id)
		if err == nil {
			return s.fromPack(one, id, offset)
		}
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, failf(CodeCorrupt, err, "the index of a pack is damaged")
		}
	}
	for _, dir := range s.dirs {
		object, err := readLoose(dir, id, s.maxSize)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			return object, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

func (s *objectStore) fromPack(from *pack, id plumbing.Hash, offset int64) (plumbing.EncodedObject, error) {
	reader, err := s.reader(from)
	if err != nil {
		return nil, ioError(err, "a pack of the repository cannot be opened")
	}
	kind, content, err := reader.read(offset)
	if CodeOf(err) == CodeTooLarge {
		return nil, err
	}
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s cannot be read from its pack", id)
	}
	return newObject(kind, content), nil
}

func (s *objectStore) reader(of *pack) (*packReader, error) {
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.reader != nil {
		return of.reader, nil
	}
	file, err := os.Open(of.path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	of.reader = &packReader{file: file, size: info.Size(), maxSize: s.maxSize, key: newPackKey(), find: of.index.FindOffset}
	return of.reader, nil
}

// close releases descriptors; the store opens them again when it is asked.
func (s *objectStore) close() {
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, one := range s.packs {
		if one.reader != nil {
			_ = one.reader.file.Close() // it was only read
		}
	}
	s.packs, s.loaded = nil, false
}

// loadPacks returns the packs, listing the directories again when asked to.
func (s *objectStore) loadPacks(again bool) ([]*pack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded && !again {
		return s.packs, nil
	}
	known := map[string]bool{}
	for _, one := range s.packs {
		known[one.path] = true
	}
	for _, dir := range s.dirs {
		entries, err := os.ReadDir(filepath.Join(dir, "pack"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, ioError(err, "the repository's packs cannot be listed")
		}
		for _, entry := range entries {
			name, isIndex := strings.CutSuffix(entry.Name(), ".idx")
			file := filepath.Join(dir, "pack", name+".pack")
			if !isIndex || known[file] {
				continue
			}
			index, err := readIndex(filepath.Join(dir, "pack", entry.Name()))
			if err != nil {
				return nil, err
			}
			s.packs = append(s.packs, &pack{path: file, index: index})
		}
	}
	s.loaded = true
	return s.packs, nil
}

func readIndex(name string) (*idxfile.MemoryIndex, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, ioError(err, "the index of a pack cannot be opened")
	}
	defer file.Close()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bufio.NewReaderSize(file, 1<<16)).Decode(index); err != nil {
		return nil, failf(CodeCorrupt, err, "the index %s is damaged", filepath.Base(name))
	}
	return index, nil
}
