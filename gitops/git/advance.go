package git

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

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
	if size := w.size(); size > w.repo.limits.Bytes {
		return failf(CodeTooLarge, nil, "the repository's files have more than %d bytes in all", w.repo.limits.Bytes)
	}
	w.written = time.Now()
	if err := ctx.Err(); err != nil {
		return err
	}
	return ioError(w.save(), "the workspace cannot be written")
}

// size is how many bytes the tracked files of a pristine workspace have.
func (w *Workspace) size() (total int64) {
	w.manifest.each("", func(_ string, f *file) { total += f.stamp.size })
	return total
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
