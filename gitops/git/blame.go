package git

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// blamer passes a file's lines from commit to commit back in time: a line that a
// parent has as well is the parent's, the others are the commit's own.
type blamer struct {
	r       *Repository
	path    string
	history *history
	lines   []BlamedLine
	// pending maps, for each commit that is still to be visited, line numbers of
	// its version of the file to those of the result.
	pending map[plumbing.Hash]map[int]int
}

func (b *blamer) begin(start plumbing.Hash) error {
	content, _, err := b.content(start)
	if err != nil {
		return err
	}
	if content == nil {
		return failf(CodeNotFound, nil, "there is no file %q at %s", clip(b.path, 200), start.String()[:12])
	}
	if isBinary(content) {
		return failf(CodeInvalid, nil, "%q is a binary file and has no lines", clip(b.path, 200))
	}
	all := map[int]int{}
	for text := range bytes.Lines(content) {
		all[len(b.lines)] = len(b.lines)
		b.lines = append(b.lines, BlamedLine{Text: strings.TrimSuffix(string(text), "\n")})
	}
	b.pending[start] = all
	return nil
}

// content returns the file at a commit, nil when there is none.
func (b *blamer) content(id plumbing.Hash) ([]byte, fileState, error) {
	commit, err := readCommit(b.r.objects, id)
	if err != nil {
		return nil, fileState{}, err
	}
	state, err := b.r.stateAt(commit, b.path)
	if err != nil || !isRegular(state.mode) {
		return nil, fileState{}, err
	}
	content, err := readObject(b.r.objects, state.id, plumbing.BlobObject, b.r.limits.FileBytes)
	if content == nil {
		content = []byte{}
	}
	return content, state, err
}

// visit gives each of a commit's pending lines to the first parent that has it,
// and keeps the rest.
func (b *blamer) visit(one datedCommit) error {
	mine := b.pending[one.id]
	delete(b.pending, one.id)
	delete(b.history.seen, one.id) // where clocks are wrong a child may come later
	here, state, err := b.content(one.id)
	if err != nil {
		return err
	}
	for _, id := range one.commit.ParentHashes {
		if len(mine) == 0 {
			return nil
		}
		there, old, err := b.content(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			b.history.cut = true
			continue
		}
		if err != nil {
			return err
		}
		if there == nil {
			continue
		}
		same := func(line int) (int, bool) { return line, true }
		if old.id != state.id {
			same = unchanged(there, here)
		}
		if err := b.pass(mine, same, id); err != nil {
			return err
		}
	}
	for _, line := range mine {
		b.lines[line].Commit = one.id.String()
		b.lines[line].Author = Identity{Name: one.commit.Author.Name, Email: one.commit.Author.Email}
		b.lines[line].When = one.commit.Author.When
	}
	return nil
}

// pass moves lines from mine to a parent.
func (b *blamer) pass(mine map[int]int, same func(int) (int, bool), parent plumbing.Hash) error {
	theirs := b.pending[parent]
	if theirs == nil {
		theirs = map[int]int{}
	}
	for line, result := range mine {
		if old, ok := same(line); ok {
			if _, taken := theirs[old]; !taken {
				theirs[old] = result
				delete(mine, line)
			}
		}
	}
	if len(theirs) == 0 {
		return nil
	}
	b.pending[parent] = theirs
	_, err := b.history.add(parent)
	return err
}

// unchanged returns a function that finds a new line's number among the old
// ones, counting from 0, if the line did not change.
func unchanged(before, after []byte) func(line int) (int, bool) {
	added := map[int]bool{}
	shift := map[int]int{} // from a new line on: old number minus new number
	starts := []int{0}
	old, now := 0, 0
	for line := range bytes.Lines(hunks(before, after)) {
		switch line[0] {
		case '@':
			old, now = hunkStart(string(line))
		case '+':
			added[now] = true
			now++
		case '-':
			old++
		case ' ':
			old++
			now++
		default:
			continue
		}
		if shift[now] = old - now; starts[len(starts)-1] != now {
			starts = append(starts, now)
		}
	}
	return func(line int) (int, bool) {
		if added[line] {
			return 0, false
		}
		at := 0
		for _, start := range starts {
			if start > line {
				break
			}
			at = start
		}
		return line + shift[at], true
	}
}

// hunkStart reads where a hunk "@@ -a,b +c,d @@" begins, counting from 0. Git
// writes the line before for a side without lines.
func hunkStart(header string) (old, now int) {
	fields := strings.Fields(header)
	read := func(field string) int {
		first, count, counted := strings.Cut(field[1:], ",")
		n, _ := strconv.Atoi(first) // our own diff wrote it
		if counted && count == "0" {
			return n
		}
		return n - 1
	}
	return read(fields[1]), read(fields[2])
}
