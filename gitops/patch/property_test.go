package patch

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyText draws files of few different lines, so that ambiguity, blank lines
// and repetitions are frequent, with every kind of line ending.
func anyText(t *rapid.T, label string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{
		"", "}", "\treturn nil", "func one() {", "func two() {", "\talpha()", "\tbeta()", "  gamma: 1", "trailing  ", "-- x", "++ y", "...", "\tünï",
	}), 0, 25).Draw(t, label)
	ending := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, label+" ending")
	text := strings.Join(lines, ending)
	if text != "" && rapid.Bool().Draw(t, label+" final newline") {
		text += ending
	}
	return text
}

// anyDiff draws a right diff for the text, or a corrupted one.
func anyDiff(t *rapid.T, src string) string {
	want := anyText(t, "new")
	if src == want {
		return ""
	}
	hunks := makeDiff(strings.ReplaceAll(src, "\r\n", "\n"), strings.ReplaceAll(want, "\r\n", "\n"))
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	if rapid.Bool().Draw(t, "corrupt") {
		w := &work{rng: rng, hunks: hunks, src: src, want: want}
		if c := rapid.SampledFrom(classes).Draw(t, "class"); c.hunks != nil && len(hunks) > 0 && !hasBlank(hunks) {
			c.hunks(w)
			hunks = w.hunks
		}
	}
	return render(rng, hunks, rapid.SampledFrom(headerStyles).Draw(t, "style"))
}

// hasBlank says whether a line lacks its operator, which the corruptions do
// not expect.
func hasBlank(hunks []testHunk) bool {
	return slices.ContainsFunc(hunks, func(h testHunk) bool { return slices.Contains(h.lines, "") })
}

// Rule 2: whatever is applied, the file's lines that were not removed are
// there afterwards, byte for byte and in order, and only as many lines are
// gone or new as the result says.
func TestKeptLinesStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := anyText(t, "old")
		result, err := Apply([]byte(src), anyDiff(t, src))
		if err != nil {
			return
		}
		removed, added := 0, 0
		for _, h := range result.Hunks {
			removed, added = removed+h.Removed, added+h.Added
		}
		old := newSource([]byte(src)).lines
		new := newSource(result.Text).lines
		if len(new)-len(old) != added-removed {
			t.Fatalf("%d lines became %d, with %d added and %d removed", len(old), len(new), added, removed)
		}
		if common := commonLines(rawLines(src), rawLines(string(result.Text))); common < len(old)-removed-1 {
			t.Fatalf("only %d of %d kept lines are still there:\n%q\n%q", common, len(old)-removed, src, result.Text)
		}
	})
}

// rawLines are lines with their endings. A last line without one is allowed to
// gain it when lines follow it now, which commonLines' caller grants.
func rawLines(text string) []string { return strings.SplitAfter(text, "\n") }

// commonLines is the length of the longest common subsequence.
func commonLines(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// A right diff with right numbers gives exactly the new file.
func TestRightDiffsApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := strings.ReplaceAll(anyText(t, "old"), "\r\n", "\n")
		new := strings.ReplaceAll(anyText(t, "new"), "\r\n", "\n")
		if old == new || old == "" {
			return
		}
		hunks := makeDiff(old, new)
		result, err := Apply([]byte(old), render(nil, hunks, headerStyles[0]))
		if failure, ok := errors.AsType[*Error](err); ok {
			// Too little context for certainty is the only excuse.
			if failure.Code != Ambiguous && failure.Code != NoMatch && failure.Code != AlreadyApplied {
				t.Fatalf("%v", failure)
			}
			return
		}
		if string(result.Text) != new {
			t.Fatalf("got %q, want %q, from %q", result.Text, new, old)
		}
	})
}

// Rule 1: the input is never changed, and an error comes without a result.
func TestNothingPartial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := []byte(anyText(t, "old"))
		before := bytes.Clone(src)
		result, err := Apply(src, anyDiff(t, string(src)))
		if !bytes.Equal(src, before) {
			t.Fatal("the source was changed in place")
		}
		if err != nil && (result.Text != nil || result.Hunks != nil || result.NewPath != "") {
			t.Fatalf("an error came with a result: %+v", result)
		}
	})
}

// The same input gives the same output.
func TestDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := anyText(t, "old")
		diff := anyDiff(t, src)
		first, firstErr := Apply([]byte(src), diff)
		second, secondErr := Apply([]byte(src), diff)
		if !bytes.Equal(first.Text, second.Text) || (firstErr == nil) != (secondErr == nil) ||
			firstErr != nil && firstErr.Error() != secondErr.Error() {
			t.Fatalf("%v\n%v", firstErr, secondErr)
		}
	})
}
