package patch_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"handoff/gitops/patch"
)

// The test below judges the package as somebody would who knows its rules and
// nothing else of it: through ServeJSONL, with a corpus made by a generator of
// its own, whose diffs come from a library's comparison. TestCorpus in this
// folder asks the same with another generator; two pairs of eyes see more.
//
// Real changes between released versions of modules, of every kind of file that
// modules hold, are corrupted in one way at a time, each with exact, wrong and
// bare hunk headers. What no reader could decide is left out: a hunk that
// stands in several places and does not say which.
var (
	strangerTrees = flag.String("stranger.trees", "", "pairs of directories to judge by, old=new,old=new; without them those of testdata/releases.txt")
	strangerSeeds = flag.String("stranger.seeds", "", "seeds, separated by commas")
	strangerCases = flag.Int("stranger.cases", 0, "cases for each class, style and seed; 0 means a sample")
	strangerOnly  = flag.String("stranger.only", "", "the one class to try")
	strangerOut   = flag.String("stranger.out", "", "folder in which to keep what was not right")
)

// What is asked of any corpus and seed, besides that nothing is ever applied
// wrongly and that all is refused that must be.
const (
	rightOverall = 0.99
	rightInClass = 0.95
	// enough is how many cases a class needs for a share to mean something.
	enough = 30
)

func TestAStrangersCorpus(t *testing.T) {
	seeds, cases, files := "1", 3, 12
	if os.Getenv("CI") == "true" {
		seeds, cases, files = "1,2,3", 20, 60
	}
	if *strangerSeeds != "" {
		seeds = *strangerSeeds
	}
	if *strangerCases > 0 {
		cases, files = *strangerCases, 200
	}
	var whole tally
	by := map[string]*tally{}
	for _, seed := range strings.Split(seeds, ",") {
		number, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		trees := strangerPairs(t, number, files)
		for _, c := range classes {
			if *strangerOnly != "" && c.name != *strangerOnly {
				continue
			}
			if by[c.name] == nil {
				by[c.name] = &tally{}
			}
			for _, style := range c.headerStyles() {
				result := judgeAll(t, draw(trees, c, style, number, cases))
				by[c.name].add(result)
				if !c.hard {
					whole.add(result)
				}
				t.Logf("seed %s, %-32s %-5s headers: %s", seed, c.name, style, result)
			}
		}
	}
	for _, c := range classes {
		if result := by[c.name]; result != nil {
			result.check(t, c)
		}
	}
	t.Logf("altogether: %s", whole)
	if float64(whole.right) < rightOverall*float64(whole.all()) {
		t.Errorf("altogether: %s", whole)
	}
}

// strangerPairs collects changed files, grouped by the directories they are from.
func strangerPairs(t *testing.T, seed uint64, files int) [][]textPair {
	t.Helper()
	var dirs [][2]string
	for _, release := range patch.Releases() {
		dirs = append(dirs, [2]string{release.Old, release.New})
	}
	if *strangerTrees != "" {
		dirs = nil
		for pair := range strings.SplitSeq(*strangerTrees, ",") {
			old, new, _ := strings.Cut(pair, "=")
			dirs = append(dirs, [2]string{old, new})
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var trees [][]textPair
	for _, dir := range dirs {
		if pairs := treePairs(rng, dir[0], dir[1], files); len(pairs) > 0 {
			trees = append(trees, pairs)
		}
	}
	if len(trees) == 0 {
		const lack = "not tested: real changes as a stranger corrupts them; the module cache has no module of testdata/releases.txt"
		if os.Getenv("CI") == "true" {
			t.Fatal(lack)
		}
		t.Skip(lack)
	}
	return trees
}

func (c class) headerStyles() []string {
	if c.styles != nil {
		return c.styles
	}
	return []string{"exact", "wrong", "bare"}
}

// draw makes cases of one class and style. Every tree has the same chance,
// however many files it changes.
func draw(trees [][]textPair, c class, style string, seed uint64, cases int) []task {
	name := fnv.New64()
	fmt.Fprint(name, c.name, style)
	rng := rand.New(rand.NewPCG(seed, name.Sum64()))
	var tasks []task
	for tries := 0; len(tasks) < cases && tries < 60*cases; tries++ {
		tree := trees[rng.IntN(len(trees))]
		w, ok := newWork(rng, tree[rng.IntN(len(tree))], c.contextLines())
		if !ok {
			continue
		}
		w.class, w.style, w.refuse = c.name, style, c.refuse
		if c.make(w) && (c.twins || !w.undecided()) {
			tasks = append(tasks, w.finish())
		}
	}
	return tasks
}

// A tally counts how cases came out.
type tally struct{ right, refused, wrong int }

func (y *tally) add(other tally) {
	y.right, y.refused, y.wrong = y.right+other.right, y.refused+other.refused, y.wrong+other.wrong
}

func (y tally) all() int { return y.right + y.refused + y.wrong }

func (y tally) String() string {
	return fmt.Sprintf("%d right, %d refused, %d wrong", y.right, y.refused, y.wrong)
}

func (y tally) check(t *testing.T, c class) {
	t.Helper()
	least := cmp.Or(c.least, rightInClass)
	if y.wrong > 0 || !c.hard && y.all() >= enough && float64(y.right) < least*float64(y.all()) {
		t.Errorf("%s: %s", c.name, y)
	}
}

// judgeAll puts the cases to the package, all in one stream.
func judgeAll(t *testing.T, tasks []task) tally {
	t.Helper()
	var requests, answers bytes.Buffer
	encoder := json.NewEncoder(&requests)
	for i, x := range tasks {
		request := map[string]any{"id": i, "path": x.name, "source": x.source, "diff": x.diff}
		if x.missing {
			request["source"] = nil
		}
		if err := encoder.Encode(request); err != nil {
			t.Fatal(err)
		}
	}
	if err := patch.ServeJSONL(&requests, &answers); err != nil {
		t.Fatal(err)
	}
	var result tally
	lines := bufio.NewReader(&answers)
	for i, x := range tasks {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		result.add(judge(t, x, line))
	}
	return result
}

// An answer is a line that the package writes.
type answer struct {
	OK      bool    `json:"ok"`
	Result  *string `json:"result"`
	Deleted bool    `json:"deleted"`
	NewPath string  `json:"new_path"`
	Error   string  `json:"error"`
}

func judge(t *testing.T, x task, line []byte) tally {
	t.Helper()
	var got answer
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	text := ""
	if got.Result != nil {
		text = *got.Result
	}
	same := got.Deleted == x.deleted && got.NewPath == x.newPath && text == x.want
	switch {
	case got.OK != x.refuse && (same || x.refuse):
		return tally{right: 1}
	case !got.OK:
		x.keep("refused", got.Error)
		return tally{refused: 1}
	}
	x.keep("wrong", text)
	t.Logf("applied wrongly: %s, %s headers (%s), %s:\n%.2000s", x.class, x.style, x.kind, x.name, x.diff)
	return tally{wrong: 1}
}

// keep writes a case down for whoever wants to look into it.
func (x task) keep(verdict, got string) {
	if *strangerOut == "" {
		return
	}
	name := fmt.Sprintf("%s/%s-%s-%s-%08x", *strangerOut, strings.ReplaceAll(x.class, " ", "_"), x.style, verdict, rand.Uint32())
	for kind, text := range map[string]string{"src": x.source, "diff": x.diff, "want": x.want, "got": got} {
		_ = os.WriteFile(name+"."+kind, []byte(text), 0o644)
	}
}
