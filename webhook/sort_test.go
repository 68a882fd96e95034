package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"handoff/runner/store"
)

func sorted(t *testing.T, event, body string) (store.Command, Verdict) {
	t.Helper()
	_, command, verdict, err := sort(appID, Received{GUID: "guid", Event: event, Body: []byte(body)})
	if err != nil {
		t.Fatalf("%s: %v", event, err)
	}
	return command, verdict
}

func TestCommentsThatAreIgnored(t *testing.T) {
	const command = "/copilot add a login"
	for name, c := range map[string]struct {
		body string
		want Verdict
	}{
		"no command":        {commented("what a nice day"), VerdictNoCommand},
		"edited":            {commented(command, `"action":"created"`, `"action":"edited"`), VerdictNoCommand},
		"deleted":           {commented(command, `"action":"created"`, `"action":"deleted"`), VerdictNoCommand},
		"unknown action":    {commented(command, `"action":"created"`, `"action":"pinned"`), VerdictEvent},
		"a bot's":           {commented(command, `"id":42,"login":"mona","type":"User"`, `"id":42,"login":"evil[bot]","type":"Bot"`), VerdictBot},
		"a bot in disguise": {commented(command, `"sender":{"id":42,"login":"mona","type":"User"}`, `"sender":{"id":42,"login":"mona","type":"Bot"}`), VerdictBot},
		"another's":         {commented(command, `"sender":{"id":42`, `"sender":{"id":44`), VerdictBot},
		"a mannequin's":     {commented(command, `"type":"User"`, `"type":"Mannequin"`), VerdictBot},
		"a ghost's":         {commented(command, `"user":{"id":42,"login":"mona","type":"User"}`, `"user":null`), VerdictBot},
		"nobody's":          {commented(command, `"id":42`, `"id":0`), VerdictBot},
		"our own App's":     {commented(command, `"performed_via_github_app":null`, `"performed_via_github_app":{"id":4711}`), VerdictBot},
		"a repository hook": {commented(command, `"installation":{"id":99},`, ``), VerdictForeign},
		"no repository":     {commented(command, `"id":1296269`, `"id":0`), VerdictForeign},
		"no issue":          {commented(command, `"number":12`, `"number":0`), VerdictForeign},
		"empty":             {`{"action":"created"}`, VerdictForeign},
	} {
		if got, verdict := sorted(t, "issue_comment", c.body); verdict != c.want {
			t.Errorf("%s: %s (%+v), want %s", name, verdict, got, c.want)
		}
	}
}

// A person who comments through some other App's page is still that person.
func TestAPersonsCommentThroughAnotherApp(t *testing.T) {
	_, verdict := sorted(t, "issue_comment", commented("/copilot add a login", `"performed_via_github_app":null`, `"performed_via_github_app":{"id":1}`))
	if verdict != VerdictStored {
		t.Errorf("verdict %s", verdict)
	}
}

// GitHub's own recorded payloads have dates as numbers and ids as strings here
// and there.
func TestPayloadsAreReadTolerantly(t *testing.T) {
	body := commented("/copilot add a login", `"created_at":"2026-05-04T12:00:00Z"`, `"created_at":1777896000`,
		`"updated_at":"2026-05-04T12:00:00Z"`, `"updated_at":1777896000123`, `"id":555`, `"id":"555"`, `"state":"open"`, `"state":"open","new_field":[{}]`)
	command, verdict := sorted(t, "issue_comment", body)
	var detail store.CommentDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	if verdict != VerdictStored || command.CommentID != 555 || !detail.CreatedAt.Equal(want) || !detail.UpdatedAt.Equal(want.Add(123*time.Millisecond)) {
		t.Errorf("%s %+v %+v", verdict, command, detail)
	}
	_, verdict = sorted(t, "issue_comment", commented("/copilot add a login", `"created_at":"2026-05-04T12:00:00Z"`, `"created_at":"yesterday"`,
		`"updated_at":"2026-05-04T12:00:00Z"`, `"updated_at":null`))
	if verdict != VerdictStored {
		t.Errorf("a strange date lost a command: %s", verdict)
	}
}

func TestACommentOnAPullRequest(t *testing.T) {
	command, _ := sorted(t, "issue_comment", commented("/copilot add a test", `"locked":false`, `"locked":true,"pull_request":{"url":"x"}`))
	var detail store.CommentDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil || !detail.IsPullRequest || !detail.IssueLocked {
		t.Errorf("detail %+v, %v", detail, err)
	}
}

func TestAReviewComment(t *testing.T) {
	body := commented("/copilot rename this", `"issue":{"number":12`, `"pull_request":{"number":13,"head":{"ref":"x"}`,
		`"comment":{`, `"comment":{"path":"main.go","line":7,"diff_hunk":"@@ -1 +1 @@",`)
	command, verdict := sorted(t, "pull_request_review_comment", body)
	var detail store.CommentDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	if verdict != VerdictStored || command.Issue != 13 || command.CommentKind != "review" || command.Key != "comment/review/1296269/555/created" ||
		!detail.IsPullRequest || detail.Path != "main.go" || detail.Line != 7 || detail.DiffHunk == "" || detail.IssueTitle != "Add a login" {
		t.Errorf("%s %+v %+v", verdict, command, detail)
	}
	if _, verdict := sorted(t, "pull_request_review_comment", strings.Replace(body, "created", "edited", 1)); verdict != VerdictEvent {
		t.Errorf("an edited review comment: %s", verdict)
	}
}

// clicked is a press of mona's on a button of our check run.
func clicked(replace ...string) string {
	text := `{"action":"requested_action","installation":{"id":99},
	"repository":{"id":1296269,"name":"login","owner":{"id":7,"login":"octo"}},
	"sender":{"id":42,"login":"mona","type":"User"},"requested_action":{"identifier":"approve"},
	"check_run":{"id":321,"external_id":"approval-1","head_sha":"abc","app":{"id":4711}}}`
	return strings.NewReplacer(replace...).Replace(text)
}

func TestAClickOnACheckRunsButton(t *testing.T) {
	command, verdict := sorted(t, "check_run", clicked())
	var detail store.CheckActionDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		t.Fatal(err)
	}
	want := store.CheckActionDetail{CheckRunID: 321, Identifier: "approve", ExternalID: "approval-1", HeadSHA: "abc", AppID: appID}
	if verdict != VerdictStored || command.Kind != store.CommandCheckAction || command.ActorID != 42 || detail != want {
		t.Errorf("%s %+v %+v", verdict, command, detail)
	}
	for name, c := range map[string]struct {
		body string
		want Verdict
	}{
		"another App's": {clicked(`"app":{"id":4711}`, `"app":{"id":4712}`), VerdictForeign},
		"no App's":      {clicked(`"app":{"id":4711}`, `"app":null`), VerdictForeign},
		"a bot's":       {clicked(`"type":"User"`, `"type":"Bot"`), VerdictBot},
		"rerequested":   {clicked("requested_action", "rerequested"), VerdictEvent},
		"no check run":  {clicked(`"id":321`, `"id":0`), VerdictForeign},
	} {
		if _, verdict := sorted(t, "check_run", c.body); verdict != c.want {
			t.Errorf("%s: %s, want %s", name, verdict, c.want)
		}
	}
}

// Whoever edits or deletes a bot's comment may have touched one of our
// prompts; our own edits and people's own comments mean nothing.
func TestChangesOfPrompts(t *testing.T) {
	ours := []string{`"user":{"id":42,"login":"mona","type":"User"}`, `"user":{"id":777,"login":"handoff[bot]","type":"Bot"}`}
	for _, action := range []string{"edited", "deleted"} {
		body := strings.Replace(commented("prompt", ours...), "created", action, 1)
		command, verdict := sorted(t, "issue_comment", body)
		want := fmt.Sprintf(`{"event":"issue_comment","action":%q,"comment_author_id":777}`, action)
		if verdict != VerdictStored || command.Kind != store.CommandNotice || command.CommentID != 555 || command.Issue != 12 || string(command.Detail) != want {
			t.Errorf("%s: %s %+v %s", action, verdict, command, command.Detail)
		}
		own := strings.Replace(body, `"sender":{"id":42,"login":"mona","type":"User"}`, `"sender":{"id":777,"login":"handoff[bot]","type":"Bot"}`, 1)
		if _, verdict := sorted(t, "issue_comment", own); verdict != VerdictBot {
			t.Errorf("our own edit: %s", verdict)
		}
		// Another bot that edits our prompt voids it like anybody.
		other := strings.Replace(body, `"sender":{"id":42,"login":"mona","type":"User"}`, `"sender":{"id":778,"login":"evil[bot]","type":"Bot"}`, 1)
		if _, verdict := sorted(t, "issue_comment", other); verdict != VerdictStored {
			t.Errorf("another bot's edit: %s", verdict)
		}
	}
}

func TestNotices(t *testing.T) {
	head := `"installation":{"id":99},"repository":{"id":1296269,"name":"login","owner":{"id":7,"login":"octo"}},"sender":{"id":42,"login":"mona","type":"User"}`
	for _, c := range []struct {
		event, body string
		issue       int
		want        store.NoticeDetail
	}{
		{"issues", `{"action":"transferred",` + head + `,"issue":{"number":12}}`, 12, store.NoticeDetail{Event: "issues", Action: "transferred"}},
		{"issues", `{"action":"deleted",` + head + `,"issue":{"number":12}}`, 12, store.NoticeDetail{Event: "issues", Action: "deleted"}},
		{"issues", `{"action":"locked",` + head + `,"issue":{"number":12}}`, 12, store.NoticeDetail{Event: "issues", Action: "locked"}},
		{"issues", `{"action":"closed",` + head + `,"issue":{"number":12}}`, 12, store.NoticeDetail{Event: "issues", Action: "closed"}},
		{"pull_request", `{"action":"closed",` + head + `,"pull_request":{"number":13,"merged":true,"head":{"ref":"copilot/12-login"}}}`, 13,
			store.NoticeDetail{Event: "pull_request", Action: "closed", Head: "copilot/12-login", Merged: true}},
		{"repository", `{"action":"archived",` + head + `}`, 0, store.NoticeDetail{Event: "repository", Action: "archived"}},
		{"repository", `{"action":"renamed",` + head + `}`, 0, store.NoticeDetail{Event: "repository", Action: "renamed"}},
		{"repository", `{"action":"transferred",` + head + `}`, 0, store.NoticeDetail{Event: "repository", Action: "transferred"}},
		{"installation", `{"action":"deleted","installation":{"id":99,"created_at":1557933565}}`, 0, store.NoticeDetail{Event: "installation", Action: "deleted"}},
		{"installation", `{"action":"suspend","installation":{"id":99,"suspended_at":"2026-05-04T12:00:00Z"}}`, 0, store.NoticeDetail{Event: "installation", Action: "suspend"}},
		{"installation_repositories", `{"action":"removed","installation":{"id":99},"repositories_removed":[{"id":5},{"id":6}]}`, 0,
			store.NoticeDetail{Event: "installation_repositories", Action: "removed", Repositories: []int64{5, 6}}},
	} {
		command, verdict := sorted(t, c.event, c.body)
		var detail store.NoticeDetail
		if err := json.Unmarshal(command.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, detail); verdict != VerdictStored || command.Kind != store.CommandNotice || command.Issue != c.issue || command.InstallationID != 99 || diff != "" {
			t.Errorf("%s: %s %+v %s", c.event, verdict, command, diff)
		}
		if !Matters(c.event, detail.Action) {
			t.Errorf("%s %s does not matter to the sweeper", c.event, detail.Action)
		}
	}
}

// Events that are not on the list are acknowledged without being read.
func TestUnknownEventsAreIgnored(t *testing.T) {
	server, in := newServer(t)
	for event, body := range map[string]string{
		"ping": `{"zen":"Keep it logically awesome.","hook_id":1}`, "push": `{}`, "star": `{"action":"created"}`, "made_up": "this is no JSON",
		"pull_request": `{"action":"opened","installation":{"id":99}}`, "workflow_run": `{}`,
	} {
		answer := send(server, post(body, func(r *http.Request) { r.Header.Set("X-GitHub-Event", event) }))
		if answer.Code != 202 || !strings.Contains(answer.Body.String(), string(VerdictEvent)) {
			t.Errorf("%s: %d %s", event, answer.Code, answer.Body)
		}
	}
	if len(in.deliveries) != 0 {
		t.Errorf("stored: %v", in.deliveries)
	}
}

// Whatever the bytes, sorting ends without a panic, and what it stores is
// complete enough to be routed.
func FuzzSort(f *testing.F) {
	f.Add("issue_comment", commented("/copilot add a login"))
	f.Add("issue_comment", strings.Replace(commented("x"), "created", "edited", 1))
	f.Add("check_run", clicked())
	f.Add("issues", `{"action":"closed","installation":{"id":1},"repository":{"id":2},"issue":{"number":3}}`)
	f.Add("installation", `{"action":"deleted","installation":{"id":"1"}}`)
	f.Add("pull_request", `{"action":"closed","pull_request":null}`)
	f.Fuzz(func(t *testing.T, event, body string) {
		delivery, command, verdict, err := sort(appID, Received{GUID: "guid", Event: event, Body: []byte(body)})
		switch {
		case err != nil && !errors.Is(err, errPayload):
			t.Fatalf("an error of another kind: %v", err)
		case err == nil && verdict == "":
			t.Fatal("no verdict")
		case verdict == VerdictStored:
			if command.Key == "" || command.Kind == "" || command.InstallationID <= 0 || delivery.GUID != "guid" || !json.Valid(command.Detail) {
				t.Fatalf("incomplete: %+v", command)
			}
			if command.Kind == store.CommandComment && (command.Verb == "" || command.Issue <= 0 || command.ActorID <= 0 || command.CommentID <= 0) {
				t.Fatalf("incomplete: %+v", command)
			}
		}
	})
}
