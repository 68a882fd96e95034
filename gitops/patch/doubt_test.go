package patch

import (
	"strings"
	"testing"
)

// twoTwins has the same lines twice, the first time with a space at an end.
var twoTwins = numberedFile(60, map[int]string{10: "start ", 11: "middle", 12: "end of it", 40: "start", 41: "middle", 42: "end of it"})

// A place that fits is refused when the rest of the diff speaks for another.
func TestDoubts(t *testing.T) {
	change := " start\n-middle\n+MIDDLE\n end of it\n"
	done := strings.Replace(twoTwins, "start \nmiddle", "start\nMIDDLE", 1)
	apart := " line 38 of the file\n line 39 of the file\n" + change
	long := numberedFile(60, map[int]string{
		9: "alpha one", 10: "beta two", 11: "gamma", 12: "delta four", 13: "epsilon five",
		39: "alpha one", 40: "beta two", 41: "GAMMA", 42: "delta four", 43: "epsilon five",
	})
	tight := "@@%s\n alpha one\n beta two\n-gamma\n+GAMMA\n delta four\n epsilon five\n"
	checkExamples(t, map[string]example{
		"strictest, without numbers":       {src: twoTwins, diff: "@@\n" + change, want: strings.Replace(twoTwins, "start\nmiddle", "start\nMIDDLE", 1)},
		"the stated line fits but loosely": {src: twoTwins, diff: "@@ -10,3 +10,3 @@\n" + change, code: Ambiguous},
		"the stated line fits exactly":     {src: twoTwins, diff: "@@ -40,3 +40,3 @@\n" + change, want: strings.Replace(twoTwins, "start\nmiddle", "start\nMIDDLE", 1)},
		"more context settles it":          {src: twoTwins, diff: "@@ -10,3 +10,3 @@\n" + apart, want: strings.Replace(twoTwins, "start\nmiddle", "start\nMIDDLE", 1)},
		"done on the stated line":          {src: done, diff: "@@ -10,3 +10,3 @@\n" + change, code: AlreadyApplied},
		"the same hunk twice, two places":  {src: twoTwins, diff: strings.Repeat("@@\n"+change, 2), code: Ambiguous},
		"the same hunk twice, one place":   {src: twoTwins, diff: strings.Repeat("@@\n"+apart, 2), want: strings.Replace(twoTwins, "start\nmiddle", "start\nMIDDLE", 1)},
		"equal hunks for two places":       {src: twoTwins, diff: "@@ -10,3 +10,3 @@\n" + strings.Replace(change, "start", "start ", 1) + "@@ -40,3 +40,3 @@\n" + change, want: strings.Replace(strings.Replace(twoTwins, "start\nmiddle", "start\nMIDDLE", 1), "start \nmiddle", "start \nMIDDLE", 1)},
		"out of order":                     {src: twoTwins, diff: "@@\n" + change + "@@\n line 19 of the file\n-line 20 of the file\n+twenty\n", code: Ambiguous},
		"a twin is done, no number":        {src: long, diff: strings.Replace(tight, "%s", "", 1), code: AlreadyApplied},
		"a twin is done, the number":       {src: long, diff: strings.Replace(tight, "%s", " -9,5 +9,5 @@", 1), want: strings.Replace(long, "gamma", "GAMMA", 1)},
		"a twin is done, its number":       {src: long, diff: strings.Replace(tight, "%s", " -39,5 +39,5 @@", 1), code: AlreadyApplied},
		"brackets at another depth":        {src: "a {\n\tb {\n\t}\n}\n\nc {\n\td\n\t}\n}\n", diff: "@@\n }\n+x\n \n c {\n", want: "a {\n\tb {\n\t}\n}\nx\n\nc {\n\td\n\t}\n}\n"},
		"brackets alone at another depth":  {src: "a {\n\n\t}\n", diff: "@@\n \n }\n+x\n", code: NoMatch},
	})
}

// The numbers of a header decide less when they cannot all be right.
func TestInventedNumbers(t *testing.T) {
	twice := strings.ReplaceAll(numberedFile(200, map[int]string{25: "same", 125: "same"}), "line ", "\tline ")
	unique := "-\tline 50 of the file\n+\tfifty\n+\tfifty and a half\n"
	checkExamples(t, map[string]example{
		"new numbers that follow": {src: twice, diff: "@@ -50,1 +50,2 @@\n" + unique + "@@ -122,1 +123,1 @@\n-same\n+other\n",
			want: strings.Replace(strings.Replace(twice, "\tline 50 of the file\n", "\tfifty\n\tfifty and a half\n", 1), "124 of the file\nsame", "124 of the file\nother", 1)},
		"new numbers that do not":    {src: twice, diff: "@@ -50,1 +50,2 @@\n" + unique + "@@ -122,1 +122,1 @@\n-same\n+other\n", code: Ambiguous},
		"heading beside the number":  {src: "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n", diff: "@@ -5,1 +5,1 @@ func a() {\n-\tx()\n+\ty()\n", code: Ambiguous},
		"counts that swallow a file": {src: "a\nb\n", diff: "--- a/one\n+++ b/one\n@@ -1,9 +1,9 @@\n a\n-b\n+c\n--- a/one\n+++ b/one\n@@ -1,1 +1,1 @@\n-a\n+A\n", want: "A\nc\n"},
	})
}

// Context that is a little wrong is forgiven, unless the file or the header
// shows that it is no slip.
func TestDoubtfulAlignments(t *testing.T) {
	src := numberedFile(40, map[int]string{20: "same thing", 21: "same thing", 22: "same thing"})
	twins := numberedFile(60, map[int]string{
		9: "alpha one", 10: "beta two", 11: "gamma three", 12: "delta four", 13: "left out", 14: "ending six",
		39: "alpha one", 40: "beta two", 41: "GAMMA THREE", 42: "delta four", 43: "ending six",
	})
	alone := strings.Replace(twins, "beta two\nGAMMA", "beta 2\nGAMMA", 1)
	edge := "@@ -3,%s +3,%s @@\n line 3 of the file\n line 4 of the file\n-line 5 of the file\n line 6 of the file\n something new\n"
	counted := func(old, new string) string {
		return strings.Replace(strings.Replace(edge, "%s", old, 1), "%s", new, 1)
	}
	without := strings.Replace(src, "line 5 of the file\n", "", 1)
	lines := "@@\n line 18 of the file\n line 19 of the file\n-same thing\n-same thing\n-line 23 of the file\n line 24 of the file\n line 25 of the file\n"
	indented := "outer {\n\tinner {\n\t\tone()\n\t\ttwo()\n\t\tthree()\n\t}\n}\n"
	quoted := "open()\nsay(\"a\\tb\")\nmore()\n\tclose(\"door\")\nend of it\n"
	checkExamples(t, map[string]example{
		"two maps of the indentation":          {src: indented, diff: "@@\n outer {\n \tinner {\n \tone()\n-\ttwo()\n+\t\tTWO()\n \t\tthree()\n \t}\n", code: NoMatch},
		"one line slipped":                     {src: indented, diff: "@@\n outer {\n \tinner {\n \tone()\n-\t\ttwo()\n+\t\tTWO()\n \t\tthree()\n \t}\n", want: strings.Replace(indented, "two", "TWO", 1)},
		"between blanks, with a gap":           {src: "alpha one\nbeta two\ngamma three\n\n## Title\n\n\n\nthe rest\n", diff: "@@\n alpha one\n beta two\n gamma three\n \n+new text\n \n \n", code: NoMatch},
		"no operators, or moved by a space":    {src: "    first one\n    second one\n    third one\nend\n", diff: "@@\n    first one\n    second one\n+    new one\n    third one\n// ...\nend it\n", code: NoMatch},
		"escapes for slips":                    {src: quoted, diff: "@@\n open()\n-say(\"a\\tb\")\n+say(\\\"c\\\")\n more()\n \tclose(\\\"door\\\")\n end  of it\n", code: NoMatch},
		"brackets are not invented":            {src: "a {\n\n\tfirst thing\n\tsecond thing\n\tthird thing\n}\n", diff: "@@\n }\n \n+new()\n \tfirst thing\n \tsecond thing\n \tthird thing\n", code: NoMatch},
		"a line invented at the edge":          {src: src, diff: counted("5", "4"), want: without},
		"the header counts it as an added one": {src: src, diff: counted("4", "4"), code: ForgottenPlus},
		"one of three equal lines":             {src: src, diff: lines, code: GapInRemoved},
		"all of them":                          {src: src, diff: strings.Replace(lines, "-same", "-same thing\n-same", 1), want: strings.Replace(src, "same thing\nsame thing\nsame thing\nline 23 of the file\n", "", 1)},
		"a twin that has changed":              {src: twins, diff: "@@\n alpha one\n beta two\n-gamma three\n+Gamma 3\n delta four\n ending six\n", code: NoMatch},
		"no twin":                              {src: alone, diff: "@@\n alpha one\n beta two\n-gamma three\n+Gamma 3\n delta four\n ending six\n", want: strings.Replace(alone, "gamma three", "Gamma 3", 1)},
	})
}

// Tabs and spaces: only what the diff or the file shows is done.
func TestKindsOfIndentation(t *testing.T) {
	tabs := "func f() {\n\tif x {\n\t\tone()\n\t}\n}\n\nfunc g() {\n\tdo()\n}\n"
	raw := tabs + "\nvar s = `\n\ta: 1\n`\n\nvar t = 1\n"
	comment := "/*\nSo:\n\n\ta()\n\nUse it.\n\nThen go.\n*/\npackage x\n"
	spacey := "/*\nSo:\n  a()\n\nUse it.\n*/\n" + tabs
	yaml := "a:\n  b: 1\n  c: 2\nd:\n  e: 3\n"
	spaced := "@@\n     if x {\n-        one()\n+        two()\n     }\n"
	checkExamples(t, map[string]example{
		"tabs in a file of spaces":   {src: yaml, diff: "@@\n-d:\n+d2:\n+\tf: 4\n", code: NoMatch},
		"an old line shows the kind": {src: yaml, diff: "@@\n   c: 2\n-d:\n+d2:\n+  f: 4\n", want: strings.Replace(yaml, "d:\n", "d2:\n  f: 4\n", 1)},
		"another hunk shows the map": {src: tabs, diff: spaced + "@@\n }\n+\n+func h() {\n+    do()\n+}\n \n func g() {\n", want: strings.Replace(strings.Replace(tabs, "one", "two", 1), "}\n\nfunc g", "}\n\nfunc h() {\n\tdo()\n}\n\nfunc g", 1)},
		"another hunk shows there is none": {src: tabs, diff: "@@\n \tif x {\n-\t\tone()\n+\t\ttwo()\n@@\n }\n+var s = `\n+    text\n+`\n \n func g() {\n",
			want: strings.Replace(strings.Replace(tabs, "one", "two", 1), "}\n\nfunc g", "}\nvar s = `\n    text\n`\n\nfunc g", 1)},
		"within a literal of tabs":      {src: raw, diff: "@@\n var s = `\n-    a: 1\n+    a: 2\n `\n", want: strings.Replace(raw, "a: 1", "a: 2", 1)},
		"within a literal of both":      {src: strings.Replace(raw, "\ta: 1", "\ta: 1\n  b: 1", 1), diff: "@@\n var s = `\n-    a: 1\n+    a: 2\n   b: 1\n", code: NoMatch},
		"within a literal that it adds": {src: tabs, diff: spaced + "@@\n }\n+var s = `\n+    text\n+`\n \n func g() {\n", code: NoMatch},
		"a comment of spaces, deeper":   {src: spacey, diff: "@@\n So:\n-  a()\n+\n+        a(1)\n \n Use it.\n", code: NoMatch},
		"a comment of spaces, as it is": {src: spacey, diff: "@@\n So:\n-  a()\n+  a(1)\n \n Use it.\n", want: strings.Replace(spacey, "a()", "a(1)", 1)},
		"a comment of tabs":             {src: comment, diff: "@@\n Use it.\n+\n+    b()\n \n Then go.\n", code: NoMatch},
		"a comment, and another hunk":   {src: comment, diff: "@@\n So:\n \n-    a()\n+    A()\n@@\n Use it.\n+\n+    b()\n \n Then go.\n", want: strings.NewReplacer("a()", "A()", "Use it.\n", "Use it.\n\n\tb()\n").Replace(comment)},
		"a literal elsewhere":           {src: strings.Replace(raw, "\ta: 1", "    a: 1", 1), diff: spaced, want: strings.Replace(strings.Replace(raw, "\ta: 1", "    a: 1", 1), "one", "two", 1)},
		"white space is what changes":   {src: tabs, diff: "@@\n     if x {\n-        one()\n+        one()\n     }\n", code: NoMatch},
		"blanks that are not empty":     {src: "\tif x {\n\t\tone()\n\t\t\n\t\ttwo()\n\t}\n", diff: "@@\n if x {\n \tone()\n \n+\n+\tmore()\n \ttwo()\n }\n", code: NoMatch},
		"spaces before a tab":           {src: tabs, diff: "@@\n     if x {\n-        one()\n+    \ttwo()\n     }\n", code: NoMatch},
		"a block comment one space off": {src: "/*\n * one\n * two\n */\n", diff: "@@\n * one\n+* more\n * two\n", want: "/*\n * one\n * more\n * two\n */\n"},
	})
}

// Rule 15 where the end of the file goes away.
func TestTheEndOfTheFileStays(t *testing.T) {
	checkExamples(t, map[string]example{
		"tail removed, no newline":       {src: "a\nb\nc", diff: "@@\n a\n b\n-c\n", want: "a\nb"},
		"tail removed, newline":          {src: "a\nb\nc\n", diff: "@@\n a\n b\n-c\n", want: "a\nb\n"},
		"tail removed, CRLF, no newline": {src: "a\r\nb\r\nc", diff: "@@\n a\n b\n-c\n", want: "a\r\nb"},
		"tail and marker":                {src: "a\nb\nc", diff: "@@\n a\n b\n-c\n\\ No newline at end of file\n", want: "a\nb\n"},
		"all of it":                      {src: "a", diff: "@@\n-a\n", want: ""},
		"an empty line is left":          {src: "a\n\nc", diff: "@@\n a\n \n-c\n", want: "a\n\n"},
		"middle removed":                 {src: "a\nb\nc", diff: "@@\n a\n-b\n c\n", want: "a\nc"},
	})
}

// A removal at the edge of a hunk leaves context alone, which is no sign that
// it was done.
func TestARemovalAtTheEdgeIsNotDone(t *testing.T) {
	src := "one\n    two\n    three\n    four\n"
	expectText(t, src, "@@ -1,4 +1,2 @@\n one\n \ttwo\n-\tthree\n-\tfour\n", "one\n    two\n")
	expectCode(t, []byte("one\ntwo\n"), "@@ -1,4 +1,2 @@\n one\n two\n-three\n-four\n", AlreadyApplied)
}

// What a doubt says is enough to write the patch that is applied.
func TestADoubtIsSettledByWhatItSays(t *testing.T) {
	long := numberedFile(60, map[int]string{
		9: "alpha one", 10: "beta two", 11: "gamma", 12: "delta four", 13: "epsilon five",
		39: "alpha one", 40: "beta two", 41: "GAMMA", 42: "delta four", 43: "epsilon five",
	})
	cases := map[string]struct {
		src, diff           string
		code                Code
		first, last, change int
	}{
		"loosely on the stated line": {twoTwins, "@@ -10,3 +10,3 @@\n start\n-middle\n+MIDDLE\n end of it\n", Ambiguous, 10, 12, 11},
		"the twin that is meant":     {twoTwins, "@@ -10,3 +10,3 @@\n start\n-middle\n+MIDDLE\n end of it\n", Ambiguous, 40, 42, 41},
		"equal hunks":                {twoTwins, strings.Repeat("@@\n start\n-middle\n+MIDDLE\n end of it\n", 2), Ambiguous, 10, 12, 11},
		"a twin that is done":        {long, "@@\n alpha one\n beta two\n-gamma\n+GAMMA\n delta four\n epsilon five\n", AlreadyApplied, 9, 13, 11},
		"out of order":               {twoTwins, "@@\n start\n-middle\n+MIDDLE\n end of it\n@@\n line 19 of the file\n-line 20 of the file\n+twenty\n", Ambiguous, 10, 12, 11},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failure := expectCode(t, []byte(c.src), c.diff, c.code)
			lines := strings.SplitAfter(c.src, "\n")
			lines[c.change-1] = "mended\n"
			expectText(t, c.src, mend(t, failure.Text, c.first, c.last, c.change, "mended"), strings.Join(lines, ""))
		})
	}
}
