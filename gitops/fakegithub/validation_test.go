package fakegithub

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestWhatGitHubRefuses: 422 for what is well-formed but wrong, with the field and the code.
func TestWhatGitHubRefuses(t *testing.T) {
	s := newStage(t)
	bot, repo := s.bot(), "/repos/acme/hello"
	sha := s.repository.Branches["main"]
	_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "topic", From: "main", Author: "walter", Message: "m", Files: map[string]string{"a": "b"}})
	s.ok(err)
	s.person("maria").post(repo+"/issues", map[string]any{"title": "One"}).is(201)
	bot.post(repo+"/pulls", map[string]any{"title": "Two", "head": "topic", "base": "main"}).is(201)
	action := func(label, description, identifier string) map[string]any {
		return map[string]any{"label": label, "description": description, "identifier": identifier}
	}
	check := func(actions ...map[string]any) map[string]any {
		return map[string]any{"name": "c", "head_sha": sha, "status": "completed", "conclusion": "neutral", "actions": actions}
	}
	fine := action("a", "b", "c")
	for name, test := range map[string]struct {
		path string
		body any
		says string
	}{
		"issue without title":        {repo + "/issues", map[string]any{"body": "x"}, `"missing_field"`},
		"issue with a long title":    {repo + "/issues", map[string]any{"title": strings.Repeat("ä", 257)}, "maximum is 256"},
		"comment too long":           {repo + "/issues/1/comments", map[string]any{"body": strings.Repeat("ä", 65537)}, "maximum is 65536 characters"},
		"comment empty":              {repo + "/issues/1/comments", map[string]any{"body": " "}, `"missing_field"`},
		"comment of wrong type":      {repo + "/issues/1/comments", map[string]any{"body": 7}, "Invalid request"},
		"reaction unknown":           {repo + "/issues/1/reactions", map[string]any{"content": "shrug"}, `"content"`},
		"pull request twice":         {repo + "/pulls", map[string]any{"title": "x", "head": "topic", "base": "main"}, "A pull request already exists for acme:topic."},
		"pull request twice, owner":  {repo + "/pulls", map[string]any{"title": "x", "head": "acme:topic", "base": "main"}, "A pull request already exists for acme:topic."},
		"pull request of nothing":    {repo + "/pulls", map[string]any{"title": "x", "head": "main", "base": "main"}, "No commits between main and main"},
		"pull request, no head":      {repo + "/pulls", map[string]any{"title": "x", "head": "nowhere", "base": "main"}, `"head"`},
		"pull request, no base":      {repo + "/pulls", map[string]any{"title": "x", "head": "topic", "base": "nowhere"}, `"base"`},
		"check run, no commit":       {repo + "/check-runs", map[string]any{"name": "c", "head_sha": strings.Repeat("0", 40)}, "No commit found for SHA"},
		"check run, four actions":    {repo + "/check-runs", check(fine, fine, fine, fine), "no more than 3"},
		"check run, long label":      {repo + "/check-runs", check(action(strings.Repeat("l", 21), "d", "i")), "label is too long (maximum is 20"},
		"check run, long words":      {repo + "/check-runs", check(action("l", strings.Repeat("d", 41), "i")), "description is too long (maximum is 40"},
		"check run, long identifier": {repo + "/check-runs", check(action("l", "d", strings.Repeat("i", 21))), "identifier is too long (maximum is 20"},
		"check run, no summary":      {repo + "/check-runs", map[string]any{"name": "c", "head_sha": sha, "output": map[string]any{"title": "t"}}, "output.summary"},
		"check run, long text": {repo + "/check-runs", map[string]any{"name": "c", "head_sha": sha,
			"output": map[string]any{"title": "t", "summary": "s", "text": strings.Repeat("x", 65536)}}, "text is too long"},
		"check run, no conclusion": {repo + "/check-runs", map[string]any{"name": "c", "head_sha": sha, "status": "completed"}, "conclusion"},
		"label twice":              {repo + "/labels", map[string]any{"name": "BUG"}, "already_exists"},
		"label too long":           {repo + "/labels", map[string]any{"name": strings.Repeat("x", 51)}, "maximum is 50"},
		"ref that exists":          {repo + "/git/refs", map[string]any{"ref": "refs/heads/main", "sha": sha}, "Reference already exists"},
		"ref without refs/":        {repo + "/git/refs", map[string]any{"ref": "main", "sha": sha}, "must start with 'refs/'"},
		"ref of no object":         {repo + "/git/refs", map[string]any{"ref": "refs/heads/x", "sha": strings.Repeat("1", 40)}, "Object does not exist"},
		"ref below a branch":       {repo + "/git/refs", map[string]any{"ref": "refs/heads/main/x", "sha": sha}, "cannot lock ref"},
		"hidden ref":               {repo + "/git/refs", map[string]any{"ref": "refs/pull/9/head", "sha": sha}, "deny updating a hidden ref"},
		"ref with a bad name":      {repo + "/git/refs", map[string]any{"ref": "refs/heads/a..b", "sha": sha}, "funny refname"},
		"status unknown":           {repo + "/statuses/" + sha, map[string]any{"state": "maybe"}, "state"},
		"reviewer a stranger":      {repo + "/pulls/2/requested_reviewers", map[string]any{"reviewers": []string{"stranger"}}, "collaborators"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := bot.post(test.path, test.body).is(422)
			if !strings.Contains(string(answer.body), test.says) {
				t.Errorf("answered %s, want something about %q", answer.body, test.says)
			}
		})
	}
	bot.post(repo+"/issues/1/comments", "{").refused(400, "Problems parsing JSON")
	bot.post(repo+"/issues/1/comments", map[string]any{"body": strings.Repeat("ä", 65536)}).is(201)
	bot.post(repo+"/issues/99/comments", map[string]any{"body": "x"}).refused(404, "Not Found")
	bot.get(repo+"/issues/x").refused(404, "Not Found")
	bot.get(repo+"/pulls/1").refused(404, "Not Found")
	bot.patch(repo+"/git/refs/heads/topic", map[string]any{"sha": sha}).refused(422, "Update is not a fast forward")
	bot.patch(repo+"/git/refs/heads/topic", map[string]any{"sha": sha, "force": true}).is(200)
}

func TestLockedConversation(t *testing.T) {
	s := newStage(t)
	s.person("ralph").post("/repos/acme/hello/issues", map[string]any{"title": "One"}).is(201)
	s.ok(s.server.As("maria").LockIssue("acme/hello", 1))
	s.person("ralph").post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "x"}).
		refused(403, "Unable to create comment because issue is locked.")
	s.person("walter").post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "x"}).is(201)
}

// TestCommentsBelongToTheirAuthors: people who can write may edit anybody's, others only their own.
func TestCommentsBelongToTheirAuthors(t *testing.T) {
	s := newStage(t)
	s.person("maria").post("/repos/acme/hello/issues", map[string]any{"title": "One"}).is(201)
	id := s.bot().post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "prompt"}).is(201).id()
	address := fmt.Sprintf("/repos/acme/hello/issues/comments/%d", id)
	s.person("ralph").patch(address, map[string]any{"body": "x"}).is(403)
	s.person("ralph").delete(address).is(403)
	s.server.Advance(time.Second)
	edited := s.person("walter").patch(address, map[string]any{"body": "harmless"}).is(200)
	if edited.text("updated_at") == edited.text("created_at") {
		t.Error("an edit left updated_at as it was")
	}
	reaction := s.person("ralph").post(address+"/reactions", map[string]any{"content": "+1"}).is(201).id()
	s.person("maria").delete(fmt.Sprintf("%s/reactions/%d", address, reaction)).refused(404, "Not Found")
	s.person("ralph").delete(fmt.Sprintf("%s/reactions/%d", address, reaction)).is(204)
}
