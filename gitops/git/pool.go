package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// PoolOptions configure a [Pool]. A zero number takes the default.
type PoolOptions struct {
	// Dir is where the pool keeps its trees. It belongs to one pool of one
	// process, is cleared by [Cache.NewPool], and must be on the file system of
	// the workspaces that are taken, since they are handed out by rename.
	Dir string
	// PerRepository is how many trees are kept ready for one repository.
	// Default 1.
	PerRepository int
	// Repositories is for how many repositories, those last used. Default 4.
	Repositories int
}

// A Pool keeps pristine workspaces ready, because creating files is what a
// checkout of a large repository spends its time on. A tree is made ahead of
// time, advanced when the branch moves, handed out by rename, and never taken
// back: what a sandbox has seen is not pristine. It is safe for concurrent use.
type Pool struct {
	cache   *Cache
	options PoolOptions

	mu    sync.Mutex
	count int
	repos []*pooled // most recently used last
}

// pooled is what is ready for one repository. Its lock is held while trees are
// made or advanced, so that this happens once at a time.
type pooled struct {
	dir string
	mu  sync.Mutex

	readyMu sync.Mutex
	ready   []*Workspace
}

// NewPool returns an empty pool.
func (c *Cache) NewPool(options PoolOptions) (*Pool, error) {
	setDefault(&options.PerRepository, 1)
	setDefault(&options.Repositories, 4)
	if err := removeAll(options.Dir); err != nil {
		return nil, ioError(err, "the pool's directory cannot be cleared")
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, ioError(err, "the pool's directory cannot be made")
	}
	return &Pool{cache: c, options: options}, nil
}

// of returns a repository's place, as the most recently used one, and removes
// the trees of the one that has to go for it.
func (p *Pool) of(remote Remote) (*pooled, error) {
	dir, err := p.cache.path(remote)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	place := &pooled{dir: dir}
	if i := slices.IndexFunc(p.repos, func(one *pooled) bool { return one.dir == dir }); i >= 0 {
		place = p.repos[i]
		p.repos = slices.Delete(p.repos, i, i+1)
	}
	p.repos = append(p.repos, place)
	surplus := max(0, len(p.repos)-p.options.Repositories)
	gone := slices.Clone(p.repos[:surplus])
	p.repos = slices.Delete(p.repos, 0, surplus)
	p.mu.Unlock()
	for _, one := range gone {
		for w := one.pop(); w != nil; w = one.pop() {
			err = errors.Join(err, w.Remove())
		}
	}
	return place, err
}

func (o *pooled) pop() *Workspace {
	o.readyMu.Lock()
	defer o.readyMu.Unlock()
	if len(o.ready) == 0 {
		return nil
	}
	last := len(o.ready) - 1
	w := o.ready[last]
	o.ready = o.ready[:last]
	return w
}

func (o *pooled) push(w *Workspace) {
	o.readyMu.Lock()
	defer o.readyMu.Unlock()
	o.ready = append(o.ready, w)
}

// Prepare makes trees of a commit ready, or advances those that are ready for
// another one; the commit must have been fetched. It is called after a session
// has taken one, and when the branch moves.
func (p *Pool) Prepare(ctx context.Context, remote Remote, commit string) error {
	place, err := p.of(remote)
	if err != nil {
		return err
	}
	repo, err := p.cache.Repository(remote)
	if err != nil {
		return err
	}
	place.mu.Lock()
	defer place.mu.Unlock()
	for range p.options.PerRepository {
		w := place.pop()
		if w, err = p.makeReady(ctx, repo, w, commit); err != nil {
			return err
		}
		defer place.push(w)
	}
	return nil
}

// makeReady returns a workspace of the commit: the given one, advanced, or a new
// one.
func (p *Pool) makeReady(ctx context.Context, repo *Repository, w *Workspace, commit string) (*Workspace, error) {
	if w != nil {
		err := w.advance(ctx, commit)
		if err == nil {
			return w, nil
		}
		p.cache.log.WarnContext(ctx, "a pooled tree could not be advanced and is made anew", "commit", commit, "error", err)
		if err := errors.Join(ctx.Err(), w.Remove()); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.count++
	dir := filepath.Join(p.options.Dir, strconv.Itoa(p.count))
	p.mu.Unlock()
	return repo.Checkout(ctx, commit, dir)
}

// Take returns a workspace of a commit in dir, as [Repository.Checkout] does: a
// ready one if there is one, renamed, or else a new checkout.
func (p *Pool) Take(ctx context.Context, remote Remote, commit, dir string) (*Workspace, error) {
	repo, err := p.cache.Repository(remote)
	if err != nil {
		return nil, err
	}
	place, err := p.of(remote)
	if err != nil {
		return nil, err
	}
	w := place.pop()
	if w == nil {
		return repo.Checkout(ctx, commit, dir)
	}
	err = w.advance(ctx, commit)
	if err == nil {
		if err = w.move(dir); err == nil {
			return w, nil
		}
		if CodeOf(err) == CodeInvalid {
			place.push(w)
			return nil, err
		}
	}
	p.cache.log.WarnContext(ctx, "a pooled tree could not be handed out", "commit", commit, "error", err)
	if err := errors.Join(ctx.Err(), w.Remove()); err != nil {
		return nil, ioError(err, "a pooled workspace cannot be removed")
	}
	return repo.Checkout(ctx, commit, dir)
}

// move renames the workspace's two halves into dir; meta goes last, since it
// makes dir a workspace. Renaming a directory changes no file in it, so the
// manifest stays true.
func (w *Workspace) move(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := clearUnfinished(dir); err != nil {
		return err
	}
	for _, half := range []string{"tree", "meta"} {
		to := filepath.Join(dir, half)
		if err := os.Remove(to); err != nil {
			return ioError(err, "the workspace cannot be moved")
		}
		if err := os.Rename(filepath.Join(w.dir, half), to); err != nil {
			return ioError(err, "the workspace cannot be moved")
		}
	}
	if err := os.Remove(w.dir); err != nil {
		return ioError(err, "the workspace cannot be moved")
	}
	w.settleIn(dir)
	return nil
}

// advance turns a pristine workspace into one of another commit by changing only
// the files that differ. Until it is done the directory is no workspace, so a
// crash leaves nothing half-way.
func (w *Workspace) advance(ctx context.Context, commit string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, err := parseID(commit)
	if err != nil || id == w.base {
		return err
	}
	found, err := readCommit(w.objects, id)
	if err != nil {
		return err
	}
	reader := treeReader{from: w.objects, limits: w.repo.limits}
	manifest, err := reader.read(found.TreeHash, "", 1)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.dir, "meta", "workspace.json")); err != nil {
		return ioError(err, "the workspace cannot be changed")
	}
	plan := difference(w.manifest, manifest)
	w.base, w.tree, w.manifest = id, found.TreeHash, manifest
	if _, err := w.carryOut(plan, nil); err != nil {
		return err
	}
	w.written = time.Now()
	if err := ctx.Err(); err != nil {
		return err
	}
	return ioError(w.save(), "the workspace cannot be written")
}

// difference returns the states that turn one manifest's files into the other's,
// and carries the stamps of what stays over.
func difference(from, to *directory) map[string]fileState {
	plan := map[string]fileState{}
	from.each("", func(path string, _ *file) { plan[path] = fileState{} })
	to.each("", func(path string, f *file) {
		if old := from.find(path); old != nil && old.state == f.state {
			f.stamp = old.stamp
			delete(plan, path)
			return
		}
		plan[path] = f.state
	})
	return plan
}
