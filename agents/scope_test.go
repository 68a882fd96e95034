package agents

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatchGlob(t *testing.T) {
	cases := []struct {
		glob, name string
		want       bool
	}{
		{"**/*.md", "README.md", true},
		{"**/*.md", "docs/a/b.md", true},
		{"**/*.md", "docs/a/b.mdx", false},
		{"docs/**", "docs/a/b", true},
		{"docs/**", "docs", false},
		{"docs/**", "old/docs/a", false},
		{"**/docs/**", "old/docs/a", true},
		{"*.md", "docs/a.md", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c/zz", false},
		{"a/?[b-d]", "a/xc", true},
		{"**", "a/b", true},
		{"**/**/*.go", "x.go", true},
		{"[", "[", false},
		{"", "", true},
	}
	for _, c := range cases {
		if got := MatchGlob(c.glob, c.name); got != c.want {
			t.Errorf("MatchGlob(%q, %q) = %v", c.glob, c.name, got)
		}
	}
}

func TestInScope(t *testing.T) {
	scope := []string{"**/*.txt", "!**/requirements*.txt", "docs/requirements.txt"}
	for name, want := range map[string]bool{"a.txt": true, "requirements.txt": false, "x/requirements-dev.txt": false, "docs/requirements.txt": true, "a.go": false} {
		if InScope(scope, name) != want {
			t.Errorf("InScope(%q) = %v", name, !want)
		}
	}
	if !InScope(nil, "anything") {
		t.Error("an agent without a scope is limited")
	}
}

func TestCheckGlob(t *testing.T) {
	for glob, says := range map[string]string{"": "matches nothing", "!": "matches nothing", "/a": "relative", "a/../b": "..", "./a": ".", "[a": "malformed", "**/a/**/b/**/c/**/d/**": "more than"} {
		if err := CheckGlob(glob); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("CheckGlob(%q) = %v, want %q", glob, err, says)
		}
	}
	for _, glob := range []string{"**/*_test.go", "!.github/**", "a b/[c-d]?.txt"} {
		if err := CheckGlob(glob); err != nil {
			t.Errorf("CheckGlob(%q) = %v", glob, err)
		}
	}
}

// Without ** a glob means what it means to path.Match.
func TestMatchGlobAgreesWithPathMatch(t *testing.T) {
	part := rapid.StringOf(rapid.SampledFrom([]rune("ab*?/")))
	rapid.Check(t, func(t *rapid.T) {
		glob, name := part.Draw(t, "glob"), rapid.StringOf(rapid.SampledFrom([]rune("ab/"))).Draw(t, "name")
		if strings.Contains(glob, "**") {
			return
		}
		want, err := path.Match(glob, name)
		if got := MatchGlob(glob, name); err == nil && got != want {
			t.Fatalf("MatchGlob(%q, %q) = %v, path.Match says %v", glob, name, got, want)
		}
	})
}

// No glob that CheckGlob accepts takes long, whatever the name.
func FuzzMatchGlob(f *testing.F) {
	f.Add("**/a/**/b/**", "a/a/a/b/b/a")
	f.Fuzz(func(t *testing.T, glob, name string) {
		if CheckGlob(glob) == nil && len(name) < 200 {
			MatchGlob(glob, name)
		}
	})
}
