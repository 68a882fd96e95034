package patch

import (
	"errors"
	"strings"
	"testing"
)

// apply is Apply for tests that expect success.
func apply(t testing.TB, src, diff string) Result {
	t.Helper()
	result, err := Apply([]byte(src), diff)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return result
}

func expectText(t testing.TB, src, diff, want string) {
	t.Helper()
	if got := string(apply(t, src, diff).Text); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func expectCode(t testing.TB, src []byte, diff string, want Code) *Error {
	t.Helper()
	result, err := Apply(src, diff)
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("applied, or failed without a code: %v\n%s", err, result.Text)
	}
	if failure.Code != want {
		t.Fatalf("code %s, want %s:\n%s", failure.Code, want, failure.Text)
	}
	if !strings.HasPrefix(failure.Text, nothingChanged) {
		t.Errorf("the text does not say that nothing was changed:\n%s", failure.Text)
	}
	if n := strings.Count(failure.Text, "\n") + 1; n > maxErrorLines {
		t.Errorf("the text has %d lines", n)
	}
	return failure
}

const poem = `package poem

func one() {
	alpha()
	beta()
	gamma()
}

func two() {
	delta()
	epsilon()
	zeta()
}
`

const poemDiff = `--- a/poem.go
+++ b/poem.go
@@ -3,4 +3,5 @@ package poem
 func one() {
 	alpha()
-	beta()
+	better()
+	best()
 	gamma()
`

var poemWant = strings.Replace(poem, "\tbeta()\n", "\tbetter()\n\tbest()\n", 1)

// A diff may come in any dress that models put around it.
func TestReading(t *testing.T) {
	body := poemDiff[strings.Index(poemDiff, "@@"):]
	lines := body[strings.Index(body, "\n")+1:]
	cases := map[string]string{
		"plain":                poemDiff,
		"fence and prose":      "Here is the patch:\n\n```diff\n" + poemDiff + "```\n\nIt makes beta better.\n",
		"git header":           "diff --git a/poem.go b/poem.go\nindex 123..456 100644\n" + poemDiff,
		"timestamps":           strings.Replace(strings.Replace(poemDiff, "a/poem.go", "poem.go.orig\t2024-01-01 10:00:00 +0000", 1), "b/poem.go", "poem.go\t2024-01-01 10:00:01 +0000", 1),
		"absolute paths":       strings.NewReplacer("a/poem.go", "/repo/poem.go", "b/poem.go", "/repo/poem.go").Replace(poemDiff),
		"only the new side":    "+++ b/poem.go\n" + body,
		"no header":            body,
		"no header, no @@":     lines,
		"bare @@":              "--- a/poem.go\n+++ b/poem.go\n@@\n" + lines,
		"@@ … @@":              "--- a/poem.go\n+++ b/poem.go\n@@ ... @@\n" + lines,
		"@@ function":          "--- a/poem.go\n+++ b/poem.go\n@@ func one() {\n" + lines,
		"@@ -XXX @@":           "--- a/poem.go\n+++ b/poem.go\n@@ -XXX,YYY +XXX,YYY @@\n" + lines,
		"no @@ after header":   "--- a/poem.go\n+++ b/poem.go\n" + lines,
		"wrong numbers":        strings.Replace(poemDiff, "-3,4 +3,5", "-103,7 +99,2", 1),
		"counts too large":     strings.Replace(poemDiff, "-3,4 +3,5", "-3,40 +3,50", 1),
		"CRLF":                 strings.ReplaceAll(poemDiff, "\n", "\r\n"),
		"no final newline":     strings.TrimSuffix(poemDiff, "\n"),
		"blank lines behind":   poemDiff + "\n\n",
		"envelope":             "*** Begin Patch\n*** Update File: poem.go\n@@ func one() {\n" + lines + "*** End Patch\n",
		"envelope, heredoc":    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: poem.go\n@@\n" + lines + "*** End Patch\nEOF\n",
		"heredoc":              "patch -p1 <<'END'\n" + poemDiff + "END\n",
		"missing operators":    strings.NewReplacer(" func one", "func one", " \talpha", "\talpha", " \tgamma", "\tgamma").Replace(poemDiff),
		"trailing white space": strings.Replace(poemDiff, "func one() {", "func one() {  ", 1),
		"JSON-escaped":         strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(poemDiff),
		"line numbers":         strings.NewReplacer(" func one", " 3 | func one", " \talpha", " 4 | \talpha", "-\tbeta", "-5 | \tbeta", " \tgamma", " 6 | \tgamma").Replace(poemDiff),
		"numbers on context":   strings.NewReplacer(" func one", " 3 | func one", " \talpha", " 4 | \talpha", " \tgamma", " 6 | \tgamma").Replace(poemDiff),
		"spaces for tabs":      strings.ReplaceAll(poemDiff, "\t", "    "),
		"format-patch":         "From 1 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n poem.go | 3 +-\n\n" + poemDiff + "-- \n2.39.5\n",
		"duplicated hunk":      poemDiff + body,

		"envelope, no @@":      "*** Begin Patch\n*** Update File: poem.go\n" + lines + "*** End Patch",
		"envelope in a fence":  "```\n*** Begin Patch\n*** Update File: poem.go\n@@\n" + lines + "*** End Patch\n```",
		"nested headings":      "*** Begin Patch\n*** Update File: poem.go\n@@ package poem\n@@ func one() {\n" + lines + "*** End Patch",
		"heredoc in quotes":    "bash -lc \"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: poem.go\n@@\n" + lines + "*** End Patch\nEOF\"\n",
		"pipe":                 "cat <<'PATCH' | git apply\n" + poemDiff + "PATCH\n",
		"fence never closed":   "```diff\n" + poemDiff,
		"tilde fence":          "~~~diff\n" + poemDiff + "~~~\n",
		"Index header":         "Index: poem.go\n====================\n" + poemDiff,
		"git header alone":     "diff --git a/poem.go b/poem.go\nindex 1..2 100644\n" + body,
		"spaces in headers":    strings.NewReplacer("--- a", "---  a", "+++ b", "+++  b").Replace(poemDiff),
		"elisions at the edge": "@@\n // ... existing code ...\n" + lines + " }\n // ... existing code ...\n",
		"space after operator": "@@\n" + strings.NewReplacer("-\t", "- \t", "+\t", "+ \t", " func", "  func", " \t", "  \t").Replace(lines),
		"prose behind":         "@@\n" + lines + "\nThis makes it better.\n",
		"JSON in a fence":      "```diff\n" + strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(poemDiff) + "\n```",
	}
	for name, diff := range cases {
		t.Run(name, func(t *testing.T) { expectText(t, poem, diff, poemWant) })
	}
}

// What must be refused is refused with its code.
func TestRefusals(t *testing.T) {
	two := strings.Replace(poem, "\tdelta()\n\tepsilon()\n\tzeta()\n", "\talpha()\n\tbeta()\n\tgamma()\n", 1)
	bare := "@@\n \talpha()\n-\tbeta()\n+\tbetter()\n \tgamma()\n"
	cases := map[string]struct {
		src  []byte
		diff string
		want Code
	}{
		"not in the file":      {[]byte(poem), "@@\n alpha\n-nothing\n+something\n", NoMatch},
		"two places":           {[]byte(two), bare, Ambiguous},
		"applied before":       {[]byte(poemWant), poemDiff, AlreadyApplied},
		"no hunk":              {[]byte(poem), "--- a/x\n+++ b/x\n", NoChange},
		"prose":                {[]byte(poem), "I would change beta to better.\n", NoChange},
		"nothing changes":      {[]byte(poem), "@@\n \talpha()\n-\tbeta()\n+\tbeta()\n", NoChange},
		"creates an existing":  {[]byte(poem), "--- /dev/null\n+++ b/poem.go\n@@ -0,0 +1 @@\n+package poem\n", Exists},
		"changes a missing":    {nil, poemDiff, Missing},
		"binary file":          {[]byte("a\x00b\n"), "@@\n-a\n+b\n", Binary},
		"binary diff":          {[]byte(poem), "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nabc\n", Binary},
		"envelope not closed":  {[]byte(poem), "*** Begin Patch\n*** Update File: poem.go\n@@\n-\tbeta()\n+\tbetter()\n", Truncated},
		"cut off":              {[]byte(poem), "@@ -3,6 +3,7 @@\n func one() {\n \talpha()\n-\tbeta()\n+\tbet", Truncated},
		"two hunks, one place": {[]byte(poem), "@@\n-\tbeta()\n+\tb()\n@@\n \talpha()\n-\tbeta()\n+\tc()\n", Overlap},
		"no context":           {[]byte(poem), "@@ -3,0 +4 @@\n+\tx()\n", NoMatch},
		"too large":            {[]byte(poem), strings.Repeat("+x\n", MaxDiff), TooLarge},
		"partial deletion":     {[]byte(poem), "--- a/x\n+++ /dev/null\n@@\n-package poem\n", NoMatch},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { expectCode(t, c.src, c.diff, c.want) })
	}
}
