package git

import (
	"context"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A Repository reads the objects of one repository and hands out workspaces. It
// is safe for concurrent use and never writes.
type Repository struct {
	objects   *objectStore
	limits    Limits
	transport transport.Transport
}

// A Commit is what the host needs to know of a commit.
type Commit struct {
	ID, Tree string
	Parents  []string
	Author   Identity
	// When is when it was committed.
	When    time.Time
	Message string
}

// Commit returns a commit by its full id; [CodeNotFound] when it is not here.
func (r *Repository) Commit(_ context.Context, id string) (Commit, error) {
	commit, err := r.commit(id)
	if err != nil {
		return Commit{}, err
	}
	return describeCommit(id, commit), nil
}

func describeCommit(id string, commit *object.Commit) Commit {
	parents := make([]string, len(commit.ParentHashes))
	for i, parent := range commit.ParentHashes {
		parents[i] = parent.String()
	}
	return Commit{
		ID: id, Tree: commit.TreeHash.String(), Parents: parents,
		Author:  Identity{Name: commit.Author.Name, Email: commit.Author.Email},
		When:    commit.Committer.When,
		Message: commit.Message,
	}
}

func (r *Repository) commit(id string) (*object.Commit, error) {
	hash, err := parseID(id)
	if err != nil {
		return nil, err
	}
	return readCommit(r.objects, hash)
}

// ReadFile returns a file's bytes at a commit, so that configuration and
// instructions are read from the base, never from what is being worked on.
// Symlinks are not followed: a path that is one, or leads through one, is
// [CodeNotFound]; a file of more than limit bytes is [CodeTooLarge].
func (r *Repository) ReadFile(_ context.Context, commit, path string, limit int64) ([]byte, error) {
	found, err := r.commit(commit)
	if err != nil {
		return nil, err
	}
	state, err := lookup(r.objects, found.TreeHash, path)
	if err != nil {
		return nil, err
	}
	if !isRegular(state.mode) {
		return nil, failf(CodeNotFound, nil, "there is no file %q at %s", clip(path, 200), commit[:12])
	}
	return readObject(r.objects, state.id, plumbing.BlobObject, limit)
}

// Files returns the paths of all files and symlinks of a commit, sorted.
func (r *Repository) Files(_ context.Context, commit string) ([]string, error) {
	found, err := r.commit(commit)
	if err != nil {
		return nil, err
	}
	reader := treeReader{from: r.objects, limits: r.limits}
	manifest, err := reader.read(found.TreeHash, "", 1)
	if err != nil {
		return nil, err
	}
	var paths []string
	manifest.each("", func(path string, f *file) {
		if f.state.mode != filemode.Submodule {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths, nil
}
