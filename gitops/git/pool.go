package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// PoolOptions configure a [Pool]. A zero number takes the default.
type PoolOptions struct {
	// Dir is where the pool keeps its trees; it is made when missing. It must be
	// on the file system of the workspaces that are taken, since trees are
	// handed out by rename. Of several processes that name it, the first has the
	// pool, and for the others every Take is a checkout until that one has ended.
	Dir string
	// PerRepository is how many trees are kept ready for one repository.
	// Default 1.
	PerRepository int
	// Repositories is for how many repositories, those last used. Default 4.
	Repositories int
	// Bytes is the most that the files of all trees together may have; the
	// repositories used longest ago lose theirs first. The disk holds the one
	// tree that is being made besides. Default 8 GiB.
	Bytes int64
}

// A Pool keeps pristine workspaces ready, because creating files is what a
// checkout of a large repository spends its time on. A tree is made ahead of
// time, advanced by the difference of two trees when the branch moves, handed
// out by one rename, and never taken back: what a sandbox has seen is not
// pristine. Trees are kept by host, installation and repository id, as the
// cache's repositories are, so no installation ever gets another one's.
//
// A pool outlives its process. Each tree is in one of three states that a
// kill -9 cannot mix up: unfinished (no workspace.json; removed by the next
// process), ready (adopted by it), or gone by rename, whole, to a session or to
// the folder of what is to be removed. After a restart of the machine nothing is
// adopted, for files that were never synced may have lost their content.
//
// It is safe for concurrent use.
type Pool struct {
	cache   *Cache
	options PoolOptions

	mu sync.Mutex
	// lock is held as long as the directory is this process's; nil before.
	lock    *os.File
	closed  bool
	shelves []*shelf // most recently used last
}

// NewPool returns a pool. It takes over what an earlier process left in the
// directory when it is first used.
func (c *Cache) NewPool(options PoolOptions) (*Pool, error) {
	setDefault(&options.PerRepository, 1)
	setDefault(&options.Repositories, 4)
	setDefault(&options.Bytes, 8<<30)
	if options.Dir == "" {
		return nil, failf(CodeInvalid, nil, "the pool needs a directory")
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, ioError(err, "the pool's directory cannot be made")
	}
	return &Pool{cache: c, options: options}, nil
}

// Close leaves the trees to the next process. Take goes on, by checkout.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.shelves = true, nil
	if p.lock == nil {
		return nil
	}
	defer func() { p.lock = nil }()
	return p.lock.Close()
}

// Prepare makes trees of a commit ready, or advances those that are ready for
// another one; the commit must have been fetched. It is called in the background
// after a session has taken one, and when the branch has moved.
func (p *Pool) Prepare(ctx context.Context, remote Remote, commit string) error {
	place, err := remote.place()
	if err != nil {
		return err
	}
	repo, err := p.cache.Repository(remote)
	if err != nil {
		return err
	}
	defer p.clear(ctx)
	shelf := p.shelf(place, true)
	if shelf == nil || shelf.tooLarge {
		return nil
	}
	shelf.making.Lock()
	defer shelf.making.Unlock()
	var made []*Workspace
	defer func() { p.put(ctx, shelf, made) }()
	for len(made) < p.options.PerRepository {
		w, err := p.makeReady(ctx, repo, shelf, commit)
		if err != nil {
			return err
		}
		made = append(made, w)
	}
	return nil
}

// makeReady returns a workspace of the commit: one from the shelf, advanced, or
// a new one.
func (p *Pool) makeReady(ctx context.Context, repo *Repository, from *shelf, commit string) (*Workspace, error) {
	if w := p.pop(from); w != nil {
		err := w.advance(ctx, commit)
		if err == nil {
			return w, nil
		}
		p.cache.log.WarnContext(ctx, "a pooled tree could not be advanced and is made anew", "commit", commit, "error", err)
		p.discard(w.dir)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if err := os.MkdirAll(from.dir, 0o700); err != nil {
		return nil, ioError(err, "a pooled tree cannot be made")
	}
	dir, err := os.MkdirTemp(from.dir, "")
	if err == nil {
		err = os.Chmod(dir, 0o755) // as a checkout makes it
	}
	if err != nil {
		return nil, ioError(err, "a pooled tree cannot be made")
	}
	w, err := repo.Checkout(ctx, commit, dir)
	if err != nil {
		p.discard(dir)
	}
	return w, err
}

// Take returns a workspace of a commit in dir, as [Repository.Checkout] does: a
// ready one if there is one, advanced if need be and renamed, or else a new
// checkout.
func (p *Pool) Take(ctx context.Context, remote Remote, commit, dir string) (*Workspace, error) {
	place, err := remote.place()
	if err != nil {
		return nil, err
	}
	repo, err := p.cache.Repository(remote)
	if err != nil {
		return nil, err
	}
	for shelf := p.shelf(place, false); shelf != nil; {
		w := p.pop(shelf)
		if w == nil {
			break
		}
		if err := w.advance(ctx, commit); err != nil {
			p.cache.log.WarnContext(ctx, "a pooled tree could not be advanced", "commit", commit, "error", err)
			p.discard(w.dir)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		if err := w.move(dir); err != nil {
			p.cache.log.WarnContext(ctx, "a pooled tree could not be handed out", "error", err)
			p.put(ctx, shelf, []*Workspace{w})
			break
		}
		return w, nil
	}
	return repo.Checkout(ctx, commit, dir)
}

// move renames the whole workspace to dir, which may hold an unfinished checkout
// and nothing else. Renaming a directory changes no file in it, so the manifest
// stays true; and being one rename it has happened or has not.
func (w *Workspace) move(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := clearUnfinished(dir); err != nil {
		return err
	}
	for _, name := range []string{filepath.Join(dir, "tree"), filepath.Join(dir, "meta"), dir} {
		if err := os.Remove(name); err != nil {
			return ioError(err, "the workspace cannot be moved")
		}
	}
	if err := os.Rename(w.dir, dir); err != nil {
		return ioError(err, "the workspace cannot be moved")
	}
	w.settleIn(dir)
	return nil
}

// Sweep removes the trees of repositories that nobody used for so long.
func (p *Pool) Sweep(ctx context.Context, unused time.Duration) {
	p.mu.Lock()
	if p.open() {
		for _, one := range slices.Clone(p.shelves) {
			if time.Since(one.used) >= unused {
				p.evict(one)
			}
		}
	}
	p.mu.Unlock()
	p.clear(ctx)
}

// Usage returns how many trees are ready, and the bytes of their files.
func (p *Pool) Usage() (trees int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.shelves {
		trees += len(one.ready)
	}
	return trees, p.bytes()
}

// clear removes what was put aside, which takes as long as making it did; what is
// left when ctx is done is removed by the next.
func (p *Pool) clear(ctx context.Context) {
	p.mu.Lock()
	owned := p.lock != nil
	p.mu.Unlock()
	if !owned {
		return
	}
	entries, err := os.ReadDir(p.asideDir())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return
		}
		err = errors.Join(err, removeAll(filepath.Join(p.asideDir(), entry.Name())))
	}
	if err != nil {
		p.cache.log.WarnContext(ctx, "old trees of the pool could not be removed; it is tried again", "error", err)
	}
}
