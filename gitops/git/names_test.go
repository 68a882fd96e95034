package git

import (
	"strings"
	"testing"
)

func TestBranchNames(t *testing.T) {
	for _, c := range []struct {
		issue     int
		title, id string
		want      string
	}{
		{12, "Add a login endpoint", "AB12", "copilot/12-add-a-login-endpoint-ab12"},
		{12, "", "", "copilot/12"},
		{12, "日本語", "x", "copilot/12-x"},
		{12, "../../main", "$(id)", "copilot/12-main-id"},
		{12, "--upload-pack=x `rm` @{u} a.lock", "..", "copilot/12-upload-pack-x-rm-u-a-lock"},
		{-3, "x\r\ny", "", "copilot/x-y"},
		{0, "Add a login endpoint", "ab12", "copilot/add-a-login-endpoint-ab12"},
		{0, "日本語", "", "copilot/0"},
		{7, strings.Repeat("very long words ", 40), "id", "copilot/7-very-long-words-very-long-words-very-id"},
	} {
		got := BranchName(c.issue, c.title, c.id)
		if got != c.want {
			t.Errorf("BranchName(%d, %q, %q) is %q, want %q", c.issue, c.title, c.id, got, c.want)
		}
		if err := ValidateRef("refs/heads/" + got); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
}

// Edge cases 2 and 4: what is never pushed to.
func TestRefsThatAreNotOurs(t *testing.T) {
	for _, ref := range []string{
		"", "main", "copilot/1-x", "refs/heads/main", "refs/heads/copilot", "refs/heads/copilot/", "refs/tags/copilot/1-x",
		"refs/heads/copilot/a/b", "refs/heads/copilot/../main", "refs/heads/copilot/a..b", "refs/heads/copilot/x.lock",
		"refs/heads/copilot/-x", "refs/heads/copilot/@{u}", "refs/heads/copilot/x\ny", "refs/heads/copilot/X",
		"refs/heads/copilot/x ", "refs/heads/copilot/.x", "refs/heads/copilot/x.", "refs/heads/copilot/ü",
		"refs/heads/copilot/" + strings.Repeat("x", 300), "HEAD", "refs/heads/copilot/${IFS}", "+refs/heads/copilot/x",
	} {
		if err := ValidateRef(ref); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func TestBranchesToFetch(t *testing.T) {
	for _, name := range []string{"main", "trunk/ünï", "feature/x.y", "copilot/1-x", "v1"} {
		if err := ValidateBranch(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-x", "--upload-pack=x", "a..b", "x.lock", "@{u}", "a b", "a\nb", "a\x00b", "refs/../x", "/a", "a/", "a//b", "@", "a~1", "a^", "a:b", "a?b", "a*", "a[b", `a\b`, "\xff", strings.Repeat("x", 2000)} {
		if err := ValidateBranch(name); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Edge case 13: every spelling of .git that some file system takes for it.
func TestNamesThatStandForGit(t *testing.T) {
	for _, name := range []string{".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".g\u200cit", ".git\ufeff", "\u200e.git"} {
		if !isDotGit(name) {
			t.Errorf("%q is not seen", name)
		}
	}
	for _, name := range []string{"git", ".github", ".gitignore", "x.git", ".git-", "git~2", ".gi"} {
		if isDotGit(name) {
			t.Errorf("%q is taken for it", name)
		}
	}
}

// Edge case 1: owners and names that a URL must not carry, and hosts and ids
// that must not become a path.
func TestRemotesThatAreRefused(t *testing.T) {
	for _, url := range []string{
		"", "x", "git@github.com:o/r.git", "ssh://git@github.com/o/r", "file:///etc", "ext::sh -c id", "http://github.com/o/r",
		"https://user:secret@github.com/o/r", "https://github.com/../r", "https://github.com/-x/r", "https://github.com/o//r",
		"https://github.com/o/r?x=1", "https://github.com/o/r#x", "https://github.com/o/%0ar", "https:///o/r",
	} {
		if _, err := (Remote{URL: url}).endpoint(); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: %v", url, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	for _, url := range []string{
		"https://github.com/o/r.git", "https://github.com/o/.github", "http://127.0.0.1:1/o/r", "http://localhost/o/r",
		"https://github.com/o/" + strings.Repeat("n", 100), "https://github.com/ö/ü",
	} {
		if _, err := (Remote{URL: url}).endpoint(); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	cache := newCache(t, Limits{})
	for _, remote := range []Remote{
		{Host: "", RepositoryID: 1}, {Host: "..", RepositoryID: 1}, {Host: "a/b", RepositoryID: 1}, {Host: "-x", RepositoryID: 1},
		{Host: "a..b", RepositoryID: 1}, {Host: "github.com"}, {Host: "github.com", RepositoryID: -1}, {Host: "github.com", RepositoryID: 1, InstallationID: -1},
	} {
		if _, err := cache.Repository(remote); CodeOf(err) != CodeInvalid {
			t.Errorf("%+v: %v", remote, err)
		}
	}
}

func FuzzBranchName(f *testing.F) {
	f.Add(1, "Add x", "id")
	f.Add(-1, "\xff..@{", "x.lock")
	f.Fuzz(func(t *testing.T, issue int, title, id string) {
		if err := ValidateRef("refs/heads/" + BranchName(issue, title, id)); err != nil {
			t.Fatal(err)
		}
	})
}

// No path and no link that is let through leads out of its directory.
func FuzzLinksStayInside(f *testing.F) {
	f.Add("a/b", "../c")
	f.Add(".", "x/../../y")
	f.Fuzz(func(t *testing.T, dir, target string) {
		if dir != "." && badPath(dir) != "" || badLink(dir, target) != "" {
			return
		}
		level := 0
		if dir != "." {
			level = strings.Count(dir, "/") + 1
		}
		for _, part := range strings.Split(target, "/") {
			switch part {
			case "..":
				level--
			case "", ".":
			default:
				level++
			}
			if level < 0 {
				t.Fatalf("%q in %q leads out", target, dir)
			}
		}
	})
}
