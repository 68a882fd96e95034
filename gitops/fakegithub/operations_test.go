package fakegithub

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEveryOperation calls every operation that GitHub describes for us at least once with success. The client
// checks each answer against the description; at the end nothing may have been left out.
func TestEveryOperation(t *testing.T) {
	covered.Clear()
	s := newStage(t)
	s.callApp()
	s.callIssues()
	s.callRepository()
	s.callPulls()
	s.callChecks()
	s.callActions()
	s.callManifest()
	for template, item := range description().Paths.Map() {
		for method := range item.Operations() {
			if _, called := covered.Load(strings.ToLower(method) + " " + template); !called {
				t.Errorf("%s %s was never called", method, template)
			}
		}
	}
}

func (s *stage) callApp() {
	app := s.as(s.jwt())
	app.get("/app").is(200)
	app.get("/app/installations").is(200)
	app.get(fmt.Sprintf("/app/installations/%d", s.installation.ID)).is(200)
	app.get("/repos/acme/hello/installation").is(200)
	app.get("/app/hook/config").is(200)
	app.patch("/app/hook/config", map[string]any{"secret": hookSecret, "insecure_ssl": 0}).is(200)
	s.told()
	deliveries := app.get("/app/hook/deliveries").is(200).list()
	if len(deliveries) != 1 {
		s.Fatalf("deliveries: %v", deliveries)
	}
	address := fmt.Sprintf("/app/hook/deliveries/%.0f", deliveries[0]["id"])
	app.get(address).is(200)
	app.post(address+"/attempts", nil).is(202)

	scoped := s.as(s.token(map[string]any{"repositories": []string{"hello"}, "permissions": map[string]string{"issues": "read"}}))
	scoped.get("/installation/repositories").is(200)
	scoped.get("/rate_limit").is(200)
	scoped.get("/meta").is(200)
	scoped.delete("/installation/token").is(204)
	scoped.get("/installation/repositories").refused(401, "Bad credentials")
	s.person("maria").get("/user").is(200)
	s.person("maria").get("/users/robot%5Bbot%5D").is(200)
}

func (s *stage) callIssues() {
	bot, maria := s.bot(), s.person("maria")
	repo := "/repos/acme/hello"
	maria.post(repo+"/issues", map[string]any{"title": "One", "body": "text", "labels": []any{"bug", map[string]any{"name": "new"}}}).is(201)
	bot.get(repo + "/issues?labels=bug&state=all").is(200)
	bot.get(repo + "/issues/1").is(200)
	bot.patch(repo+"/issues/1", map[string]any{"title": "Uno", "labels": []string{"bug"}}).is(200)
	comment := maria.post(repo+"/issues/1/comments", map[string]any{"body": "hello"}).is(201).id()
	address := fmt.Sprintf("%s/issues/comments/%d", repo, comment)
	bot.get(repo + "/issues/1/comments?since=2020-01-01T00:00:00Z").is(200)
	bot.get(address).is(200)
	bot.patch(address, map[string]any{"body": "changed"}).is(200)
	reaction := bot.post(address+"/reactions", map[string]any{"content": "eyes"}).is(201).id()
	bot.post(address+"/reactions", map[string]any{"content": "eyes"}).is(200)
	bot.get(address + "/reactions?content=eyes").is(200)
	bot.delete(fmt.Sprintf("%s/reactions/%d", address, reaction)).is(204)
	bot.post(repo+"/issues/1/reactions", map[string]any{"content": "heart"}).is(201)
	bot.get(repo + "/issues/1/reactions").is(200)
	bot.get(repo + "/issues/1/labels").is(200)
	bot.post(repo+"/issues/1/labels", map[string]any{"labels": []string{"enhancement"}}).is(200)
	bot.get(repo + "/labels").is(200)
	bot.post(repo+"/labels", map[string]any{"name": "copilot", "color": "0e8a16"}).is(201)
	maria.delete(address).is(204)
	maria.get(address).is(404)
}

func (s *stage) callRepository() {
	bot := s.bot()
	repo := "/repos/acme/hello"
	bot.get(repo).is(200)
	bot.get(fmt.Sprintf("/repositories/%d/issues", s.repository.ID)).is(200)
	bot.get(repo + "/collaborators/maria").is(204)
	bot.get(repo + "/collaborators/stranger").is(404)
	bot.get(repo + "/collaborators/maria/permission").is(200)
	sha := s.repository.Branches["main"]
	bot.get(repo + "/branches").is(200)
	bot.get(repo + "/branches/main").is(200)
	bot.get(repo + "/commits?path=README.md").is(200)
	bot.get(repo + "/commits/main").is(200)
	bot.get(repo + "/contents/README.md").is(200)
	bot.get(repo + "/contents/internal").is(200)
	bot.get(repo + "/contents/").is(200)
	bot.get(repo + "/compare/main...main").is(200)
	bot.get(repo + "/git/ref/heads/main").is(200)
	bot.get(repo + "/git/matching-refs/heads/ma").is(200)
	bot.get(repo + "/git/commits/" + sha).is(200)
	bot.get(repo + "/git/trees/main?recursive=1").is(200)
	bot.post(repo+"/git/refs", map[string]any{"ref": "refs/heads/topic", "sha": sha}).is(201)
	bot.patch(repo+"/git/refs/heads/topic", map[string]any{"sha": sha}).is(200)
	bot.delete(repo + "/git/refs/heads/topic").is(204)
	s.writeObjects()
}

func (s *stage) callPulls() {
	bot, maria := s.bot(), s.person("maria")
	repo := "/repos/acme/hello"
	_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: "topic", From: "main", Author: "walter", Message: "Greet",
		Files: map[string]string{"main.go": "package main\n", "new.txt": "new\n"}})
	s.ok(err)
	number := bot.post(repo+"/pulls", map[string]any{"title": "Greet", "head": "topic", "base": "main"}).is(201).field("number")
	pull := fmt.Sprintf("%s/pulls/%.0f", repo, number)
	bot.get(repo + "/pulls?head=acme:topic").is(200)
	bot.get(pull).is(200)
	bot.patch(pull, map[string]any{"body": "more"}).is(200)
	bot.get(pull + "/files").is(200)
	bot.get(pull + "/commits").is(200)
	bot.post(pull+"/requested_reviewers", map[string]any{"reviewers": []string{"maria"}}).is(201)
	s.ok(s.server.As("maria").Review("acme/hello", int(number.(float64)), "APPROVED", "fine"))
	remark, err := s.server.As("maria").ReviewComment("acme/hello", int(number.(float64)), "main.go", 1, "/copilot why")
	s.ok(err)
	bot.get(pull + "/reviews").is(200)
	bot.get(pull + "/comments").is(200)
	bot.post(fmt.Sprintf("%s/comments/%d/replies", pull, remark.ID), map[string]any{"body": "because"}).is(201)
	bot.get(fmt.Sprintf("%s/pulls/comments/%d", repo, remark.ID)).is(200)
	bot.post(fmt.Sprintf("%s/pulls/comments/%d/reactions", repo, remark.ID), map[string]any{"content": "rocket"}).is(201)
	maria.do(http.MethodPut, pull+"/merge", map[string]any{"merge_method": "squash"}).is(200)
}

func (s *stage) callChecks() {
	bot := s.bot()
	repo := "/repos/acme/hello"
	sha := s.repository.Branches["main"]
	check := bot.post(repo+"/check-runs", map[string]any{"name": "copilot", "head_sha": sha}).is(201).id()
	address := fmt.Sprintf("%s/check-runs/%d", repo, check)
	bot.get(address).is(200)
	bot.patch(address, map[string]any{"conclusion": "neutral", "output": map[string]any{"title": "t", "summary": "s",
		"annotations": []map[string]any{{"path": "main.go", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "look"}}}}).is(200)
	bot.get(address + "/annotations").is(200)
	bot.post(address+"/rerequest", nil).is(201)
	bot.get(repo + "/commits/" + sha + "/check-runs").is(200)
	bot.get(repo + "/commits/" + sha + "/check-suites").is(200)
	bot.post(repo+"/statuses/"+sha, map[string]any{"state": "success", "context": "ci"}).is(201)
	bot.get(repo + "/commits/" + sha + "/status").is(200)
}

func (s *stage) callActions() {
	bot := s.bot()
	run, err := s.server.AddWorkflowRun("acme/hello", WorkflowRun{Name: "ci", Path: ".github/workflows/ci.yml", Branch: "main",
		Conclusion: "failure", Jobs: []WorkflowJob{{Name: "test", Conclusion: "failure", Log: "FAIL\n"}}})
	s.ok(err)
	bot.get(fmt.Sprintf("/repos/acme/hello/actions/runs/%d", run.ID)).is(200)
	bot.get(fmt.Sprintf("/repos/acme/hello/actions/runs/%d/jobs", run.ID)).is(200)
	bot.get(fmt.Sprintf("/repos/acme/hello/actions/jobs/%d/logs", run.Jobs[0].ID)).is(302)
}

func (s *stage) callManifest() {
	code := s.server.offerManifest(appManifest{Name: "Another Robot", URL: "http://127.0.0.1/", DefaultPermissions: map[string]string{"issues": "write"}}, "maria")
	created := s.as("").post("/app-manifests/"+code+"/conversions", nil).is(201)
	if created.text("slug") != "another-robot" || !strings.Contains(created.text("pem"), "PRIVATE KEY") {
		s.Errorf("converted to %s", created.body)
	}
	s.as("").post("/app-manifests/"+code+"/conversions", nil).is(404)
}

// TestTableIsWhatGitHubDescribes: no operation is invented, and none of those described is missing.
func TestTableIsWhatGitHubDescribes(t *testing.T) {
	ours := map[string]bool{}
	for _, op := range operations {
		path := strings.ReplaceAll(op.path, "...}", "}")
		if path == "/repos/{owner}/{repo}/contents" {
			continue // GitHub's {path} may be empty
		}
		ours[op.method+" "+path] = true
	}
	for template, item := range description().Paths.Map() {
		for method := range item.Operations() {
			if !ours[method+" "+template] {
				t.Errorf("%s %s is not served", method, template)
			}
			delete(ours, method+" "+template)
		}
	}
	for _, left := range slices.Sorted(maps.Keys(ours)) {
		t.Errorf("%s is served but not described", left)
	}
}
