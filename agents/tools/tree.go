package tools

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// MaxFile is the largest file in bytes that tools read or write.
const MaxFile = 10 << 20

// A Tree is the files of a session's workspace. Every access goes through
// [os.Root], opened anew each time because the workspace may be reset by
// renaming a pristine one into its place. Symbolic links are named and never
// followed, so that a path always means the file it seems to mean; files that
// are no regular ones, or have further names elsewhere, are refused. Opening
// never blocks.
//
// A Tree is safe for concurrent use.
type Tree struct {
	dir string
}

// NewTree returns the tree below dir, an absolute path of the host.
func NewTree(dir string) *Tree { return &Tree{dir: dir} }

// A File is a file's content as it was read.
type File struct {
	Path string
	Data []byte
	// Hash is the SHA-256 of the content in hex.
	Hash string
}

// hashOf returns the SHA-256 of data in hex.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// open opens the tree's root for one operation.
func (t *Tree) open() (*os.Root, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, errors.New("the workspace cannot be opened") // its place on the host is nobody's business
	}
	return root, nil
}

// Read reads a file. A missing file is an error for which
// errors.Is(err, fs.ErrNotExist) holds.
func (t *Tree) Read(name string) (File, error) {
	clean, err := CleanPath(name)
	if err != nil {
		return File{}, err
	}
	root, err := t.open()
	if err != nil {
		return File{}, err
	}
	defer root.Close()
	return readIn(root, clean)
}

// readIn reads a file below an open root. What is opened must be the very file
// that was looked at: os.Root keeps a link that is swapped in meanwhile inside
// the tree, and the comparison refuses it.
func readIn(root *os.Root, clean string) (File, error) {
	before, err := lookAt(root, clean)
	if err != nil {
		return File{}, err
	}
	file, err := root.OpenFile(clean, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, denied(clean, "cannot be opened")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !os.SameFile(before, info) {
		return File{}, denied(clean, "was changed while it was opened; try again")
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return File{}, denied(clean, "cannot be read")
	}
	if len(data) > MaxFile {
		return File{}, tooLarge(clean, info.Size())
	}
	return File{Path: clean, Data: data, Hash: hashOf(data)}, nil
}

// lookAt returns the facts about a regular file that no link leads to. A
// missing file is an error for which errors.Is(err, fs.ErrNotExist) holds.
func lookAt(root *os.Root, clean string) (fs.FileInfo, error) {
	if err := checkParents(root, clean); err != nil {
		return nil, err
	}
	info, err := root.Lstat(clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", clean, fs.ErrNotExist)
	case err != nil:
		return nil, denied(clean, "cannot be opened")
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, linkError(root, clean)
	}
	return info, checkRegular(clean, info)
}

func tooLarge(name string, size int64) error {
	return denied(name, "has %d bytes; at most %d are read. Use search_files, or a command such as sed -n", size, MaxFile)
}

// checkRegular refuses whatever is not a plain file with one name.
func checkRegular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return denied(name, "is a folder; list_files shows what is in it")
	case !info.Mode().IsRegular():
		return denied(name, "is no regular file (%s) and is not opened", info.Mode().Type())
	case info.Size() > MaxFile:
		return tooLarge(name, info.Size())
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return denied(name, "has %d hard links and is not opened, because the others may be elsewhere; copy it with a command first", stat.Nlink)
	}
	return nil
}

// checkParents refuses a path that leads through a symbolic link.
func checkParents(root *os.Root, clean string) error {
	for i, c := range clean {
		if c != '/' {
			continue
		}
		parent := clean[:i]
		info, err := root.Lstat(parent)
		if err != nil {
			return nil // missing: the open that follows says so
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return linkError(root, parent)
		}
		if !info.IsDir() {
			return denied(clean, "%s is a file, not a folder", parent)
		}
	}
	return nil
}

// linkError names where a symbolic link leads, if it stays inside.
func linkError(root *os.Root, name string) error {
	target, err := root.Readlink(name)
	if err != nil {
		return denied(name, "is a symbolic link and is not followed")
	}
	if inside, err := CleanPath(path.Join(path.Dir(name), target)); err == nil && !path.IsAbs(target) {
		return denied(name, "is a symbolic link to %s; use that path", inside)
	}
	return denied(name, "is a symbolic link that leaves the repository and is not followed")
}

// HashFile returns the hash of a file, "" when there is none.
func (t *Tree) HashFile(name string) (string, error) {
	file, err := t.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return file.Hash, err
}

// Write makes data the content of the file, all at once: whoever reads it sees
// the old or the new. Folders are made as needed; a new file gets mode 0644,
// an existing one keeps whether it can be executed. A symbolic link is never
// written through, and a name that differs from an existing one in case only
// is refused, because it cannot be checked out everywhere.
func (t *Tree) Write(name string, data []byte) error {
	clean, err := CleanPath(name)
	if err != nil {
		return err
	}
	if clean == "." {
		return denied(name, "is the repository's root, not a file")
	}
	if len(data) > MaxFile {
		return denied(clean, "would have %d bytes; at most %d are written", len(data), MaxFile)
	}
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	mode, err := modeFor(root, clean)
	if err != nil {
		return err
	}
	return replace(root, clean, data, mode)
}

// modeFor checks that the file can be written and returns its mode.
func modeFor(root *os.Root, clean string) (fs.FileMode, error) {
	if err := checkParents(root, clean); err != nil {
		return 0, err
	}
	info, err := root.Lstat(clean)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, checkCase(root, clean)
	case err != nil:
		return 0, denied(clean, "cannot be written")
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, linkError(root, clean)
	case !info.Mode().IsRegular():
		return 0, checkRegular(clean, info)
	case info.Mode()&0o111 != 0:
		return 0o755, nil
	}
	return 0o644, nil
}

// checkCase refuses a new name whose first new component exists in another
// spelling of upper and lower case.
func checkCase(root *os.Root, clean string) error {
	components := strings.Split(clean, "/")
	for i := range components {
		parent := path.Join(append([]string{"."}, components[:i]...)...)
		if _, err := root.Lstat(path.Join(parent, components[i])); err == nil {
			continue
		}
		entries, err := fs.ReadDir(root.FS(), parent)
		if err != nil {
			return nil // the folder is new, so nothing in it can collide
		}
		for _, entry := range entries {
			if strings.EqualFold(entry.Name(), components[i]) {
				return denied(clean, "%s exists and differs in upper and lower case only; use that name", path.Join(parent, entry.Name()))
			}
		}
		return nil
	}
	return nil
}

// replace writes a new file beside the old one and renames it into place.
func replace(root *os.Root, clean string, data []byte, mode fs.FileMode) error {
	folder := path.Dir(clean)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return denied(clean, "its folder cannot be made")
	}
	temporary := path.Join(folder, ".handoff-"+rand.Text())
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return denied(clean, "cannot be written in this folder")
	}
	_, err = file.Write(data)
	if chmodErr := file.Chmod(mode); err == nil { // whatever the umask took away
		err = chmodErr
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temporary, clean)
	}
	if err != nil {
		root.Remove(temporary)
		return denied(clean, "could not be written; the disk may be full")
	}
	return nil
}

// Remove deletes a file. A missing file is no error.
func (t *Tree) Remove(name string) error {
	clean, err := CleanPath(name)
	if err != nil {
		return err
	}
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := checkParents(root, clean); err != nil {
		return err
	}
	info, err := root.Lstat(clean)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.IsDir() {
		return denied(clean, "is no file that can be deleted")
	}
	if err := root.Remove(clean); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return denied(clean, "could not be deleted")
	}
	return nil
}

// maxEntries bounds a walk; a workspace with more was filled by a command.
const maxEntries = 200_000

// errTooMany ends a walk that has seen maxEntries.
var errTooMany = errors.New("too many files")

// walk calls visit for every file and link below the folder, in lexical order.
// Git's own folders and what ignored leaves out are not entered. Visit may
// return [fs.SkipAll].
func (t *Tree) walk(ctx context.Context, under string, ignored func(string, bool) bool, visit func(root *os.Root, name string, entry fs.DirEntry) error) error {
	clean, err := CleanPath(under)
	if err != nil {
		return err
	}
	root, err := t.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := checkFolder(root, clean); err != nil {
		return err
	}
	seen := 0
	return fs.WalkDir(root.FS(), clean, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // vanished or unreadable: nothing to show
		}
		if seen++; seen > maxEntries {
			return errTooMany
		}
		if name != clean && (isGit(entry.Name()) || ignored != nil && ignored(name, entry.IsDir())) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		return visit(root, name, entry)
	})
}

func checkFolder(root *os.Root, clean string) error {
	if err := checkParents(root, clean); err != nil {
		return err
	}
	info, err := root.Lstat(clean)
	switch {
	case err != nil:
		return denied(clean, "there is no such folder; list_files without a path shows the repository")
	case info.Mode()&fs.ModeSymlink != 0:
		return linkError(root, clean)
	}
	return nil
}
