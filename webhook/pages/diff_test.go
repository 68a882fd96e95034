package pages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADiffIsReadAsGitWritesIt(t *testing.T) {
	got := parseDiff(`diff --git a/a b.txt b/a b.txt
old mode 100644
new mode 100755
index 1111111..2222222
--- a/a b.txt
+++ b/a b.txt
@@ -1,3 +1,3 @@ func main() {
 same
--- not a header
+++ not a header
 
@@ -9 +9,0 @@
-gone
\ No newline at end of file
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
diff --git "a/\303\244" "b/\303\244"
deleted file mode 100644
`)
	want := diff{Additions: 1, Deletions: 2, Files: []diffFile{
		{
			Path: "a b.txt", Notes: []string{"old mode 100644", "new mode 100755"}, Additions: 1, Deletions: 2,
			Lines: []diffLine{
				{Kind: "hunk", Text: "@@ -1,3 +1,3 @@ func main() {"},
				{Kind: "same", Old: 1, New: 1, Text: "same"},
				{Kind: "del", Old: 2, Text: "-- not a header"},
				{Kind: "add", New: 2, Text: "++ not a header"},
				{Kind: "same", Old: 3, New: 3, Text: ""},
				{Kind: "hunk", Text: "@@ -9 +9,0 @@"},
				{Kind: "del", Old: 9, Text: "gone"},
				{Kind: "hunk", Text: `\ No newline at end of file`},
			},
		},
		{Path: "logo.png", Notes: []string{"Binary files a/logo.png and b/logo.png differ"}},
		{Path: `"a/\303\244" "b/\303\244"`, Notes: []string{"deleted file mode 100644"}},
	}}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestALongDiffIsCut(t *testing.T) {
	got := parseDiff("@@ -0,0 +1,20000 @@\n" + strings.Repeat("+x\n", 20_000))
	if !got.Cut || len(got.Files[0].Lines) != maxDiffLines {
		t.Errorf("cut: %v, %d lines", got.Cut, len(got.Files[0].Lines))
	}
}

// FuzzParseDiff holds that no line is lost and none is counted twice, whatever
// the input.
func FuzzParseDiff(f *testing.F) {
	f.Add("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("@@ -9999999999999999999999 +1 @@\n+x")
	f.Add("+++ b/\n--- \n@@ -0,0 +0,0 @@\n\\ \n")
	f.Fuzz(func(t *testing.T, text string) {
		got := parseDiff(text)
		lines, added, removed := 0, 0, 0
		for _, file := range got.Files {
			lines += len(file.Lines) + len(file.Notes)
			added, removed = added+file.Additions, removed+file.Deletions
		}
		if most := strings.Count(text, "\n") + 1; lines > most {
			t.Errorf("%d lines are shown of %d", lines, most)
		}
		if added != got.Additions || removed != got.Deletions {
			t.Errorf("the files' +%d −%d are not the diff's +%d −%d", added, removed, got.Additions, got.Deletions)
		}
	})
}
