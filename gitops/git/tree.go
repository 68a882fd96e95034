package git

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// maxTreeBytes bounds one directory's tree object; at the usual 30 bytes an
// entry it holds more files than a checkout may.
const maxTreeBytes = 32 << 20

// readTree returns the entries of a tree in git's order.
func readTree(from source, id plumbing.Hash) ([]object.TreeEntry, error) {
	if id == emptyTree {
		return nil, nil
	}
	raw, err := from.get(id)
	if err != nil {
		return nil, err
	}
	if raw.Size() > maxTreeBytes {
		return nil, failf(CodeTooLarge, nil, "a directory of the repository is too large (tree %s)", id)
	}
	var tree object.Tree
	if err := tree.Decode(raw); err != nil {
		return nil, failf(CodeCorrupt, err, "tree %s cannot be read", id)
	}
	return tree.Entries, nil
}

// emptyTree is the id of a tree without entries; git knows it without storing it.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// readCommit returns a commit.
func readCommit(from source, id plumbing.Hash) (*object.Commit, error) {
	raw, err := from.get(id)
	if err != nil {
		return nil, err
	}
	var commit object.Commit
	if err := commit.Decode(raw); err != nil {
		return nil, failf(CodeCorrupt, err, "%s is not a commit that can be read", id)
	}
	return &commit, nil
}

// A fileState is what git records of one file: its mode and its blob.
type fileState struct {
	mode filemode.FileMode
	id   plumbing.Hash
}

// present says whether the state is that of an existing file.
func (s fileState) present() bool { return s.mode != filemode.Empty }

// canonicalMode maps what old repositories contain to the modes git writes.
func canonicalMode(mode filemode.FileMode) filemode.FileMode {
	if mode == filemode.Deprecated {
		return filemode.Regular
	}
	return mode
}

// treeEdit collects changes by directory, so that only trees on changed paths
// are read and built.
type treeEdit struct {
	files map[string]fileState
	dirs  map[string]*treeEdit
}

func newTreeEdit() *treeEdit {
	return &treeEdit{files: map[string]fileState{}, dirs: map[string]*treeEdit{}}
}

// set records that the file at path becomes state; the zero state deletes it.
func (e *treeEdit) set(path string, state fileState) {
	for {
		dir, rest, nested := strings.Cut(path, "/")
		if !nested {
			e.files[path] = state
			return
		}
		child, ok := e.dirs[dir]
		if !ok {
			child = newTreeEdit()
			e.dirs[dir] = child
		}
		e, path = child, rest
	}
}

// apply returns the id of base with the edit made, and every tree object that
// had to be built. An edit that leaves a directory empty removes it, as git
// does; the result is the zero id then.
func (e *treeEdit) apply(from source, base plumbing.Hash) (plumbing.Hash, []plumbing.EncodedObject, error) {
	entries, err := e.baseEntries(from, base)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	var built []plumbing.EncodedObject
	for name, child := range e.dirs {
		old := plumbing.ZeroHash
		if entry, ok := entries[name]; ok && entry.Mode == filemode.Dir {
			old = entry.Hash
		}
		id, objects, err := child.apply(from, old)
		if err != nil {
			return plumbing.ZeroHash, nil, err
		}
		built = append(built, objects...)
		switch {
		case id != plumbing.ZeroHash:
			entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: id}
		case old != plumbing.ZeroHash:
			delete(entries, name)
		}
	}
	for name, state := range e.files {
		if state.present() {
			entries[name] = object.TreeEntry{Name: name, Mode: state.mode, Hash: state.id}
		} else if entry, ok := entries[name]; ok && entry.Mode != filemode.Dir {
			delete(entries, name)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, built, nil
	}
	tree, err := encodeTree(entries)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	return tree.Hash(), append(built, tree), nil
}

func (e *treeEdit) baseEntries(from source, base plumbing.Hash) (map[string]object.TreeEntry, error) {
	entries := map[string]object.TreeEntry{}
	if base == plumbing.ZeroHash {
		return entries, nil
	}
	list, err := readTree(from, base)
	if err != nil {
		return nil, err
	}
	for _, entry := range list {
		entries[entry.Name] = entry
	}
	return entries, nil
}

func encodeTree(entries map[string]object.TreeEntry) (plumbing.EncodedObject, error) {
	tree := object.Tree{Entries: make([]object.TreeEntry, 0, len(entries))}
	for _, entry := range entries {
		tree.Entries = append(tree.Entries, entry)
	}
	slices.SortFunc(tree.Entries, compareEntries)
	raw := &plumbing.MemoryObject{}
	if err := tree.Encode(raw); err != nil {
		return nil, failf(CodeCorrupt, err, "a directory cannot be written as a tree")
	}
	return raw, nil
}

// compareEntries is git's order: by bytes, directories as if they ended in "/".
func compareEntries(a, b object.TreeEntry) int {
	return bytes.Compare(sortKey(a), sortKey(b))
}

func sortKey(entry object.TreeEntry) []byte {
	if entry.Mode == filemode.Dir {
		return []byte(entry.Name + "/")
	}
	return []byte(entry.Name)
}

// newObjects returns the ids of all objects of tree that none of the known
// trees has at the same path: what a server that has those trees may lack.
func newObjects(from source, tree plumbing.Hash, known []plumbing.Hash) ([]plumbing.Hash, error) {
	if slices.Contains(known, tree) || tree == emptyTree {
		return nil, nil
	}
	entries, err := readTree(from, tree)
	if err != nil {
		return nil, err
	}
	there := map[string][]object.TreeEntry{}
	for _, id := range known {
		old, err := readTree(from, id)
		if err != nil {
			return nil, err
		}
		for _, entry := range old {
			there[entry.Name] = append(there[entry.Name], entry)
		}
	}
	ids := []plumbing.Hash{tree}
	for _, entry := range entries {
		olds := there[entry.Name]
		if slices.ContainsFunc(olds, func(old object.TreeEntry) bool { return old.Hash == entry.Hash }) {
			continue
		}
		switch entry.Mode {
		case filemode.Submodule:
		case filemode.Dir:
			below, err := newObjects(from, entry.Hash, subtrees(olds))
			if err != nil {
				return nil, err
			}
			ids = append(ids, below...)
		default:
			ids = append(ids, entry.Hash)
		}
	}
	return ids, nil
}

func subtrees(entries []object.TreeEntry) []plumbing.Hash {
	var ids []plumbing.Hash
	for _, entry := range entries {
		if entry.Mode == filemode.Dir {
			ids = append(ids, entry.Hash)
		}
	}
	return ids
}

// lookup finds the file at a path of a tree; [CodeNotFound] when there is none,
// or when the path leads through something that is not a directory.
func lookup(from source, tree plumbing.Hash, path string) (fileState, error) {
	name, rest, nested := strings.Cut(path, "/")
	entries, err := readTree(from, tree)
	if err != nil {
		return fileState{}, err
	}
	for _, entry := range entries {
		switch {
		case entry.Name != name:
		case nested && entry.Mode == filemode.Dir:
			return lookup(from, entry.Hash, rest)
		case !nested:
			return fileState{mode: canonicalMode(entry.Mode), id: entry.Hash}, nil
		}
	}
	return fileState{}, failf(CodeNotFound, nil, "there is no file %q", clip(path, 200))
}
