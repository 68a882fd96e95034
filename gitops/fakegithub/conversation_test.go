package fakegithub

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConversation plays the product's whole story by hand: an issue, a command, the bot's answers, a push, a check
// run with buttons, a pull request, a merge.
func TestConversation(t *testing.T) {
	for _, backend := range backends(t) {
		t.Run(string(backend), func(t *testing.T) {
			s := newStage(t, func(o *Options) { o.Git = backend })
			maria := s.person("maria")
			issue := maria.post("/repos/acme/hello/issues", map[string]any{"title": "Greet by name", "body": "Please."}).is(http.StatusCreated)
			command := maria.post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "/copilot greet"}).is(http.StatusCreated)
			if got := names(s.told()); !slices.Equal(got, []string{"installation.created", "issues.opened", "issue_comment.created"}) {
				t.Errorf("told %v", got)
			}
			if issue.text("html_url") != s.server.URL()+"/acme/hello/issues/1" {
				t.Errorf("html_url is %s", issue.text("html_url"))
			}
			bot := s.bot()
			bot.post(fmt.Sprintf("/repos/acme/hello/issues/comments/%d/reactions", command.id()), map[string]any{"content": "eyes"}).is(http.StatusCreated)
			progress := bot.post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "working"}).is(http.StatusCreated)
			bot.patch(fmt.Sprintf("/repos/acme/hello/issues/comments/%d", progress.id()), map[string]any{"body": "done"}).is(http.StatusOK)

			sha := s.pushBranch("copilot/1-greet", map[string]string{"main.go": "package main\n\nfunc main() {\n\tprintln(\"hello, you\")\n}\n"})
			check := bot.post("/repos/acme/hello/check-runs", map[string]any{"name": "copilot push", "head_sha": sha, "status": "completed",
				"conclusion": "action_required", "output": map[string]any{"title": "t", "summary": "s"},
				"actions": []map[string]any{{"label": "Approve push", "description": "push it", "identifier": "approve"}}}).is(http.StatusCreated)
			s.told()
			s.ok(s.server.As("maria").ClickCheckAction("acme/hello", check.id(), "approve"))
			clicked := s.told()
			if got := names(clicked); !slices.Equal(got, []string{"check_run.requested_action"}) {
				t.Errorf("told %v", got)
			}
			pull := bot.post("/repos/acme/hello/pulls", map[string]any{"title": "Greet", "head": "copilot/1-greet", "base": "main", "body": "Closes #1"}).is(http.StatusCreated)
			if got := pull.field("number"); got != 2.0 {
				t.Errorf("number is %v", got)
			}
			if got := bot.get("/repos/acme/hello/pulls/2/files").list(); len(got) != 1 || got[0]["filename"] != "main.go" {
				t.Errorf("files are %v", got)
			}
			maria.do(http.MethodPut, "/repos/acme/hello/pulls/2/merge", map[string]any{}).is(http.StatusOK)
			if got := names(s.told()); !slices.Equal(got, []string{"pull_request.opened", "pull_request.closed", "push"}) {
				t.Errorf("told %v", got)
			}
			state, _ := s.server.State().Repository("acme/hello")
			merged, _ := state.Issue(2)
			if !merged.Pull.Merged || !cmp.Equal(merged.Pull.Files, []string{"main.go"}) {
				t.Errorf("after the merge: %+v", merged.Pull)
			}
		})
	}
}

// backends are both ways of serving git; the one that needs git is left out where there is none.
func backends(t *testing.T) []GitBackend {
	t.Helper()
	if _, err := findHTTPBackend(); err != nil {
		missing(t, "git http-backend is not installed: serving git by it was not tested")
		return []GitBackend{GitNative}
	}
	return []GitBackend{GitNative, GitCGI}
}

// missing says what was not tested here. With CI=true the machine should have had it.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Log(what)
}

// git runs the real git client in a directory.
func (s *stage) git(directory string, arguments ...string) (string, error) {
	s.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		missing(s.T, "git is not installed: no real client was tested")
		s.SkipNow()
	}
	command := exec.CommandContext(s.Context(), "git", arguments...)
	command.Dir = directory
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=robot", "GIT_AUTHOR_EMAIL=robot@example.com", "GIT_COMMITTER_NAME=robot", "GIT_COMMITTER_EMAIL=robot@example.com")
	output, err := command.CombinedOutput()
	return string(output), err
}

func (s *stage) mustGit(directory string, arguments ...string) string {
	s.Helper()
	output, err := s.git(directory, arguments...)
	if err != nil {
		s.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
	return strings.TrimSpace(output)
}

// remote is the address of acme/hello with a credential in it.
func (s *stage) remote(token string) string {
	return strings.Replace(s.server.URL(), "http://", "http://x-access-token:"+token+"@", 1) + "/acme/hello.git"
}

// pushBranch clones with the bot's token, commits and pushes.
func (s *stage) pushBranch(branch string, files map[string]string) string {
	s.Helper()
	directory := filepath.Join(s.TempDir(), "clone")
	s.mustGit(".", "clone", "--quiet", s.remote(s.token()), directory)
	s.mustGit(directory, "checkout", "--quiet", "-b", branch)
	for name, content := range files {
		s.ok(os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o755))
		s.ok(os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644))
	}
	s.mustGit(directory, "add", ".")
	s.mustGit(directory, "commit", "--quiet", "-m", "change")
	s.mustGit(directory, "push", "--quiet", "origin", branch)
	return s.mustGit(directory, "rev-parse", "HEAD")
}
