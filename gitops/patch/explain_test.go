package patch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shownLines reads back the numbered lines of an explanation.
func shownLines(text string) map[int]string {
	numbered := regexp.MustCompile(`(?m)^ {0,5}(\d+)\t(.*)$`)
	shown := map[int]string{}
	for _, match := range numbered.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[1])
		shown[n] = match[2]
	}
	return shown
}

// mend builds a diff from what an explanation shows: the file's lines from
// first to last as context, the line at change replaced.
func mend(t *testing.T, text string, first, last, change int, replacement string) string {
	t.Helper()
	shown := shownLines(text)
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", first, last-first+1, first, last-first+1)
	for n := first; n <= last; n++ {
		content, ok := shown[n]
		if !ok {
			t.Fatalf("the text does not show line %d:\n%s", n, text)
		}
		if n == change {
			fmt.Fprintf(&b, "-%s\n+%s\n", content, replacement)
			continue
		}
		fmt.Fprintf(&b, " %s\n", content)
	}
	return b.String()
}

// After a refusal the text alone holds the lines from which the right patch can
// be built: for each code, that patch is built from it and applied.
func TestTheErrorTeachesTheRightPatch(t *testing.T) {
	twice := strings.Replace(poem, "\tdelta()\n\tepsilon()\n\tzeta()\n", "\talpha()\n\tbeta()\n\tgamma()\n", 1)
	cases := map[string]struct {
		src, diff string
		code      Code
		// the right patch replaces line change, with first to last around it
		first, last, change int
	}{
		"a misremembered removal": {poem, "@@\n func one() {\n \talpha()\n-\tbetta()\n+\tbest()\n \tgamma()\n", NoMatch, 3, 7, 5},
		"nothing fits at all":     {poem, "@@ -4,2 +4,2 @@\n what\n-is this\n+is that\n", NoMatch, 3, 6, 5},
		"no context":              {poem, "@@\n+\tbest()\n", NoMatch, 3, 6, 5},
		"two places":              {twice, "@@\n \talpha()\n-\tbeta()\n+\tbest()\n \tgamma()\n", Ambiguous, 9, 12, 11},
		"applied before":          {poemWant, poemDiff, AlreadyApplied, 3, 7, 5},
		"a gap in the removed":    {poem, "@@\n func one() {\n-\talpha()\n-\tgamma()\n+\tbest()\n", GapInRemoved, 3, 6, 5},
		"a forgotten plus":        {poem, "@@\n \talpha()\n \tbest()\n+\tworst()\n \tbeta()\n \tgamma()\n", ForgottenPlus, 3, 6, 5},
		"cut off":                 {poem, "@@ -4,6 +4,9 @@\n \talpha()\n-\tbeta()\n+\tbe", Truncated, 4, 6, 5},
		"hunks that overlap":      {poem, "@@\n-\tbeta()\n+\tb()\n@@\n \talpha()\n-\tbeta()\n+\tc()\n", Overlap, 4, 5, 5},
		"a file that exists":      {poem, "--- /dev/null\n+++ b/poem.go\n@@ -0,0 +1 @@\n+package poem\n", Exists, 3, 6, 5},
		"no change":               {poem, "@@\n \talpha()\n-\tbeta()\n+\tbeta()\n \tgamma()\n", NoChange, 4, 6, 5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failure := expectCode(t, []byte(c.src), c.diff, c.code)
			right := mend(t, failure.Text, c.first, c.last, c.change, "\tmended()")
			lines := strings.SplitAfter(c.src, "\n")
			lines[c.change-1] = "\tmended()\n"
			expectText(t, c.src, right, strings.Join(lines, ""))
		})
	}
}

// The other codes are about something that no lines can mend; their texts say
// what to do instead.
func TestTheErrorSaysWhatToDoInstead(t *testing.T) {
	cases := map[string]struct {
		src  []byte
		diff string
		code Code
		says string
	}{
		"missing":   {nil, poemDiff, Missing, "list_files"},
		"binary":    {[]byte("\x00"), poemDiff, Binary, "only text files"},
		"too large": {[]byte(poem), strings.Repeat("+x\n", MaxDiff), TooLarge, "several smaller diffs"},
		"no hunk":   {[]byte(poem), "I would rename beta.", NoChange, "a line @@"},
		"mode only": {[]byte(poem), "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", NoChange, "mode"},
		"merge":     {[]byte(poem), "@@@ -1,2 -1,2 +1,2 @@@\n", NoMatch, "two columns"},
		"two files": {[]byte(poem), poemDiff + strings.ReplaceAll(poemDiff, "poem.go", "other.go"), Ambiguous, "poem.go, other.go"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if failure := expectCode(t, c.src, c.diff, c.code); !strings.Contains(failure.Text, c.says) {
				t.Errorf("the text does not say %q:\n%s", c.says, failure.Text)
			}
		})
	}
}

// The first diverging line is shown with its white space visible.
func TestTheErrorShowsTheDivergence(t *testing.T) {
	failure := expectCode(t, []byte(poem), "@@\n func two() {\n \tdelta()\n-\tepsilon(1)\n+\tx()\n", NoMatch)
	for _, want := range []string{`"\tepsilon(1)"`, `"\tepsilon()"`, "line 11 of the file", "2 of 3 match"} {
		if !strings.Contains(failure.Text, want) {
			t.Errorf("the text lacks %s:\n%s", want, failure.Text)
		}
	}
}

// Of several hunks the text says which fit.
func TestTheErrorSaysWhichHunksFit(t *testing.T) {
	failure := expectCode(t, []byte(poem), "@@\n-\talpha()\n+\ta()\n@@\n-\tnothing()\n+\tn()\n@@\n-\tzeta()\n+\tz()\n", NoMatch)
	if failure.Hunk != 2 || !strings.Contains(failure.Text, "Of 3 hunks, not placed: 2; these fit: 1, 3.") {
		t.Errorf("hunk %d:\n%s", failure.Hunk, failure.Text)
	}
}

// All places are named, however many there are, within the limit of lines.
func TestTheErrorNamesAllPlaces(t *testing.T) {
	src := strings.Repeat("func f() {\n\tbeta()\n}\n", 20)
	failure := expectCode(t, []byte(src), "@@\n-\tbeta()\n+\tb()\n", Ambiguous)
	for i := range 20 {
		if n := strconv.Itoa(i*3 + 2); !strings.Contains(failure.Text, "line "+n) && !strings.Contains(failure.Text, ", "+n) {
			t.Errorf("line %s is not named:\n%s", n, failure.Text)
		}
	}
	if !strings.Contains(failure.Text, "in func f()") {
		t.Errorf("the enclosing function is not named:\n%s", failure.Text)
	}
}
