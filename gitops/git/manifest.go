package git

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/sys/unix"
)

// A stamp is what lstat says of a file. Nobody without control of the clock can
// change a file and keep its ctime.
type stamp struct {
	size  int64
	ctime int64 // nanoseconds since 1970
	inode uint32
}

func stampOf(stat *unix.Stat_t) stamp {
	return stamp{size: stat.Size, ctime: stat.Ctim.Nano(), inode: uint32(stat.Ino)}
}

// clockGrain is how late the kernel's time stamps may be: file systems take the
// time of the last timer tick, at most ten milliseconds ago, doubled for safety.
const clockGrain = 20 * time.Millisecond

// settled says whether a file that had this stamp when it was read at the given
// time has the same content as long as it has the same stamp. A write within
// the same tick would not show.
func (s stamp) settled(read time.Time) bool {
	return s.ctime < read.Add(-clockGrain).UnixNano()
}

// A file is one tracked file: what the base commit holds, and how its copy in
// the tree looked when it was written.
type file struct {
	state fileState
	stamp stamp
}

// A directory is the manifest of one directory of the base commit.
type directory struct {
	files map[string]*file
	dirs  map[string]*directory
}

func newDirectory() *directory {
	return &directory{files: map[string]*file{}, dirs: map[string]*directory{}}
}

// find returns the tracked file at a path, nil when there is none.
func (d *directory) find(path string) *file {
	for {
		name, rest, nested := strings.Cut(path, "/")
		if !nested {
			return d.files[path]
		}
		child, ok := d.dirs[name]
		if !ok {
			return nil
		}
		d, path = child, rest
	}
}

// add puts a file at a path, making directories.
func (d *directory) add(path string, f *file) {
	for {
		name, rest, nested := strings.Cut(path, "/")
		if !nested {
			d.files[path] = f
			return
		}
		child, ok := d.dirs[name]
		if !ok {
			child = newDirectory()
			d.dirs[name] = child
		}
		d, path = child, rest
	}
}

// each calls visit for every tracked file, in no particular order.
func (d *directory) each(prefix string, visit func(path string, f *file)) {
	for name, f := range d.files {
		visit(prefix+name, f)
	}
	for name, child := range d.dirs {
		child.each(prefix+name+"/", visit)
	}
}

// treeReader reads a whole commit's tree into a manifest within limits.
type treeReader struct {
	from   source
	limits Limits
	// files and dirs count what was read: a few objects may stand for any number.
	files, dirs int
}

func (r *treeReader) read(id plumbing.Hash, prefix string, depth int) (*directory, error) {
	if depth > r.limits.Depth {
		return nil, failf(CodeTooLarge, nil, "the repository has directories deeper than %d levels (%s…)", r.limits.Depth, clip(prefix, 80))
	}
	entries, err := readTree(r.from, id)
	if err != nil {
		return nil, err
	}
	dir := newDirectory()
	for _, entry := range entries {
		if reason := badComponent(entry.Name); reason != "" {
			return nil, &Error{Code: CodeRefused, Message: "the repository contains a file that must not be written, since " + reason, Paths: []string{prefix + entry.Name}}
		}
		if dir.files[entry.Name] != nil || dir.dirs[entry.Name] != nil {
			return nil, failf(CodeCorrupt, nil, "the repository has two files of the name %q", clip(prefix+entry.Name, 200))
		}
		if entry.Mode == filemode.Dir {
			if r.dirs++; r.dirs > r.limits.Files {
				return nil, failf(CodeTooLarge, nil, "the repository has more than %d directories", r.limits.Files)
			}
			child, err := r.read(entry.Hash, prefix+entry.Name+"/", depth+1)
			if err != nil {
				return nil, err
			}
			dir.dirs[entry.Name] = child
			continue
		}
		if r.files++; r.files > r.limits.Files {
			return nil, failf(CodeTooLarge, nil, "the repository has more than %d files", r.limits.Files)
		}
		f, err := newFile(prefix, entry)
		if err != nil {
			return nil, err
		}
		dir.files[entry.Name] = f
	}
	return dir, nil
}

func newFile(prefix string, entry object.TreeEntry) (*file, error) {
	mode := canonicalMode(entry.Mode)
	switch mode {
	case filemode.Regular, filemode.Executable, filemode.Symlink, filemode.Submodule:
		return &file{state: fileState{mode: mode, id: entry.Hash}}, nil
	}
	return nil, failf(CodeCorrupt, nil, "the repository has a file of an unknown kind: %q", clip(prefix+entry.Name, 200))
}

// The manifest is stored in git's own index format, where every field that we
// need has its place.

func writeManifest(name string, root *directory) error {
	list := &index.Index{Version: 2}
	root.each("", func(path string, f *file) {
		list.Entries = append(list.Entries, &index.Entry{
			Name: path, Mode: f.state.mode, Hash: f.state.id,
			Size: uint32(f.stamp.size), Inode: f.stamp.inode,
			CreatedAt: time.Unix(0, f.stamp.ctime),
		})
	})
	out, err := os.CreateTemp(filepath.Dir(name), ".tmp_")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	buffer := bufio.NewWriterSize(out, 1<<16)
	err = index.NewEncoder(buffer).Encode(list)
	err = errors.Join(err, buffer.Flush(), out.Close())
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), name)
}

func readManifest(name string) (*directory, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var list index.Index
	if err := index.NewDecoder(bufio.NewReaderSize(in, 1<<16)).Decode(&list); err != nil {
		return nil, failf(CodeCorrupt, err, "the workspace's manifest is damaged")
	}
	root := newDirectory()
	for _, entry := range list.Entries {
		root.add(entry.Name, &file{
			state: fileState{mode: entry.Mode, id: entry.Hash},
			stamp: stamp{size: int64(entry.Size), ctime: entry.CreatedAt.UnixNano(), inode: entry.Inode},
		})
	}
	return root, nil
}
