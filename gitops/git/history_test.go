package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// grow makes a history of edits, branches and merges in a repository.
func grow(t *testing.T, dir string, random *rand.Rand) {
	t.Helper()
	cli(t, dir, "init", "-q")
	var lines []string
	write := func(n int) {
		for range 1 + random.IntN(3) {
			at := random.IntN(len(lines) + 1)
			switch {
			case random.IntN(3) == 0 && at < len(lines):
				lines = slices.Delete(lines, at, at+1)
			default:
				lines = slices.Insert(lines, at, fmt.Sprintf("line of commit %d, %d", n, random.IntN(1e9)))
			}
		}
		put(t, dir, map[string]string{"a/file": strings.Join(append([]string{"first"}, lines...), "\n") + "\n"})
	}
	commit := func(n int) {
		stamp := fmt.Sprintf("%d +0000", 1_600_000_000+n*60)
		cli(t, dir, "add", "-A")
		cli(t, dir, "-c", "alias.at=!GIT_COMMITTER_DATE='"+stamp+"' GIT_AUTHOR_DATE='"+stamp+"' git commit -q --allow-empty -m 'commit "+fmt.Sprint(n)+"'", "at")
	}
	for n := range 25 {
		switch random.IntN(4) {
		case 0:
			put(t, dir, map[string]string{"other": fmt.Sprint(n) + "\n"})
		default:
			write(n)
		}
		commit(n)
		if n == 8 {
			cli(t, dir, "branch", "side")
		}
		if n == 15 {
			cli(t, dir, "checkout", "-q", "side")
			put(t, dir, map[string]string{"on-side": "x\n"})
			commit(100)
			cli(t, dir, "checkout", "-q", "main")
			cli(t, dir, "merge", "-q", "--no-ff", "-m", "merge", "side")
		}
	}
}

// Log and blame say what git says.
func TestLogAndBlameAsGitDoes(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		grow(t, dir, rand.New(rand.NewPCG(seed, 0)))
		local, err := OpenLocal(dir, Limits{})
		must(t, err)
		head, _, err := local.Resolve(t.Context(), "")
		must(t, err)
		for _, path := range []string{"", "a/file", "other", "on-side", "nope"} {
			commits, complete, err := local.Log(t.Context(), head, path, 1000)
			if err != nil || !complete {
				t.Fatalf("%q: complete %v, %v", path, complete, err)
			}
			var got []string
			for _, commit := range commits {
				got = append(got, commit.ID)
			}
			args := []string{"log", "--format=%H", "HEAD"}
			if path != "" {
				args = append(args, "--", path)
			}
			want := strings.Fields(cli(t, dir, args...))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("seed %d, log of %q: %d commits, git has %d", seed, path, len(got), len(want))
			}
		}
		lines, complete, err := local.Blame(t.Context(), head, "a/file")
		if err != nil || !complete {
			t.Fatalf("complete %v, %v", complete, err)
		}
		for i, line := range strings.Split(cli(t, dir, "blame", "-l", "-s", "--root", "a/file"), "\n") {
			if want := strings.Fields(line)[0]; lines[i].Commit != want || !strings.HasSuffix(line, lines[i].Text) {
				t.Errorf("seed %d, line %d (%q): %s, git says %q", seed, i+1, lines[i].Text, lines[i].Commit, line)
			}
		}
	}
}

// What is not here is not guessed, and more can be fetched.
func TestHistoryIsFetchedOnRequest(t *testing.T) {
	server := serve(t)
	var commits []string
	for i := range 6 {
		commits = append(commits, server.commit(t, "main", map[string]string{"file": fmt.Sprintf("%d\n", i)}))
	}
	cache := newCache(t, Limits{})
	head, err := cache.Fetch(t.Context(), server.remote(), "main")
	must(t, err)
	repo, err := cache.Repository(server.remote())
	must(t, err)
	expect := func(want int, whole bool) {
		t.Helper()
		got, complete, err := repo.Log(t.Context(), head, "", 100)
		if err != nil || len(got) != want || complete != whole {
			t.Errorf("%d commits, complete %v, %v; want %d, %v", len(got), complete, err, want, whole)
		}
	}
	expect(1, false)
	must(t, cache.FetchHistory(t.Context(), server.remote(), head, 3))
	expect(3, false)
	must(t, cache.FetchHistory(t.Context(), server.remote(), head, 100))
	expect(6, true)
	must(t, cache.FetchHistory(t.Context(), server.remote(), head, 100))
	if got, complete, err := repo.Log(t.Context(), head, "", 2); err != nil || len(got) != 2 || complete || got[1].ID != commits[4] {
		t.Errorf("limited: %v, %v, %v", got, complete, err)
	}
	lines, complete, err := repo.Blame(t.Context(), head, "file")
	if err != nil || !complete || len(lines) != 1 || lines[0].Commit != head || lines[0].Author.Name != "Ada" || !lines[0].When.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("%+v, %v, %v", lines, complete, err)
	}
	next := server.commit(t, "main", map[string]string{"more": "x\n"})
	if got, err := cache.Fetch(t.Context(), server.remote(), "main"); err != nil || got != next {
		t.Errorf("the next fetch: %s, %v", got, err)
	}
	dir, err := cache.path(server.remote())
	must(t, err)
	cli(t, dir, "fsck", "--connectivity-only")
}

func TestBlameOfWhatHasNoLines(t *testing.T) {
	local, commit := localOf(t, Limits{}, map[string]string{"bin": "a\x00b", "empty": "", "link": "->bin"})
	for path, want := range map[string]Code{"bin": CodeInvalid, "empty": "", "link": CodeNotFound, "nope": CodeNotFound} {
		if lines, _, err := local.Blame(t.Context(), commit, path); CodeOf(err) != want || len(lines) > 0 {
			t.Errorf("%s: %v, %v", path, lines, err)
		}
	}
	if _, _, err := local.Log(t.Context(), strings.Repeat("1", 40), "", 1); CodeOf(err) != CodeNotFound {
		t.Errorf("a commit that is not here: %v", err)
	}
	if _, err := os.Stat(filepath.Join(local.gitDir, "index")); err == nil {
		t.Error("reading wrote an index")
	}
}
