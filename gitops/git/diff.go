package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/rogpeppe/go-internal/diff"
)

// lineCount is what a change adds and removes.
type lineCount struct {
	added, deleted int
	binary, lfs    bool
}

// measure counts a change's lines, once for each pair of blobs.
func (w *Workspace) measure(change *Change, old, now fileState) error {
	key := [2]plumbing.Hash{old.id, now.id}
	count, ok := w.diffCount[key]
	if !ok {
		before, after, err := w.contents(change.Path, old, now)
		if err != nil {
			return err
		}
		count = countLines(before, after)
		w.diffCount[key] = count
	}
	change.Additions, change.Deletions, change.Binary = count.added, count.deleted, count.binary
	if count.lfs {
		change.Flags = append(change.Flags, FlagLFS)
	}
	return nil
}

// contents returns what a path held and what it holds now.
func (w *Workspace) contents(path string, old, now fileState) (before, after []byte, err error) {
	switch {
	case old.mode == filemode.Submodule:
		before = submoduleText(old.id)
	case old.present():
		if before, err = readObject(w.objects, old.id, plumbing.BlobObject, w.repo.limits.FileBytes); err != nil {
			return nil, nil, err
		}
	}
	if now.present() {
		if after, err = w.readCurrent(path, now); err != nil {
			return nil, nil, err
		}
	}
	return before, after, nil
}

// submoduleText is how git shows a submodule in a diff.
func submoduleText(id plumbing.Hash) []byte {
	return []byte("Subproject commit " + id.String() + "\n")
}

// isBinary is git's rule: a zero byte within the first 8,000.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}

func countLines(before, after []byte) lineCount {
	count := lineCount{
		binary: isBinary(before) || isBinary(after),
		lfs:    isPointer(before) || isPointer(after),
	}
	if count.binary {
		return count
	}
	for line := range bytes.Lines(hunks(before, after)) {
		switch line[0] {
		case '+':
			count.added++
		case '-':
			count.deleted++
		}
	}
	return count
}

// isPointer says whether a file is a pointer into large file storage.
func isPointer(content []byte) bool {
	return len(content) < 1024 && bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/"))
}

// hunks returns the hunks of a unified diff with three lines of context. The
// anchored algorithm takes n log n time whatever the input is.
func hunks(before, after []byte) []byte {
	text := diff.Diff("a", before, "b", after)
	for range 3 { // its own header lines
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok {
			text = rest
		}
	}
	return text
}

// Diff returns the changes as a unified diff in git's format, for people. Past
// the limit on its size it ends with a line that says how many files are left
// out; what is there is whole per file, and git can apply it.
func (w *Workspace) Diff(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.scan(ctx, nil)
	if err != nil {
		return "", err
	}
	changes, err := w.describe(s)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i, change := range changes {
		text, err := w.fileDiff(change)
		if err != nil {
			return "", err
		}
		if out.Len()+len(text) > w.repo.limits.DiffBytes {
			fmt.Fprintf(&out, "# %d more changed files are not shown: the diff is longer than %d bytes\n", len(changes)-i, w.repo.limits.DiffBytes)
			break
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// fileDiff writes one file's part. A change of type is a deletion and an
// addition, as in git.
func (w *Workspace) fileDiff(change Change) (string, error) {
	old, now := change.states()
	before, after, err := w.contents(change.Path, old, now)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if change.Kind == TypeChanged {
		writeFileDiff(&out, change.Path, old, fileState{}, before, nil)
		writeFileDiff(&out, change.Path, fileState{}, now, nil, after)
	} else {
		writeFileDiff(&out, change.Path, old, now, before, after)
	}
	return out.String(), nil
}

// states returns the two sides of a change.
func (c Change) states() (old, now fileState) {
	if c.OldBlob != "" {
		mode, _ := filemode.New(c.OldMode)
		old = fileState{mode, plumbing.NewHash(c.OldBlob)}
	}
	if c.Blob != "" {
		mode, _ := filemode.New(c.Mode)
		now = fileState{mode, plumbing.NewHash(c.Blob)}
	}
	return old, now
}

func writeFileDiff(out *strings.Builder, path string, old, now fileState, before, after []byte) {
	a, b := quoteName("a/"+path), quoteName("b/"+path)
	fmt.Fprintf(out, "diff --git %s %s\n", a, b)
	switch {
	case !old.present():
		fmt.Fprintf(out, "new file mode %s\n", modeText(now.mode))
		a = "/dev/null"
	case !now.present():
		fmt.Fprintf(out, "deleted file mode %s\n", modeText(old.mode))
		b = "/dev/null"
	case old.mode != now.mode:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", modeText(old.mode), modeText(now.mode))
	}
	if old.id == now.id {
		return
	}
	fmt.Fprintf(out, "index %s..%s", old.id, now.id)
	if old.mode == now.mode {
		fmt.Fprintf(out, " %s", modeText(now.mode))
	}
	out.WriteByte('\n')
	if isBinary(before) || isBinary(after) {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", a, b)
		return
	}
	if text := hunks(before, after); len(text) > 0 {
		fmt.Fprintf(out, "--- %s\n+++ %s\n", endTab(a), endTab(b))
		out.Write(text)
	}
}

// endTab ends a name with spaces in it by a tab, as git does, so that programs
// know where it ends.
func endTab(name string) string {
	if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
		return name + "\t"
	}
	return name
}

// quoteName writes a name as git does: in double quotes with C escapes where it
// has control characters, quotes, backslashes or bytes outside of ASCII.
func quoteName(name string) string {
	plain := func(c byte) bool { return c >= ' ' && c < 0x7f && c != '"' && c != '\\' }
	quoted := false
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range []byte(name) {
		if plain(c) {
			out.WriteByte(c)
			continue
		}
		quoted = true
		if i := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); i >= 0 {
			out.WriteByte('\\')
			out.WriteByte(`abtnvfr"\`[i])
		} else {
			fmt.Fprintf(&out, `\%03o`, c)
		}
	}
	if !quoted {
		return name
	}
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < utf8.RuneSelf && !plain(byte(r)) }) {
		return name // readable in any language, as with core.quotePath=false
	}
	return out.String() + `"`
}
