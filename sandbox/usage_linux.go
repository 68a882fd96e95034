package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// An extent is how much a directory tree takes up.
type extent struct{ bytes, files int64 }

func (e extent) minus(o extent) extent { return extent{e.bytes - o.bytes, e.files - o.files} }

// deepest is how far a walk follows directories. Commands can nest them so deep
// that no path reaches them; what lies deeper counts as over the limit.
// Each level costs the walk a descriptor. Real trees stay far below it.
const deepest = 256

// A walk measures trees that somebody hostile writes to at the same time. It
// goes from descriptor to descriptor and follows no symbolic link, so no path
// can be too long or lead elsewhere.
type walk struct {
	// owner, if not negative, becomes the owner of everything that it passes.
	owner, group int
	seen         map[inode]bool // of files with several names
	extent       extent
	tooDeep      bool
	closed       bool        // a directory did not let us in, not even as its owner
	stop         func() bool // asked once per directory; nil for never
}

type inode struct{ dev, ino uint64 }

// measure walks over the trees. A tree that vanishes is empty.
func measure(trees []string, stop func() bool) walk {
	w := walk{owner: -1, group: -1, stop: stop}
	for _, path := range trees {
		_ = w.tree(path)
	}
	return w
}

// claim gives the trees to an owner and measures them on the way.
func claim(trees []string, uid, gid int) (walk, error) {
	w := walk{owner: uid, group: gid}
	for _, path := range trees {
		if err := w.tree(path); err != nil {
			return w, fmt.Errorf("give %s to user %d: %w", path, uid, err)
		}
	}
	return w, nil
}

func (w *walk) tree(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if w.owner >= 0 {
		if err := unix.Fchown(fd, w.owner, w.group); err != nil {
			unix.Close(fd)
			return err
		}
	}
	return w.directory(os.NewFile(uintptr(fd), path), 0)
}

func (w *walk) directory(dir *os.File, depth int) error {
	defer dir.Close()
	if w.stop != nil && w.stop() {
		return nil
	}
	if depth > deepest {
		w.tooDeep = true
		return nil
	}
	names, err := dir.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return err
	}
	for _, name := range names {
		if err := w.entry(dir, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(dir *os.File, name string, depth int) error {
	var info unix.Stat_t
	at := int(dir.Fd())
	if unix.Fstatat(at, name, &info, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // gone since the directory was read
	}
	if w.owner >= 0 && (int(info.Uid) != w.owner || int(info.Gid) != w.group) {
		if err := w.take(at, name, &info); err != nil {
			return err
		}
	}
	w.count(&info)
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return w.directory(os.NewFile(uintptr(fd), name), depth+1)
	case errors.Is(err, unix.EACCES):
		return w.closedDirectory(at, name, depth+1)
	case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
		w.closed = true
	}
	return nil
}

// closedDirectory walks through a directory that its owner, who is also ours,
// has closed: a command may shut one behind itself and fill it. It is open to
// its owner while we are inside, and then has its mode again.
func (w *walk) closedDirectory(at int, name string, depth int) error {
	handle, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // gone, or another one by now; the next walk sees it
	}
	defer unix.Close(handle)
	// A mode cannot be set through such a handle, but through its name in /proc.
	path := fmt.Sprintf("/proc/self/fd/%d", handle)
	var info unix.Stat_t
	if unix.Fstat(handle, &info) != nil || unix.Chmod(path, info.Mode&0o7777|0o500) != nil {
		w.closed = true
		return nil
	}
	defer unix.Chmod(path, info.Mode&0o7777)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		w.closed = true
		return nil
	}
	return w.directory(os.NewFile(uintptr(fd), name), depth)
}

// take changes the owner of one entry. A file with another name elsewhere
// would change there, too, so that is refused.
func (w *walk) take(at int, name string, info *unix.Stat_t) error {
	if info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink > 1 {
		return fmt.Errorf("%s has a second name (hard link) and may belong to somebody else", name)
	}
	return unix.Fchownat(at, name, w.owner, w.group, unix.AT_SYMLINK_NOFOLLOW)
}

func (w *walk) count(info *unix.Stat_t) {
	if info.Mode&unix.S_IFMT != unix.S_IFDIR && info.Nlink > 1 {
		id := inode{uint64(info.Dev), info.Ino}
		if w.seen[id] {
			return
		}
		if w.seen == nil {
			w.seen = map[inode]bool{}
		}
		w.seen[id] = true
	}
	w.extent.files++
	w.extent.bytes += int64(info.Blocks) * 512
}

// deletedFiles measures what processes keep alive although it has no name any
// more, which no walk finds: memory files, and files that were removed while open.
func deletedFiles(pids []int) (onDisk, inMemory int64) {
	seen := map[inode]bool{}
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		names, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			path := dir + "/" + name.Name()
			var info unix.Stat_t
			if unix.Stat(path, &info) != nil || info.Nlink > 0 || info.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			id := inode{uint64(info.Dev), info.Ino}
			if seen[id] {
				continue
			}
			seen[id] = true
			if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "/memfd:") {
				inMemory += int64(info.Blocks) * 512
				continue
			}
			onDisk += int64(info.Blocks) * 512
		}
	}
	return onDisk, inMemory
}

// freeSpace returns how many bytes are free where a path lies, or 0.
func freeSpace(path string) int64 {
	var info unix.Statfs_t
	if unix.Statfs(path, &info) != nil {
		return 0
	}
	return int64(info.Bavail) * int64(info.Bsize)
}
