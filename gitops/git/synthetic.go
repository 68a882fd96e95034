package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A SyntheticGit says what a made-up .git directory tells.
type SyntheticGit struct {
	// Branch is the branch that HEAD is on; "" for a detached HEAD.
	Branch string
	// Tags are names of tags on the base commit.
	Tags []string
	// Of is the workspace whose base commit it tells about, nil for the one that
	// it is put into: a checkout of a sealed commit looks to a build like the
	// workspace that was sealed.
	Of *Workspace
}

// PutGit writes a made-up .git directory into the tree, for builds that ask git
// for a version or a list of files. It holds the base commit without history,
// its files, the given branch and tags, and no remote, hook or credential. It is
// made anew for each command, replacing whatever is there, and is never read
// back: [Workspace.Scan] passes every .git by, so what a command does in it has
// no effect. [Workspace.DropGit] takes it away.
func (w *Workspace) PutGit(ctx context.Context, what SyntheticGit) error {
	of := cmp.Or(what.Of, w)
	refs, err := what.refs(of.base)
	if err != nil {
		return err
	}
	// It is built beside the tree and moved in, so that nothing that a sandbox
	// left in the tree is ever written through.
	dir := filepath.Join(w.dir, "meta", "synthetic.git")
	if err := os.RemoveAll(dir); err != nil {
		return ioError(err, "the .git directory cannot be made")
	}
	of.mu.Lock()
	err = of.writeGit(ctx, dir, refs)
	of.mu.Unlock()
	if err != nil {
		return ioError(err, "the .git directory cannot be made")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.dropGit(); err != nil {
		return err
	}
	return ioError(os.Rename(dir, filepath.Join(w.Tree(), ".git")), "the .git directory cannot be made")
}

// DropGit removes a .git directory, or whatever has that name, from the tree.
func (w *Workspace) DropGit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropGit()
}

func (w *Workspace) dropGit() error {
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return ioError(err, "the workspace cannot be opened")
	}
	defer root.Close()
	return ioError(clearName(root, ".git"), "the .git directory cannot be removed")
}

// refs returns the directory's reference files with their contents.
func (s SyntheticGit) refs(base plumbing.Hash) (map[string]string, error) {
	id := base.String() + "\n"
	files := map[string]string{"HEAD": id}
	if s.Branch != "" {
		if err := ValidateBranch(s.Branch); err != nil {
			return nil, err
		}
		files["HEAD"] = "ref: refs/heads/" + s.Branch + "\n"
		files["refs/heads/"+s.Branch] = id
	}
	for _, tag := range s.Tags {
		if ValidateBranch(tag) != nil { // tags and branches follow the same rules
			return nil, failf(CodeInvalid, nil, "%q is not a tag name", clip(tag, 80))
		}
		files["refs/tags/"+tag] = id
	}
	return files, nil
}

const syntheticConfig = `[core]
	repositoryformatversion = 0
	bare = false
	logallrefupdates = false
	hooksPath = /dev/null
[gc]
	auto = 0
`

func (w *Workspace) writeGit(ctx context.Context, dir string, refs map[string]string) error {
	// Without refs/ git takes the directory for something else.
	if err := os.MkdirAll(filepath.Join(dir, "refs"), 0o755); err != nil {
		return err
	}
	files := map[string]string{"config": syntheticConfig, "shallow": w.base.String() + "\n"}
	for name, content := range refs {
		files[name] = content
	}
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := writeManifest(filepath.Join(dir, "index"), w.manifest); err != nil {
		return err
	}
	pack, err := w.basePack(ctx)
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, "objects", "pack"), os.DirFS(pack))
}

// basePack returns the directory with the base's pack and its index. They are
// encoded once for a workspace, outside of what a sandbox sees, and copied from
// there: a link would let a command change what later ones are given.
func (w *Workspace) basePack(ctx context.Context) (string, error) {
	dir, fresh := filepath.Join(w.dir, "meta", w.base.String()+".pack"), filepath.Join(w.dir, "meta", "base.fresh")
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		return dir, nil
	}
	if err := os.RemoveAll(fresh); err != nil {
		return "", err
	}
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return "", err
	}
	if err := w.writePack(ctx, fresh); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(fresh, "objects", "pack"), dir); err != nil {
		return "", err
	}
	return dir, os.RemoveAll(fresh)
}

// writePack stores the base commit with all its trees and blobs as one pack. It
// is written as it is read: memory does not grow with the repository.
func (w *Workspace) writePack(ctx context.Context, dir string) error {
	ids, err := newObjects(w.objects, w.tree, nil)
	if err != nil {
		return err
	}
	store := filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(0))
	defer store.Close()
	out, err := store.PackfileWriter()
	if err != nil {
		return err
	}
	source := packSource{from: stoppable{ctx, w.objects}, lazy: true}
	_, err = packfile.NewEncoder(out, source, false).Encode(distinct(append(ids, w.base)), 0)
	return errors.Join(err, out.Close())
}

func distinct(ids []plumbing.Hash) []plumbing.Hash {
	seen := make(map[plumbing.Hash]bool, len(ids))
	kept := ids[:0]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			kept = append(kept, id)
		}
	}
	return kept
}

// stoppable is a source that fails once its context has ended.
type stoppable struct {
	ctx  context.Context
	from source
}

func (s stoppable) get(id plumbing.Hash) (plumbing.EncodedObject, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	return s.from.get(id)
}

// A lazyObject is read each time that somebody asks for its content, and never
// kept: go-git's encoder holds on to all objects that it is given.
type lazyObject struct {
	plumbing.MemoryObject // for the methods that nobody calls here
	from                  source
	id                    plumbing.Hash
	kind                  plumbing.ObjectType
	size                  int64
}

func newLazyObject(from source, id plumbing.Hash) (plumbing.EncodedObject, error) {
	object, err := from.get(id)
	if err != nil {
		return nil, err
	}
	return &lazyObject{from: from, id: id, kind: object.Type(), size: object.Size()}, nil
}

func (o *lazyObject) Hash() plumbing.Hash       { return o.id }
func (o *lazyObject) Type() plumbing.ObjectType { return o.kind }
func (o *lazyObject) Size() int64               { return o.size }

func (o *lazyObject) Reader() (io.ReadCloser, error) {
	object, err := o.from.get(o.id)
	if err != nil {
		return nil, err
	}
	return object.Reader()
}
