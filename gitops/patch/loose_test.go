package patch

import (
	"strings"
	"testing"
)

// A hunk that has lost its header is applied with the others or not at all:
// half a patch is worse than none.
func TestNoHunkIsTakenForProse(t *testing.T) {
	src := numberedFile(40, nil)
	first := " line 3 of the file\n-line 4 of the file\n+FOUR\n line 5 of the file\n"
	second := " line 20 of the file\n-line 21 of the file\n+TWENTY-ONE\n line 22 of the file\n"
	both := strings.NewReplacer("line 4 of the file\n", "FOUR\n", "line 21 of the file\n", "TWENTY-ONE\n").Replace(src)
	one := strings.Replace(src, "line 21 of the file\n", "TWENTY-ONE\n", 1)
	const named = "--- a/list.txt\n+++ b/list.txt\n"
	checkExamples(t, map[string]example{
		"the first without @@":          {src: src, diff: first + "@@\n" + second, want: both},
		"the first without, in a fence": {src: src, diff: "So:\n\n```diff\n" + first + "@@\n" + second + "```\n", want: both},
		"two fences, no @@":             {src: src, diff: "First:\n```diff\n" + first + "```\nSecond:\n```diff\n" + second + "```\n", want: both},
		"two fences, one @@":            {src: src, diff: "First:\n```go\n" + first + "```\nSecond:\n```diff\n@@\n" + second + "```\n", want: both},
		"only the second is named":      {src: src, diff: "```diff\n@@\n" + first + "```\n\n```diff\n" + named + "@@\n" + second + "```\n", want: both},
		"before the envelope":           {src: src, diff: first + "*** Begin Patch\n*** Update File: list.txt\n@@\n" + second + "*** End Patch\n", want: both},
		"a header of another kind":      {src: src, diff: "=== -3,3 +3,3 ===\n" + first + "@@\n" + second, code: NoMatch},
		"a damaged header":              {src: src, diff: named + "@@\n" + second + "```\n>@@ -3,3 +3,3 @@\n" + first, code: NoMatch},
		"the end in the middle":         {src: src, diff: "*** Begin Patch\n*** Update File: list.txt\n@@\n" + first + "*** End Patch\n" + second, code: NoMatch},
		"added behind the end":          {src: src, diff: "*** Begin Patch\n*** Update File: list.txt\n@@\n" + second + "*** End Patch\n+FORTY-ONE\n", code: NoMatch},
		"a list of bullets":             {src: src, diff: "+1 to that. It\n- changes 21\n- keeps the rest\n+ adds nothing\n\n" + named + "@@\n" + second, want: one},
		"the name again, within":        {src: src, diff: named + "@@\n line 20 of the file\n+++ b/list.txt\n-line 21 of the file\n+TWENTY-ONE\n", want: one},
		"the name behind the header":    {src: src, diff: "@@ -20,3 +20,3 @@\n" + named + second, want: one},
		"converted to CRLF twice":       {src: src, diff: strings.ReplaceAll("@@\n"+second, "\n", "\r\r\n"), want: one},
		"a marker in the middle":        {src: src, diff: "@@\n line 20 of the file\n-line 21 of the file\n\\ No newline at end of file\n+TWENTY-ONE\n line 22 of the file\n", want: one},
	})
}

// The content of a new file may come without operators, and is not lost.
func TestANewFileWithoutOperators(t *testing.T) {
	result, err := Apply(nil, "*** Begin Patch\n*** Add File: n\na\n\n\tb\n*** End Patch\n")
	if err != nil || string(result.Text) != "a\n\n\tb\n" {
		t.Fatalf("%q, %v", result.Text, err)
	}
}

// A minus that a word processor made a dash of is a minus.
func TestTypedMinus(t *testing.T) {
	src := "a1 long line\nb2 second line\nc3 third line\nd4 fourth line\ne5 fifth line\n"
	want := strings.Replace(src, "second", "changed", 1)
	checkExamples(t, map[string]example{
		"a minus sign":             {src: src, diff: "@@\n a1 long line\n\u2212b2 second line\n+b2 changed line\n c3 third line\n d4 fourth line\n", want: want},
		"a minus and a slip":       {src: src, diff: "@@\n a1 lung line\n\u2212b2 second line\n c3 third line\n+c3 and a half\n d4 fourth line\n e5 fifth line\n", code: NoMatch},
		"a dash that the file has": {src: "a1\n\u2013b2\nc3\n", diff: "@@\n a1\n\u2013b2\n-c3\n+C3\n", want: "a1\n\u2013b2\nC3\n"},
		"behind a full hunk":       {src: src, diff: "@@ -1,2 +1,2 @@\n a1 long line\n\u2212b2 second line\n\u2212c3 third line\n+b2 changed line\n", want: "a1 long line\nb2 changed line\nd4 fourth line\ne5 fifth line\n"},
	})
}

// What is in the file already is not put there again, though the diff is
// indented otherwise or its context is a little wrong.
func TestNothingIsAppliedTwice(t *testing.T) {
	src := "func (r *Regs) BP() uint64 {\n\treturn r.rbp\n}\n\n// TLS returns the value of the register\nfunc (r *Regs) TLS() uint64 {\n\treturn r.tls\n}\n"
	block := "+func (r *Regs) LR() uint64 {\n+\treturn 0\n+}\n+\n"
	diff := "@@\n \treturn r.rbp\n }\n \n" + block + " // TLS returns the value of the register\n func (r *Regs) TLS() uint64 {\n \treturn r.tls\n"
	expectText(t, src, diff, strings.Replace(src, "// TLS", "func (r *Regs) LR() uint64 {\n\treturn 0\n}\n\n// TLS", 1))
	done := strings.Replace(src, "// TLS", "func (r *Regs) LR() uint64 {\n\treturn 0\n}\n\n// TLS", 1)
	for name, slip := range map[string]*strings.Replacer{
		"as it was":             strings.NewReplacer(),
		"tabs as spaces":        strings.NewReplacer("\t", "        "),
		"moved in":              strings.NewReplacer("\n+", "\n+\t", "\n ", "\n \t"),
		"a space more":          strings.NewReplacer("the value", "the  value"),
		"a context line is off": strings.NewReplacer("the value", "the values"),
		"a context line less":   strings.NewReplacer(" func (r *Regs) TLS() uint64 {\n", ""),
	} {
		t.Run(name, func(t *testing.T) {
			expectCode(t, []byte(done), slip.Replace(diff), AlreadyApplied)
		})
	}
}
