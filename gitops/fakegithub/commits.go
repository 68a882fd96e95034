package fakegithub

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// CommitSpec describes a commit that somebody makes, for tests that need the repository to move on.
type CommitSpec struct {
	Repository string // owner/name
	Branch     string // created if it is not there
	From       string // where a new branch starts, or where the branch is forced to first; empty means the branch itself
	Author     string // login
	Message    string
	Files      map[string]string // path → content; the mode of a file that is there is kept
	Delete     []string
	When       time.Time // zero means now
}

// Commit makes a commit on a branch as if its author had pushed it, and returns its hash. Protection does not apply:
// the test decides.
func (s *Server) Commit(spec CommitSpec) (sha string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, name, _ := strings.Cut(spec.Repository, "/")
	r, author := s.world.repository(owner, name), s.world.account(spec.Author)
	if r == nil || author == nil {
		return "", fmt.Errorf("fakegithub: no repository %q or no account %q to commit with", spec.Repository, spec.Author)
	}
	defer s.lockRefs(r)()
	store := s.storage(r)
	parents, entries, err := s.commitBase(r, spec)
	if err != nil {
		return "", err
	}
	if err := applyFiles(store, entries, spec); err != nil {
		return "", err
	}
	when := spec.When
	if when.IsZero() {
		when = s.Now()
	}
	hash, err := writeCommit(store, entries, spec.Message, s.signature(author, when), parents...)
	if err != nil {
		return "", err
	}
	branch := plumbing.NewBranchReferenceName(spec.Branch)
	update := refUpdate{name: branch, old: plumbing.NewHash(s.branchSHA(r, spec.Branch)), new: hash}
	if err := moveRef(store, update); err != nil {
		return "", err
	}
	s.refsMoved(r, author, []refUpdate{update})
	return hash.String(), nil
}

// commitBase is what a commit builds on: nothing in an empty repository.
func (s *Server) commitBase(r *repository, spec CommitSpec) ([]plumbing.Hash, map[string]fileEntry, error) {
	from := spec.From
	if from == "" {
		from = spec.Branch
	}
	if refs, err := s.refs(r, "refs/heads/"); err == nil && len(refs) == 0 {
		return nil, map[string]fileEntry{}, nil
	}
	parent, err := s.resolve(r, from)
	if err != nil {
		return nil, nil, fmt.Errorf("fakegithub: %s has nothing called %q to commit on: %w", spec.Repository, from, err)
	}
	entries, err := entriesOf(parent)
	return []plumbing.Hash{parent.Hash}, entries, err
}

func applyFiles(store *filesystem.Storage, entries map[string]fileEntry, spec CommitSpec) error {
	for path, content := range spec.Files {
		hash, err := writeBlob(store, []byte(content))
		if err != nil {
			return err
		}
		mode := entries[path].mode
		if mode == filemode.Empty {
			mode = filemode.Regular
		}
		entries[path] = fileEntry{mode: mode, hash: hash}
	}
	for _, path := range spec.Delete {
		delete(entries, path)
	}
	return nil
}

// CommitFiles returns a commit's files with their content; ref is a branch, a tag or a hash.
func (s *Server) CommitFiles(repository, ref string) (files map[string]string, err error) {
	err = s.onRepository(repository, func(r *repo) error {
		commit, err := s.resolve(r, ref)
		if err != nil {
			return err
		}
		iterator, err := commit.Files()
		if err != nil {
			return err
		}
		files = map[string]string{}
		return iterator.ForEach(func(file *gitobject.File) error {
			content, err := file.Contents()
			files[file.Name] = content
			return err
		})
	})
	return files, err
}

// CommitDetails is what people see of a commit beside its files.
type CommitDetails struct {
	SHA, Tree         string
	Author, Committer string // name and address, as git writes them
	Message           string
	Verified          bool
}

// CommitDetails describes a commit; ref is a branch, a tag or a hash.
func (s *Server) CommitDetails(repository, ref string) (details CommitDetails, err error) {
	err = s.onRepository(repository, func(r *repo) error {
		commit, err := s.resolve(r, ref)
		if err != nil {
			return err
		}
		by := func(who gitobject.Signature) string { return who.Name + " <" + who.Email + ">" }
		details = CommitDetails{
			SHA: commit.Hash.String(), Tree: commit.TreeHash.String(), Message: commit.Message,
			Author: by(commit.Author), Committer: by(commit.Committer), Verified: s.verification(commit)["verified"] == true,
		}
		return nil
	})
	return details, err
}
