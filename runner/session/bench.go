package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"handoff/agents"
	"handoff/gitops/git"
	"handoff/runner"
	"handoff/sandbox"
)

// A bench is where the crew works: a workspace, a sandbox around it, and the
// tools that work on both. It lives as long as a hold.
type bench struct {
	workspace *git.Workspace
	box       sandbox.Sandbox
	tools     *agents.Registry
	// customs are the repository's own instructions, limits what this machine
	// cannot do, both for the crew to read.
	customs string
	limits  string
	// cache is the host directory of the session's build caches.
	cache string
	// redact takes secrets out of text.
	redact func(string) string

	lease     journalled
	inherited *runner.Checkpoint
	baseTree  string
	blobs     func(ctx context.Context, id string) ([]byte, error)
	// stored are blobs that the database is known to have.
	stored map[string]bool
}

// journalled is the part of a lease that holds the workspace's history.
type journalled interface {
	Checkpoint(ctx context.Context) (*runner.Checkpoint, error)
	MissingBlobs(ctx context.Context, ids []string) ([]string, error)
}

// cacheTarget is where commands see the session's build caches.
const cacheTarget = "/cache"

// openBench takes the workspace up where the journal left it, and opens a
// sandbox around it.
func (h *hold) openBench(ctx context.Context) error {
	commit, err := h.base.repository.Commit(ctx, h.base.commit)
	if err != nil {
		return gitFault(err)
	}
	b := &bench{
		lease: h.lease, baseTree: commit.Tree, stored: map[string]bool{},
		cache:  filepath.Join(h.workspaceDir(h.session.ID), "cache"),
		redact: h.redact,
		blobs: func(ctx context.Context, id string) ([]byte, error) {
			return h.Store.Blob(ctx, h.session.InstallationID, id)
		},
	}
	h.bench = b
	if b.inherited, err = h.inherited(ctx); err != nil {
		return err
	}
	if err := b.openWorkspace(ctx, h); err != nil {
		return gitFault(err)
	}
	if err := h.plantCanary(); err != nil {
		return err
	}
	if err := b.openSandbox(ctx, h); err != nil {
		return err
	}
	b.customs = h.customs(ctx)
	b.tools, err = h.toolbox(ctx, b)
	return err
}

func (b *bench) openWorkspace(ctx context.Context, h *hold) error {
	dir := h.workspaceDir(h.session.ID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	last, err := b.last(ctx)
	if err != nil {
		return err
	}
	workspace, err := h.base.repository.Open(dir)
	if code := git.CodeOf(err); err != nil && code != git.CodeNotFound && code != git.CodeCorrupt {
		return err
	}
	if err != nil || workspace.Base() != h.base.commit || !isDir(workspace.Tree()) {
		// What is damaged or of another base is made anew, with all around it.
		if err := sandbox.RemoveTree(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if workspace, err = h.checkout(ctx, dir); err != nil {
			return err
		}
	}
	b.workspace = workspace
	if h.showsGit() {
		// A command that a crash cut off has left its own behind.
		if err := workspace.DropGit(); err != nil {
			return err
		}
	}
	return b.restore(ctx, last)
}

func isDir(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// last returns the workspace's state that the journal ends with.
func (b *bench) last(ctx context.Context) (*runner.Checkpoint, error) {
	checkpoint, err := b.lease.Checkpoint(ctx)
	if err != nil || checkpoint != nil {
		return checkpoint, err
	}
	return b.inherited, nil
}

// restore makes the workspace's files those of the checkpoint, nil for the base.
func (b *bench) restore(ctx context.Context, checkpoint *runner.Checkpoint) error {
	to := git.Checkpoint{Base: b.workspace.Base(), Tree: b.baseTree}
	if checkpoint != nil {
		full, err := b.withBlobs(ctx, checkpoint)
		if err != nil {
			return err
		}
		to = full
	}
	return b.workspace.Reset(ctx, to)
}

// withBlobs turns a stored checkpoint into one that the git layer can use.
func (b *bench) withBlobs(ctx context.Context, checkpoint *runner.Checkpoint) (git.Checkpoint, error) {
	full := git.Checkpoint{Base: checkpoint.Base, Tree: checkpoint.Tree, Blobs: map[string][]byte{}}
	for _, change := range checkpoint.Changes {
		full.Changes = append(full.Changes, git.CheckpointChange(change))
		if change.Blob == "" || full.Blobs[change.Blob] != nil {
			continue
		}
		content, err := b.blobs(ctx, change.Blob)
		if err != nil {
			return full, fmt.Errorf("the content of %s: %w", change.Path, err)
		}
		full.Blobs[change.Blob] = content
		b.stored[change.Blob] = true
	}
	return full, nil
}

// Snapshot implements [runner.Workspace].
func (b *bench) Snapshot(ctx context.Context) (*runner.Checkpoint, error) {
	taken, err := b.workspace.Checkpoint(ctx, func(blob string) bool { return b.stored[blob] })
	if git.CodeOf(err) == git.CodeTooLarge {
		return nil, b.putBack(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	missing, err := b.lease.MissingBlobs(ctx, slices.Collect(maps.Keys(taken.Blobs)))
	if err != nil {
		return nil, err
	}
	checkpoint := &runner.Checkpoint{Base: taken.Base, Tree: taken.Tree, Blobs: map[string][]byte{}}
	for _, id := range missing {
		checkpoint.Blobs[id] = taken.Blobs[id]
	}
	for _, change := range taken.Changes {
		checkpoint.Changes = append(checkpoint.Changes, runner.CheckpointChange(change))
	}
	return checkpoint, nil
}

// putBack undoes changes that are too large to be kept.
func (b *bench) putBack(ctx context.Context, reason error) error {
	last, err := b.last(ctx)
	if err == nil {
		err = b.restore(ctx, last)
	}
	return cmp.Or(err, error(&runner.Unkept{Reason: sentence(reason)}))
}

// Reset implements [runner.Workspace].
func (b *bench) Reset(ctx context.Context, tree string) error {
	last, err := b.last(ctx)
	if err != nil {
		return err
	}
	if tree != "" && (last == nil || last.Tree != tree) {
		return fmt.Errorf("the journal ends with the tree %s, which no checkpoint holds", tree)
	}
	return b.restore(ctx, last)
}

// openSandbox makes the sandbox of the session. Where this machine offers none
// the session goes on without commands, and says so.
func (b *bench) openSandbox(ctx context.Context, h *hold) error {
	logs := filepath.Join(h.workspaceDir(h.session.ID), "logs")
	for _, dir := range []string{b.cache, logs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	capabilities, err := h.Sandbox.Probe(ctx)
	if err != nil {
		return err
	}
	if reason := capabilities.Err(); reason != nil && !capabilities.Unisolated() {
		b.limits = "Commands cannot be run on this machine: " + reason.Error()
		h.notices = append(h.notices, b.limits)
		return nil
	}
	if loss := capabilities.Tier.GivesUp(); loss != "" {
		b.limits = "The sandbox of this machine has limits: " + loss
		h.notices = append(h.notices, b.limits)
	}
	b.box, err = h.createBox(ctx, b.workspace, h.spec(h.session.ID, b.workspace.Tree(), b.cache, logs))
	return err
}

// spec describes a sandbox around a directory of files.
func (h *hold) spec(id, tree, cache, logs string) sandbox.Spec {
	limits := sandbox.DefaultLimits()
	limits.Wall = h.config.Timeout
	return sandbox.Spec{
		ID: id, Workspace: tree,
		ReadOnly: h.ReadOnly,
		Writable: []sandbox.Mount{{Source: cache, Target: cacheTarget}},
		Env:      h.Env,
		Limits:   limits,
		LogDir:   logs,
	}
}

// environment points the usual tools at the session's caches, and away from
// the network that is not there.
func environment(box sandbox.Sandbox, cache string) map[string]string {
	at := func(name string) string { return filepath.Join(box.Path(cache), name) }
	return map[string]string{
		"XDG_CACHE_HOME":   box.Path(cache),
		"GOCACHE":          at("go-build"),
		"GOMODCACHE":       at("go-mod"),
		"GOPATH":           at("go"),
		"GOPROXY":          "off",
		"GOTOOLCHAIN":      "local",
		"GOTELEMETRY":      "off",
		"GOFLAGS":          "-buildvcs=false",
		"npm_config_cache": at("npm"),
		"PIP_CACHE_DIR":    at("pip"),
		"CARGO_HOME":       at("cargo"),
		"CI":               "true",
	}
}

// close gives the sandbox back. The workspace stays, for the next hold.
func (b *bench) close() {
	if b.box != nil {
		_ = b.box.Close() // what it leaves behind is swept up later
	}
}
