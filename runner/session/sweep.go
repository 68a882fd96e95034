package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"handoff/runner/store"
	"handoff/sandbox"
)

const (
	// sweepInterval is how often a node looks for what sessions left behind.
	sweepInterval = time.Hour
	// strangeAge is when a workspace goes of which the database knows no
	// session: not at once, because it may be a moment older than its row.
	strangeAge = 24 * time.Hour
	// setupAge is when a setup's caches go that nobody used.
	setupAge = 30 * 24 * time.Hour
)

// tidy removes the workspace of a session that is over. Whatever is kept of it
// is in the database.
func (c *Conductor) tidy(sessionID string) {
	if c.KeepWorkspaces {
		return
	}
	// A push ends by itself, so there is no need to give up.
	end, err := publishing.take(context.Background(), sessionID)
	if err != nil {
		return
	}
	defer end()
	if err := sandbox.RemoveTree(c.workspaceDir(sessionID)); err != nil {
		c.Logger.Warn("a workspace could not be removed; it is tried again", "session", sessionID, "error", err)
	}
}

// sweep removes what is left behind, now and every hour until ctx is done: the
// workspaces of sessions that ended elsewhere or in a crash, the caches of
// setups and the trees of the pool that are out of use, and what old bases came
// to.
func (c *Conductor) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		c.sweepWorkspaces(ctx)
		c.sweepSetups(ctx)
		if c.Pool != nil {
			c.Pool.Sweep(ctx, poolAge)
		}
		c.sweepBaseRuns(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *Conductor) sweepWorkspaces(ctx context.Context) {
	if c.KeepWorkspaces {
		return
	}
	entries, err := os.ReadDir(c.workspaceDir(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.Warn("the workspaces cannot be listed", "error", err)
	}
	for _, entry := range entries {
		session, err := c.Store.Session(ctx, entry.Name())
		unknown := errors.Is(err, store.ErrNotFound) && age(entry) > strangeAge
		if unknown || err == nil && session.State.Ended() {
			c.tidy(entry.Name())
		}
	}
}

// sweepSetups removes caches by when a session last used them.
func (c *Conductor) sweepSetups(ctx context.Context) {
	caches, err := filepath.Glob(filepath.Join(c.setupRoot(), "*", "*", "*"))
	if err != nil {
		c.Logger.Warn("the caches of setups cannot be listed", "error", err)
	}
	for _, cache := range caches {
		info, err := os.Lstat(cache)
		if ctx.Err() != nil || err != nil || !info.IsDir() || time.Since(info.ModTime()) < setupAge {
			continue
		}
		c.dropSetup(ctx, cache)
	}
}

func (c *Conductor) dropSetup(ctx context.Context, cache string) {
	unlock, err := lockSetup(ctx, cache)
	if err == nil {
		err = sandbox.RemoveTree(cache)
		unlock()
	}
	if err != nil {
		c.Logger.Warn("the caches of a setup could not be removed", "error", err)
	}
}

func (c *Conductor) sweepBaseRuns(ctx context.Context) {
	if _, err := c.Store.ForgetBaseRuns(ctx, baseRunAge); err != nil && ctx.Err() == nil {
		c.Logger.Warn("old results of tests could not be removed; it is tried again", "error", err)
	}
}

// age is how long ago a directory was changed; 0 when that cannot be told.
func age(entry fs.DirEntry) time.Duration {
	info, err := entry.Info()
	if err != nil {
		return 0
	}
	return time.Since(info.ModTime())
}
