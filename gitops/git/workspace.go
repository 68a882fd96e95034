package git

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Workspace is one session's copy of a commit's files. Its methods take turns:
// it is safe for concurrent use, but nobody else may write in its tree while one
// of them runs (the sandbox is frozen then).
type Workspace struct {
	dir       string
	repo      *Repository
	objects   source // the session's own objects, then the repository's
	base      plumbing.Hash
	tree      plumbing.Hash
	written   time.Time
	mu        sync.Mutex
	manifest  *directory
	known     map[string]observation
	diffCount map[[2]plumbing.Hash]lineCount
}

// An observation is what a file that differs from the manifest held when it was
// last read.
type observation struct {
	stamp stamp
	state fileState
	read  time.Time
}

// metadata is the content of meta/workspace.json. It is written last, so a
// checkout that was cut off is not a workspace.
type metadata struct {
	Version int       `json:"version"`
	Base    string    `json:"base"`
	Tree    string    `json:"tree"`
	Written time.Time `json:"written"`
}

const metadataVersion = 1

// Checkout writes the files of a commit to dir/tree and returns the workspace.
// A dir that holds an unfinished checkout is cleared first; one that holds a
// workspace is refused ([CodeInvalid]): [Repository.Open] takes it up again.
//
// Errors: [CodeNotFound] when the commit is not here, [CodeTooLarge],
// [CodeRefused] for a repository with file names such as .git or "..".
func (r *Repository) Checkout(ctx context.Context, commit, dir string) (*Workspace, error) {
	return r.checkout(ctx, r.objects, commit, dir)
}

func (r *Repository) checkout(ctx context.Context, from source, commit, dir string) (*Workspace, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	found, err := readCommit(from, id)
	if err != nil {
		return nil, err
	}
	if err := clearUnfinished(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		return nil, ioError(err, "the workspace cannot be opened")
	}
	defer root.Close()
	manifest, err := checkout(ctx, from, r.limits, found.TreeHash, root)
	if err != nil {
		return nil, err
	}
	w := r.workspace(dir, id, found.TreeHash, time.Now())
	w.manifest = manifest
	return w, ioError(w.save(), "the workspace cannot be written")
}

// clearUnfinished makes dir hold an empty tree/ and meta/.
func clearUnfinished(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, "meta", "workspace.json")); err == nil {
		return failf(CodeInvalid, nil, "there is a workspace already in %s", filepath.Base(dir))
	}
	for _, half := range []string{"tree", "meta"} {
		name := filepath.Join(dir, half)
		if err := os.RemoveAll(name); err != nil {
			return ioError(err, "an unfinished workspace cannot be removed")
		}
		if err := os.MkdirAll(name, 0o755); err != nil {
			return ioError(err, "the workspace cannot be made")
		}
	}
	return nil
}

// Open takes up a workspace that [Repository.Checkout] made, in this process or
// an earlier one; [CodeNotFound] when there is none or its checkout was cut off.
func (r *Repository) Open(dir string) (*Workspace, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "meta", "workspace.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failf(CodeNotFound, nil, "there is no workspace in %s", filepath.Base(dir))
	}
	if err != nil {
		return nil, ioError(err, "the workspace cannot be read")
	}
	var meta metadata
	if err := json.Unmarshal(raw, &meta); err != nil || meta.Version != metadataVersion {
		return nil, failf(CodeCorrupt, err, "the workspace's description is damaged or of another version")
	}
	base, err := parseID(meta.Base)
	if err != nil {
		return nil, err
	}
	tree, err := parseID(meta.Tree)
	if err != nil {
		return nil, err
	}
	w := r.workspace(dir, base, tree, meta.Written)
	w.manifest, err = readManifest(filepath.Join(dir, "meta", "index"))
	return w, ioError(err, "the workspace's manifest cannot be read")
}

func (r *Repository) workspace(dir string, base, tree plumbing.Hash, written time.Time) *Workspace {
	w := &Workspace{
		repo: r, base: base, tree: tree, written: written,
		known:     map[string]observation{},
		diffCount: map[[2]plumbing.Hash]lineCount{},
	}
	w.settleIn(dir)
	return w
}

// settleIn says where the workspace is.
func (w *Workspace) settleIn(dir string) {
	w.dir = dir
	w.objects = layered{newObjectStore(w.repo.limits.FileBytes, w.ownObjects()), w.repo.objects}
}

func (w *Workspace) save() error {
	if err := writeManifest(filepath.Join(w.dir, "meta", "index"), w.manifest); err != nil {
		return err
	}
	raw, err := json.Marshal(metadata{
		Version: metadataVersion, Base: w.base.String(), Tree: w.tree.String(), Written: w.written,
	})
	if err != nil {
		return err
	}
	// Waiting for the disk here would mean waiting for all files just written. A
	// power failure may leave an empty description, which is damaged, or files
	// without content, which differ from the manifest.
	return replaceFile(filepath.Join(w.dir, "meta", "workspace.json"), raw, func(*os.File) error { return nil })
}

// Tree returns the directory with the files, the only one a sandbox may see.
func (w *Workspace) Tree() string { return filepath.Join(w.dir, "tree") }

// Base returns the commit that was checked out.
func (w *Workspace) Base() string { return w.base.String() }

// Remove deletes the workspace with all that is in it.
func (w *Workspace) Remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return ioError(removeAll(w.dir), "the workspace cannot be removed")
}

// removeAll deletes a directory that a sandbox wrote in, also where it took
// away permissions. It never follows a link.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, openErr := os.OpenRoot(dir)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer root.Close()
	openUp(root, ".")
	return os.RemoveAll(dir)
}

// openUp gives the owner back the right to list and change directories.
func openUp(root *os.Root, name string) {
	_ = root.Chmod(name, 0o755) // what stays closed shows when it is removed
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			openUp(root, filepath.Join(name, entry.Name()))
		}
	}
}

func stampOfInfo(info fs.FileInfo) (stamp, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, failf(CodeIO, nil, "the file system gives no change times")
	}
	return stamp{size: stat.Size, ctime: stat.Ctim.Nano(), inode: uint32(stat.Ino)}, nil
}
