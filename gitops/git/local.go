package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	formatcfg "github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// A Local is a person's own repository on this machine. It is only read, except
// by [Local.CreateBranch].
type Local struct {
	*Repository
	gitDir    string
	commonDir string
}

// OpenLocal opens the repository that dir is the top directory of, or a bare
// one. Linked worktrees and borrowed objects (git clone --shared) work.
//
// Errors: [CodeNotFound] when there is no repository, [CodeInvalid] for formats
// that this package cannot read (SHA-256, reftable, partial clones).
func OpenLocal(dir string, limits Limits) (*Local, error) {
	gitDir, err := findGitDir(dir)
	if err != nil {
		return nil, err
	}
	common, err := commonDir(gitDir)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(common); err != nil {
		return nil, err
	}
	limits = limits.withDefaults()
	objects := filepath.Join(common, "objects")
	dirs := append([]string{objects}, borrowed(objects, 0)...)
	return &Local{
		Repository: &Repository{objects: newObjectStore(limits.FileBytes, dirs...), limits: limits},
		gitDir:     gitDir,
		commonDir:  common,
	}, nil
}

// findGitDir follows a .git file, as linked worktrees and submodules have it.
func findGitDir(dir string) (string, error) {
	none := failf(CodeNotFound, nil, "%s is not the top directory of a git repository", dir)
	for _, candidate := range []string{filepath.Join(dir, ".git"), dir} {
		info, err := os.Stat(candidate)
		switch {
		case err != nil:
			continue
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(candidate)
			target, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
			if err != nil || !ok {
				return "", none
			}
			return absolute(dir, target), nil
		case info.IsDir():
			if _, err := os.Stat(filepath.Join(candidate, "HEAD")); err == nil {
				return candidate, nil
			}
		}
	}
	return "", none
}

func absolute(from, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(from, name)
}

// commonDir returns where objects and branches are; linked worktrees share them.
func commonDir(gitDir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", ioError(err, "the repository cannot be read")
	}
	return absolute(gitDir, strings.TrimSpace(string(raw))), nil
}

// checkFormat refuses what would be misread.
func checkFormat(common string) error {
	raw, err := os.ReadFile(filepath.Join(common, "config"))
	if err != nil {
		return ioError(err, "the repository's configuration cannot be read")
	}
	config := formatcfg.New()
	if err := formatcfg.NewDecoder(bytes.NewReader(raw)).Decode(config); err != nil {
		return failf(CodeInvalid, err, "the repository's configuration cannot be read")
	}
	extensions := config.Section("extensions")
	for _, name := range []string{"objectformat", "refstorage", "partialclone"} {
		value := extensions.Option(name)
		if value != "" && value != "sha1" && value != "files" {
			return failf(CodeInvalid, nil, "the repository uses the git extension %s=%s, which is not supported; make an ordinary clone of it", name, clip(value, 40))
		}
	}
	return nil
}

// maxBorrowed is git's own limit on the depth of borrowed object directories.
const maxBorrowed = 5

// borrowed returns the object directories named in info/alternates.
func borrowed(objects string, depth int) []string {
	raw, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil || depth > maxBorrowed {
		return nil
	}
	var dirs []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		dir := absolute(objects, line)
		dirs = append(append(dirs, dir), borrowed(dir, depth+1)...)
	}
	return dirs
}

func (l *Local) refs() *filesystem.Storage {
	files := dotgit.NewRepositoryFilesystem(osfs.New(l.gitDir, osfs.WithBoundOS()), osfs.New(l.commonDir, osfs.WithBoundOS()))
	return filesystem.NewStorage(files, cache.NewObjectLRU(0))
}

// Resolve returns the commit of a branch, a full ref name, or HEAD (""), and the
// full name of the branch that it is, "" for a tag or a detached HEAD. A repository
// without a commit gives [CodeEmpty].
func (l *Local) Resolve(_ context.Context, name string) (commit, branch string, err error) {
	full := plumbing.HEAD
	switch {
	case strings.HasPrefix(name, "refs/"):
		full = plumbing.ReferenceName(name)
	case name != "" && name != "HEAD":
		if err := ValidateBranch(name); err != nil {
			return "", "", err
		}
		full = plumbing.NewBranchReferenceName(name)
	}
	store := l.refs()
	defer store.Close()
	for range maxBorrowed {
		ref, err := store.Reference(full)
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			if name == "" || name == "HEAD" {
				return "", "", failf(CodeEmpty, nil, "the repository has no commit yet; make a first one")
			}
			return "", "", failf(CodeNotFound, nil, "the repository has no branch %q", clip(name, 80))
		}
		if err != nil {
			return "", "", ioError(err, "the repository's branches cannot be read")
		}
		if ref.Type() == plumbing.HashReference {
			if full.IsBranch() {
				branch = full.String()
			}
			id, err := peel(l.objects, ref.Hash())
			return id.String(), branch, err
		}
		full = ref.Target()
	}
	return "", "", failf(CodeCorrupt, nil, "the repository's HEAD leads in circles")
}

// peel returns the commit that an annotated tag stands for.
func peel(from source, id plumbing.Hash) (plumbing.Hash, error) {
	for range maxBorrowed {
		raw, err := from.get(id)
		if err != nil || raw.Type() != plumbing.TagObject {
			return id, err
		}
		var tag object.Tag
		if err := tag.Decode(raw); err != nil {
			return id, failf(CodeCorrupt, err, "the tag %s cannot be read", id)
		}
		id = tag.Target
	}
	return id, failf(CodeCorrupt, nil, "the tag %s leads to nothing but tags", id)
}

// CreateBranch writes a sealed commit's objects and one new branch into the
// repository, and nothing else: no checkout, no index, no configuration. ref
// must pass [ValidateRef]; one that exists is [CodeStale], unless it is at the
// commit already.
func (l *Local) CreateBranch(ctx context.Context, w *Workspace, sealed Sealed, ref string) error {
	if err := ValidateRef(ref); err != nil {
		return err
	}
	id, err := parseID(sealed.Commit)
	if err != nil {
		return err
	}
	now, _, err := l.Resolve(ctx, ref)
	switch {
	case err == nil && now == sealed.Commit:
		return nil
	case err == nil:
		return failf(CodeStale, nil, "the branch %s exists already, at %s", short(ref), now)
	case CodeOf(err) != CodeNotFound:
		return err
	}
	commit, err := readCommit(w.objects, id)
	if err != nil {
		return err
	}
	ids, err := newObjects(w.objects, commit.TreeHash, []plumbing.Hash{w.tree})
	if err != nil {
		return err
	}
	for _, one := range append(ids, id) {
		object, err := w.objects.get(one)
		if err != nil {
			return err
		}
		if err := writeLoose(filepath.Join(l.commonDir, "objects"), object); err != nil {
			return err
		}
	}
	return l.writeRef(ref, id)
}

// writeRef creates a ref by git's own protocol: a lock file that is made
// exclusively, then renamed.
func (l *Local) writeRef(ref string, id plumbing.Hash) error {
	name := filepath.Join(l.commonDir, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return ioError(err, "the branch cannot be created; is there a branch named %s?", strings.TrimSuffix(BranchPrefix, "/"))
	}
	lock, err := os.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return ioError(err, "the branch cannot be created; another git process may be at work")
	}
	_, err = lock.WriteString(id.String() + "\n")
	err = errors.Join(err, lock.Sync(), lock.Close())
	if err == nil {
		err = os.Rename(lock.Name(), name)
	}
	if err != nil {
		return ioError(errors.Join(err, os.Remove(lock.Name())), "the branch cannot be created")
	}
	return nil
}
