package patch_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// A textPair is one file as two releases have it.
type textPair struct {
	name     string
	old, new []string
	// ending is the line ending of both; final says that the last line has one.
	ending string
	final  bool
	// changes lead from old to new.
	changes []change
}

// A change replaces the old lines [from, to).
type change struct {
	from, to int
	added    []string
}

// The sizes between which a file is worth a try, in bytes.
const smallestFile, largestFile = 200, 300_000

// treePairs draws files that two directories have both and differently.
func treePairs(rng *rand.Rand, oldRoot, newRoot string, most int) []textPair {
	var names []string
	_ = filepath.WalkDir(oldRoot, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, path)
		}
		return nil // what cannot be read is not part of the corpus
	})
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var pairs []textPair
	for _, path := range names {
		relative, _ := filepath.Rel(oldRoot, path)
		oldText, oldErr := os.ReadFile(path)
		newText, newErr := os.ReadFile(filepath.Join(newRoot, relative))
		if oldErr != nil || newErr != nil || string(oldText) == string(newText) {
			continue
		}
		if pair, ok := makePair(filepath.ToSlash(relative), string(oldText), string(newText)); ok {
			pairs = append(pairs, pair)
		}
		if len(pairs) == most {
			break
		}
	}
	return pairs
}

// makePair takes two texts apart if they are text of one kind of line ending.
func makePair(name, old, new string) (textPair, bool) {
	for _, text := range []string{old, new} {
		if len(text) < smallestFile || len(text) > largestFile || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return textPair{}, false
		}
	}
	p := textPair{name: name, ending: "\n", final: strings.HasSuffix(old, "\n")}
	if crlf := strings.Count(old, "\r\n"); crlf > 0 {
		if crlf != strings.Count(old, "\n") || strings.Count(new, "\r\n") != strings.Count(new, "\n") {
			return textPair{}, false
		}
		p.ending = "\r\n"
	} else if strings.Contains(new, "\r") {
		return textPair{}, false
	}
	if strings.HasSuffix(new, "\n") != p.final {
		return textPair{}, false
	}
	p.old, p.new = splitText(old, p.ending), splitText(new, p.ending)
	p.changes = changesBetween(p.old, p.new)
	return p, len(p.changes) > 0
}

func splitText(text, ending string) []string {
	return strings.Split(strings.TrimSuffix(text, ending), ending)
}

// text writes lines as the pair's file has them.
func (p textPair) text(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text := strings.Join(lines, p.ending)
	if p.final {
		text += p.ending
	}
	return text
}

var diffRange = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@`)

// changesBetween compares by a library that has nothing to do with this project.
func changesBetween(old, new []string) []change {
	join := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	var changes []change
	at, open := 0, false
	for i, text := range strings.Split(strings.TrimSuffix(string(diff.Diff("a", join(old), "b", join(new))), "\n"), "\n") {
		if i < 3 {
			continue // the header
		}
		if match := diffRange.FindStringSubmatch(text); match != nil {
			n, _ := strconv.Atoi(match[1])
			at, open = n-1, false
			continue
		}
		if text[0] == ' ' {
			at, open = at+1, false
			continue
		}
		if !open {
			changes = append(changes, change{from: at, to: at})
			open = true
		}
		last := &changes[len(changes)-1]
		if text[0] == '-' {
			at++
			last.to = at
		} else {
			last.added = append(last.added, text[1:])
		}
	}
	return minimal(changes, old)
}

// minimal takes the lines out of changes that are removed only to be added
// again, as comparisons by unique lines leave them behind.
func minimal(changes []change, old []string) []change {
	var out []change
	for _, c := range changes {
		from := c.from
		added := c.added
		for _, match := range commonLines(old[c.from:c.to], c.added) {
			at, in := c.from+match[0], len(c.added)-len(added)
			if from < at || in < match[1] {
				out = append(out, change{from, at, c.added[in:match[1]]})
			}
			from, added = at+1, c.added[match[1]+1:]
		}
		if from < c.to || len(added) > 0 {
			out = append(out, change{from, c.to, added})
		}
	}
	return out
}

// commonLines is a longest common subsequence, as pairs of indexes.
func commonLines(a, b []string) [][2]int {
	if len(a)*len(b) > 1<<22 {
		return nil
	}
	length := make([][]int32, len(a)+1)
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// A block is one hunk of a right diff: consecutive changes with context.
type block struct {
	at      int // the old line, from 0, on which it starts
	lines   []string
	changes []change
	heading string
}

// blocks groups changes that are near each other, with so many lines of context.
func (p textPair) blocks(context int) []block {
	var blocks []block
	for i := 0; i < len(p.changes); {
		end := i + 1
		for end < len(p.changes) && p.changes[end].from-p.changes[end-1].to <= 2*context {
			end++
		}
		blocks = append(blocks, p.block(p.changes[i:end], context))
		i = end
	}
	return blocks
}

func (p textPair) block(changes []change, context int) block {
	from := max(0, changes[0].from-context)
	to := min(len(p.old), changes[len(changes)-1].to+context)
	b := block{at: from, changes: changes, heading: p.heading(from)}
	at := from
	keepUntil := func(end int) {
		for ; at < end; at++ {
			b.lines = append(b.lines, " "+p.old[at])
		}
	}
	for _, c := range changes {
		keepUntil(c.from)
		for ; at < c.to; at++ {
			b.lines = append(b.lines, "-"+p.old[at])
		}
		for _, text := range c.added {
			b.lines = append(b.lines, "+"+text)
		}
	}
	keepUntil(to)
	return b
}

var headingLine = regexp.MustCompile(`^[\pL_$]`)

// heading is what git prints beside @@: the nearest line above that starts a
// block at the margin.
func (p textPair) heading(at int) string {
	for i := at - 1; i >= 0; i-- {
		if headingLine.MatchString(p.old[i]) {
			text := strings.TrimRight(p.old[i], " \t")
			for len(text) > 80 {
				_, size := utf8.DecodeLastRuneInString(text)
				text = text[:len(text)-size]
			}
			return strings.TrimRight(text, " \t")
		}
	}
	return ""
}

// apply makes the changes of some blocks, which must be in order.
func (p textPair) apply(blocks []block) []string {
	var out []string
	at := 0
	for _, b := range blocks {
		for _, c := range b.changes {
			out = append(out, p.old[at:c.from]...)
			out = append(out, c.added...)
			at = c.to
		}
	}
	return append(out, p.old[at:]...)
}

// counts are the numbers that a header states.
func counts(lines []string) (old, new int) {
	for _, text := range lines {
		switch {
		case text == "" || text[0] == ' ':
			old, new = old+1, new+1
		case text[0] == '-':
			old++
		case text[0] == '+':
			new++
		}
	}
	return old, new
}
