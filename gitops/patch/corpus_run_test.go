package patch

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var (
	casesFlag = flag.Int("cases", 0, "cases for each class and header style of the corpus test; 0 means a sample")
	seedFlag  = flag.Uint64("seed", 1, "seed of the corpus test")
	showFlag  = flag.Int("show", 0, "how many failing cases of each class to print")
)

// The targets, for any corpus of real changes and any seed. Random changes fall
// on lines that nobody would change, with less to go by around them; for them
// only what is never applied wrongly counts in full.
var (
	realTargets   = targets{overall: 0.99, class: 0.95}
	randomTargets = targets{overall: 0.93, class: 0.80}
)

// targets are shares of cases that must come out right.
type targets struct{ overall, class float64 }

// Nothing is ever applied wrongly, nearly everything that can be applied is,
// and what must be refused is. The table shows each class with each kind of
// hunk header.
func TestCorpus(t *testing.T) {
	pairs, origin := corpus()
	t.Logf("corpus: %d files from %s", len(pairs), origin)
	target := realTargets
	if origin != released {
		target = randomTargets
	}
	cases := *casesFlag
	if cases == 0 {
		cases = 15
		if os.Getenv("CI") == "true" {
			cases = 60
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-38s", "class")
	for _, style := range headerStyles {
		fmt.Fprintf(&table, " %22s", style.name+" right/no/WRONG")
	}
	var all verdict
	for _, c := range classes {
		fmt.Fprintf(&table, "\n%-38s", c.name)
		var whole verdict
		for s, style := range headerStyles {
			v := runClass(t, pairs, c, style, cases, *seedFlag+uint64(s))
			fmt.Fprintf(&table, " %14d/%3d/%3d", v.right, v.refused, v.wrong)
			whole.right, whole.refused, whole.wrong = whole.right+v.right, whole.refused+v.refused, whole.wrong+v.wrong
		}
		checkClass(t, c, whole, target)
		all.right, all.refused, all.wrong = all.right+whole.right, all.refused+whole.refused, all.wrong+whole.wrong
	}
	t.Log(table.String())
	t.Logf("%d cases: %.2f %% right, %d refused, %d wrong", all.total(), 100*float64(all.right)/float64(all.total()), all.refused, all.wrong)
	if float64(all.right) < target.overall*float64(all.total()) {
		t.Errorf("%.2f %% right overall", 100*float64(all.right)/float64(all.total()))
	}
}

func checkClass(t *testing.T, c class, v verdict, target targets) {
	t.Helper()
	if v.wrong > 0 {
		t.Errorf("%s: %d applied wrongly", c.name, v.wrong)
	}
	if float64(v.right) < target.class*float64(v.total()) {
		t.Errorf("%s: %d of %d right", c.name, v.right, v.total())
	}
	if v.total() == 0 && !c.rare {
		t.Errorf("%s: the corpus has no case", c.name)
	}
}

// runClass judges a number of cases, chosen by the seed.
func runClass(t *testing.T, pairs []pair, c class, style headerStyle, cases int, seed uint64) verdict {
	rng := rand.New(rand.NewPCG(seed, uint64(len(c.name))))
	var v verdict
	shown := 0
	for tries := 0; v.total() < cases && tries < cases*40; tries++ {
		tc, ok := makeCase(rng, pairs[rng.IntN(len(pairs))], c, style)
		if !ok {
			continue
		}
		if err := judge(tc, &v); err != nil && (shown < *showFlag || strings.HasPrefix(err.Error(), "applied") && shown < 3) {
			shown++
			t.Logf("%s, %s headers, %s: %v\n--- the diff:\n%s", c.name, style.name, tc.pair.name, err, tc.diff)
		}
	}
	return v
}
