package git

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// FetchHistory brings up to depth commits that end in a given one, for
// [Repository.Log] and [Repository.Blame]: [Cache.Fetch] brings commits alone.
// A server that cannot leave history out has sent it already.
func (c *Cache) FetchHistory(ctx context.Context, remote Remote, commit string, depth int) error {
	id, err := parseID(commit)
	if err != nil {
		return err
	}
	return c.exclusively(ctx, remote, func(dir string) error {
		session, advertised, err := c.upload(ctx, remote)
		if err != nil {
			return err
		}
		if err := c.fetch(ctx, dir, session, advertised, id); err != nil {
			return err
		}
		shallows, err := filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(0)).Shallow()
		if err != nil || len(shallows) == 0 || !advertised.Capabilities.Supports(capability.Shallow) {
			return ioError(err, "the cache cannot be read")
		}
		tips, err := listTips(dir)
		if err != nil {
			return err
		}
		return c.receive(ctx, dir, session, advertised, ask{id, tips, max(depth, 1)})
	})
}

// history walks commits from the newest to the oldest.
type history struct {
	from source
	heap commitHeap
	seen map[plumbing.Hash]bool
	// cut says that a parent was not here.
	cut bool
}

func newHistory(from source, start plumbing.Hash) (*history, error) {
	h := &history{from: from, seen: map[plumbing.Hash]bool{}}
	commit, err := h.add(start)
	if err == nil && commit == nil {
		err = missing(start)
	}
	return h, err
}

// add puts a commit on the heap and returns it, nil when it is not here.
func (h *history) add(id plumbing.Hash) (*object.Commit, error) {
	commit, err := readCommit(h.from, id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		h.cut = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !h.seen[id] {
		h.seen[id] = true
		heap.Push(&h.heap, datedCommit{id, commit})
	}
	return commit, nil
}

func (h *history) next() (datedCommit, bool) {
	if len(h.heap) == 0 {
		return datedCommit{}, false
	}
	return heap.Pop(&h.heap).(datedCommit), true
}

type datedCommit struct {
	id     plumbing.Hash
	commit *object.Commit
}

// commitHeap has the newest commit first; among equals the order is fixed.
type commitHeap []datedCommit

func (h commitHeap) Len() int { return len(h) }
func (h commitHeap) Less(i, j int) bool {
	if a, b := h[i].commit.Committer.When, h[j].commit.Committer.When; !a.Equal(b) {
		return a.After(b)
	}
	return h[i].id.String() < h[j].id.String()
}
func (h commitHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *commitHeap) Push(x any)   { *h = append(*h, x.(datedCommit)) }
func (h *commitHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// maxWalk is how many commits a look at history may read.
const maxWalk = 20_000

// Log returns up to limit commits from the given one back, newest first: all, or
// with a path those that changed what is at it. Of a merge only the side is
// followed that has the path as it is, if there is one, as git does. complete is
// false when older commits are not here or were not looked at.
func (r *Repository) Log(ctx context.Context, from, path string, limit int) (commits []Commit, complete bool, err error) {
	start, err := parseID(from)
	if err != nil {
		return nil, false, err
	}
	h, err := newHistory(r.objects, start)
	if err != nil {
		return nil, false, err
	}
	for range maxWalk {
		one, ok := h.next()
		if !ok {
			return commits, !h.cut, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, false, context.Cause(ctx)
		}
		changed, err := r.follow(h, one, path)
		if err != nil {
			return nil, false, err
		}
		if changed {
			if len(commits) == limit {
				return commits, false, nil
			}
			commits = append(commits, describeCommit(one.id.String(), one.commit))
		}
	}
	return commits, false, nil
}

// follow adds a commit's parents to the walk and says whether the commit changed
// what is at the path.
func (r *Repository) follow(h *history, one datedCommit, path string) (bool, error) {
	here, err := r.stateAt(one.commit, path)
	if err != nil {
		return false, err
	}
	var parents []plumbing.Hash
	for _, id := range one.commit.ParentHashes {
		parent, err := readCommit(r.objects, id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			h.cut = true
			continue
		}
		if err != nil {
			return false, err
		}
		there, err := r.stateAt(parent, path)
		if err != nil {
			return false, err
		}
		if path != "" && there == here {
			_, err := h.add(id)
			return false, err
		}
		parents = append(parents, id)
	}
	for _, id := range parents {
		if _, err := h.add(id); err != nil {
			return false, err
		}
	}
	return path == "" || here.present() || len(parents) > 0, nil
}

// stateAt returns what a commit has at a path, the zero state for nothing. Only
// files are followed.
func (r *Repository) stateAt(commit *object.Commit, path string) (fileState, error) {
	if path == "" {
		return fileState{}, nil
	}
	state, err := lookup(r.objects, commit.TreeHash, path)
	if CodeOf(err) == CodeNotFound && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return fileState{}, nil
	}
	return state, err
}

// A BlamedLine is one line of a file with the commit that it comes from.
type BlamedLine struct {
	Text   string
	Commit string
	Author Identity
	When   time.Time
}

// Blame returns a file's lines with the commits that brought them, as far as
// history is here: complete is false when lines may be older than it says.
// Renames are not followed. A binary file is [CodeInvalid].
func (r *Repository) Blame(ctx context.Context, commit, path string) (lines []BlamedLine, complete bool, err error) {
	start, err := parseID(commit)
	if err != nil {
		return nil, false, err
	}
	b := &blamer{r: r, path: path, pending: map[plumbing.Hash]map[int]int{}}
	if b.history, err = newHistory(r.objects, start); err != nil {
		return nil, false, err
	}
	if err := b.begin(start); err != nil {
		return nil, false, err
	}
	for range maxWalk {
		one, ok := b.history.next()
		if !ok {
			return b.lines, !b.history.cut, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, false, context.Cause(ctx)
		}
		if err := b.visit(one); err != nil {
			return nil, false, err
		}
	}
	return b.lines, false, nil
}
