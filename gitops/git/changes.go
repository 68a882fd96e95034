package git

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/text/unicode/norm"
)

// A ChangeKind tells how a path differs from the base.
type ChangeKind string

// The kinds of change.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
	// ModeChanged is a change of the executable bit alone.
	ModeChanged ChangeKind = "mode"
	// TypeChanged is a file that became a symlink, or the reverse.
	TypeChanged ChangeKind = "type"
)

// A Flag names a danger of a change that a person should look at.
type Flag string

// The flags of changes.
const (
	// FlagWorkflow: a file below .github/workflows or .github/actions, which CI
	// runs with the repository's secrets; pushing it needs its own permission.
	FlagWorkflow Flag = "workflow"
	// FlagExecutable: a file became executable.
	FlagExecutable Flag = "executable"
	// FlagSymlink: a symlink was added or changed.
	FlagSymlink Flag = "symlink"
	// FlagSubmodule: a submodule was removed or replaced.
	FlagSubmodule Flag = "submodule"
	// FlagGitFile: .gitignore, .gitattributes or .gitmodules, which change what
	// git does on other people's machines.
	FlagGitFile Flag = "git_file"
	// FlagLFS: a pointer to a file in large file storage was changed; its
	// content is not part of the commit.
	FlagLFS Flag = "lfs"
	// FlagCollision: another file has the same name but for case or Unicode
	// form; only one of them survives on some machines.
	FlagCollision Flag = "collision"
)

// A Change is one path that differs from the base commit.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	// Mode and OldMode are git's modes in octal ("100644", "100755", "120000",
	// "160000"), "" where there is no file.
	Mode    string `json:"mode,omitempty"`
	OldMode string `json:"old_mode,omitempty"`
	// Blob and OldBlob are git's blob ids, "" where there is no file.
	Blob    string `json:"blob,omitempty"`
	OldBlob string `json:"old_blob,omitempty"`
	// Additions and Deletions count lines; both are 0 for a binary file.
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Binary    bool   `json:"binary,omitempty"`
	Flags     []Flag `json:"flags,omitempty"`
}

// A Scan is what a look at the whole tree found.
type Scan struct {
	// Changes are sorted by path.
	Changes []Change
	// Refused can never be part of a commit and makes [Workspace.Seal] fail.
	Refused []Refusal
	// Hidden are files that are left out only because .gitignore files were
	// changed since the base, sorted; at most a thousand.
	Hidden []string
}

// maxHidden bounds Scan.Hidden: a build directory that was newly ignored may
// hold any number of files.
const maxHidden = 1000

// Scan compares the tree with the base commit: tracked files by ctime, size and
// inode, suspects by content, untracked files unless a .gitignore of the tree
// leaves them out (files of the base are never left out). Time goes with the
// number of files, not with their size.
//
// Errors: [CodeTooLarge] when the changes, or the files in all, are more than
// the limits allow.
func (w *Workspace) Scan(ctx context.Context) (Scan, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.scan(ctx, nil)
	if err != nil {
		return Scan{}, err
	}
	changes, err := w.describe(s)
	if err != nil {
		return Scan{}, err
	}
	hidden, err := w.hidden(ctx, s)
	return Scan{Changes: changes, Refused: s.sortedRefusals(), Hidden: hidden}, err
}

// hidden compares what is left out with what the base's rules would leave out,
// if any rule changed.
func (w *Workspace) hidden(ctx context.Context, s *scanner) ([]string, error) {
	changed := false
	for name := range s.differ {
		changed = changed || path.Base(name) == ".gitignore"
	}
	if !changed {
		return nil, nil
	}
	seen := map[string]bool{}
	if _, err := w.scan(ctx, func(name string) { seen[name] = true }); err != nil {
		return nil, err
	}
	var hidden []string
	_, err := w.walk(ctx, &scanner{baseRules: true, listed: func(name string) {
		if !seen[name] && len(hidden) < maxHidden {
			hidden = append(hidden, name)
		}
	}})
	slices.Sort(hidden)
	return hidden, err
}

// Changes returns what [Workspace.Scan] found to be changed.
func (w *Workspace) Changes(ctx context.Context) ([]Change, error) {
	scan, err := w.Scan(ctx)
	return scan.Changes, err
}

// TreeID returns the git tree id that a commit of the workspace would have now.
// Equal ids mean equal files, modes and symlinks.
func (w *Workspace) TreeID(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.scan(ctx, nil)
	if err != nil {
		return "", err
	}
	tree, _, err := w.build(s.differ)
	return tree.String(), err
}

// Files returns the paths of all files that a commit of the workspace would
// hold, sorted: tracked ones, and untracked ones that are not ignored.
// Submodules are left out.
func (w *Workspace) Files(ctx context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var paths []string
	_, err := w.scan(ctx, func(path string) { paths = append(paths, path) })
	slices.Sort(paths)
	return paths, err
}

// build returns the tree id of the base with the given differences, and the
// tree objects that it took.
func (w *Workspace) build(differ map[string]fileState) (plumbing.Hash, []plumbing.EncodedObject, error) {
	if len(differ) == 0 {
		return w.tree, nil, nil
	}
	edit := newTreeEdit()
	for path, state := range differ {
		edit.set(path, state)
	}
	tree, built, err := edit.apply(w.objects, w.tree)
	if err == nil && tree == plumbing.ZeroHash {
		empty := newObject(plumbing.TreeObject, nil)
		return emptyTree, append(built, empty), nil
	}
	return tree, built, err
}

func (s *scanner) sortedRefusals() []Refusal {
	slices.SortFunc(s.refused, func(a, b Refusal) int { return strings.Compare(a.Path, b.Path) })
	return s.refused
}

// describe turns the differences of a scan into changes, counting lines.
func (w *Workspace) describe(s *scanner) ([]Change, error) {
	changes := make([]Change, 0, len(s.differ))
	for path, state := range s.differ {
		var old fileState
		if f := w.manifest.find(path); f != nil {
			old = f.state
		}
		change := newChange(path, old, state)
		if err := w.measure(&change, old, state); err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	w.flagCollisions(changes)
	return changes, nil
}

func newChange(path string, old, now fileState) Change {
	change := Change{Path: path, Kind: kindOf(old, now)}
	if old.present() {
		change.OldMode, change.OldBlob = modeText(old.mode), old.id.String()
	}
	if now.present() {
		change.Mode, change.Blob = modeText(now.mode), now.id.String()
	}
	change.Flags = flagsOf(path, old, now)
	return change
}

func kindOf(old, now fileState) ChangeKind {
	switch {
	case !old.present():
		return Added
	case !now.present():
		return Deleted
	case isRegular(old.mode) != isRegular(now.mode):
		return TypeChanged
	case old.id == now.id:
		return ModeChanged
	}
	return Modified
}

// isRegular says whether the mode is that of a plain file, executable or not.
func isRegular(mode filemode.FileMode) bool {
	return mode == filemode.Regular || mode == filemode.Executable
}

// modeText is git's way to write a mode.
func modeText(mode filemode.FileMode) string {
	return strings.TrimLeft(mode.String(), "0")
}

func flagsOf(name string, old, now fileState) []Flag {
	var flags []Flag
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, ".github/workflows/") || strings.HasPrefix(lower, ".github/actions/") {
		flags = append(flags, FlagWorkflow)
	}
	if isExecutable(now.mode) && !isExecutable(old.mode) {
		flags = append(flags, FlagExecutable)
	}
	if now.mode == filemode.Symlink {
		flags = append(flags, FlagSymlink)
	}
	if old.mode == filemode.Submodule {
		flags = append(flags, FlagSubmodule)
	}
	switch path.Base(lower) {
	case ".gitignore", ".gitattributes", ".gitmodules":
		flags = append(flags, FlagGitFile)
	}
	return flags
}

// flagCollisions marks added files that fall together with another one on file
// systems that ignore case or Unicode form.
func (w *Workspace) flagCollisions(changes []Change) {
	names := map[string]map[string]bool{} // by folded name, for added files only
	deleted := map[string]bool{}
	for _, change := range changes {
		switch change.Kind {
		case Added:
			names[folded(change.Path)] = map[string]bool{}
		case Deleted:
			deleted[change.Path] = true
		}
	}
	if len(names) == 0 {
		return
	}
	w.manifest.each("", func(name string, _ *file) {
		if same := names[folded(name)]; same != nil && !deleted[name] {
			same[name] = true
		}
	})
	for _, change := range changes {
		if change.Kind == Added {
			names[folded(change.Path)][change.Path] = true
		}
	}
	for i := range changes {
		if changes[i].Kind == Added && len(names[folded(changes[i].Path)]) > 1 {
			changes[i].Flags = append(changes[i].Flags, FlagCollision)
		}
	}
}

// folded is the form under which careless file systems keep a name.
func folded(name string) string { return strings.ToLower(norm.NFC.String(name)) }
