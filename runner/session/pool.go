package session

import (
	"context"
	"sync"
	"time"

	"handoff/gitops/git"
	"handoff/runner"
)

// Pool hands out workspaces that were made ahead of time; *git.Pool implements
// it.
type Pool interface {
	// Take returns a workspace of a commit in dir, as [git.Repository.Checkout]
	// does.
	Take(ctx context.Context, remote git.Remote, commit, dir string) (*git.Workspace, error)
	// Prepare makes a workspace of a commit ready for whoever comes next.
	Prepare(ctx context.Context, remote git.Remote, commit string) error
	// Sweep removes what is ready for repositories that nobody used for so long.
	Sweep(ctx context.Context, unused time.Duration)
}

// poolAge is when the trees of a repository go in which nobody began a session.
const poolAge = 7 * 24 * time.Hour

// A warmth is what the next session of a repository will probably begin from.
type warmth struct {
	remote git.Remote
	commit string
}

// A warmer remembers of which repositories trees shall be made ready: the newest
// commit of each.
type warmer struct {
	mu     sync.Mutex
	wanted []warmth
	// told holds one value while there is something to do.
	told chan struct{}
}

func newWarmer() *warmer { return &warmer{told: make(chan struct{}, 1)} }

func (w *warmer) want(next warmth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, one := range w.wanted {
		if one.remote.InstallationID == next.remote.InstallationID && one.remote.RepositoryID == next.remote.RepositoryID {
			w.wanted[i] = next
			return
		}
	}
	w.wanted = append(w.wanted, next)
	select {
	case w.told <- struct{}{}:
	default:
	}
}

func (w *warmer) next() (warmth, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) == 0 {
		return warmth{}, false
	}
	first := w.wanted[0]
	w.wanted = w.wanted[1:]
	return first, true
}

// keepWarm makes trees ready, one after another, until ctx is done. It is the
// only one that does, so that sessions keep the machine.
func (c *Conductor) keepWarm(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.warmer.told:
			c.warm(ctx)
		}
	}
}

// warm makes all trees ready that are wanted. None is needed: a session without
// one checks its files out.
func (c *Conductor) warm(ctx context.Context) {
	for ctx.Err() == nil {
		one, ok := c.warmer.next()
		if !ok {
			return
		}
		// A repository that meets a fault of ours must not end the node.
		err := runner.Contain(func() error { return c.Pool.Prepare(ctx, one.remote, one.commit) })
		if err != nil && ctx.Err() == nil {
			c.Logger.Warn("no tree could be made ready", "repository", one.remote.RepositoryID, "commit", one.commit, "error", err)
		}
	}
}

// checkout returns a new workspace of the session's base.
func (h *hold) checkout(ctx context.Context, dir string) (*git.Workspace, error) {
	if h.Pool == nil {
		return h.base.repository.Checkout(ctx, h.base.commit, dir)
	}
	return h.Pool.Take(ctx, h.base.remote, h.base.commit, dir)
}

// wantTree asks for a tree for whoever comes next, once this session has begun
// from the default branch as it is now. A session that goes on later knows only
// how the branch was.
func (h *hold) wantTree() {
	if h.Pool == nil || !h.base.fetched {
		return
	}
	remote := h.base.remote
	remote.Auth = nil // what is fetched needs no token
	h.warmer.want(warmth{remote, h.base.rules})
}
