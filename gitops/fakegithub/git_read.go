package fakegithub

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// storage opens the repository's objects and refs afresh. go-git remembers the list of packs it has seen and is not
// safe for concurrent use, and git itself may have added packs meanwhile, so nothing is kept open.
func (s *Server) storage(r *repository) *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(r.directory), cache.NewObjectLRUDefault())
}

func (s *Server) repositoryDirectory(id int64) string {
	return filepath.Join(s.dataDir, "repositories", strconv.FormatInt(id, 10)+".git")
}

// refSHA reads one ref from git; empty if there is none.
func (s *Server) refSHA(r *repository, name plumbing.ReferenceName) string {
	ref, err := storer.ResolveReference(s.storage(r), name)
	if err != nil {
		return ""
	}
	return ref.Hash().String()
}

func (s *Server) branchSHA(r *repository, branch string) string {
	return s.refSHA(r, plumbing.NewBranchReferenceName(branch))
}

// pullRef is where GitHub keeps a pull request's head, also after its branch is gone.
func pullRef(number int) plumbing.ReferenceName {
	return plumbing.ReferenceName("refs/pull/" + strconv.Itoa(number) + "/head")
}

func (s *Server) headSHA(r *repository, i *issue) string { return s.refSHA(r, pullRef(i.number)) }

// baseSHA is the base branch's tip while the pull request is open, and what it was when it was closed.
func (s *Server) baseSHA(r *repository, i *issue) string {
	if i.pull.closedBaseSHA != "" {
		return i.pull.closedBaseSHA
	}
	return s.branchSHA(r, i.pull.baseBranch)
}

// refs lists what is below the prefix, sorted by name.
func (s *Server) refs(r *repository, prefix string) ([]*plumbing.Reference, error) {
	iterator, err := s.storage(r).IterReferences()
	if err != nil {
		return nil, err
	}
	var list []*plumbing.Reference
	err = iterator.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && strings.HasPrefix(ref.Name().String(), prefix) {
			list = append(list, ref)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *plumbing.Reference) int { return strings.Compare(a.Name().String(), b.Name().String()) })
	return list, err
}

// branchAt names a branch whose tip the commit is.
func (s *Server) branchAt(r *repository, sha string) string {
	branches, err := s.refs(r, "refs/heads/")
	if err != nil {
		return ""
	}
	for _, ref := range branches {
		if ref.Hash().String() == sha {
			return ref.Name().Short()
		}
	}
	return ""
}

// commitOf reads a commit by its full hash.
func (s *Server) commitOf(r *repository, sha string) (*gitobject.Commit, error) {
	return gitobject.GetCommit(s.storage(r), plumbing.NewHash(sha))
}

// resolve finds the commit that a branch, a tag, a ref or a hash (also a shortened one) names. What names nothing is
// 404 if it could be a ref, and an empty repository is 409, as on GitHub.
func (s *Server) resolve(r *repository, name string) (*gitobject.Commit, error) {
	store := s.storage(r)
	for _, form := range []string{"refs/heads/", "refs/tags/", "refs/", ""} {
		if form == "" && name != "HEAD" && !strings.HasPrefix(name, "refs/") {
			continue
		}
		if ref, err := storer.ResolveReference(store, plumbing.ReferenceName(form+name)); err == nil {
			return peel(store, ref.Hash())
		}
	}
	if plumbing.IsHash(name) {
		return peel(store, plumbing.NewHash(name))
	}
	if commit, err := abbreviated(store, name); err == nil {
		return commit, nil
	}
	if refs, err := s.refs(r, "refs/heads/"); err == nil && len(refs) == 0 {
		return nil, errorStatus(http.StatusConflict, "Git Repository is empty.")
	}
	return nil, errorStatus(http.StatusNotFound, "No commit found for SHA: %s", name)
}

// shortestHash is what git itself abbreviates to.
const shortestHash = 7

func abbreviated(store *filesystem.Storage, name string) (*gitobject.Commit, error) {
	if len(name) < shortestHash || len(name) > 40 {
		return nil, plumbing.ErrObjectNotFound
	}
	prefix, err := hex.DecodeString(name[:len(name)/2*2])
	if err != nil {
		return nil, err
	}
	hashes, err := store.HashesWithPrefix(prefix)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		if commit, err := gitobject.GetCommit(store, hash); err == nil && strings.HasPrefix(hash.String(), name) {
			return commit, nil
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// peel follows annotated tags to the commit.
func peel(store storer.EncodedObjectStorer, hash plumbing.Hash) (*gitobject.Commit, error) {
	if tag, err := gitobject.GetTag(store, hash); err == nil {
		return tag.Commit()
	}
	commit, err := gitobject.GetCommit(store, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, errorStatus(http.StatusUnprocessableEntity, "No commit found for SHA: %s", hash)
	}
	return commit, err
}

// measure is the repository's size on disk in KiB, as GitHub counts it.
func measure(r *repository) int64 {
	var bytes int64
	_ = filepath.WalkDir(filepath.Join(r.directory, "objects"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that vanishes while git repacks counts for nothing
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes / 1024
}
