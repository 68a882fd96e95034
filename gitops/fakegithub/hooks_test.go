package fakegithub

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWebhooksAreSigned(t *testing.T) {
	s := newStage(t)
	s.told()
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	one := s.told()[0]
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(one.body)
	old := hmac.New(sha1.New, []byte(hookSecret))
	old.Write(one.body)
	for name, want := range map[string]string{
		"X-Hub-Signature-256":                    "sha256=" + hex.EncodeToString(mac.Sum(nil)),
		"X-Hub-Signature":                        "sha1=" + hex.EncodeToString(old.Sum(nil)),
		"X-GitHub-Event":                         "issues",
		"X-GitHub-Hook-Installation-Target-ID":   fmt.Sprint(s.app.ID),
		"X-GitHub-Hook-Installation-Target-Type": "integration",
		"Content-Type":                           "application/json",
	} {
		if got := one.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if guid := one.header.Get("X-GitHub-Delivery"); len(guid) != 36 {
		t.Errorf("the GUID is %q", guid)
	}
}

// TestWebhooksOfAWorld makes happen everything that GitHub would tell an App about; the receiver checks each body
// against GitHub's description. At the end only the events that the fake does not know may be missing.
func TestWebhooksOfAWorld(t *testing.T) {
	seenWebhooks.Clear()
	s := newStage(t)
	maria, bot := s.server.As("maria"), s.bot()
	issue, err := maria.CreateIssue("acme/hello", "One", "text")
	s.ok(err)
	s.ok(maria.EditIssue("acme/hello", 1, "Uno", "other text"))
	bot.post("/repos/acme/hello/issues/1/labels", map[string]any{"labels": []string{"bug"}}).is(200)
	s.ok(maria.CloseIssue("acme/hello", 1))
	s.ok(maria.ReopenIssue("acme/hello", 1))
	comment, err := maria.Comment("acme/hello", issue.Number, "hello")
	s.ok(err)
	s.ok(maria.React("acme/hello", comment.ID, "+1"))
	s.ok(maria.Unreact("acme/hello", comment.ID, "+1"))
	s.ok(maria.ReactToIssue("acme/hello", 1, "heart"))
	s.ok(maria.EditComment("acme/hello", comment.ID, "bye"))
	s.ok(maria.DeleteComment("acme/hello", comment.ID))
	s.ok(maria.LockIssue("acme/hello", 1))
	s.playPull(maria)
	s.playChecks(maria, bot)
	_, err = s.server.AddWorkflowRun("acme/hello", WorkflowRun{Name: "ci", Path: ".github/workflows/ci.yml", Branch: "main", Conclusion: "success"})
	s.ok(err)
	s.playInstallation()
	s.ok(s.server.RenameRepository("acme/hello", "hallo"))
	s.ok(s.server.ArchiveRepository("acme/hallo"))
	s.ok(s.server.DeleteRepository("acme/hallo"))
	s.ok(s.server.Uninstall(s.installation.ID))
	for _, one := range s.told() {
		if strings.Contains(one.event, "reaction") {
			t.Errorf("told of a reaction: %s", one.event)
		}
	}
	for name := range webhookNames(t) {
		_, seen := seenWebhooks.Load(name)
		if reason := unsentWebhooks[name]; !seen && reason == "" {
			t.Errorf("%s was never sent", name)
		} else if seen && reason != "" {
			t.Errorf("%s was sent, though it is listed as never: %s", name, reason)
		}
	}
}

// unsentWebhooks are those that GitHub describes and the fake never sends.
var unsentWebhooks = map[string]string{
	"installation-target-renamed": "renaming an account is done by RenameUser, which tests use to reuse logins silently",
	"issues-deleted":              "issues cannot be deleted here",
	"issues-transferred":          "issues cannot be transferred here",
	"pull-request-labeled":        "sent by the same code as issues-labeled; the conversation has no label on a pull request",
	"repository-transferred":      "repositories keep their owner here",
	"ping":                        "GitHub sends it to webhooks of repositories, not to those of Apps made by hand",
}

func (s *stage) playPull(maria *Person) {
	commit := func(branch, from, content string) {
		_, err := s.server.Commit(CommitSpec{Repository: "acme/hello", Branch: branch, From: from, Author: "walter", Message: "change",
			Files: map[string]string{"main.go": content}})
		s.ok(err)
	}
	commit("topic", "main", "package main // 1\n")
	pull, err := maria.CreatePull("acme/hello", "topic", "main", "Greet", "Closes #1")
	s.ok(err)
	commit("topic", "", "package main // 2\n")
	s.ok(maria.EditIssue("acme/hello", pull.Number, "", "changed"))
	s.ok(s.server.As("walter").Review("acme/hello", pull.Number, "CHANGES_REQUESTED", "no"))
	_, err = s.server.As("walter").ReviewComment("acme/hello", pull.Number, "main.go", 1, "/copilot why")
	s.ok(err)
	s.ok(maria.CloseIssue("acme/hello", pull.Number))
	s.ok(maria.ReopenIssue("acme/hello", pull.Number))
	_, err = maria.MergePull("acme/hello", pull.Number)
	s.ok(err)
}

func (s *stage) playChecks(maria *Person, bot *client) {
	check := bot.post("/repos/acme/hello/check-runs", map[string]any{"name": "c", "head_sha": s.repository.Branches["main"], "conclusion": "neutral",
		"actions": []map[string]any{{"label": "l", "description": "d", "identifier": "approve"}}}).is(201).id()
	s.ok(maria.ClickCheckAction("acme/hello", check, "approve"))
	s.ok(maria.RerequestCheck("acme/hello", check))
	if err := maria.ClickCheckAction("acme/hello", check, "other"); err == nil {
		s.Error("a button that is not there was clicked")
	}
	if err := s.server.As("ralph").ClickCheckAction("acme/hello", check, "approve"); err == nil {
		s.Error("a reader clicked a button")
	}
}

func (s *stage) playInstallation() {
	_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "second"})
	s.ok(err)
	s.ok(s.server.SetInstallationRepositories(s.installation.ID, "hello"))
	s.ok(s.server.SetInstallationRepositories(s.installation.ID, "hello", "second"))
	s.ok(s.server.SetPermissions(s.installation.ID, s.app.Permissions))
	s.ok(s.server.Suspend(s.installation.ID, true))
	s.ok(s.server.Suspend(s.installation.ID, false))
}

func TestDeliveryLog(t *testing.T) {
	s := newStage(t)
	s.told()
	s.hooks.answerWith(http.StatusInternalServerError)
	for n := range 4 {
		_, err := s.server.As("maria").CreateIssue("acme/hello", fmt.Sprintf("Issue %d", n), "")
		s.ok(err)
	}
	s.told()
	s.hooks.answerWith(http.StatusAccepted)
	app := s.as(s.jwt())
	failed := app.get("/app/hook/deliveries?status=failure").is(200).list()
	if len(failed) != 4 || failed[0]["event"] != "issues" || failed[0]["status_code"] != 500.0 {
		t.Fatalf("failed deliveries: %v", failed)
	}
	if !slices.IsSortedFunc(failed, func(a, b map[string]any) int { return int(b["id"].(float64) - a["id"].(float64)) }) {
		t.Error("the log is not newest first")
	}
	s.redeliverIt(app, failed[3])
	s.pageThrough(app)
	s.server.Advance(73 * time.Hour)
	if left := s.as(s.jwt()).get("/app/hook/deliveries").is(200).list(); len(left) != 0 {
		t.Errorf("after three days %d deliveries are left", len(left))
	}
}

func (s *stage) redeliverIt(app *client, lost map[string]any) {
	s.Helper()
	address := fmt.Sprintf("/app/hook/deliveries/%.0f", lost["id"])
	detail := app.get(address).is(200)
	request := detail.field("request").(map[string]any)
	if payload := request["payload"].(map[string]any); payload["action"] != "opened" {
		s.Errorf("the stored payload is %v", payload)
	}
	app.post(address+"/attempts", nil).is(202)
	again := s.told()
	if len(again) != 1 || again[0].header.Get("X-GitHub-Delivery") != lost["guid"] {
		s.Fatalf("redelivered %v", names(again))
	}
	newest := app.get("/app/hook/deliveries?per_page=1").list()[0]
	if newest["redelivery"] != true || newest["guid"] != lost["guid"] || newest["id"] == lost["id"] {
		s.Errorf("the log says %v", newest)
	}
	app.post("/app/hook/deliveries/7/attempts", nil).is(404)
}

// pageThrough reads the log two at a time and must see each delivery once.
func (s *stage) pageThrough(app *client) {
	s.Helper()
	seen := map[float64]bool{}
	address := "/app/hook/deliveries?per_page=2"
	for range 10 {
		page := app.get(address).is(200)
		for _, one := range page.list() {
			if seen[one["id"].(float64)] {
				s.Errorf("delivery %v twice", one["id"])
			}
			seen[one["id"].(float64)] = true
		}
		link := page.response.Header.Get("Link")
		if link == "" {
			break
		}
		next, err := url.Parse(strings.TrimPrefix(strings.Split(link, ">")[0], "<"))
		s.ok(err)
		address = strings.TrimPrefix(next.RequestURI(), "/api/v3")
	}
	if len(seen) != 6 { // the installation, four issues, one redelivery
		s.Errorf("paging saw %d deliveries, want 6", len(seen))
	}
	app.get("/app/hook/deliveries?cursor=%21").is(422)
}

// TestSlowReceiver: one attempt, then the delivery counts as timed out, and the next one is sent.
func TestSlowReceiver(t *testing.T) {
	s := newStage(t, func(o *Options) { o.HookTimeout = 20 * time.Millisecond })
	s.told()
	awake := make(chan struct{})
	asleep := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-awake }))
	defer asleep.Close()
	defer close(awake)
	s.ok(s.server.SetWebhook("robot", asleep.URL, hookSecret))
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	s.told()
	deliveries := s.server.State().Deliveries
	if last := deliveries[len(deliveries)-1]; last.Status != "timed out" || last.StatusCode != 0 {
		t.Errorf("the delivery is %s, %d", last.Status, last.StatusCode)
	}
	s.ok(s.server.SetWebhook("robot", "http://127.0.0.1:1/", hookSecret))
	_, err = s.server.As("maria").CreateIssue("acme/hello", "Two", "")
	s.ok(err)
	s.told()
	deliveries = s.server.State().Deliveries
	if last := deliveries[len(deliveries)-1]; last.Status != "failed to connect to host" {
		t.Errorf("the delivery is %s", last.Status)
	}
}

// TestAppsHearOnlyWhatConcernsThem: no permission, no subscription, not installed, suspended: nothing is sent.
func TestAppsHearOnlyWhatConcernsThem(t *testing.T) {
	s := newStage(t)
	ears := newReceiver(t)
	_, err := s.server.AddApp(AppSpec{Slug: "deaf", Owner: "acme", WebhookURL: ears.URL, PrivateKey: testKey(),
		Permissions: map[string]string{"contents": "read", "checks": "read"}, Events: []string{"push", "issues"}})
	s.ok(err)
	deaf, err := s.server.Install(InstallationSpec{App: "deaf", Account: "acme", Repositories: []string{"hello"}})
	s.ok(err)
	_, err = s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "second", Files: helloFiles(), Roles: map[string]Role{"walter": RoleWrite}})
	s.ok(err)
	commit := func(repository string) {
		_, err := s.server.Commit(CommitSpec{Repository: repository, Branch: "main", Author: "walter", Message: "m", Files: map[string]string{"x": time.Now().String()}})
		s.ok(err)
	}
	_, err = s.server.As("maria").CreateIssue("acme/hello", "One", "") // subscribed, but not permitted
	s.ok(err)
	commit("acme/hello")
	commit("acme/second") // not installed there
	s.ok(s.server.Suspend(deaf.ID, true))
	commit("acme/hello")
	s.told()
	ears.mu.Lock()
	defer ears.mu.Unlock()
	if got := names(ears.received); !slices.Equal(got, []string{"installation.created", "push", "installation.suspend"}) {
		t.Errorf("told %v", got)
	}
	if _, err := s.server.Install(InstallationSpec{App: "deaf", Account: "stranger"}); err == nil {
		t.Error("a private App was installed elsewhere")
	}
}
