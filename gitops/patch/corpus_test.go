package patch

import (
	"bufio"
	_ "embed"
	"fmt"
	"go/build"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// A pair is one file in two released versions.
type pair struct {
	name     string
	old, new string
}

// released is where a corpus of real changes comes from.
const released = "released versions of Go modules"

// corpus returns pairs of real files. They are taken from released modules;
// where the module cache holds none of them, files of the Go distribution are
// changed at random, which is said.
var corpus = sync.OnceValues(func() ([]pair, string) {
	if pairs := releasedPairs(); len(pairs) >= 50 {
		return pairs, released
	}
	return syntheticPairs(), "synthetic changes of the Go distribution (the module cache holds none of testdata/releases.txt)"
})

// The bounds of a file in the corpus, in bytes.
const (
	minCorpusFile = 200
	maxCorpusFile = 100_000
)

//go:embed testdata/releases.txt
var releases string

// A Release is a module in two releases, as directories of the module cache.
type Release struct{ Module, Old, New string }

// Releases returns the modules of testdata/releases.txt that the module cache
// holds. The list is fixed, so that the corpus is the same on every machine.
func Releases() (found []Release) {
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(build.Default.GOPATH, "pkg", "mod")
	}
	for line := range strings.Lines(releases) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		dir := filepath.Join(cache, filepath.FromSlash(fields[0]))
		release := Release{fields[0], dir + "@" + fields[1], dir + "@" + fields[2]}
		if isDirectory(release.Old) && isDirectory(release.New) {
			found = append(found, release)
		}
	}
	return found
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func releasedPairs() (pairs []pair) {
	for _, release := range Releases() {
		pairs = append(pairs, changedFiles(release.Module, release.Old, release.New)...)
	}
	return pairs
}

func changedFiles(module, oldDir, newDir string) []pair {
	var pairs []pair
	_ = filepath.WalkDir(oldDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		relative, err := filepath.Rel(oldDir, name)
		if err != nil {
			return nil
		}
		old, ok := corpusText(name)
		if !ok {
			return nil
		}
		if new, ok := corpusText(filepath.Join(newDir, relative)); ok && new != old {
			pairs = append(pairs, pair{module + "/" + filepath.ToSlash(relative), old, new})
		}
		return nil
	})
	return pairs
}

func corpusText(name string) (string, bool) {
	info, err := os.Stat(name)
	if err != nil || info.Size() < minCorpusFile || info.Size() > maxCorpusFile {
		return "", false
	}
	data, err := os.ReadFile(name)
	if err != nil || !utf8.Valid(data) || strings.ContainsAny(string(data), "\x00\r") {
		return "", false
	}
	return string(data), true
}

// syntheticPairs changes files of GOROOT at random places.
func syntheticPairs() []pair {
	rng := rand.New(rand.NewPCG(1, 2))
	var pairs []pair
	names, _ := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "[a-n]*", "*.go"))
	for _, name := range names {
		text, ok := corpusText(name)
		if !ok {
			continue
		}
		lines := strings.SplitAfter(text, "\n")
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(lines))
			for tries := 0; !hasWord(lines[at]) && tries < 20; tries++ {
				at = rng.IntN(len(lines))
			}
			switch rng.IntN(3) {
			case 0:
				lines = slices.Delete(lines, at, min(len(lines), at+1+rng.IntN(3)))
			case 1:
				lines = slices.Insert(lines, at, fmt.Sprintf("\tadded%d(%d)\n", rng.IntN(1000), at))
			default:
				lines[at] = strings.Replace(lines[at], "e", "E"+strconv.Itoa(rng.IntN(100)), 1)
			}
			if len(lines) == 0 {
				break
			}
		}
		if changed := strings.Join(lines, ""); changed != text && changed != "" {
			pairs = append(pairs, pair{filepath.Base(name), text, changed})
		}
	}
	return pairs
}

// A testHunk is a hunk of a right diff, to be corrupted. Its lines carry their
// operators and no newline; "\ No newline" markers are lines too.
type testHunk struct {
	oldStart, newStart int
	heading            string
	lines              []string
	// header, when set, is written as it is.
	header string
}

func (h testHunk) counts() (old, new int) {
	for _, l := range h.lines {
		switch {
		case l == "" || l[0] == ' ':
			old++
			new++
		case l[0] == '-':
			old++
		case l[0] == '+':
			new++
		}
	}
	return old, new
}

// makeDiff returns the right diff from old to new with three lines of context.
func makeDiff(old, new string) []testHunk {
	var hunks []testHunk
	scanner := bufio.NewScanner(strings.NewReader(string(diff.Diff("old", []byte(old), "new", []byte(new)))))
	scanner.Buffer(nil, 1<<22)
	for scanner.Scan() {
		text := scanner.Text()
		switch {
		case strings.HasPrefix(text, "@@ "):
			var h testHunk
			fields := strings.Fields(text)
			h.oldStart, _ = strconv.Atoi(strings.Split(fields[1][1:], ",")[0])
			h.newStart, _ = strconv.Atoi(strings.Split(fields[2][1:], ",")[0])
			hunks = append(hunks, h)
		case len(hunks) > 0:
			h := &hunks[len(hunks)-1]
			h.lines = append(h.lines, text)
		}
	}
	addHeadings(hunks, old)
	return hunks
}

// addHeadings adds what git writes behind @@: the last line above the hunk that
// starts with a letter.
func addHeadings(hunks []testHunk, old string) {
	lines := strings.Split(old, "\n")
	for i := range hunks {
		for at := min(hunks[i].oldStart-2, len(lines)-1); at >= 0; at-- {
			if l := lines[at]; l != "" && (l[0] == '_' || l[0] >= 'a' && l[0] <= 'z' || l[0] >= 'A' && l[0] <= 'Z') {
				hunks[i].heading = l[:min(len(l), 60)]
				break
			}
		}
	}
}

// A headerStyle is how the hunks' headers are written.
type headerStyle struct {
	name  string
	write func(rng *rand.Rand, h testHunk) string
	// decides says that a reader can tell by it which of several places is meant.
	decides bool
}

var headerStyles = []headerStyle{
	{"exact", func(_ *rand.Rand, h testHunk) string {
		old, new := h.counts()
		return strings.TrimSpace(fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.oldStart, old, h.newStart, new, h.heading))
	}, true},
	{"wrong", func(rng *rand.Rand, h testHunk) string {
		old, new := h.counts()
		return fmt.Sprintf("@@ -%d,%d +%d,%d @@", max(1, h.oldStart+rng.IntN(61)-30), max(0, old+rng.IntN(5)-2), max(1, h.newStart+rng.IntN(61)-30), max(0, new+rng.IntN(5)-2))
	}, false},
	{"bare", func(*rand.Rand, testHunk) string { return "@@" }, false},
	{"heading", func(_ *rand.Rand, h testHunk) string { return strings.TrimSpace("@@ " + h.heading) }, false},
}

// render writes the diff.
func render(rng *rand.Rand, hunks []testHunk, style headerStyle) string {
	var b strings.Builder
	b.WriteString("--- a/file.go\n+++ b/file.go\n")
	for _, h := range hunks {
		header := h.header
		if header == "" {
			header = style.write(rng, h)
		}
		b.WriteString(header + "\n")
		for _, l := range h.lines {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// undecided says that a hunk's old or new side stands in several places, white
// space aside, so that without a number no reader could tell which is meant.
func undecided(hunks []testHunk, src string) bool {
	file := strings.Split(src, "\n")
	for i, text := range file {
		file[i] = strings.TrimSpace(text)
	}
	for _, h := range hunks {
		var old, new []string
		for _, l := range h.lines {
			if l[0] == ' ' || l[0] == '-' {
				old = append(old, strings.TrimSpace(l[1:]))
			}
			if l[0] == ' ' || l[0] == '+' {
				new = append(new, strings.TrimSpace(l[1:]))
			}
		}
		if standsAt(file, old) != 1 || standsAt(file, new) > 0 {
			return true
		}
	}
	return false
}

// standsAt counts in how many places of a file lines stand.
func standsAt(file, lines []string) (n int) {
	for at := range len(file) - len(lines) + 1 {
		if slices.Equal(file[at:at+len(lines)], lines) {
			n++
		}
	}
	return n
}

// cloneHunks copies hunks so that they can be corrupted.
func cloneHunks(hunks []testHunk) []testHunk {
	clone := slices.Clone(hunks)
	for i := range clone {
		clone[i].lines = slices.Clone(clone[i].lines)
	}
	return clone
}

// A testCase is one corrupted diff and what must become of it.
type testCase struct {
	pair   pair
	src    string
	diff   string
	want   string
	refuse bool
}

// makeCase corrupts a pair's diff by a class; ok is false when the class has
// nothing to corrupt in it.
func makeCase(rng *rand.Rand, p pair, c class, style headerStyle) (testCase, bool) {
	hunks := makeDiff(p.old, p.new)
	if len(hunks) == 0 {
		return testCase{}, false
	}
	if len(hunks) > 6 { // models write small diffs; the rest stays unchanged
		return testCase{}, false
	}
	tc := testCase{pair: p, src: p.old, want: p.new, refuse: c.refuse}
	w := &work{rng: rng, hunks: cloneHunks(hunks), src: p.old, want: p.new}
	if c.hunks != nil && !c.hunks(w) {
		return testCase{}, false
	}
	if !style.decides && !c.refuse && undecided(hunks, p.old) {
		return testCase{}, false
	}
	tc.src, tc.want = w.src, w.want
	tc.diff = render(rng, w.hunks, style)
	if c.text != nil {
		text, ok := c.text(rng, tc.diff)
		if !ok {
			return testCase{}, false
		}
		tc.diff = text
	}
	return tc, true
}

// A verdict counts what became of the cases of a class.
type verdict struct{ right, refused, wrong int }

func (v verdict) total() int { return v.right + v.refused + v.wrong }

// judge applies a case.
func judge(tc testCase, v *verdict) (err error) {
	result, err := Apply([]byte(tc.src), tc.diff)
	switch {
	case err != nil && tc.refuse, err == nil && !tc.refuse && string(result.Text) == tc.want:
		v.right++
		return nil
	case err != nil:
		v.refused++
		return err
	default:
		v.wrong++
		return fmt.Errorf("applied wrongly, at level %v; %s", levels(result), firstDifference(string(result.Text), tc.want))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

func levels(r Result) []int {
	var levels []int
	for _, h := range r.Hunks {
		levels = append(levels, h.Level)
	}
	return levels
}

// gnuPatch is the path of GNU patch, "" where there is none.
var gnuPatch = sync.OnceValue(func() string {
	name, err := exec.LookPath("patch")
	if err != nil {
		return ""
	}
	return name
})

func requireOrSkip(t testing.TB, present bool, what string) {
	t.Helper()
	if present {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("not tested: " + what)
	}
	t.Skip("not tested: " + what)
}
