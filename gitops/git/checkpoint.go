package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/sys/unix"
)

// A Checkpoint is a workspace as base commit plus changed files, enough to
// rebuild it byte for byte on another machine. Files that are ignored, or
// refused, are not part of it.
type Checkpoint struct {
	// Base is the commit that the changes are relative to.
	Base string `json:"base"`
	// Tree is the git tree id of the whole.
	Tree string `json:"tree"`
	// Changes name every path that differs from the base, sorted.
	Changes []CheckpointChange `json:"changes"`
	// Blobs holds contents by blob id; see [Workspace.Checkpoint].
	Blobs map[string][]byte `json:"-"`
}

// A CheckpointChange is one changed path.
type CheckpointChange struct {
	Path string `json:"path"`
	// Mode is git's mode in octal, "" for a deleted path.
	Mode string `json:"mode,omitempty"`
	// Blob is git's blob id, "" for a deleted path.
	Blob string `json:"blob,omitempty"`
}

// Checkpoint records the workspace as it is now. The contents of all changed
// files are also kept in the workspace's own object store, so that
// [Workspace.Reset] and [Workspace.RevertOutside] need nothing else here. Blobs
// of the result holds those that have says are missing in the caller's store
// (nil: all), so that a step stores only what is new.
func (w *Workspace) Checkpoint(ctx context.Context, have func(blob string) bool) (Checkpoint, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.scan(ctx, nil)
	if err != nil {
		return Checkpoint{}, err
	}
	return w.checkpoint(s, have)
}

func (w *Workspace) checkpoint(s *scanner, have func(string) bool) (Checkpoint, error) {
	tree, _, err := w.build(s.differ)
	if err != nil {
		return Checkpoint{}, err
	}
	result := Checkpoint{Base: w.base.String(), Tree: tree.String(), Blobs: map[string][]byte{}}
	for name, state := range s.differ {
		change := CheckpointChange{Path: name}
		if state.present() {
			change.Mode, change.Blob = modeText(state.mode), state.id.String()
			content, err := w.keep(name, state)
			if err != nil {
				return Checkpoint{}, err
			}
			if have == nil || !have(change.Blob) {
				result.Blobs[change.Blob] = content
			}
		}
		result.Changes = append(result.Changes, change)
	}
	slices.SortFunc(result.Changes, func(a, b CheckpointChange) int { return strings.Compare(a.Path, b.Path) })
	return result, nil
}

// keep stores a changed file's content in the session's own object store.
func (w *Workspace) keep(name string, state fileState) ([]byte, error) {
	content, err := w.readCurrent(name, state)
	if err != nil {
		return nil, err
	}
	return content, writeLoose(w.ownObjects(), newObject(plumbing.BlobObject, content))
}

func (w *Workspace) ownObjects() string { return filepath.Join(w.dir, "meta", "objects") }

// readCurrent reads a file of the tree and checks that it still is what the
// scan found: what is sealed is what was looked at.
func (w *Workspace) readCurrent(name string, state fileState) ([]byte, error) {
	content, err := w.readTree(name, state)
	if err != nil {
		return nil, ioError(err, "%s cannot be read", name)
	}
	if plumbing.ComputeHash(plumbing.BlobObject, content) != state.id {
		return nil, failf(CodeIO, nil, "%s changed while it was read; is something still running in the workspace?", name)
	}
	return content, nil
}

func (w *Workspace) readTree(name string, state fileState) ([]byte, error) {
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if state.mode == filemode.Symlink {
		target, err := root.Readlink(name)
		return []byte(target), err
	}
	in, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readAll(in, w.repo.limits.FileBytes)
}

// Reset makes the workspace's files those of a checkpoint of the same base. What
// the checkpoint's own .gitignore files leave out stays, unless there are more
// files, or more bytes in those that differ, than the limits allow: then
// everything goes and is written anew. Contents come from the checkpoint's Blobs,
// from what earlier checkpoints kept here, and from the repository.
//
// Errors: [CodeInvalid] for another base, [CodeNotFound] when a content is
// nowhere to be found, [CodeCorrupt] when the result has not the checkpoint's
// tree id.
func (w *Workspace) Reset(ctx context.Context, to Checkpoint) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	target, err := w.target(to)
	if err != nil {
		return err
	}
	nothing := func(string) bool { return false }
	_, err = w.settle(ctx, target, nothing)
	if CodeOf(err) == CodeTooLarge {
		if err = w.clear(); err == nil {
			_, err = w.settle(ctx, target, nothing)
		}
	}
	if err != nil {
		return err
	}
	return w.verify(ctx, to.Tree)
}

// verify scans again and compares the tree id.
func (w *Workspace) verify(ctx context.Context, want string) error {
	s, err := w.scan(ctx, nil)
	if err != nil {
		return err
	}
	tree, _, err := w.build(s.differ)
	if err == nil && tree.String() != want {
		err = failf(CodeCorrupt, nil, "the restored files have the tree %s instead of %s", tree, want)
	}
	return err
}

// target checks a checkpoint and returns its states by path, having stored the
// blobs that it brings.
func (w *Workspace) target(to Checkpoint) (map[string]fileState, error) {
	if to.Base != w.base.String() {
		return nil, failf(CodeInvalid, nil, "the checkpoint belongs to the commit %s, the workspace to %s", clip(to.Base, 12), clip(w.base.String(), 12))
	}
	target := make(map[string]fileState, len(to.Changes))
	for _, change := range to.Changes {
		state, err := change.state()
		if err != nil {
			return nil, err
		}
		target[change.Path] = state
	}
	for id, content := range to.Blobs {
		object := newObject(plumbing.BlobObject, content)
		if object.Hash().String() != id {
			return nil, failf(CodeCorrupt, nil, "the content stored as %s is another", id)
		}
		if err := writeLoose(w.ownObjects(), object); err != nil {
			return nil, err
		}
	}
	return target, nil
}

// state checks one change of a checkpoint, which may come from a database.
func (c CheckpointChange) state() (fileState, error) {
	if reason := badPath(c.Path); reason != "" {
		return fileState{}, &Error{Code: CodeCorrupt, Message: "the checkpoint names a file that cannot be: " + reason, Paths: []string{c.Path}}
	}
	if c.Mode == "" {
		return fileState{}, nil
	}
	mode, err := filemode.New(c.Mode)
	if err != nil || !isRegular(mode) && mode != filemode.Symlink {
		return fileState{}, failf(CodeCorrupt, nil, "the checkpoint has the mode %q", clip(c.Mode, 20))
	}
	id, err := parseID(c.Blob)
	return fileState{mode: mode, id: id}, err
}

// Restore rebuilds a checkpoint in dir, on any machine: the base commit is
// checked out from the repository, which must have it ([Cache.FetchCommit]),
// and the changes are made. blobs returns contents by blob id for those that
// the checkpoint does not bring itself. An unfinished attempt in dir is cleared.
func (r *Repository) Restore(ctx context.Context, from Checkpoint, dir string, blobs func(id string) ([]byte, error)) (*Workspace, error) {
	w, err := r.Checkout(ctx, from.Base, dir)
	if err != nil {
		return nil, err
	}
	from.Blobs, err = gather(from, blobs)
	if err == nil {
		err = w.Reset(ctx, from)
	}
	if err != nil {
		return nil, errors.Join(err, w.Remove())
	}
	return w, nil
}

func gather(from Checkpoint, blobs func(string) ([]byte, error)) (map[string][]byte, error) {
	all := make(map[string][]byte, len(from.Changes))
	for _, change := range from.Changes {
		if change.Blob == "" {
			continue
		}
		content, ok := from.Blobs[change.Blob]
		if !ok {
			var err error
			if content, err = blobs(change.Blob); err != nil {
				return nil, failf(CodeNotFound, err, "the content of %s was not stored", clip(change.Path, 200))
			}
		}
		all[change.Blob] = content
	}
	return all, nil
}

// RevertOutside puts back every path that differs from the given checkpoint of
// this workspace and for which allowed is false: what an agent's command changed
// outside of the paths that the agent may change. It returns those paths,
// sorted. Ignored files are not looked at, but what is ignored is decided after
// .gitignore files outside of those paths were put back.
func (w *Workspace) RevertOutside(ctx context.Context, since Checkpoint, allowed func(path string) bool) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	target, err := w.target(since)
	if err != nil {
		return nil, err
	}
	return w.settle(ctx, target, allowed)
}
