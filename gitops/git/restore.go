package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// maxRounds is how often a scan is repeated after .gitignore files were put
// back: each may uncover files, and further ones among them.
const maxRounds = 10

// settle restores until nothing differs any more from the target, apart from
// what is spared, and returns all paths that it changed, sorted.
func (w *Workspace) settle(ctx context.Context, target map[string]fileState, spare func(string) bool) ([]string, error) {
	var all []string
	for range maxRounds {
		s, err := w.scan(ctx, nil)
		if err != nil {
			return nil, err
		}
		names, err := w.restore(s, target, spare)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
		if len(names) == 0 {
			break
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// restore brings every path that differs, and that spare does not spare, to its
// target, which is the manifest's state where target has none. It returns the
// paths it changed, sorted.
func (w *Workspace) restore(s *scanner, target map[string]fileState, spare func(string) bool) ([]string, error) {
	plan := map[string]fileState{}
	refusals := map[string]bool{}
	consider := func(name string) {
		want, ok := target[name]
		if !ok {
			want = w.baseState(name)
		}
		now, differs := s.differ[name]
		if !differs {
			now = w.baseState(name)
		}
		if now != want && !spare(name) {
			plan[name] = want
		}
	}
	for name := range s.differ {
		consider(name)
	}
	for name := range target {
		consider(name)
	}
	for _, refused := range s.refused {
		if !spare(refused.Path) && w.baseState(refused.Path).mode != filemode.Submodule {
			want, ok := target[refused.Path]
			if !ok {
				want = w.baseState(refused.Path)
			}
			plan[refused.Path] = want
			refusals[refused.Path] = true
		}
	}
	return w.carryOut(plan, refusals)
}

func (w *Workspace) baseState(name string) fileState {
	if f := w.manifest.find(name); f != nil {
		return f.state
	}
	return fileState{}
}

// carryOut deletes first, then writes, so that files can become directories and
// the reverse.
func (w *Workspace) carryOut(plan map[string]fileState, refused map[string]bool) ([]string, error) {
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return nil, ioError(err, "the workspace cannot be opened")
	}
	defer root.Close()
	names := make([]string, 0, len(plan))
	for name := range plan {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if !plan[name].present() {
			if err := deleteFile(root, name, refused[name]); err != nil {
				return nil, ioError(err, "%s cannot be deleted", name)
			}
		}
	}
	for _, name := range names {
		if plan[name].present() {
			if err := w.putBack(root, name, plan[name]); err != nil {
				return nil, ioError(err, "%s cannot be put back", name)
			}
		}
		delete(w.known, name)
	}
	return names, nil
}

// deleteFile removes a file, or whatever was refused, and the directories that
// it leaves empty. What is reached only through a symlink or a file is not there.
func deleteFile(root *os.Root, name string, refused bool) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(name[:i]); err != nil || !info.IsDir() {
			return nil
		}
	}
	if refused {
		if err := clearName(root, name); err != nil {
			return err
		}
	} else if info, err := root.Lstat(name); err != nil {
		return nil
	} else if err := root.Remove(name); err != nil && !info.IsDir() { // only an empty directory, as of a submodule, goes
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			break // not empty
		}
	}
	return nil
}

// putBack writes one file or link, making room for it.
func (w *Workspace) putBack(root *os.Root, name string, state fileState) error {
	if state.mode == filemode.Submodule {
		return makeDirs(root, name+"/")
	}
	content, err := readObject(w.objects, state.id, plumbing.BlobObject, w.repo.limits.FileBytes)
	if err != nil {
		return err
	}
	if err := makeDirs(root, name); err != nil {
		return err
	}
	if err := clearName(root, name); err != nil {
		return err
	}
	var written stamp
	if state.mode == filemode.Symlink {
		written, err = createLink(root, name, string(content))
	} else {
		written, err = createFile(root, name, state.mode, content)
	}
	if f := w.manifest.find(name); f != nil && f.state == state {
		f.stamp = written
	}
	return err
}

// makeDirs makes the directories above name, replacing whatever else is there.
func makeDirs(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		dir := name[:i]
		if info, err := root.Lstat(dir); err == nil && info.IsDir() {
			continue
		}
		if err := clearName(root, dir); err != nil {
			return err
		}
		if err := root.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// clear removes everything from the tree.
func (w *Workspace) clear() error {
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return ioError(err, "the workspace cannot be opened")
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return ioError(err, "the workspace's files cannot be listed")
	}
	for _, entry := range entries {
		if err := clearName(root, entry.Name()); err != nil {
			return ioError(err, "%s cannot be deleted", entry.Name())
		}
	}
	clear(w.known)
	return nil
}

// clearName removes whatever has a name, without following it.
func clearName(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if errors.Is(err, fs.ErrPermission) {
		openUp(root, name)
		err = root.RemoveAll(name)
	}
	return err
}
