package patch

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkWorst applies what costs most: everything alike, everything nearly
// alike, files and diffs at their limits. None may take more than a few
// seconds, whatever comes of it.
func BenchmarkWorst(b *testing.B) {
	for _, c := range worstCases() {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Apply([]byte(c.src), c.diff)
			}
		})
	}
}

type worstCase struct{ name, src, diff string }

func worstCases() []worstCase {
	repeat := strings.Repeat
	same, blank := repeat("same\n", 2<<20), repeat("\n", 10<<20)
	calls := lines(20_000, "\tcall_%d(with, arguments)\n")
	separate := ""
	for i := 0; i < 20_000; i += 12 {
		separate += fmt.Sprintf("@@ -%d,1 +%d,1 @@\n \tcall_%d(with, arguments)\n-\tcall_%d(with, arguments)\n+\tother_%d()\n", i+1, i+1, i, i+1, i)
	}
	headed := ""
	for i := range 1500 {
		headed += fmt.Sprintf("@@ ctx %d\n-\tcall_%d(with, arguments)\n+x\n", i, i*3)
	}
	reordered, moved := lines(50_000, "\t%06d\n"), "@@\n"+lines(50_000, "-  %06d\n")+lines(40_000, "+  9%05d\n")+" end\n"
	literal := "f(`\n" + repeat("\ta\n", 1_000_000) + "\tonce\n" + repeat("\ta\n", 1_000_000) + "`)\n"
	return []worstCase{
		{"equal lines, one line", same, "@@ -100,3 +100,3 @@\n same\n-same\n+new\n same\n"},
		{"equal lines, a hunk of 1 MiB", same, "@@\n" + repeat(" same\n", 170_000) + "-same\n+x\n"},
		{"equal lines, a slip", same, "@@\n" + repeat(" same\n", 5) + " sbme\n-same\n+x\n"},
		{"blank lines", blank, "@@ -5,3 +5,3 @@\n \n }\n-\n+x\n"},
		{"one long line", repeat("a", 9<<20) + "\nb\n", "@@\n b\n+x\n"},
		{"many hunks", calls, separate},
		{"many hunks, other indentation", calls, strings.ReplaceAll(separate, "\t", "    ")},
		{"many headings", calls + calls, headed},
		{"a slip in each of 990 lines", calls, "@@\n" + strings.ReplaceAll(lines(990, " \tcall_%d(with, arguments)\n"), "ments", "ment") + "-\tcall_990(with, arguments)\n+x\n"},
		{"many runs of changes", repeat("a\nc\n", 40_000), "@@\n" + repeat("-a\n+b\n c\n", 40_000)},
		{"nothing fits", repeat("other\n", 1_000_000), "@@\n" + lines(60_000, " l%d\n") + "-x\n"},
		{"removed lines alone", repeat("a\nb\n", 500_000), "@@\n" + repeat("-a\n-b\n", 150_000) + "-c\n"},
		{"gaps in removed lines", repeat("a\nc\n", 300_000) + "b\n", "@@\n" + repeat("-a\n", 20_000) + "-b\n+x\n"},
		{"JSON-escaped", calls, `"@@\n` + repeat(`-a\n`, 200_000) + `"`},
		{"prose like hunks", same, repeat(" a\n\n", 260_000)},
		{"a long line of escaped quotes", "x" + repeat(`\"`, 4_000_000) + "\n\tb\nc\nd\n", "@@\n c\n+  x\n d\n"},
		{"lines added to a long literal", literal, "@@\n     a\n     once\n" + repeat("+    x\n     a\n", 70_000)},
		{"a long run moved", reordered + "end\n", moved},
		{"hunks at one line", "x\n", lines(maxHunks, "@@\n-x\n+%d\n")},
		{"nested headings", lines(80_000, "%05d\n") + "x\nx\n", lines(80_000, "@@ %05d\n") + "-x\n+y\n"},
		{"lines in another order", lines(500_000, "%d\n"), "@@\n" + lines(60_000, " 2%05d\n 1%05[1]d\n") + "+x\n"},
		{"lines like headers", "x\n", "@@ -1,900000 +1,900000 @@\n" + repeat("--- a/x\n+++ b/x\n", 65_000)},
		{"HTML-escaped", calls, "@@\n" + repeat("-&lt;x&gt;\n", 80_000)},
	}
}

// lines numbers the lines of a format.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
