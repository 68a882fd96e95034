package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// buildRoot puts the process into a file system of its own. The sources are
// opened as detached copies before anything is covered, then a tmpfs becomes
// the root, and the old root is let go. become is called in between: the
// sources may be readable only for whom the process was before, and files on
// the tmpfs can only be made by an identity that the namespace knows.
func (l *launch) buildRoot(become func() error) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	trees, err := cloneTrees(l.Mounts)
	if err != nil {
		return err
	}
	if err := become(); err != nil {
		return err
	}
	// /proc is covered because it is the one directory that surely exists:
	// this program was started through it.
	const base = "/proc"
	root, err := newTmpfs(base)
	if err != nil {
		return err
	}
	if err := l.populate(root, trees); err != nil {
		return err
	}
	return enterRoot(root)
}

// A tree is a detached copy of a mount.
type tree struct {
	bind
	fd    int
	isDir bool
}

func cloneTrees(binds []bind) ([]tree, error) {
	trees := make([]tree, 0, len(binds))
	for _, b := range binds {
		fd, err := unix.OpenTree(unix.AT_FDCWD, b.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			if b.Optional {
				continue
			}
			return nil, fmt.Errorf("open %s: %w", b.Source, err)
		}
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			return nil, fmt.Errorf("stat %s: %w", b.Source, err)
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, b.attributes()); err != nil {
			return nil, fmt.Errorf("protect %s: %w", b.Source, err)
		}
		trees = append(trees, tree{bind: b, fd: fd, isDir: info.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	return trees, nil
}

func (b bind) attributes() *unix.MountAttr {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	if !b.Device {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
		if !b.Writable {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
	}
	return attr
}

// newTmpfs mounts an empty file system on dir and opens its root.
func newTmpfs(dir string) (*os.File, error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m,nr_inodes=4096"); err != nil {
		return nil, fmt.Errorf("mount the root: %w", err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// populate fills the new root, seen from inside of it by a relative path, and
// makes it read-only.
func (l *launch) populate(root *os.File, trees []tree) error {
	if err := unix.Fchdir(int(root.Fd())); err != nil {
		return err
	}
	for path, target := range l.Links {
		if err := inParent(path, func(p string) error { return os.Symlink(target, p) }); err != nil {
			return err
		}
	}
	for path, content := range l.Files {
		if err := inParent(path, func(p string) error { return os.WriteFile(p, []byte(content), 0o444) }); err != nil {
			return err
		}
	}
	if err := mountOwn(); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return err
		}
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, ".", 0, readOnly); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// inParent calls do with the path relative to the root, its parent made.
func inParent(path string, do func(relative string) error) error {
	relative := strings.TrimPrefix(path, "/")
	if err := os.MkdirAll(filepath.Dir(relative), 0o755); err != nil {
		return err
	}
	return do(relative)
}

// attach moves a tree to its target. Targets are made before any tree could
// have put a symbolic link in the way: they never lie in writable trees.
func (t tree) attach() error {
	err := inParent(t.Target, func(p string) error {
		if t.isDir {
			return os.MkdirAll(p, 0o755)
		}
		return os.WriteFile(p, nil, 0o444)
	})
	if err != nil {
		return fmt.Errorf("make the mount point %s: %w", t.Target, err)
	}
	defer unix.Close(t.fd)
	relative := strings.TrimPrefix(t.Target, "/")
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, relative, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", t.Target, err)
	}
	return nil
}

// hiddenProc lists what the OCI runtime specification masks in /proc: keys,
// timers and the kernel's memory tell about the machine, not about the sandbox.
var hiddenProc = []string{
	"acpi", "asound", "interrupts", "kallsyms", "kcore", "key-users", "keys", "kmsg", "latency_stats",
	"modules", "sched_debug", "scsi", "sysrq-trigger", "timer_list", "timer_stats",
}

// mountOwn mounts the file systems that belong to the sandbox alone.
func mountOwn() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, dir := range []string{"proc", "dev/shm"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", "proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "dev/shm", "tmpfs", flags, "mode=1777,size=256m,nr_inodes=10000"); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	return hideProc()
}

func hideProc() error {
	if err := os.Mkdir("empty", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("empty/file", nil, 0o444); err != nil {
		return err
	}
	for _, name := range hiddenProc {
		path := filepath.Join("proc", name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		cover := "empty/file"
		if err == nil && info.IsDir() {
			cover = "empty"
		}
		if err := unix.Mount(cover, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide /%s: %w", path, err)
		}
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "proc", unix.AT_RECURSIVE, readOnly); err != nil {
		return fmt.Errorf("make /proc read-only: %w", err)
	}
	return nil
}

// enterRoot makes the current directory the root and lets the old one go.
func enterRoot(root *os.File) error {
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	return errors.Join(root.Close(), unix.Chdir("/"))
}
