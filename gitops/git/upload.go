package git

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// A NewObject is a file or a directory of a sealed commit that a server with
// the commit's parent may lack, as an API takes it.
type NewObject struct {
	// ID is git's own id of it.
	ID string
	// Entries are what a directory holds, sorted by name; nil for a file, whose
	// content [Workspace.ReadSealed] returns.
	Entries []NewEntry
}

// A NewEntry is one entry of a directory.
type NewEntry struct {
	Name string
	// Mode is git's, such as 100644 or 040000.
	Mode string
	// Kind is blob, tree or commit (a submodule).
	Kind string
	ID   string
}

// NewObjects returns what a push of a sealed commit would send, the commit
// itself left out, each after everything that it refers to. The last one is the
// commit's tree, unless the server has that already.
func (w *Workspace) NewObjects(ctx context.Context, sealed Sealed) ([]NewObject, error) {
	id, err := parseID(sealed.Commit)
	if err != nil {
		return nil, err
	}
	ids, err := w.lacking(id)
	if err != nil {
		return nil, err
	}
	slices.Reverse(ids) // parents come first in it
	seen := map[plumbing.Hash]bool{}
	var objects []NewObject
	for _, id := range ids {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		object, err := w.newObject(id)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (w *Workspace) newObject(id plumbing.Hash) (NewObject, error) {
	object := NewObject{ID: id.String()}
	raw, err := w.objects.get(id)
	if err != nil || raw.Type() != plumbing.TreeObject {
		return object, err
	}
	entries, err := readTree(w.objects, id)
	if err != nil {
		return object, err
	}
	object.Entries = make([]NewEntry, len(entries))
	for i, entry := range entries {
		kind := "blob"
		switch entry.Mode {
		case filemode.Dir:
			kind = "tree"
		case filemode.Submodule:
			kind = "commit"
		}
		object.Entries[i] = NewEntry{Name: entry.Name, Mode: fmt.Sprintf("%06o", uint32(entry.Mode)), Kind: kind, ID: entry.Hash.String()}
	}
	return object, nil
}

// lacking returns the ids of what a commit has and neither the base nor its
// parent: a directory comes before what is in it.
func (w *Workspace) lacking(id plumbing.Hash) ([]plumbing.Hash, error) {
	commit, err := readCommit(w.objects, id)
	if err != nil {
		return nil, err
	}
	known := []plumbing.Hash{w.tree}
	for _, id := range commit.ParentHashes {
		// A parent that was pushed from another machine may not be here; then a
		// few objects are sent twice.
		if parent, err := readCommit(w.objects, id); err == nil {
			known = append(known, parent.TreeHash)
		}
	}
	return newObjects(w.objects, commit.TreeHash, known)
}
