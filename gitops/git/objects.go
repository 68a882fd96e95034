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

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
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
	reader, err := object.Reader()
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s cannot be read", id)
	}
	defer reader.Close()
	content := make([]byte, object.Size())
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, failf(CodeCorrupt, err, "object %s is cut short", id)
	}
	return content, nil
}

const (
	// readers is how many goroutines may read packs at the same time; each has
	// its own descriptors and its own cache of delta bases.
	maxReaders = 4
	// deltaCache bounds the memory of one reader's cache of delta bases.
	deltaCache = 16 * cache.MiByte
)

// objectStore reads the objects of one or more object directories: packs
// through one shared index each, then loose files. Memory is bounded by the
// indexes (about 28 bytes an object), maxReaders caches, and the objects that
// are being read; an object is inflated before its size is looked at, as go-git
// does when it takes a pack in (GitHub accepts none above 100 MB).
type objectStore struct {
	dirs    []string
	maxSize int64
	slots   chan struct{}

	mu      sync.Mutex
	loaded  bool
	packs   []*pack
	idle    []*packReader
	version int
}

type pack struct {
	path  string
	index *idxfile.MemoryIndex
}

// packReader holds what go-git's pack reader cannot share between goroutines.
type packReader struct {
	version int
	cache   cache.Object
	open    map[*pack]*packfile.Packfile
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
		packs, err := s.loadPacks(attempt > 0)
		if err != nil {
			return nil, err
		}
		object, err := s.find(packs, id)
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

func (s *objectStore) find(packs []*pack, id plumbing.Hash) (plumbing.EncodedObject, error) {
	for _, one := range packs {
		there, err := one.index.Contains(id)
		if err != nil {
			return nil, failf(CodeCorrupt, err, "the index of a pack is damaged")
		}
		if there {
			return s.fromPack(one, id)
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

func (s *objectStore) fromPack(from *pack, id plumbing.Hash) (plumbing.EncodedObject, error) {
	reader := s.borrow()
	defer s.giveBack(reader)
	file, err := reader.file(from)
	if err != nil {
		return nil, err
	}
	object, err := file.Get(id)
	if err != nil {
		return nil, failf(CodeCorrupt, err, "object %s cannot be read from its pack", id)
	}
	if object.Size() > s.maxSize {
		return nil, failf(CodeTooLarge, nil, "object %s has %d bytes, more than the limit of %d", id, object.Size(), s.maxSize)
	}
	return object, nil
}

func (r *packReader) file(of *pack) (*packfile.Packfile, error) {
	if file, ok := r.open[of]; ok {
		return file, nil
	}
	dir, base := filepath.Split(of.path)
	handle, err := osfs.New(dir, osfs.WithBoundOS()).Open(base)
	if err != nil {
		return nil, ioError(err, "a pack of the repository cannot be opened")
	}
	file := packfile.NewPackfileWithCache(of.index, nil, handle, r.cache, 0)
	r.open[of] = file
	return file, nil
}

func (r *packReader) close() {
	for _, file := range r.open {
		_ = file.Close()
	}
}

func (s *objectStore) borrow() *packReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		reader := s.idle[last]
		s.idle = s.idle[:last]
		return reader
	}
	return &packReader{
		version: s.version,
		cache:   cache.NewObjectLRU(deltaCache),
		open:    map[*pack]*packfile.Packfile{},
	}
}

func (s *objectStore) giveBack(reader *packReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader.version != s.version {
		reader.close()
		return
	}
	s.idle = append(s.idle, reader)
}

// close releases descriptors; the store opens them again when it is asked.
func (s *objectStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reader := range s.idle {
		reader.close()
	}
	s.idle, s.packs, s.loaded = nil, nil, false
	s.version++
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
