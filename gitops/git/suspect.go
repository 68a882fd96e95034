package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/sys/unix"
)

// Suspects are files whose stamp says that they may have changed: they are read,
// by descriptor, and accepted or refused.

// read hashes a suspect. It says false when the file is refused.
func (s *scanner) read(e *entry, now stamp) (fileState, bool, error) {
	limit := s.w.repo.limits.ChangedFileBytes
	if e.file != nil {
		limit = max(limit, e.file.stamp.size) // an untouched large file may look suspect
	}
	if now.size > limit {
		s.refuse(e.path, fmt.Sprintf("it has more than %d bytes", s.w.repo.limits.ChangedFileBytes))
		return fileState{}, false, nil
	}
	if e.file == nil {
		if reason := badNewName(e.path); reason != "" {
			s.refuse(e.path, reason)
			return fileState{}, false, nil
		}
	}
	state, err := s.hash(e, limit)
	if err != nil {
		return fileState{}, false, err
	}
	unchanged := e.file != nil && e.file.state == state
	if unchanged {
		return state, true, nil
	}
	if now.size > s.w.repo.limits.ChangedFileBytes {
		s.refuse(e.path, fmt.Sprintf("it has more than %d bytes", s.w.repo.limits.ChangedFileBytes))
		return fileState{}, false, nil
	}
	if !utf8.ValidString(e.path) {
		s.refuse(e.path, notText)
		return fileState{}, false, nil
	}
	if state.mode == filemode.Symlink {
		return state, s.acceptLink(e), nil
	}
	return state, true, nil
}

func (s *scanner) hash(e *entry, limit int64) (fileState, error) {
	if e.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		target, err := readLink(e.fd, e.name)
		if err != nil {
			return fileState{}, err
		}
		return fileState{filemode.Symlink, plumbing.ComputeHash(plumbing.BlobObject, []byte(target))}, nil
	}
	fd, err := s.openAt(e, 0)
	if err != nil {
		return fileState{}, err
	}
	in := os.NewFile(uintptr(fd), e.path)
	defer in.Close()
	content, err := readAll(in, limit)
	if err != nil {
		return fileState{}, err
	}
	return fileState{modeOf(e.stat.Mode), plumbing.ComputeHash(plumbing.BlobObject, content)}, nil
}

// readAll reads a file of at most limit bytes; one that grew meanwhile fails.
func readAll(in *os.File, limit int64) ([]byte, error) {
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, failf(CodeIO, nil, "%s changed while it was read; is something still running in the workspace?", in.Name())
	}
	content := make([]byte, info.Size())
	n, err := io.ReadFull(in, content)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return content[:n], nil
}

func readLink(fd int, name string) (string, error) {
	buffer := make([]byte, maxLinkTarget)
	n, err := unix.Readlinkat(fd, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// modeOf reduces permissions to the only two that git keeps.
func modeOf(mode uint32) filemode.FileMode {
	if mode&0o100 != 0 {
		return filemode.Executable
	}
	return filemode.Regular
}

// acceptLink refuses a new or changed link that would lead out of the tree, or
// into .git, on a machine where the branch is checked out.
func (s *scanner) acceptLink(e *entry) bool {
	target, err := readLink(e.fd, e.name)
	if err != nil {
		s.refuse(e.path, "it is a symlink that cannot be read")
		return false
	}
	if reason := badLink(path.Dir(e.path), target); reason != "" {
		s.refuse(e.path, reason)
		return false
	}
	if strings.HasPrefix(strings.ToLower(e.name), ".git") {
		s.refuse(e.path, "git's own files must not be symlinks")
		return false
	}
	return true
}

// badLink returns why a link in directory dir must not have this target. Only
// leading ".." are taken: after a name they would depend on what that name is
// a link to.
func badLink(dir, target string) string {
	if target == "" || path.IsAbs(target) {
		return "it is a symlink to an absolute path"
	}
	level := 0
	if dir != "." {
		level = strings.Count(dir, "/") + 1
	}
	named := false
	for component := range strings.SplitSeq(target, "/") {
		switch {
		case component == "" || component == ".":
		case component == "..":
			if level--; named || level < 0 {
				return "it is a symlink that may lead out of the repository"
			}
		case isDotGit(component):
			return "it is a symlink into .git"
		default:
			named = true
		}
	}
	return ""
}
