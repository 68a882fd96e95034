package fakegithub

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
)

// withBackends runs a test against both ways of serving git: the rules may not differ.
func withBackends(t *testing.T, test func(*stage)) {
	for _, backend := range backends(t) {
		t.Run(string(backend), func(t *testing.T) {
			s := newStage(t, func(o *Options) { o.Git = backend })
			if s.server.GitBackend() != backend {
				t.Fatalf("served by %s, want %s", s.server.GitBackend(), backend)
			}
			test(s)
		})
	}
}

// clone clones acme/hello with git and returns the directory.
func (s *stage) clone(remote string) string {
	s.Helper()
	directory := filepath.Join(s.TempDir(), "clone")
	s.mustGit(".", "clone", "--quiet", remote, directory)
	return directory
}

func (s *stage) commit(directory, name, content string) {
	s.Helper()
	path := filepath.Join(directory, name)
	s.ok(os.MkdirAll(filepath.Dir(path), 0o755))
	s.ok(os.WriteFile(path, []byte(content), 0o644))
	s.mustGit(directory, "add", "--all")
	s.mustGit(directory, "commit", "--quiet", "-m", "change "+name)
}

// refusedPush pushes and wants git to fail with these words.
func (s *stage) refusedPush(directory, words string, arguments ...string) {
	s.Helper()
	output, err := s.git(directory, append([]string{"push", "origin"}, arguments...)...)
	if err == nil || !strings.Contains(output, words) {
		s.Errorf("push %v: %v, want a refusal with %q:\n%s", arguments, err, words, output)
	}
}

func TestAnybodyClonesWhatIsPublic(t *testing.T) {
	withBackends(t, func(s *stage) {
		directory := s.clone(s.server.URL() + "/acme/hello.git")
		for name, file := range helloFiles() {
			content, err := os.ReadFile(filepath.Join(directory, name))
			s.ok(err)
			if string(content) != string(file.Data) {
				s.Errorf("%s is %q", name, content)
			}
		}
		if info, err := os.Stat(filepath.Join(directory, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
			s.Errorf("run.sh is not executable: %v", err)
		}
		_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "main", Author: "maria", Message: "m", Files: map[string]string{"new": "x"}})
		s.ok(err)
		s.mustGit(directory, "pull", "--quiet")
		if got := s.mustGit(directory, "show", "HEAD:new"); got != "x" {
			s.Errorf("after the pull, new is %q", got)
		}
		s.mustGit(directory, "fsck", "--strict")
		s.refusedPush(directory, "could not read Username", "HEAD:refs/heads/x")
	})
}

// TestSeedIsDeterministic: the same files give the same commit in every world.
func TestSeedIsDeterministic(t *testing.T) {
	one, two := newStage(t), newStage(t)
	if one.repository.Branches["main"] != two.repository.Branches["main"] {
		t.Errorf("the first commits are %s and %s", one.repository.Branches["main"], two.repository.Branches["main"])
	}
}

func TestGitAccess(t *testing.T) {
	withBackends(t, func(s *stage) {
		_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "secret", Private: true, Files: helloFiles(), Roles: map[string]Role{"ralph": RoleRead}})
		s.ok(err)
		secret := func(token string) string { return strings.Replace(s.remote(token), "hello", "secret", 1) }
		refused := func(remote, words string) {
			s.Helper()
			output, err := s.git(".", "ls-remote", remote)
			if err == nil || !strings.Contains(output, words) {
				s.Errorf("ls-remote: %v, want a refusal with %q:\n%s", err, words, output)
			}
		}
		s.mustGit(".", "ls-remote", secret(s.token()))
		s.mustGit(".", "ls-remote", secret(s.server.As("ralph").Token()))
		refused(s.server.URL()+"/acme/secret.git", "could not read Username")
		refused(secret(s.server.As("stranger").Token()), "not found")
		refused(secret(s.token(map[string]any{"repositories": []string{"hello"}})), "not found")
		refused(secret(s.token(map[string]any{"permissions": map[string]string{"issues": "read"}})), "403")
		refused(secret("ghs_nobody"), "Authentication failed")

		directory := s.clone(secret(s.server.As("ralph").Token()))
		s.commit(directory, "x", "x")
		s.refusedPush(directory, "Permission to acme/secret.git denied to ralph.", "HEAD:refs/heads/x")
		s.mustGit(directory, "remote", "set-url", "origin", secret(s.token(map[string]any{"permissions": map[string]string{"contents": "read"}})))
		s.refusedPush(directory, "Write access to repository not granted.", "HEAD:refs/heads/x")
		token := s.token()
		s.server.ExpireTokens()
		s.mustGit(directory, "remote", "set-url", "origin", secret(token))
		s.refusedPush(directory, "Authentication failed", "HEAD:refs/heads/x")
	})
}

// TestPushRules: what GitHub would not take is refused in its words, whichever backend serves, and nothing moves.
func TestPushRules(t *testing.T) {
	withBackends(t, func(s *stage) {
		s.ok(s.server.Protect("acme/hello", Protection{Pattern: "main", RequirePullRequest: true}))
		s.ok(s.server.Protect("acme/hello", Protection{Pattern: "release/*"}))
		directory := s.clone(s.remote(s.token()))
		s.commit(directory, "a.txt", "a")
		s.refusedPush(directory, "Changes must be made through a pull request.", "HEAD:main")
		s.refusedPush(directory, "GH006: Protected branch update failed for refs/heads/main.", "HEAD:main")
		s.refusedPush(directory, "deny updating a hidden ref", "HEAD:refs/pull/1/head")
		s.refusedPush(directory, "funny refname", "HEAD:refs/notes/x")
		s.refusedPush(directory, "refusing to delete the current branch: refs/heads/main", ":main")
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:release/1")
		s.refusedPush(directory, "Cannot delete this branch", ":release/1")
		s.refusedPush(directory, "Cannot force-push to this branch", "--force", "HEAD~1:release/1")
		s.refusedPush(directory, "cannot lock ref 'refs/heads/release/1/x'", "HEAD:release/1/x")
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:topic")
		s.mustGit(directory, "push", "--quiet", "--force", "origin", "HEAD~1:topic")
		s.mustGit(directory, "push", "--quiet", "origin", ":topic")
		s.mustGit(directory, "tag", "-a", "-m", "first", "v1")
		s.mustGit(directory, "push", "--quiet", "origin", "v1")

		s.ok(s.server.SetPreReceive("acme/hello", "error: the policy of acme says no\nerror: ask maria"))
		s.refusedPush(directory, "remote: error: the policy of acme says no", "HEAD:topic")
		s.refusedPush(directory, "pre-receive hook declined", "HEAD:topic")
		s.ok(s.server.SetPreReceive("acme/hello", ""))
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:topic")
		state, _ := s.server.State().Repository("acme/hello")
		if len(state.Branches) != 3 || state.Branches["main"] != s.repository.Branches["main"] {
			s.Errorf("branches are %v", state.Branches)
		}
	})
}

// TestWorkflowFiles: an App without the workflows permission may carry known workflow files along, but bring no new.
func TestWorkflowFiles(t *testing.T) {
	withBackends(t, func(s *stage) {
		directory := s.clone(s.remote(s.token()))
		s.commit(directory, ".github/workflows/evil.yml", "on: push\n")
		words := "refusing to allow a GitHub App to create or update workflow `.github/workflows/evil.yml` without `workflows` permission"
		s.refusedPush(directory, words, "HEAD:topic")
		s.mustGit(directory, "push", "--quiet", s.remote(s.server.As("walter").Token()), "HEAD:by-walter")
		s.mustGit(directory, "push", "--quiet", "origin", "HEAD:topic") // known by now
		s.commit(directory, ".github/workflows/ci.yml", "on: [push, pull_request]\n")
		s.refusedPush(directory, "`.github/workflows/ci.yml`", "HEAD:topic")
		permissions := s.app.Permissions
		permissions["workflows"] = "write"
		s.ok(s.server.SetPermissions(s.installation.ID, permissions))
		s.mustGit(directory, "push", "--quiet", s.remote(s.token()), "HEAD:topic")
	})
}

func TestLargeFiles(t *testing.T) {
	for _, backend := range backends(t) {
		s := newStage(t, func(o *Options) { o.Git, o.Limits = backend, Limits{LargestFile: 1 << 20} })
		directory := s.clone(s.remote(s.token()))
		s.commit(directory, "deep/large.bin", strings.Repeat("x", 3<<19))
		s.refusedPush(directory, "File deep/large.bin is 1.50 MB; this exceeds GitHub's file size limit of 1.00 MB", "HEAD:topic")
	}
}

// TestLostAnswerToAPush: the branch is there although git saw the connection break.
func TestLostAnswerToAPush(t *testing.T) {
	withBackends(t, func(s *stage) {
		directory := s.clone(s.remote(s.token()))
		s.commit(directory, "a.txt", "a")
		s.server.AddFault(Fault{Kind: FaultLostAnswer, Method: "POST", Path: "/*/*/git-receive-pack"})
		if output, err := s.git(directory, "push", "origin", "HEAD:topic"); err == nil {
			s.Errorf("the push was answered:\n%s", output)
		}
		state, _ := s.server.State().Repository("acme/hello")
		if state.Branches["topic"] != s.mustGit(directory, "rev-parse", "HEAD") {
			s.Errorf("branches are %v", state.Branches)
		}
	})
}

// TestCompareAndSwap: a push that names an old value which is not there any more moves nothing.
func TestCompareAndSwap(t *testing.T) {
	withBackends(t, func(s *stage) {
		first := s.openPush("copilot/1")
		second := s.openPush("copilot/1")
		s.ok(first.push("refs/heads/main:refs/heads/copilot/1"))
		if err := second.pushAsCreation("copilot/1"); err == nil || !strings.Contains(err.Error(), "cannot lock ref") {
			s.Errorf("creating a branch that is there: %v", err)
		}
		state, _ := s.server.State().Repository("acme/hello")
		if state.Branches["copilot/1"] != first.head.String() {
			s.Errorf("copilot/1 is %s, want %s", state.Branches["copilot/1"], first.head)
		}
	})
}

// goGitClone is a clone by go-git in memory, with one commit more than the remote.
type goGitClone struct {
	stage *stage
	repo  *git.Repository
	head  plumbing.Hash
	auth  *githttp.BasicAuth
}

func (s *stage) openPush(content string) *goGitClone {
	s.Helper()
	auth := &githttp.BasicAuth{Username: "x-access-token", Password: s.token()}
	repo, err := git.CloneContext(s.Context(), memory.NewStorage(), memfs.New(), &git.CloneOptions{URL: s.server.URL() + "/acme/hello.git", Auth: auth})
	s.ok(err)
	tree, err := repo.Worktree()
	s.ok(err)
	file, err := tree.Filesystem.Create("new.txt")
	s.ok(err)
	_, err = file.Write([]byte(content + s.TempDir()))
	s.ok(err)
	s.ok(file.Close())
	_, err = tree.Add("new.txt")
	s.ok(err)
	head, err := tree.Commit("change", &git.CommitOptions{Author: &gitobject.Signature{Name: "robot", Email: "robot@example.com", When: s.server.Now()}})
	s.ok(err)
	return &goGitClone{stage: s, repo: repo, head: head, auth: auth}
}

func (c *goGitClone) push(spec string) error {
	return c.repo.PushContext(c.stage.Context(), &git.PushOptions{RefSpecs: []config.RefSpec{config.RefSpec(spec)}, Auth: c.auth})
}

// pushAsCreation sends the zero hash as the old value, as somebody would who believes that the branch is not there.
func (c *goGitClone) pushAsCreation(branch string) error {
	s := c.stage
	command := plumbing.ZeroHash.String() + " " + c.head.String() + " refs/heads/" + branch + "\x00 report-status side-band-64k agent=test"
	body := packetLine(command) + "0000" + emptyPack
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL()+"/acme/hello.git/git-receive-pack", strings.NewReader(body))
	s.ok(err)
	request.SetBasicAuth("x-access-token", c.auth.Password)
	response, err := http.DefaultClient.Do(request)
	s.ok(err)
	defer response.Body.Close()
	return reportOf(response)
}

// TestGoGitWithoutGit clones and pushes without any git program, which is what a bare machine has.
func TestGoGitWithoutGit(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Git = GitNative })
	s.told()
	clone := s.openPush("hello")
	s.ok(clone.push("refs/heads/main:refs/heads/copilot/2"))
	if got := names(s.told()); len(got) != 1 || got[0] != "push" {
		t.Errorf("told %v", got)
	}
	files, err := s.server.CommitFiles("acme/hello", "copilot/2")
	s.ok(err)
	if !strings.HasPrefix(files["new.txt"], "hello") || files["README.md"] == "" {
		t.Errorf("files are %v", files)
	}
}

// TestGitRequestsThatAreWrong: neither nonsense nor an unknown service may do more than be refused.
func TestGitRequestsThatAreWrong(t *testing.T) {
	withBackends(t, func(s *stage) {
		bot := s.bot()
		for _, body := range []string{"", "zzzz", "0000", "0009nope\n", packetLine("x y z") + "0000", strings.Repeat("f", 4) + "x"} {
			response, err := s.request(bot, http.MethodPost, "/acme/hello.git/git-receive-pack", body)
			s.ok(err)
			response.Body.Close()
			if response.StatusCode >= 500 {
				s.Errorf("a push of %q: %d", body, response.StatusCode)
			}
		}
		for path, want := range map[string]int{"/acme/hello.git/info/refs": 403, "/acme/hello.git/info/refs?service=git-x": 403,
			"/acme/nothing.git/info/refs?service=git-upload-pack": 404} {
			response, err := s.request(bot, http.MethodGet, path, "")
			s.ok(err)
			response.Body.Close()
			if response.StatusCode != want {
				s.Errorf("GET %s: %d, want %d", path, response.StatusCode, want)
			}
		}
		if refs, err := s.server.refs(s.server.world.repositories[s.repository.ID], "refs/"); err != nil || len(refs) != 1 {
			s.Errorf("refs are %v, %v", refs, err)
		}
	})
}

func TestShallowClone(t *testing.T) {
	withBackends(t, func(s *stage) {
		_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "main", Author: "maria", Message: "m", Files: map[string]string{"new": "x"}})
		s.ok(err)
		directory := filepath.Join(s.TempDir(), "shallow")
		output, err := s.git(".", "clone", "--quiet", "--depth", "1", s.server.URL()+"/acme/hello.git", directory)
		if s.server.GitBackend() == GitNative {
			if err == nil || !strings.Contains(output, "shallow") {
				s.Errorf("the native backend has no shallow clones, but: %v\n%s", err, output)
			}
			return
		}
		s.ok(err)
		if got := s.mustGit(directory, "rev-list", "--count", "HEAD"); got != "1" {
			s.Errorf("a shallow clone has %s commits", got)
		}
	})
}
