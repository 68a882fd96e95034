package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A wholeCheck looks for every object of a commit that commits known to be whole do
// not have at the same place. Each tree is looked at once, so that a tree that
// contains another a thousand times, and so on, costs no more than its objects.
type wholeCheck struct {
	objects *objectStore
	depth   int
	seen    map[plumbing.Hash]bool
}

// checkWhole says what is missing of a commit, nil for nothing.
func checkWhole(objects *objectStore, depth int, id plumbing.Hash, whole []plumbing.Hash) error {
	commit, err := readCommit(objects, id)
	if err != nil {
		return err
	}
	check := wholeCheck{objects: objects, depth: depth, seen: map[plumbing.Hash]bool{emptyTree: true}}
	var known []plumbing.Hash
	for _, one := range whole {
		if found, err := readCommit(objects, one); err == nil {
			known = append(known, found.TreeHash)
			check.seen[found.TreeHash] = true
		}
	}
	return check.tree(commit.TreeHash, known, 1)
}

func (c *wholeCheck) tree(id plumbing.Hash, known []plumbing.Hash, depth int) error {
	if c.seen[id] {
		return nil
	}
	c.seen[id] = true
	if depth > c.depth {
		return failf(CodeTooLarge, nil, "the repository has directories deeper than %d levels", c.depth)
	}
	entries, err := readTree(c.objects, id)
	if err != nil {
		return err
	}
	there := map[string][]object.TreeEntry{}
	for _, id := range known {
		old, err := readTree(c.objects, id)
		if err != nil {
			return err
		}
		for _, entry := range old {
			there[entry.Name] = append(there[entry.Name], entry)
		}
	}
	for _, entry := range entries {
		olds := there[entry.Name]
		for _, old := range olds {
			c.seen[entry.Hash] = c.seen[entry.Hash] || old.Hash == entry.Hash
		}
		if entry.Mode == filemode.Dir {
			err = c.tree(entry.Hash, subtrees(olds), depth+1)
		} else if entry.Mode != filemode.Submodule {
			err = c.blob(entry.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *wholeCheck) blob(id plumbing.Hash) error {
	if c.seen[id] {
		return nil
	}
	c.seen[id] = true
	there, err := c.objects.has(id)
	if err == nil && !there {
		err = missing(id)
	}
	return err
}
