package patch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// benchCases are right diffs of real files, the same for both benchmarks.
func benchCases(b *testing.B) []testCase {
	b.Helper()
	pairs, _ := corpus()
	rng := rand.New(rand.NewPCG(3, 4))
	var cases []testCase
	for tries := 0; len(cases) < 50 && tries < 5000; tries++ {
		if tc, ok := makeCase(rng, pairs[rng.IntN(len(pairs))], classes[0], headerStyles[0]); ok {
			cases = append(cases, tc)
		}
	}
	return cases
}

// BenchmarkApply applies right diffs of real files.
func BenchmarkApply(b *testing.B) {
	cases := benchCases(b)
	i := 0
	for b.Loop() {
		tc := cases[i%len(cases)]
		i++
		if _, err := Apply([]byte(tc.src), tc.diff); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGNUPatch applies the same diffs by GNU patch, whose time is mostly
// that of starting a process, as a caller of it would have to.
func BenchmarkGNUPatch(b *testing.B) {
	requireOrSkip(b, gnuPatch() != "", "the comparison with GNU patch, which is not installed")
	cases := benchCases(b)
	dir := b.TempDir()
	source := filepath.Join(dir, "file.go")
	i := 0
	for b.Loop() {
		tc := cases[i%len(cases)]
		i++
		if err := os.WriteFile(source, []byte(tc.src), 0o600); err != nil {
			b.Fatal(err)
		}
		command := exec.Command(gnuPatch(), "--quiet", "--output=-", source)
		command.Stdin = strings.NewReader(tc.diff)
		if out, err := command.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}

// BenchmarkLargeHunk aligns a hunk of 250 lines, one of them misremembered, in
// a file of 3,000.
func BenchmarkLargeHunk(b *testing.B) {
	src, diff := largeHunk()
	for b.Loop() {
		result, err := Apply([]byte(src), diff)
		if err != nil || result.Hunks[0].Level != 3 {
			b.Fatal(err, levels(result))
		}
	}
}

func largeHunk() (src, diff string) {
	lines := make([]string, 3000)
	for i := range lines {
		lines[i] = fmt.Sprintf("\tcall%d(with, some, arguments, %d)", i%97, i)
	}
	var hunk strings.Builder
	hunk.WriteString("@@\n")
	for i := 1500; i < 1750; i++ {
		switch {
		case i == 1600:
			fmt.Fprintf(&hunk, "-%s\n+\tchanged()\n", lines[i])
		case i == 1700:
			fmt.Fprintf(&hunk, " %s\n", strings.Replace(lines[i], "some", "sme", 1))
		default:
			fmt.Fprintf(&hunk, " %s\n", lines[i])
		}
	}
	return strings.Join(lines, "\n") + "\n", hunk.String()
}

// A hunk as large as models write them still finds its place at level 3.
func TestLargeHunkIsAligned(t *testing.T) {
	src, diff := largeHunk()
	result := apply(t, src, diff)
	if !strings.Contains(string(result.Text), "\tchanged()\n") || result.Hunks[0].Line != 1601 {
		t.Errorf("placed at line %d", result.Hunks[0].Line)
	}
}
