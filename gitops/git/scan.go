package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/sys/unix"
)

// A Refusal is something in the tree that can never be part of a commit.
type Refusal struct {
	Path string
	// Reason completes "It cannot be pushed: …".
	Reason string
}

// scanner walks the tree once. Everything is reached through descriptors of
// directories that were opened without following links, so a directory that is
// swapped for a link meanwhile leads nowhere.
type scanner struct {
	w     *Workspace
	ctx   context.Context
	began time.Time
	files int
	bytes int64

	// differ holds every path whose state is not the manifest's; the zero state
	// stands for a deleted file.
	differ  map[string]fileState
	refused []Refusal
	// listed, when not nil, receives every file that would be in a commit.
	listed func(path string)
	// baseRules makes the base's .gitignore files decide instead of the tree's;
	// then files are only listed, not compared.
	baseRules bool
}

// scan compares the tree with the manifest.
func (w *Workspace) scan(ctx context.Context, listed func(string)) (*scanner, error) {
	return w.walk(ctx, &scanner{listed: listed})
}

func (w *Workspace) walk(ctx context.Context, s *scanner) (*scanner, error) {
	fd, err := unix.Open(w.Tree(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, ioError(err, "the workspace's files cannot be listed")
	}
	s.w, s.ctx, s.began, s.differ = w, ctx, time.Now(), map[string]fileState{}
	if err := s.directory(fd, w.manifest, "", 1, nil, false); err != nil {
		return nil, ioError(err, "the workspace's files cannot be read")
	}
	return s, nil
}

func (s *scanner) refuse(path, reason string) {
	s.refused = append(s.refused, Refusal{Path: path, Reason: reason})
}

// directory takes over fd. tracked is nil where the base has no such directory;
// ignored says that an ancestor is ignored as a whole.
func (s *scanner) directory(fd int, tracked *directory, prefix string, depth int, above *ignoreRules, ignored bool) error {
	dir := os.NewFile(uintptr(fd), prefix)
	defer dir.Close()
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	rules := &ignoreRules{above: above, fd: fd, prefix: prefix}
	if s.baseRules {
		if err := s.loadBase(rules, tracked); err != nil {
			return err
		}
	}
	found := make(map[string]bool, len(names))
	for _, name := range names {
		if name == ".git" {
			continue // whatever a sandbox puts there is nobody's business
		}
		var stat unix.Stat_t
		if err := unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			return err
		}
		if s.files++; s.files > 4*s.w.repo.limits.Files {
			return failf(CodeTooLarge, nil, "the workspace holds more than %d files; remove what the task does not need", 4*s.w.repo.limits.Files)
		}
		e := entry{fd: fd, name: name, path: prefix + name, stat: &stat, depth: depth, rules: rules, ignored: ignored}
		if tracked != nil {
			e.file, e.dir = tracked.files[name], tracked.dirs[name]
		}
		stays, err := s.entry(&e)
		if err != nil {
			return err
		}
		if stays {
			found[name] = true
		}
	}
	s.deleted(tracked, found, prefix)
	return nil
}

// An entry is one name in a directory, with what the manifest has there.
type entry struct {
	fd      int
	name    string
	path    string
	stat    *unix.Stat_t
	depth   int
	rules   *ignoreRules
	ignored bool
	file    *file
	dir     *directory
}

// entry looks at one name and says whether what the base has there is still
// there in some form (a file for a file, a directory for a directory).
func (s *scanner) entry(e *entry) (bool, error) {
	if e.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return s.subdirectory(e)
	}
	if e.file == nil {
		ignored, err := s.isIgnored(e, false)
		if ignored || err != nil {
			return false, err
		}
		if reason := badComponent(e.name); reason != "" {
			s.refuse(e.path, reason)
			return false, nil
		}
	}
	switch e.stat.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFLNK:
		return e.file != nil, s.regularOrLink(e)
	}
	s.refuse(e.path, "it is a device, a socket or a named pipe")
	return e.file != nil, nil
}

func (s *scanner) isIgnored(e *entry, isDir bool) (bool, error) {
	if e.ignored {
		return true, nil
	}
	return e.rules.match(e.name, isDir)
}

func (s *scanner) subdirectory(e *entry) (bool, error) {
	if e.file != nil && e.file.state.mode == filemode.Submodule {
		return true, s.submodule(e)
	}
	ignored := e.ignored
	if !ignored {
		var err error
		if ignored, err = e.rules.match(e.name, true); err != nil {
			return false, err
		}
	}
	if e.dir == nil && ignored {
		return false, nil
	}
	if reason := badComponent(e.name); reason != "" {
		s.refuse(e.path, reason)
		return false, nil
	}
	if e.depth >= s.w.repo.limits.Depth {
		s.refuse(e.path, fmt.Sprintf("it is deeper than %d directories", s.w.repo.limits.Depth))
		return false, nil
	}
	fd, err := s.openAt(e, unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	return e.dir != nil, s.directory(fd, e.dir, e.path+"/", e.depth+1, e.rules, ignored)
}

// submodule looks whether somebody worked inside a submodule, which we never
// fill: that work could not be pushed, and must not be lost in silence.
func (s *scanner) submodule(e *entry) error {
	fd, err := s.openAt(e, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), e.path)
	defer dir.Close()
	if names, err := dir.Readdirnames(1); err == nil && len(names) > 0 {
		s.refuse(e.path, "it is a submodule, whose files belong to another repository")
	}
	return nil
}

// openAt opens an entry without following a link; a directory or file that the
// sandbox closed to its owner is opened up first.
func (s *scanner) openAt(e *entry, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(e.fd, e.name, flags, 0)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	root, err := os.OpenRoot(s.w.Tree())
	if err != nil {
		return -1, err
	}
	defer root.Close()
	allowed := fs.FileMode(e.stat.Mode&0o777) | 0o600
	if flags&unix.O_DIRECTORY != 0 {
		allowed |= 0o700
	}
	if err := root.Chmod(e.path, allowed); err != nil {
		return -1, err
	}
	return unix.Openat(e.fd, e.name, flags, 0)
}

// regularOrLink compares a file with the manifest, by its stamp where that is
// enough and by content otherwise.
func (s *scanner) regularOrLink(e *entry) error {
	now := stampOf(e.stat)
	if s.baseRules {
		s.list(e.path)
		return nil
	}
	if e.file != nil && e.file.stamp.same(now) && now.settled(s.w.written) {
		s.list(e.path)
		return nil
	}
	state, ok := s.remembered(e.path, now)
	if !ok {
		var err error
		if state, ok, err = s.read(e, now); err != nil || !ok {
			return err
		}
		s.w.known[e.path] = observation{stamp: now, state: state, read: s.began}
	}
	if e.file == nil || e.file.state != state {
		s.differ[e.path] = state
		if s.bytes += now.size; s.bytes > s.w.repo.limits.ChangedBytes {
			return failf(CodeTooLarge, nil, "the changes have more than %d bytes in all; remove or ignore what the task does not need", s.w.repo.limits.ChangedBytes)
		}
	}
	s.list(e.path)
	return nil
}

// loadBase gives rules the patterns that the base has for their directory.
func (s *scanner) loadBase(rules *ignoreRules, tracked *directory) error {
	rules.loaded = true
	if tracked == nil || tracked.files[".gitignore"] == nil || !isRegular(tracked.files[".gitignore"].state.mode) {
		return nil
	}
	content, err := readObject(s.w.objects, tracked.files[".gitignore"].state.id, plumbing.BlobObject, maxIgnoreFile)
	rules.patterns = parseIgnore(string(content))
	return err
}

func (s *scanner) list(path string) {
	if s.listed != nil {
		s.listed(path)
	}
}

// same compares stamps as far as the manifest's format keeps them.
func (s stamp) same(other stamp) bool {
	return s.ctime == other.ctime && s.inode == other.inode && uint32(s.size) == uint32(other.size)
}

func (s *scanner) remembered(path string, now stamp) (fileState, bool) {
	seen, ok := s.w.known[path]
	if !ok || seen.stamp != now || !now.settled(seen.read) {
		return fileState{}, false
	}
	return seen.state, true
}

// notText is why files with such names can be kept, but not changed: approvals
// and checkpoints could not name them.
const notText = "its name is not valid UTF-8, so a change of it cannot be written down"

// deleted records what the manifest has in a directory and the walk has not met.
func (s *scanner) deleted(tracked *directory, found map[string]bool, prefix string) {
	if tracked == nil {
		return
	}
	gone := func(path string, _ *file) {
		if !utf8.ValidString(path) {
			s.refuse(path, notText)
			return
		}
		s.differ[path] = fileState{}
	}
	for name, f := range tracked.files {
		if !found[name] {
			gone(prefix+name, f)
		}
	}
	for name, below := range tracked.dirs {
		if !found[name] {
			below.each(prefix+name+"/", gone)
		}
	}
}
