package fakegithub

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// seedDate dates first commits that name no date, so that their hashes are the same every time.
var seedDate = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// gitSettings make git's own server behave as GitHub's: any object may be fetched by its hash, also without blobs.
const gitSettings = `[core]
	bare = true
	repositoryformatversion = 0
	filemode = true
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
[receive]
	denyDeleteCurrent = ignore
	denyCurrentBranch = ignore
[gc]
	auto = 0
`

// initGit makes the bare repository and its first commit.
func (s *Server) initGit(r *repository, spec RepositorySpec) error {
	r.directory = s.repositoryDirectory(r.id)
	if err := os.MkdirAll(r.directory, 0o700); err != nil {
		return err
	}
	store := filesystem.NewStorage(osfs.New(r.directory), cache.NewObjectLRUDefault())
	if _, err := git.Init(store, nil); err != nil {
		return err
	}
	if err := os.WriteFile(r.directory+"/config", []byte(gitSettings), 0o600); err != nil {
		return err
	}
	branch := plumbing.NewBranchReferenceName(r.defaultBranch)
	if err := store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, branch)); err != nil {
		return err
	}
	if spec.Files == nil {
		return nil
	}
	entries, err := storeFiles(store, spec.Files)
	if err != nil {
		return err
	}
	message := spec.Message
	if message == "" {
		message = "Initial commit"
	}
	when := spec.When
	if when.IsZero() {
		when = seedDate
	}
	hash, err := writeCommit(store, entries, message, s.signature(r.owner, when))
	if err != nil {
		return err
	}
	return store.SetReference(plumbing.NewHashReference(branch, hash))
}

// signature is how GitHub writes a person into a commit made on its pages.
func (s *Server) signature(a *account, when time.Time) gitobject.Signature {
	name := a.name
	if name == "" {
		name = a.login
	}
	return gitobject.Signature{Name: name, Email: fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, a.login), When: when}
}

// fileEntry is one file of a tree that is being built.
type fileEntry struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

// storeFiles writes every file of the file system as a blob.
func storeFiles(store storer.EncodedObjectStorer, files fs.FS) (map[string]fileEntry, error) {
	entries := map[string]fileEntry{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, mode, err := readSeedFile(files, path, entry)
		if err != nil {
			return err
		}
		hash, err := writeBlob(store, content)
		entries[path] = fileEntry{mode: mode, hash: hash}
		return err
	})
	return entries, err
}

func readSeedFile(files fs.FS, path string, entry fs.DirEntry) ([]byte, filemode.FileMode, error) {
	if entry.Type()&fs.ModeSymlink != 0 {
		target, err := fs.ReadLink(files, path)
		return []byte(target), filemode.Symlink, err
	}
	content, err := fs.ReadFile(files, path)
	if err != nil {
		return nil, 0, err
	}
	mode := filemode.Regular
	if info, err := entry.Info(); err == nil && info.Mode()&0o111 != 0 {
		mode = filemode.Executable
	}
	return content, mode, nil
}

func writeBlob(store storer.EncodedObjectStorer, content []byte) (plumbing.Hash, error) {
	return writeObject(store, plumbing.BlobObject, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func writeObject(store storer.EncodedObjectStorer, kind plumbing.ObjectType, write func(io.Writer) error) (plumbing.Hash, error) {
	encoded := store.NewEncodedObject()
	encoded.SetType(kind)
	writer, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if err := errors.Join(write(writer), writer.Close()); err != nil {
		return plumbing.ZeroHash, err
	}
	return store.SetEncodedObject(encoded)
}

// writeTree builds the trees of a flat list of files.
func writeTree(store storer.EncodedObjectStorer, entries map[string]fileEntry) (plumbing.Hash, error) {
	tree := &gitobject.Tree{}
	below := map[string]map[string]fileEntry{}
	for path, entry := range entries {
		directory, rest, nested := strings.Cut(path, "/")
		if !nested {
			tree.Entries = append(tree.Entries, gitobject.TreeEntry{Name: path, Mode: entry.mode, Hash: entry.hash})
			continue
		}
		if below[directory] == nil {
			below[directory] = map[string]fileEntry{}
		}
		below[directory][rest] = entry
	}
	for name, files := range below {
		hash, err := writeTree(store, files)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		tree.Entries = append(tree.Entries, gitobject.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash})
	}
	slices.SortFunc(tree.Entries, func(a, b gitobject.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return encodeObject(store, tree)
}

// sortName is the name that git sorts a tree by: directories as if they ended with a slash.
func sortName(entry gitobject.TreeEntry) string {
	if entry.Mode == filemode.Dir {
		return entry.Name + "/"
	}
	return entry.Name
}

func encodeObject(store storer.EncodedObjectStorer, value gitobject.Object) (plumbing.Hash, error) {
	encoded := store.NewEncodedObject()
	if err := value.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return store.SetEncodedObject(encoded)
}

func writeCommit(store storer.EncodedObjectStorer, entries map[string]fileEntry, message string, by gitobject.Signature, parents ...plumbing.Hash) (plumbing.Hash, error) {
	tree, err := writeTree(store, entries)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return encodeObject(store, &gitobject.Commit{Author: by, Committer: by, Message: message, TreeHash: tree, ParentHashes: parents})
}

// flatten lists a tree's files, submodules and symlinks by path.
func flatten(tree *gitobject.Tree) (map[string]fileEntry, error) {
	entries := map[string]fileEntry{}
	walker := gitobject.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		path, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		if entry.Mode != filemode.Dir {
			entries[path] = fileEntry{mode: entry.Mode, hash: entry.Hash}
		}
	}
}
