package patch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A rule of the package by example: what becomes of src, or the code with
// which the diff is refused.
type example struct {
	src, diff string
	want      string
	code      Code
}

func checkExamples(t *testing.T, examples map[string]example) {
	t.Helper()
	for name, x := range examples {
		t.Run(name, func(t *testing.T) {
			if x.code != "" {
				expectCode(t, []byte(x.src), x.diff, x.code)
				return
			}
			expectText(t, x.src, x.diff, x.want)
		})
	}
}

// numberedFile is n lines "line 1" and so on, with some of them replaced.
func numberedFile(n int, other map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		text, ok := other[i]
		if !ok {
			text = fmt.Sprintf("line %d of the file", i)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func TestHeadersAreToldFromChanges(t *testing.T) {
	sql := "select 1\n-- old/comment.sql\nselect 2\nselect 3\n-- last/one.sql\n"
	checkExamples(t, map[string]example{
		"a removed comment looks like a header": {src: sql, diff: "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n select 1\n--- old/comment.sql\n+++ new/comment.sql\n select 2\n",
			want: strings.Replace(sql, "-- old/comment.sql", "++ new/comment.sql", 1)},
		"prose in a removed comment":  {src: "-- a b c\nx\n", diff: "@@\n--- a b c\n+++ d e f\n x\n", want: "++ d e f\nx\n"},
		"text behind a complete hunk": {src: "a\nb\n", diff: "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\nThis changes b to c.\n", want: "a\nc\n"},
		"a fence in a Markdown file":  {src: "# x\n```\ncode\n```\nend\n", diff: "@@ -2,3 +2,3 @@\n ```\n-code\n+more\n ```\n", want: "# x\n```\nmore\n```\nend\n"},
		"a fence around a fence":      {src: "# x\n```\ncode\n```\nend\n", diff: "```diff\n@@ -2,3 +2,3 @@\n ```\n-code\n+more\n ```\n```\n", want: "# x\n```\nmore\n```\nend\n"},
	})
}

// Rule 8: several places at the level used.
func TestSeveralPlaces(t *testing.T) {
	twice := strings.ReplaceAll(numberedFile(200, map[int]string{20: "func near() {", 25: "\tsame", 120: "func far() {", 125: "\tsame"}), "line ", "\tline ")
	at := func(n int) string {
		lines := strings.SplitAfter(twice, "\n")
		lines[n-1] = "\tother\n"
		return strings.Join(lines, "")
	}
	nested := func(n int) string { // n lines that the file has once, and the right one
		return "@@ " + strings.Join(strings.SplitAfter(twice, "\n")[30:30+n], "@@ ") + "@@ func far() {\n"
	}
	checkExamples(t, map[string]example{
		"the exact line":            {src: twice, diff: "@@ -125,1 +125,1 @@\n-\tsame\n+\tother\n", want: at(125)},
		"near one, far from others": {src: twice, diff: "@@ -120,1 +120,1 @@\n-\tsame\n+\tother\n", want: at(125)},
		"not near enough":           {src: twice, diff: "@@ -140,1 +140,1 @@\n-\tsame\n+\tother\n", code: Ambiguous},
		"between the two":           {src: twice, diff: "@@ -75,1 +75,1 @@\n-\tsame\n+\tother\n", code: Ambiguous},
		"a unique heading":          {src: twice, diff: "@@ func far() {\n-\tsame\n+\tother\n", want: at(125)},
		"a heading, no numbers":     {src: twice, diff: "@@ -XXX,X +XXX,X @@ func far() {\n-\tsame\n+\tother\n", want: at(125)},
		"a heading behind dots":     {src: twice, diff: "@@ ... @@ func far() {\n-\tsame\n+\tother\n", want: at(125)},
		"more headings than blocks": {src: twice, diff: nested(maxHeadings) + "-\tsame\n+\tother\n", code: Ambiguous},
		"nested headings":           {src: twice, diff: nested(2) + "-\tsame\n+\tother\n", want: at(125)},
		"an unknown heading":        {src: twice, diff: "@@ func farther() {\n-\tsame\n+\tother\n", code: Ambiguous},
		"heading against number":    {src: twice, diff: "@@ -25,1 +25,1 @@ func far() {\n-\tsame\n+\tother\n", code: Ambiguous},
		"in front of the heading":   {src: "func f() {\n\tone()\n}\n\nfunc g() {\n\tdo()\n}\n", diff: "@@ func g() {\n-\tone()\n+\ttwo()\n", code: Ambiguous},
		"behind another heading":    {src: "func f() {\n\tone()\n}\n\nfunc g() {\n\tdo()\n}\n", diff: "@@ func f() {\n-\tdo()\n+\tdid()\n", code: Ambiguous},
		"no hint":                   {src: twice, diff: "@@\n-\tsame\n+\tother\n", code: Ambiguous},
		"the same text either way":  {src: "a\nx\nx\nb\n", diff: "@@\n-x\n", want: "a\nx\nb\n"},
		"the end of the file":       {src: "x\ny\nx\n", diff: "*** Begin Patch\n*** Update File: f\n@@\n-x\n+z\n*** End of File\n*** End Patch\n", want: "x\ny\nz\n"},
		"another hunk shows the drift": {src: twice,
			diff: "@@ -43,1 +43,1 @@\n-\tline 50 of the file\n+\tfifty\n@@ -118,1 +118,1 @@\n-\tsame\n+\tother\n",
			want: strings.Replace(at(125), "line 50 of the file", "fifty", 1)},
		"other hunks show the numbers are invented": {src: twice,
			diff: "@@ -43,1 +43,1 @@\n-\tline 50 of the file\n+\tfifty\n@@ -60,1 +60,1 @@\n-\tline 61 of the file\n+\tsixty\n@@ -125,1 +125,1 @@\n-\tsame\n+\tother\n", code: Ambiguous},
	})
}

// Rule 9: one map of the indentation for the whole hunk.
func TestIndentation(t *testing.T) {
	tabs := "func f() {\n\tif x {\n\t\tone()\n\t}\n}\n"
	spaces := strings.ReplaceAll(tabs, "\t", "    ")
	checkExamples(t, map[string]example{
		"spaces for tabs":        {src: tabs, diff: "@@\n     if x {\n-        one()\n+        two()\n+        if y {\n+            three()\n+        }\n     }\n", want: "func f() {\n\tif x {\n\t\ttwo()\n\t\tif y {\n\t\t\tthree()\n\t\t}\n\t}\n}\n"},
		"tabs for spaces":        {src: spaces, diff: "@@\n \tif x {\n-\t\tone()\n+\t\ttwo()\n \t}\n", want: strings.Replace(spaces, "one", "two", 1)},
		"moved to the margin":    {src: tabs, diff: "@@\n if x {\n-\tone()\n+\ttwo()\n }\n", want: strings.Replace(tabs, "one", "two", 1)},
		"moved in":               {src: tabs, diff: "@@\n \t\tif x {\n-\t\t\tone()\n+\t\t\ttwo()\n \t\t}\n", want: strings.Replace(tabs, "one", "two", 1)},
		"white space alone":      {src: tabs, diff: "@@\n     if x {\n-        one()\n+        \n     }\n", want: strings.Replace(tabs, "one()", "", 1)},
		"already the file's":     {src: tabs, diff: "@@\n     if x {\n-        one()\n+\t\ttwo()\n     }\n", want: strings.Replace(tabs, "one", "two", 1)},
		"each line another way":  {src: tabs, diff: "@@\n if x {\n-      one()\n+      two()\n \t\t}\n", code: NoMatch},
		"cannot follow the map":  {src: tabs, diff: "@@\n \t\tif x {\n-\t\t\tone()\n+two()\n \t\t}\n", code: NoMatch},
		"nothing shows the kind": {src: strings.Repeat(tabs, 3) + "last\n", diff: "@@\n+func g() {\n+    new()\n+}\n last\n", code: NoMatch},
	})
}

// Rules 6, 7, 10 and 11: what level 3 forgives, and what it does not.
func TestAlignment(t *testing.T) {
	src := numberedFile(40, map[int]string{15: "\tresult, err := compute(input)", 16: "\tif failed(err) {", 17: "\t\treport(err)", 18: "\t}", 19: "\tpublish(result)"})
	replaced := strings.Replace(src, "publish(result)", "deliver(result)", 1)
	inserted := strings.Replace(src, "\tpublish(result)\n", "\tcheck(result)\n\tpublish(result)\n", 1)
	checkExamples(t, map[string]example{
		"a slip of the pen":      {src: src, diff: "@@\n \tresult, err := compute(inptu)\n \tif failed(err) {\n \t\treport(err)\n \t}\n-\tpublish(result)\n+\tdeliver(result)\n", want: replaced},
		"too many slips":         {src: src, diff: "@@\n \tresult, err := compute(input)\n \tif broken(errs) {\n \t\treport(err)\n \t}\n-\tpublish(result)\n+\tdeliver(result)\n line 20 of the file\n", code: NoMatch},
		"a slip in a removal":    {src: src, diff: "@@\n \tif failed(err) {\n \t\treport(err)\n \t}\n-\tpublishh(result)\n+\tdeliver(result)\n line 20 of the file\n", code: NoMatch},
		"a line left out":        {src: src, diff: "@@\n \tresult, err := compute(input)\n \tif failed(err) {\n \t}\n-\tpublish(result)\n+\tdeliver(result)\n line 20 of the file\n", want: replaced},
		"left out at insertion":  {src: src, diff: "@@\n \tresult, err := compute(input)\n \tif failed(err) {\n \t\treport(err)\n+\tcheck(result)\n \tpublish(result)\n line 20 of the file\n", code: NoMatch},
		"invented at the edge":   {src: src, diff: "@@\n \t// compute the result\n \tif failed(err) {\n \t\treport(err)\n \t}\n+\tcheck(result)\n \tpublish(result)\n", want: inserted},
		"invented beside change": {src: src, diff: "@@\n \tif failed(err) {\n \t\treport(err)\n \t}\n \t// now check\n+\tcheck(result)\n \tpublish(result)\n", code: ForgottenPlus},
		"an elision":             {src: src, diff: "@@\n line 3 of the file\n line 4 of the file\n // ...\n \t\treport(err)\n \t}\n+\tcheck(result)\n \tpublish(result)\n", want: inserted},
		"an elision in removals": {src: src, diff: "@@\n \tresult, err := compute(input)\n-\tif failed(err) {\n ...\n-\t}\n \tpublish(result)\n", code: NoMatch},
		"too little to go by":    {src: src, diff: "@@\n \tif faild(err) {\n \t\treport(err)\n \t}\n+\tcheck(result)\n", code: NoMatch},
		"a gap in the removed":   {src: src, diff: "@@\n-\tif failed(err) {\n-\t}\n", code: GapInRemoved},
		"two places as good": {src: numberedFile(9, nil) + "alpha beta gamma\ndelta epsilon\nzeta eta theta\nend one\n" + "alpha beta gamma\ndelta epsilon\nzeta eta theta\nend two\n",
			diff: "@@\n alpha beta gama\n delta epsilon\n-zeta eta theta\n+new\n", code: NoMatch},
	})
}

// The file has a line that looks like an elision: then it is that line.
func TestAnElisionThatTheFileHas(t *testing.T) {
	src := "class A:\n    ...\n\nclass B:\n    pass\n"
	expectText(t, src, "@@\n class A:\n     ...\n \n-class B:\n+class C:\n", strings.Replace(src, "class B", "class C", 1))
	expectText(t, src, "@@\n class A:\n-    ...\n+    pass\n", strings.Replace(src, "    ...", "    pass", 1))
}

// Rule 12, for additions at the edge of a hunk as well.
func TestAlreadyApplied(t *testing.T) {
	src := "one\ntwo\nthree\n"
	checkExamples(t, map[string]example{
		"in the middle": {src: "one\n1.5\ntwo\nthree\n", diff: "@@\n one\n+1.5\n two\n", code: AlreadyApplied},
		"at the end":    {src: src + "four\n", diff: "@@\n two\n three\n+four\n", code: AlreadyApplied},
		"at the start":  {src: "zero\n" + src, diff: "@@\n+zero\n one\n two\n", code: AlreadyApplied},
		"one old line":  {src: "zero\nhalf\n" + src, diff: "@@\n+zero\n+half\n one\n", code: AlreadyApplied},
		"a removal":     {src: "one\nthree\n", diff: "@@\n one\n-two\n three\n", code: AlreadyApplied},
		"one of two":    {src: "1\ntwo\nthree\n", diff: "@@\n-one\n+1\n two\n@@\n-three\n+3\n", code: AlreadyApplied},
	})
}

// Rule 14.
func TestHunksReferToTheOriginal(t *testing.T) {
	src := numberedFile(30, nil)
	checkExamples(t, map[string]example{
		"in any order": {src: src, diff: "@@ -20,1 +20,1 @@\n-line 20 of the file\n+twenty\n@@ -5,1 +5,1 @@\n-line 5 of the file\n+five\n",
			want: strings.NewReplacer("line 20 of the file", "twenty", "line 5 of the file", "five").Replace(src)},
		"shared context": {src: src, diff: "@@\n line 4 of the file\n-line 5 of the file\n line 6 of the file\n@@\n line 6 of the file\n-line 7 of the file\n line 8 of the file\n",
			want: strings.NewReplacer("line 5 of the file\n", "", "line 7 of the file\n", "").Replace(src)},
		"the same insertion point": {src: src, diff: "@@\n line 4 of the file\n+a\n line 5 of the file\n@@\n line 4 of the file\n+b\n line 5 of the file\n", code: Overlap},
		"the same change in two functions": {src: "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n", diff: "@@ func a() {\n-\tx()\n+\ty()\n@@ func b() {\n-\tx()\n+\ty()\n",
			want: "func a() {\n\ty()\n}\n\nfunc b() {\n\ty()\n}\n"},
		"word for word twice": {src: src, diff: strings.Repeat("@@ -5,1 +5,1 @@\n-line 5 of the file\n+five\n", 2), want: strings.Replace(src, "line 5 of the file", "five", 1)},
	})
}

// Rule 15: line endings and the end of the file.
func TestLineEndings(t *testing.T) {
	checkExamples(t, map[string]example{
		"CRLF":                       {src: "a\r\nb\r\n", diff: "@@\n a\n-b\n+c\n+d\n", want: "a\r\nc\r\nd\r\n"},
		"mixed, before the first":    {src: "a\nb\r\nc\r\n", diff: "@@ -1,2 +1,3 @@\n+x\n a\n b\n", want: "x\na\nb\r\nc\r\n"},
		"mixed, beside LF":           {src: "a\r\nb\nc\n", diff: "@@\n b\n+x\n c\n", want: "a\r\nb\nx\nc\n"},
		"mixed, beside CRLF":         {src: "a\r\nb\r\nc\n", diff: "@@\n a\n+x\n b\n", want: "a\r\nx\r\nb\r\nc\n"},
		"no newline stays":           {src: "a\nb", diff: "@@\n a\n-b\n+c\n", want: "a\nc"},
		"no newline, appended":       {src: "a\nb", diff: "@@\n a\n b\n+c\n", want: "a\nb\nc"},
		"marker removes the newline": {src: "a\nb\n", diff: "@@\n a\n-b\n+c\n\\ No newline at end of file\n", want: "a\nc"},
		"marker adds the newline":    {src: "a\nb", diff: "@@\n a\n-b\n\\ No newline at end of file\n+c\n", want: "a\nc\n"},
		"marker on both":             {src: "a\nb", diff: "@@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", want: "a\nc"},
		"marker elsewhere":           {src: "a\nb\nc\n", diff: "@@\n-a\n+x\n\\ No newline at end of file\n b\n", want: "x\nb\nc\n"},
		"last line removed":          {src: "a\nb\n", diff: "@@\n a\n-b\n", want: "a\n"},
		"an empty file":              {src: "", diff: "@@\n+a\n+b\n", want: "a\nb\n"},
		"a carriage return inside":   {src: "a\rb\nc\n", diff: "@@\n a\rb\n-c\n+d\n", want: "a\rb\nd\n"},
	})
}

// Rule 16: files that appear, vanish and move.
func TestWholeFiles(t *testing.T) {
	result, err := Apply(nil, "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n")
	if err != nil || string(result.Text) != "one\ntwo\n" || !result.Created {
		t.Errorf("created %q, %v, %v", result.Text, result.Created, err)
	}
	result, err = Apply(nil, "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n+two\n*** End Patch\n")
	if err != nil || string(result.Text) != "one\n\ntwo\n" || !result.Created {
		t.Errorf("created %q, %v, %v", result.Text, result.Created, err)
	}
	result, err = Apply(nil, "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n")
	if err != nil || result.Text == nil || len(result.Text) != 0 || !result.Created {
		t.Errorf("an empty file: %+v, %v", result, err)
	}
	result = apply(t, "one\ntwo\n", "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n")
	if !result.Deleted || result.Text != nil {
		t.Errorf("deletion: %+v", result)
	}
	result = apply(t, "one\ntwo\n", "*** Begin Patch\n*** Delete File: x\n*** End Patch\n")
	if !result.Deleted {
		t.Errorf("deletion by envelope: %+v", result)
	}
	result = apply(t, "one\n", "diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n")
	if result.NewPath != "new name" || string(result.Text) != "one\n" {
		t.Errorf("rename: %+v", result)
	}
	result = apply(t, "one\n", "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-one\n+two\n*** End Patch\n")
	if result.NewPath != "b" || string(result.Text) != "two\n" {
		t.Errorf("rename with a change: %+v", result)
	}
	expectCode(t, []byte("one\ntwo\n"), "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", NoMatch)
	expectCode(t, []byte("one\n"), "diff --git a/x b/x\ndeleted file mode 100644\n", NoChange)
	expectCode(t, nil, "*** Begin Patch\n*** Add File: new.txt\n+one\n", Truncated)
	expectCode(t, nil, "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,5 @@\n+one\n+tw", Truncated)
}

func TestSplitTakesFilesApart(t *testing.T) {
	cases := map[string]struct {
		diff string
		want []string
	}{
		"git":        {"diff --git a/x/one.go b/x/one.go\nindex 1..2 100644\n--- a/x/one.go\n+++ b/x/one.go\n@@\n-a\n+b\ndiff --git a/two.go b/two.go\n--- a/two.go\n+++ b/two.go\n@@\n-a\n+b\n", []string{"x/one.go", "two.go"}},
		"plain":      {"--- one.txt\n+++ one.txt\n@@\n-a\n+b\n--- two.txt\n+++ two.txt\n@@\n-a\n+b\n", []string{"one.txt", "two.txt"}},
		"only +++":   {"+++ b/one.go\n@@\n-a\n+b\n+++ b/two.go\n@@\n-a\n+b\n", []string{"one.go", "two.go"}},
		"envelope":   {"*** Begin Patch\n*** Update File: one\n@@\n-a\n+b\n*** Add File: two\n+x\n*** Delete File: three\n*** End Patch", []string{"one", "two", "three"}},
		"same twice": {"--- a/one\n+++ b/one\n@@\n-a\n+b\n--- a/one\n+++ b/one\n@@\n-c\n+d\n", []string{"one"}},
		"no prefix":  {"--- a/one\n+++ a/one\n@@\n-a\n+b\n", []string{"a/one"}},
		"mnemonic":   {"--- i/one\n+++ w/one\n@@\n-a\n+b\n", []string{"one"}},
		"quoted":     {"--- \"a/\\303\\274.go\"\n+++ \"b/\\303\\274.go\"\n@@\n-a\n+b\n", []string{"ü.go"}},
		"fenced":     {"First:\n```diff\n--- a/one\n+++ b/one\n@@\n-a\n+b\n```\nthen:\n```diff\n--- a/two\n+++ b/two\n@@\n-a\n+b\n```\n", []string{"one", "two"}},
		"with space": {"diff --git a/my file b/my file\n--- a/my file\n+++ b/my file\n@@\n-a\n+b\n", []string{"my file"}},
		"created":    {"--- /dev/null\n+++ b/new\n@@\n+a\n", []string{"new"}},
		"deleted":    {"--- a/old\n+++ /dev/null\n@@\n-a\n", []string{"old"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := Split(c.diff)
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, f := range files {
				paths = append(paths, f.Path())
				if len(f.hunks) == 0 && !f.whole {
					t.Errorf("%s has no hunk", f.Path())
				}
			}
			if !slices.Equal(paths, c.want) {
				t.Errorf("got %q, want %q", paths, c.want)
			}
		})
	}
}

// Threat 27: headers that mean harm are only ever reported, and numbers without
// measure do none.
func TestHostileHeaders(t *testing.T) {
	files, err := Split("--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -99999999999999999999999,7 +1,88888888888888 @@\n-root\n+toor\n")
	if err != nil || files[0].Path() != "../../etc/passwd" {
		t.Fatalf("%v, %v", files, err)
	}
	if result, err := files[0].Apply([]byte("root\n")); err != nil || string(result.Text) != "toor\n" {
		t.Errorf("%q, %v", result.Text, err)
	}
	expectCode(t, []byte("x\n"), "@@\n-"+strings.Repeat("y", MaxDiff-10)+"\n", NoMatch)
	expectCode(t, make([]byte, MaxFile+1), poemDiff, TooLarge)
}

// Among very many places the stated line still decides, and beyond all measure
// nothing does.
func TestVeryManyPlaces(t *testing.T) {
	src := strings.Repeat("same\n", 3000)
	result := apply(t, strings.Repeat("same\nother\n", 1500), "@@ -2001,1 +2001,1 @@\n-same\n+new\n")
	if result.Hunks[0].Line != 2001 {
		t.Errorf("placed at line %d", result.Hunks[0].Line)
	}
	expectCode(t, []byte(strings.Repeat(src, 3)), "@@ -2001,1 +2001,1 @@\n-same\n+new\n", Ambiguous)
}

// Very many hunks in a very long file are refused before they are looked for.
func TestTooManyHunks(t *testing.T) {
	var diff strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&diff, "@@\n-line %d\n+x\n", i)
	}
	src := []byte(strings.Repeat("a line\n", 20_000))
	if failure := expectCode(t, src, diff.String(), TooLarge); !strings.Contains(failure.Text, "10000 hunks") {
		t.Errorf("says %s", failure.Text)
	}
}

// Hunks are compared with each other, so that their number is bounded too.
func TestTooManyHunksForASmallFile(t *testing.T) {
	var diff strings.Builder
	for i := range maxHunks + 1 {
		fmt.Fprintf(&diff, "@@\n-line\n+%d\n", i)
	}
	expectCode(t, []byte("line\n"), diff.String(), TooLarge)
}

// Many hunks that nearly fit are aligned until their steps together are too many.
func TestAlignmentsTogetherAreBounded(t *testing.T) {
	src := "first line\nsecond line\nthird line\nfourth line\n"
	files, err := Split("@@\n first lime\n second line\n-third line\n+third\n fourth line\n")
	if err != nil {
		t.Fatal(err)
	}
	s := newSource([]byte(src))
	if f := s.search(files[0].hunks[0]); f.failure != "" || s.aligned == 0 {
		t.Fatalf("refused as %q after %d steps", f.failure, s.aligned)
	}
	s.aligned = maxAlignments + 1
	if f := s.search(files[0].hunks[0]); f.failure != TooLarge {
		t.Errorf("refused as %q", f.failure)
	}
}

// Rule 19: what would take too long to align is refused, in words.
func TestTooLargeToAlign(t *testing.T) {
	var src, diff strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&src, "line %d\n", i)
	}
	diff.WriteString("@@\n")
	for i := range 1000 {
		fmt.Fprintf(&diff, " line %d\n", i*2)
	}
	diff.WriteString("+x\n line 1\n")
	expectCode(t, []byte(src.String()), diff.String(), TooLarge)
}

// Rule 18: a diff that was escaped as a whole.
func TestEscapedDiffs(t *testing.T) {
	src := "if a < b && c {\n\tsay(\"x\")\n}\n\nfunc f() {\n\trun()\n}\n"
	literal := strings.Replace(src, "\trun()\n", "\trun(\"&lt;\")\n", 1)
	checkExamples(t, map[string]example{
		"quotes of another kind":   {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(\"it&#39;s\")\n", want: strings.Replace(src, "run()", `run("it&#39;s")`, 1)},
		"the file has the escape":  {src: literal, diff: "@@\n func f() {\n+\tif a &lt; b {\n+\t}\n \n", code: NoMatch},
		"context shows it":         {src: src, diff: "@@\n if a &lt; b &amp;&amp; c {\n-\tsay(&#34;x&#34;)\n+\tsay(&#34;y&#34;)\n", want: strings.Replace(src, `"x"`, `"y"`, 1)},
		"only added lines, quotes": {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(&#34;now&#34;)\n", want: strings.Replace(src, "run()", `run("now")`, 1)},
		"only one added line":      {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(1 &lt; 2)\n", code: NoMatch},
		"only added lines, two":    {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(1 &lt; 2)\n+\trun(2 &gt; 1)\n", want: strings.Replace(src, "run()", "run(1 < 2)\n\trun(2 > 1)", 1)},
		"one quote in two ways":    {src: src, diff: "@@\n func f() {\n+\t// &#39; and &apos; are the same\n \trun()\n", want: strings.Replace(src, "\trun()", "\t// &#39; and &apos; are the same\n\trun()", 1)},
		"a literal or an escape":   {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(\"&lt;\")\n", code: NoMatch},
		"the file writes escapes":  {src: literal, diff: "@@\n func f() {\n-\trun(\"&lt;\")\n+\trun(\"&gt;\")\n", want: strings.Replace(literal, "&lt;", "&gt;", 1)},
		"a bare bracket beside":    {src: src, diff: "@@\n func f() {\n-\trun()\n+\trun(\"<b>&amp;</b>\")\n", want: strings.Replace(src, "run()", `run("<b>&amp;</b>")`, 1)},
		"JSON, with the marker":    {src: "say(\"x\")", diff: "@@\n-say(\\\"x\\\")\n\\\\ No newline at end of file\n+say(\\\"y\\\")\n\\\\ No newline at end of file\n", want: "say(\"y\")"},
		"JSON, line by line":       {src: src, diff: "@@\n if a < b && c {\n-\\tsay(\\\"x\\\")\n+\\tsay(\\\"y\\\\n\\\")\n", want: strings.Replace(src, `"x"`, `"y\n"`, 1)},
	})
}
