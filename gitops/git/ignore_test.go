package git

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestIgnorePatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		isDir, want   bool
	}{
		{"*.log", "a/b.log", false, true},
		{"/*.log", "a/b.log", false, false},
		{"build/", "build", false, false},
		{"build/", "build", true, true},
		{"a/b", "x/a/b", false, false},
		{"**/b", "x/a/b", false, true},
		{"a/**", "a/b/c", false, true},
		{"a/**", "a", true, false},
		{"a/**/z", "a/z", false, true},
		{"a**z", "abcz", false, true},
		{"[!a]x", "bx", false, true},
		{"[!a]x", "ax", false, false},
		{"[[:digit:]]*", "1a", false, true},
		{`\#x`, "#x", false, true},
		{`\!x`, "!x", false, true},
		{"#x", "#x", false, false},
		{"x ", "x", false, true},
		{`x\ `, "x ", false, true},
		{"x\r", "x", false, true},
		{"\ufeffx", "x", false, true},
		{"[a", "[a", false, false},
		{"*", ".hidden", false, true},
	} {
		name := c.path[strings.LastIndexByte(c.path, '/')+1:]
		got, _ := matchPatterns(parseIgnore(c.pattern), c.path, name, c.isDir)
		if got != c.want {
			t.Errorf("%q against %q (directory: %v): %v", c.pattern, c.path, c.isDir, got)
		}
	}
}

// A pattern that would take exponential time gives up in bounded time.
func TestHostilePatternEnds(t *testing.T) {
	began := time.Now()
	wildmatch(strings.Repeat("*a", 200), strings.Repeat("a", 2000)+"b")
	wildmatch(strings.Repeat("**/", 200)+"x", strings.Repeat("a/", 2000)+"y")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// Random .gitignore files on random trees leave out what git leaves out.
func TestIgnoreAsGitDoes(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	cli(t, dir, "init", "-q")
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "*", "?", "**", "[ab]", "[!a]", "[a-c]", `\a`, "a*", "*b", "***", ".x", "[", "]", `\`, "[[:alpha:]]", "a**", " "})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "ba", "c", ".x", "a b", "[", "a]", "aab"})
	line := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(piece, 1, 4).Draw(t, "parts")
		separator := rapid.SampledFrom([]string{"/", "/", ""}).Draw(t, "separator")
		text := strings.Join(parts, separator)
		return rapid.SampledFrom([]string{"", "", "", "!", "/", "#", `\!`}).Draw(t, "before") + text +
			rapid.SampledFrom([]string{"", "", "", "/", " ", "/**", "\r"}).Draw(t, "after")
	})
	rapid.Check(t, func(t *rapid.T) {
		rules := strings.Join(rapid.SliceOfN(line, 1, 5).Draw(t, "rules"), "\n") + "\n"
		nested := strings.Join(rapid.SliceOfN(line, 0, 2).Draw(t, "nested"), "\n")
		paths := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "path"), "/")
		}), 1, 12, rapid.ID).Draw(t, "paths")
		check(t, dir, rules, nested, paths)
	})
}

// check compares which files git and we would add.
func check(t *rapid.T, dir, rules, nested string, paths []string) {
	tree := filepath.Join(dir, "tree")
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		full := filepath.Join(tree, path)
		if os.MkdirAll(filepath.Dir(full), 0o755) == nil { // a file may be in the way
			_ = os.WriteFile(full, []byte(path), 0o644)
		}
	}
	must(t, os.WriteFile(filepath.Join(tree, ".gitignore"), []byte(rules), 0o644))
	if info, err := os.Lstat(filepath.Join(tree, "a")); err == nil && info.IsDir() && nested != "" {
		must(t, os.WriteFile(filepath.Join(tree, "a", ".gitignore"), []byte(nested), 0o644))
	}
	command := exec.Command("git", "--git-dir="+filepath.Join(dir, ".git"), "--work-tree="+tree, "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
	command.Dir = tree
	out, err := command.Output()
	must(t, err)
	want := map[string]bool{}
	for _, path := range bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(path) > 0 {
			want[string(path)] = true
		}
	}
	w := (&Repository{limits: Limits{}.withDefaults()}).workspace(dir, emptyTree, emptyTree, time.Now())
	w.manifest = newDirectory()
	files, err := w.Files(t.Context())
	must(t, err)
	got := map[string]bool{}
	for _, path := range files {
		got[path] = true
		if !want[path] {
			t.Errorf("%q is ignored by git", path)
		}
	}
	for path := range want {
		if !got[path] && badNewName(path) == "" {
			t.Errorf("%q is not ignored by git", path)
		}
	}
}

func must(t interface{ Fatal(...any) }, err error) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	if err != nil {
		t.Fatal(err)
	}
}
