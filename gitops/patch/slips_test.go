package patch

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	cases := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"same", "same", 0}, {"color", "colour", 1}, {"teh", "the", 1}, {"receive", "recieve", 1},
		{"abc", "axbyc", 2}, {"kitten", "sitting", 3}, {"größe", "grösse", 2}, {"größe", "große", 1}, {"", "ab", 2}, {"abcd", "", 3},
	}
	for _, c := range cases {
		if got := distance(c.a, c.b, 2); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// The search agrees with the table that textbooks fill, up to the limit.
func TestDistanceAgreesWithTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringOfN(rapid.SampledFrom([]rune("abü")), 0, 8, -1).Draw(t, "a")
		b := rapid.StringOfN(rapid.SampledFrom([]rune("abü")), 0, 8, -1).Draw(t, "b")
		if got, want := distance(a, b, 2), min(table([]rune(a), []rune(b)), 3); got != want {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

// table is the optimal string alignment distance.
func table(a, b []rune) int {
	cell := make([][]int, len(a)+1)
	for i := range cell {
		cell[i] = make([]int, len(b)+1)
		cell[i][0] = i
	}
	for j := range cell[0] {
		cell[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			cell[i][j] = min(cell[i-1][j]+1, cell[i][j-1]+1, cell[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cell[i][j] = min(cell[i][j], cell[i-2][j-2]+1)
			}
		}
	}
	return cell[len(a)][len(b)]
}

// What the quick test excludes is never within the limit.
func TestMayResembleExcludesNothingSimilar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.String().Draw(t, "a")
		b := rapid.String().Draw(t, "b")
		if distance(a, b, 2) <= 2 && !mayResemble(a, b, lettersOf(a), lettersOf(b), 2) {
			t.Fatalf("%q and %q are similar and were excluded", a, b)
		}
	})
}
