package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A shelf is what a pool has ready for one repository. Everything but dir and
// making is guarded by the pool's lock.
type shelf struct {
	dir string
	// making is held while trees are made or advanced, so that this happens once
	// at a time.
	making sync.Mutex

	ready []*Workspace
	used  time.Time
	// evicted says that the pool has given the shelf up, perhaps while a tree was
	// being made for it; tooLarge that one tree is more than the pool may hold.
	evicted, tooLarge bool
}

// The names beside the hosts' folders begin with a dot, as no host's does.

func (p *Pool) asideDir() string { return filepath.Join(p.options.Dir, ".aside") }

// bootFile holds the id of the start of the machine after which trees were made.
func (p *Pool) bootFile() string { return filepath.Join(p.options.Dir, ".boot") }

func bootID() []byte {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(id)
}

// shelf returns a repository's shelf as the most recently used one; nil when
// there is none and none shall be made, or when the pool is another process's.
func (p *Pool) shelf(place string, create bool) *shelf {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open() {
		return nil
	}
	dir := filepath.Join(p.options.Dir, place)
	i := slices.IndexFunc(p.shelves, func(one *shelf) bool { return one.dir == dir })
	if i < 0 && !create {
		return nil
	}
	one := &shelf{dir: dir}
	if i >= 0 {
		one = p.shelves[i]
		p.shelves = slices.Delete(p.shelves, i, i+1)
	}
	one.used = time.Now()
	_ = os.Chtimes(dir, one.used, one.used) // for the next process; there may be no tree yet
	p.shelves = append(p.shelves, one)
	for len(p.shelves) > p.options.Repositories {
		p.evict(p.shelves[0])
	}
	return one
}

// open makes the directory this process's own and says whether it is. The lock
// must be held.
func (p *Pool) open() bool {
	if p.lock != nil || p.closed {
		return p.lock != nil
	}
	file, err := os.OpenFile(filepath.Join(p.options.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		p.cache.log.Warn("the pool cannot be locked", "error", err)
		return false
	}
	if locked, err := flock(file); !locked || err != nil {
		_ = file.Close()
		return false
	}
	p.lock = file
	boot := bootID()
	before, err := os.ReadFile(p.bootFile())
	p.adopt(err == nil && len(boot) > 0 && bytes.Equal(boot, before))
	if err := writeFile(p.bootFile(), boot); err != nil {
		p.cache.log.Warn("the pool's trees will not outlive this process", "error", err)
	}
	return true
}

// adopt takes over the finished trees of an earlier process, if they can be
// trusted, and puts all others aside. The lock must be held.
func (p *Pool) adopt(trusted bool) {
	// The pattern is fixed, so it cannot be malformed.
	dirs, _ := filepath.Glob(filepath.Join(p.options.Dir, "[^.]*", "*", "*"))
	for _, dir := range dirs {
		trees, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		one := &shelf{dir: dir}
		if info, err := os.Stat(dir); err == nil {
			one.used = info.ModTime()
		}
		for _, tree := range trees {
			if w := p.openTree(dir, tree.Name()); trusted && w != nil {
				one.ready = append(one.ready, w)
			} else {
				p.discard(filepath.Join(dir, tree.Name()))
			}
		}
		p.shelves = append(p.shelves, one)
	}
	slices.SortFunc(p.shelves, func(a, b *shelf) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.dir, b.dir)) })
	for len(p.shelves) > p.options.Repositories || len(p.shelves) > 0 && p.bytes() > p.options.Bytes {
		p.evict(p.shelves[0])
	}
}

// openTree returns a tree on a shelf's directory, nil unless it is finished.
func (p *Pool) openTree(dir, name string) *Workspace {
	place, err := filepath.Rel(p.options.Dir, dir)
	if err != nil {
		return nil
	}
	w, err := p.cache.repository(place).Open(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	if info, err := os.Lstat(w.Tree()); err != nil || !info.IsDir() {
		return nil
	}
	return w
}

// pop takes the last tree from a shelf, nil when it is empty.
func (p *Pool) pop(from *shelf) *Workspace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(from.ready) == 0 {
		return nil
	}
	last := len(from.ready) - 1
	w := from.ready[last]
	from.ready = from.ready[:last]
	return w
}

// put places trees on a shelf, unless that was given up meanwhile, and makes room
// for them.
func (p *Pool) put(ctx context.Context, on *shelf, trees []*Workspace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on.evicted || p.lock == nil {
		for _, w := range trees {
			p.discard(w.dir)
		}
		return
	}
	on.ready = append(on.ready, trees...)
	for p.bytes() > p.options.Bytes {
		oldest := p.shelves[0]
		if oldest != on {
			p.evict(oldest)
			continue
		}
		p.cache.log.InfoContext(ctx, "trees of this repository are too large for the pool", "repository", on.dir, "bytes", p.bytes())
		on.tooLarge = true
		p.empty(on)
	}
}

// evict gives a shelf up with its trees. The lock must be held.
func (p *Pool) evict(one *shelf) {
	one.evicted = true
	p.empty(one)
	_ = os.Remove(one.dir) // what is being made there keeps it
	p.shelves = slices.DeleteFunc(p.shelves, func(other *shelf) bool { return other == one })
}

func (p *Pool) empty(one *shelf) {
	for _, w := range one.ready {
		p.discard(w.dir)
	}
	one.ready = nil
}

// bytes is what the files of all ready trees have. The lock must be held.
func (p *Pool) bytes() (total int64) {
	for _, one := range p.shelves {
		for _, w := range one.ready {
			total += w.size()
		}
	}
	return total
}

// discard puts a tree aside, by one rename, to be removed later.
func (p *Pool) discard(dir string) {
	err := os.MkdirAll(p.asideDir(), 0o700)
	if err == nil {
		var to string
		if to, err = os.MkdirTemp(p.asideDir(), ""); err == nil {
			err = os.Rename(dir, to)
		}
	}
	if err != nil {
		p.cache.log.Warn("an old tree of the pool could not be put aside", "error", errors.Join(err, removeAll(dir)))
	}
}
