package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zricethezav/gitleaks/v8/detect"
)

// canary has the form of an installation token and is none.
const canary = "ghs_" + "Zq3vT8yLw0RkN5pXc7HbJm2DfGs9AeUi4oVt"

func reversed(text string) string {
	bytes := []byte(text)
	slices.Reverse(bytes)
	return string(bytes)
}

// However a canary is dressed up, it is found, at its line, and redacted.
func TestKnownSecretInEveryForm(t *testing.T) {
	s := New(canary)
	forms := map[string]string{
		"plain":             canary,
		"reversed":          reversed(canary),
		"first seven cut":   canary[7:],
		"hex":               hex.EncodeToString([]byte(canary)),
		"upper-case hex":    strings.ToUpper(hex.EncodeToString([]byte(canary))),
		"base64":            base64.StdEncoding.EncodeToString([]byte(canary)),
		"base64 of more":    base64.StdEncoding.EncodeToString([]byte("token=" + canary + "&x")),
		"base64 shifted":    base64.URLEncoding.EncodeToString([]byte("a" + canary)),
		"base64 shifted 2":  base64.URLEncoding.EncodeToString([]byte("ab" + canary + "c")),
		"base64 of reverse": base64.StdEncoding.EncodeToString([]byte(reversed(canary))),
		"percent":           url.QueryEscape(canary),
		"all percent":       escaped(canary, "%%%02X"),
		"escapes":           escaped(canary, `\x%02x`),
		"entities":          escaped(canary, "&#%d;"),
		"byte list":         escaped(canary, "%d, "),
		"split by lines":    canary[:12] + "\n" + canary[12:30] + "\n" + canary[30:],
		"split by plus":     `"` + canary[:20] + `" + "` + canary[20:] + `"`,
		"spaced":            strings.Join(strings.Split(canary, ""), " "),
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			text := "first line\nsecond line: " + form + "\nlast line\n"
			found, err := s.Scan(text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == RuleKnown && f.Line == 2 }) {
				t.Errorf("not found: %v", found)
			}
			clean, err := s.Redact(text)
			if err != nil {
				t.Fatal(err)
			}
			left, err := s.Scan(clean)
			if err != nil || len(left) > 0 {
				t.Errorf("still found after redaction: %v, %v in %q", left, err, clean)
			}
			if !strings.HasPrefix(clean, "first line\n") || !strings.HasSuffix(clean, "last line\n") {
				t.Errorf("too much is gone: %q", clean)
			}
		})
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	s := New(canary, "short", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\n-----END RSA PRIVATE KEY-----\n")
	for _, text := range []string{
		"", "The ghs_ prefix marks installation tokens.", "a short text with -----BEGIN RSA PRIVATE KEY----- in it",
		strings.Repeat("package main\n\nfunc main() {}\n", 1000),
		"commit 83baae61804e65cc73a7201a7252750c76066a30",
	} {
		clean, err := s.Redact(text)
		if err != nil || clean != text {
			t.Errorf("%.40q became %.60q, %v", text, clean, err)
		}
	}
}

// What gitleaks' rules find, in the lines that a diff adds and only in those.
func TestDiffTellsFileAndLine(t *testing.T) {
	key := "AKIA" + "Z7QX2MPLRT4WVN3K"
	diff := strings.Join([]string{
		"diff --git a/config.go b/config.go", "index 1..2 100644", "--- a/config.go", "+++ b/config.go",
		"@@ -10,3 +10,4 @@ func x() {", " context", "-old := \"" + key + "\"", "+++ not a header", "+key := \"" + key + "\" // gitleaks:allow", " end",
		"diff --git \"a/na\\303\\257ve.txt\" \"b/na\\303\\257ve.txt\"", "new file mode 100644", "--- /dev/null", "+++ \"b/na\\303\\257ve.txt\"",
		"@@ -0,0 +1,2 @@", "+nothing", "+" + canary, "",
	}, "\n")
	found, err := New(canary).ScanDiff(diff)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.String())
		if strings.Contains(f.Description, key) || strings.Contains(f.Description, canary) {
			t.Error("a finding holds the secret")
		}
	}
	want := []string{"config.go:12: aws-access-token", "naïve.txt:2: github-app-token", "naïve.txt:2: known-secret"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRulesFindAndRedact(t *testing.T) {
	secret := "glpat-" + "x7Kp2mQ9vT4nB8sL5dRw"
	s := New()
	text := "url = https://example.com\ntoken = " + secret + "\n"
	for _, text := range []string{text, "data: " + base64.StdEncoding.EncodeToString([]byte(text)) + "\n"} {
		found, err := s.Scan(text)
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		clean, err := s.Redact(text)
		if err != nil || strings.Contains(clean, secret) {
			t.Errorf("%q, %v", clean, err)
		}
		if left, _ := s.Scan(clean); len(left) > 0 {
			t.Errorf("left %v in %q", left, clean)
		}
	}
}

func TestScannersShareRulesAcrossGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if found, err := New(canary).Scan("x " + canary); err != nil || len(found) == 0 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
	wg.Wait()
}

func FuzzScanDiff(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+" + canary + "\n")
	f.Add("@@ -1,99999999999999999999 +1 @@\n+x")
	f.Add("diff --git\n@@ -9 -9\n+")
	s := New(canary)
	f.Fuzz(func(t *testing.T, diff string) {
		if _, err := s.ScanDiff(diff); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkBuildRules(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := detect.NewDetectorDefaultConfig(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuildKnown(b *testing.B) {
	for b.Loop() {
		New(canary)
	}
}

func BenchmarkScan100KB(b *testing.B) {
	s := New(canary)
	text := strings.Repeat("func (s *Scanner) hits(path, text string) ([]hit, error) { // ordinary code\n", 1300)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := s.Scan(text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRedactKnownLeavesLookalikesAlone(t *testing.T) {
	scanner := New("canary-Kq7vT2mXw9RzB4nYc6Hd8Lp3")
	got := scanner.RedactKnown("aws_key = \"AKIAZ5VYFN7Q2WPLKJ3T\" canary-Kq7vT2mXw9RzB4nYc6Hd8Lp3")
	if want := "aws_key = \"AKIAZ5VYFN7Q2WPLKJ3T\" [redacted]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is learned on the way is looked for from then on, in every form; the
// newest few hundred are remembered, whatever comes.
func TestLearnedSecrets(t *testing.T) {
	s := New("a-known-one-9f8e7d6c5b4a")
	token := func(n int) string { return fmt.Sprintf("v1.%020x%020x", n*7919+1, n*104729+3) }
	text := "Authorization: " + token(1) + " " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token(1)))
	if got := s.RedactKnown(text); got != text {
		t.Errorf("redacted before anybody knew: %s", got)
	}
	s.Learn(token(1))
	s.Learn(token(1))
	s.Learn("")
	if got := s.RedactKnown(text); strings.Count(got, redacted) != 2 || strings.Contains(got, token(1)[4:]) {
		t.Errorf("left over: %s", got)
	}
	findings, err := s.ScanFile("a/b.txt", "one\ntwo\n"+token(1))
	if err != nil || len(findings) != 1 || findings[0].String() != "a/b.txt:3: "+RuleKnown {
		t.Errorf("%v, %v", findings, err)
	}
	var group sync.WaitGroup
	for part := range 4 {
		group.Go(func() {
			for n := part; n < 3*maxLearned; n += 4 {
				s.Learn(token(n))
				s.RedactKnown(text)
			}
		})
	}
	group.Wait()
	if n := len(s.learned.values); n > maxLearned || n < maxLearned/2 {
		t.Errorf("%d are remembered", n)
	}
	s.Learn(token(1e6))
	for _, one := range []string{token(1e6), "a-known-one-9f8e7d6c5b4a"} {
		if got := s.RedactKnown(one); got != redacted {
			t.Errorf("%q", got)
		}
	}
}

// A name that gitleaks passes by hides no shape, and only the rule that guesses
// is left out there: lock files are full of random text.
func TestNamesHideNothing(t *testing.T) {
	s := New()
	key := "AKIA" + "Z5VYFN7Q2WPLKJ3T"
	guessed := `api_key = "q8Zr4Tn1Xw7Lp2Vb9Kc5Md3Hf6"`
	for _, name := range []string{"logo.png", "a/vendor/github.com/x/y.go", "go.sum", "yarn.lock", "notgitleaks.toml.txt", "jquery.js", "main.go"} {
		findings, err := s.ScanFile(name, "one\n"+key+"\n"+guessed)
		if err != nil || len(findings) == 0 || findings[0].Rule != "aws-access-token" || findings[0].Line != 2 {
			t.Errorf("%s: %v, %v", name, findings, err)
		}
		if guesses := len(findings) > 1; guesses != (name == "main.go") {
			t.Errorf("%s: %v", name, findings)
		}
	}
	findings, err := s.ScanText("body", "x\n"+key)
	if err != nil || len(findings) != 1 || findings[0].String() != "body:2: aws-access-token" {
		t.Errorf("%v, %v", findings, err)
	}
}
