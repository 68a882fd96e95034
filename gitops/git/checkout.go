package git

import (
	"context"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// creating never opens what is already there, nor through a link: what a
// checkout writes it has made itself.
const creating = os.O_WRONLY | os.O_CREATE | os.O_EXCL | unix.O_NOFOLLOW

// writer writes a manifest's files into an empty directory and records their
// stamps.
type writer struct {
	from   source
	limits Limits
	bytes  atomic.Int64
}

// checkout reads a tree and writes it into root: directories first, then files
// by several workers, a directory at a time, and symlinks last, so that nothing
// is ever written through one.
func checkout(ctx context.Context, from source, limits Limits, tree plumbing.Hash, root *os.Root) (*directory, error) {
	reader := treeReader{from: from, limits: limits}
	manifest, err := reader.read(tree, "", 1)
	if err != nil {
		return nil, err
	}
	w := &writer{from: from, limits: limits}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxReaders))
	var links []link
	err = w.directories(ctx, root, manifest, ".", &links, group)
	if waited := group.Wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return nil, ioError(err, "the files cannot be written")
	}
	for _, one := range links {
		if err := w.symlink(root, one); err != nil {
			return nil, ioError(err, "the symlink %s cannot be written", one.path)
		}
	}
	return manifest, nil
}

type link struct {
	path string
	file *file
}

func (w *writer) directories(ctx context.Context, root *os.Root, dir *directory, name string, links *[]link, group *errgroup.Group) error {
	// In order: file systems place what is made together close together.
	for _, child := range slices.Sorted(maps.Keys(dir.dirs)) {
		below := dir.dirs[child]
		childName := path.Join(name, child)
		if err := root.Mkdir(childName, 0o755); err != nil {
			return err
		}
		if err := w.directories(ctx, root, below, childName, links, group); err != nil {
			return err
		}
	}
	regular := make([]string, 0, len(dir.files))
	for child, f := range dir.files {
		switch f.state.mode {
		case filemode.Symlink:
			*links = append(*links, link{path.Join(name, child), f})
		case filemode.Submodule:
			// An empty directory, as git leaves it. What a submodule points to
			// is never fetched: its URL is the repository's to choose.
			if err := root.Mkdir(path.Join(name, child), 0o755); err != nil {
				return err
			}
		default:
			regular = append(regular, child)
		}
	}
	if len(regular) == 0 {
		return ctx.Err()
	}
	slices.Sort(regular)
	group.Go(func() error { return w.files(ctx, root, dir, name, regular) })
	return ctx.Err()
}

// files writes the regular files of one directory, opened once.
func (w *writer) files(ctx context.Context, root *os.Root, dir *directory, name string, regular []string) error {
	here, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer here.Close()
	for _, child := range regular {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := dir.files[child]
		content, err := readObject(w.from, f.state.id, plumbing.BlobObject, w.limits.FileBytes)
		if err != nil {
			return err
		}
		if w.bytes.Add(int64(len(content))) > w.limits.Bytes {
			return failf(CodeTooLarge, nil, "the repository's files have more than %d bytes in all", w.limits.Bytes)
		}
		if f.stamp, err = createFile(here, child, f.state.mode, content); err != nil {
			return err
		}
	}
	return nil
}

// createFile makes a regular file and returns its stamp.
func createFile(root *os.Root, name string, mode filemode.FileMode, content []byte) (stamp, error) {
	permissions := os.FileMode(0o644)
	if isExecutable(mode) {
		permissions = 0o755
	}
	out, err := root.OpenFile(name, creating, permissions)
	if err != nil {
		return stamp{}, err
	}
	defer out.Close()
	if _, err := out.Write(content); err != nil {
		return stamp{}, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(out.Fd()), &stat); err != nil {
		return stamp{}, err
	}
	return stampOf(&stat), nil
}

// maxLinkTarget is Linux's own limit for what a symlink may hold.
const maxLinkTarget = 4096

func (w *writer) symlink(root *os.Root, one link) error {
	target, err := readObject(w.from, one.file.state.id, plumbing.BlobObject, maxLinkTarget)
	if err != nil {
		return err
	}
	one.file.stamp, err = createLink(root, one.path, string(target))
	return err
}

func createLink(root *os.Root, name, target string) (stamp, error) {
	if err := root.Symlink(target, name); err != nil {
		return stamp{}, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return stamp{}, err
	}
	return stampOfInfo(info)
}

func isExecutable(mode filemode.FileMode) bool { return mode == filemode.Executable }
