package fakegithub

import (
	"bytes"
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/diff"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// change is what lies between two commits: the commits that one has and the other lacks, and the files that differ
// from where they parted.
type change struct {
	base, head, mergeBase *gitobject.Commit
	commits               []*gitobject.Commit // oldest first
	behind                int
	files                 []fileChange
	diff                  string
	merge                 *mergeResult // once somebody asked
}

// mergeResult is the tree that merging would give, or why it cannot be done.
type mergeResult struct {
	entries map[string]fileEntry
	err     error
}

// merged says what merging the head into the base would give. Server.mu must be held.
func (c *change) merged() (map[string]fileEntry, error) {
	if c.merge == nil {
		c.merge = &mergeResult{}
		c.merge.entries, c.merge.err = mergedEntries(c)
	}
	return c.merge.entries, c.merge.err
}

type fileChange struct {
	name, previous       string
	status               string // added, removed, modified, renamed
	sha                  string
	additions, deletions int
	patch                string // hunks only; empty for binary files
	binary               bool
}

func (c *change) additions() (sum int) {
	for _, file := range c.files {
		sum += file.additions
	}
	return sum
}

func (c *change) deletions() (sum int) {
	for _, file := range c.files {
		sum += file.deletions
	}
	return sum
}

// pullChange is what a pull request proposes. A head or base that git no longer has proposes nothing.
func (s *Server) pullChange(r *repository, i *issue) *change {
	result, err := s.compare(r, s.baseSHA(r, i), s.headSHA(r, i))
	if err != nil {
		return &change{}
	}
	return result
}

// compare reads the change from base to head. Commits never change, so the result is kept.
func (s *Server) compare(r *repository, base, head string) (*change, error) {
	key := base + "..." + head
	if known, ok := r.changes[key]; ok {
		return known, nil
	}
	result := &change{}
	var err error
	if result.base, err = s.commitOf(r, base); err != nil {
		return nil, err
	}
	if result.head, err = s.commitOf(r, head); err != nil {
		return nil, err
	}
	if err := result.walk(); err != nil {
		return nil, err
	}
	if err := result.readFiles(); err != nil {
		return nil, err
	}
	if len(r.changes) >= keptChanges {
		clear(r.changes)
	}
	r.changes[key] = result
	return result, nil
}

// keptChanges bounds the memory that remembered comparisons take.
const keptChanges = 64

func (c *change) walk() error {
	ofBase, err := ancestors(c.base)
	if err != nil {
		return err
	}
	ofHead, err := ancestors(c.head)
	if err != nil {
		return err
	}
	for hash := range ofBase {
		if ofHead[hash] == nil {
			c.behind++
		}
	}
	iterator := gitobject.NewCommitIterCTime(c.head, nil, nil)
	err = iterator.ForEach(func(commit *gitobject.Commit) error {
		if ofBase[commit.Hash] == nil {
			c.commits = append([]*gitobject.Commit{commit}, c.commits...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	bases, err := c.head.MergeBase(c.base)
	if err != nil || len(bases) == 0 {
		return err
	}
	c.mergeBase = bases[0]
	return nil
}

func ancestors(commit *gitobject.Commit) (map[plumbing.Hash]*gitobject.Commit, error) {
	found := map[plumbing.Hash]*gitobject.Commit{}
	err := gitobject.NewCommitPreorderIter(commit, nil, nil).ForEach(func(one *gitobject.Commit) error {
		found[one.Hash] = one
		return nil
	})
	return found, err
}

func (c *change) readFiles() error {
	var from *gitobject.Tree
	if c.mergeBase != nil {
		tree, err := c.mergeBase.Tree()
		if err != nil {
			return err
		}
		from = tree
	}
	to, err := c.head.Tree()
	if err != nil {
		return err
	}
	c.files, c.diff, err = diffTrees(from, to)
	return err
}

// diffTrees compares two trees; from may be nil for nothing at all.
func diffTrees(from, to *gitobject.Tree) ([]fileChange, string, error) {
	changes, err := gitobject.DiffTreeWithOptions(context.Background(), from, to, gitobject.DefaultDiffTreeOptions)
	if err != nil {
		return nil, "", err
	}
	var files []fileChange
	var whole strings.Builder
	for _, one := range changes {
		file, text, err := describeChange(one)
		if err != nil {
			return nil, "", err
		}
		files = append(files, file)
		whole.WriteString(text)
	}
	return files, whole.String(), nil
}

func describeChange(one *gitobject.Change) (fileChange, string, error) {
	patch, err := one.Patch()
	if err != nil {
		return fileChange{}, "", err
	}
	file := fileChange{name: one.To.Name, status: "modified", sha: one.To.TreeEntry.Hash.String()}
	switch {
	case one.From.Name == "":
		file.status = "added"
	case one.To.Name == "":
		file.status, file.name, file.sha = "removed", one.From.Name, one.From.TreeEntry.Hash.String()
	case one.From.Name != one.To.Name:
		file.status, file.previous = "renamed", one.From.Name
	}
	for _, part := range patch.FilePatches() {
		file.binary = file.binary || part.IsBinary()
	}
	for _, stat := range patch.Stats() {
		file.additions += stat.Addition
		file.deletions += stat.Deletion
	}
	var buffer bytes.Buffer
	if err := diff.NewUnifiedEncoder(&buffer, diff.DefaultContextLines).Encode(patch); err != nil {
		return fileChange{}, "", err
	}
	text := buffer.String()
	if at := strings.Index(text, "\n@@ "); at >= 0 {
		file.patch = strings.TrimSuffix(text[at+1:], "\n")
	}
	return file, text, nil
}
