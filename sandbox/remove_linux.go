package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a directory that commands have written to, and everything
// in it. Unlike [os.RemoveAll] it opens directories that were closed to their
// owner on the way, as Go's module cache and hostile programs leave them, and
// copes with trees deeper than any path. It follows no symbolic link.
func RemoveTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	fd, openErr := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	openUp(os.NewFile(uintptr(fd), path), 0)
	return os.RemoveAll(path)
}

// openUp makes the directories of a tree accessible to their owner, as far as
// that is allowed.
func openUp(dir *os.File, depth int) {
	defer dir.Close()
	_ = dir.Chmod(0o700)
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		var info unix.Stat_t
		at := int(dir.Fd())
		if unix.Fstatat(at, name, &info, unix.AT_SYMLINK_NOFOLLOW) != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		// The entry may be closed to us, so its mode is set by name first. No
		// command runs any more, so the name still means the directory.
		_ = unix.Fchmodat(at, name, 0o700, 0)
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil && depth < deepest {
			openUp(os.NewFile(uintptr(fd), name), depth+1)
		}
	}
}
