package patch

import (
	"bytes"
	"encoding/json"
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

// checkAny holds for every input whatsoever.
func checkAny(t *testing.T, src []byte, diff string) {
	t.Helper()
	result, err := Apply(src, diff)
	if err == nil {
		if !result.Deleted && result.Text == nil {
			t.Error("no error and no text")
		}
		return
	}
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("an error without a code: %v", err)
	}
	if failure.Code == "" || !strings.HasPrefix(failure.Text, nothingChanged) {
		t.Errorf("code %q: %s", failure.Code, failure.Text)
	}
	if n := strings.Count(failure.Text, "\n") + 1; n > maxErrorLines {
		t.Errorf("the text has %d lines", n)
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(poem), poemDiff)
	f.Add([]byte(poem), "*** Begin Patch\n*** Update File: x\n@@ func two\n-\tdelta()\n+\td()\n*** End Patch\n")
	f.Add([]byte(""), "@@\n+x\n@@\n+y\n")
	f.Add([]byte("a\r\nb\r\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n")
	f.Add([]byte("a\nb\nc\nd\n"), "@@\n a\n ...\n d\n+e\n")
	f.Add([]byte("x"), "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -99999999999999999999,5 +1 @@\n-x\n+y\n")
	f.Add([]byte(poem), strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(poemDiff))
	f.Add([]byte("if a < b {\n}\n"), "@@\n-if a &lt; b {\n+if a &gt; b {\n }\n")
	f.Fuzz(func(t *testing.T, src []byte, diff string) { checkAny(t, src, diff) })
}

func FuzzSplit(f *testing.F) {
	f.Add("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n")
	f.Add("*** Begin Patch\n*** Add File: n\n+a\n*** Delete File: d\n*** Update File: u\n*** Move to: v\n@@\n-a\n+b\n*** End of File\n*** End Patch")
	f.Add("cat <<'EOF' | patch\n--- \"a/\\303\\274\"\t2020\n+++ b/x\n@@@ -1 -1 +1 @@@\nEOF\n")
	f.Fuzz(func(t *testing.T, diff string) {
		files, err := Split(diff)
		if err == nil && len(files) == 0 {
			t.Error("no file and no error")
		}
		for _, file := range files {
			if _, err := file.Apply(nil); err != nil {
				if _, ok := errors.AsType[*Error](err); !ok {
					t.Errorf("an error without a code: %v", err)
				}
			}
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(poem), "\tbeta()\n", "\tbest()\n", 1, false)
	f.Add([]byte("a a a"), "a", "b", 2, true)
	f.Add([]byte("a\r\nb"), "a\nb", "c", 0, false)
	f.Fuzz(func(t *testing.T, src []byte, old, new string, expect int, all bool) {
		result, err := Edit(src, old, new, expect, all)
		if err == nil && bytes.Equal(result.Text, src) {
			t.Error("no error and no change")
		}
	})
}

func FuzzServeJSONL(f *testing.F) {
	f.Add(`{"id":1,"path":"x","source":"a\n","diff":"@@\n-a\n+b\n"}`)
	f.Add("{}\n[]\nnull\n{\"id\":")
	f.Fuzz(func(t *testing.T, input string) {
		var out bytes.Buffer
		if err := ServeJSONL(strings.NewReader(input), &out); err != nil {
			return
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answer %q is no JSON", line)
			}
		}
	})
}
