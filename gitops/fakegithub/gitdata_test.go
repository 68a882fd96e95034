package fakegithub

import (
	"encoding/base64"
	"strings"
	"testing"
)

func (s *stage) writeObjects() string {
	bot, repo := s.bot(), "/repos/acme/hello"
	blob := bot.post(repo+"/git/blobs", map[string]any{"content": base64.StdEncoding.EncodeToString([]byte("a\x00b")), "encoding": "base64"}).is(201).text("sha")
	base := s.repository.Branches["main"]
	tree := bot.post(repo+"/git/trees", map[string]any{"base_tree": base, "tree": []any{
		map[string]any{"path": "bin/data", "mode": "100755", "type": "blob", "sha": blob},
		map[string]any{"path": "link", "mode": "120000", "type": "blob", "content": "bin/data"},
		map[string]any{"path": "README.md", "mode": "100644", "type": "blob", "sha": nil},
	}}).is(201).text("sha")
	return bot.post(repo+"/git/commits", map[string]any{"message": "By the API", "tree": tree, "parents": []string{base}}).is(201).text("sha")
}

// TestCommitsByTheAPI: what is written object by object is what git then shows, and GitHub vouches for it.
func TestCommitsByTheAPI(t *testing.T) {
	s := newStage(t)
	bot, repo := s.bot(), "/repos/acme/hello"
	sha := s.writeObjects()
	if again := s.writeObjects(); s.gitCommit(again)["tree"] == nil {
		t.Error("the second commit has no tree")
	}
	bot.post(repo+"/git/refs", map[string]any{"ref": "refs/heads/copilot/1", "sha": sha}).is(201)
	files, err := s.server.CommitFiles("acme/hello", "copilot/1")
	s.ok(err)
	if files["bin/data"] != "a\x00b" || files["link"] != "bin/data" || files["run.sh"] == "" {
		t.Errorf("the files are %q", files)
	}
	if _, there := files["README.md"]; there {
		t.Error("README.md is still there")
	}
	directory := s.clone(s.server.URL() + "/acme/hello.git")
	s.mustGit(directory, "fsck", "--strict")
	if listed := s.mustGit(directory, "ls-tree", "-r", "origin/copilot/1"); !strings.Contains(listed, "100755 blob") || !strings.Contains(listed, "120000 blob") {
		t.Errorf("modes: %s", listed)
	}
	if who := strings.TrimSpace(s.mustGit(directory, "log", "-1", "--format=%an <%ae> %cn <%ce>", "origin/copilot/1")); !strings.HasPrefix(who, "robot[bot] <") ||
		!strings.HasSuffix(who, "+robot[bot]@users.noreply.github.com> GitHub <noreply@github.com>") {
		t.Errorf("it is by %s", who)
	}
}

func (s *stage) gitCommit(sha string) map[string]any {
	var commit map[string]any
	s.bot().get("/repos/acme/hello/git/commits/" + sha).is(200).into(&commit)
	return commit
}

// TestVerification: GitHub signs what only a bot is named in, and nothing else passes for it.
func TestVerification(t *testing.T) {
	s := newStage(t)
	repo := "/repos/acme/hello/git/commits"
	tree := s.gitCommit(s.repository.Branches["main"])["tree"].(map[string]any)["sha"]
	made := func(c *client, more map[string]any) map[string]any {
		body := map[string]any{"message": "m", "tree": tree}
		for name, value := range more {
			body[name] = value
		}
		var commit map[string]any
		c.post(repo, body).is(201).into(&commit)
		return commit["verification"].(map[string]any)
	}
	signed := made(s.bot(), nil)
	if signed["verified"] != true || signed["reason"] != "valid" || !strings.HasPrefix(signed["payload"].(string), "tree ") {
		t.Errorf("a bot's commit: %v", signed)
	}
	ada := map[string]any{"name": "Ada", "email": "ada@example.com"}
	for what, got := range map[string]map[string]any{
		"an author":           made(s.bot(), map[string]any{"author": ada}),
		"a committer":         made(s.bot(), map[string]any{"committer": ada}),
		"a person":            made(s.person("maria"), nil),
		"somebody's key":      made(s.bot(), map[string]any{"signature": "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n"}),
		"another's signature": made(s.bot(), map[string]any{"author": ada, "signature": signed["signature"]}),
	} {
		if got["verified"] != false {
			t.Errorf("%s: %v", what, got)
		}
	}
	s.server.LeaveUnsigned(true)
	if got := made(s.bot(), nil); got["reason"] != "unsigned" {
		t.Errorf("a server that signs nothing: %v", got)
	}
}

// TestObjectsThatAreRefused: with the words that GitHub has for them.
func TestObjectsThatAreRefused(t *testing.T) {
	s := newStage(t)
	bot, repo := s.bot(), "/repos/acme/hello/git/"
	bot.post(repo+"blobs", map[string]any{"content": "!", "encoding": "base64"}).refused(422, "content is not valid Base64")
	bot.post(repo+"blobs", map[string]any{"content": "x", "encoding": "rot13"}).refused(422, "encoding must be utf-8 or base64")
	none := strings.Repeat("1", 40)
	entry := func(path, mode string, sha any) map[string]any {
		return map[string]any{"tree": []any{map[string]any{"path": path, "mode": mode, "type": "blob", "sha": sha}}}
	}
	bot.post(repo+"trees", map[string]any{"tree": []any{}}).refused(422, "Invalid tree info")
	bot.post(repo+"trees", map[string]any{"base_tree": none, "tree": []any{}}).refused(422, "base_tree is not a valid tree oid")
	bot.post(repo+"trees", entry("a", "100644", none)).refused(422, "tree.sha "+none+" is not a valid blob")
	bot.post(repo+"trees", entry("a", "040000", none)).refused(422, "tree.sha "+none+" is not a valid tree")
	bot.post(repo+"trees", entry("a", "100600", none)).refused(422, "Must supply a valid tree.mode")
	bot.post(repo+"trees", entry("/a", "100644", none)).refused(422, "tree.path cannot start with a slash")
	bot.post(repo+"trees", entry("", "100644", none)).refused(422, "Must supply tree.path")
	for _, path := range []string{"a/../b", "./a", "a//b", ".git/config", "a/.GIT", "a/"} {
		bot.post(repo+"trees", entry(path, "100644", none)).refused(422, "tree.path contains a malformed path component")
	}
	bot.post(repo+"trees", entry("gone", "100644", nil)).refused(422, "GitRPC::BadObjectState")
	tree := s.gitCommit(s.repository.Branches["main"])["tree"].(map[string]any)["sha"]
	bot.post(repo+"commits", map[string]any{"message": "m", "tree": none}).refused(422, "Tree SHA does not exist")
	bot.post(repo+"commits", map[string]any{"message": "m", "tree": tree, "parents": []string{none}}).refused(422, "Parent SHA does not exist or is not a commit object")
	bot.post(repo+"commits", map[string]any{"tree": tree}).refused(422, "Invalid request.\n\n\"message\" wasn't supplied.")
	bot.post(repo+"refs", map[string]any{"ref": "refs/heads/main", "sha": s.repository.Branches["main"]}).refused(422, "Reference already exists")
	reader := s.as(s.token(map[string]any{"permissions": map[string]string{"contents": "read"}}))
	reader.post(repo+"blobs", map[string]any{"content": "x"}).refused(403, "Resource not accessible by integration")
}

// TestRulesets: git and the API refuse the same refs, each in its words.
func TestRulesets(t *testing.T) {
	s := newStage(t)
	s.ok(s.server.Protect("acme/hello", Protection{Pattern: "copilot/*", Ruleset: true}))
	s.bot().post("/repos/acme/hello/git/refs", map[string]any{"ref": "refs/heads/copilot/1", "sha": s.repository.Branches["main"]}).
		refused(422, "Repository rule violations found\n\nCannot create ref due to creations being restricted.\n\n")
	directory := s.clone(s.remote(s.token()))
	s.refusedPush(directory, "GH013: Repository rule violations found for refs/heads/copilot/1.", "HEAD:refs/heads/copilot/1")
	s.refusedPush(directory, "push declined due to repository rule violations", "HEAD:refs/heads/copilot/1")
}
