package pages_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/store"
)

// patch is one of git's, with a line that looks like a header.
const patch = `diff --git a/login.go b/login.go
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/login.go
@@ -0,0 +1,2 @@
+package shop
+++ b/other.go
diff --git a/old.txt b/old.txt
index 1111111..2222222 100644
--- a/old.txt
+++ b/old.txt
@@ -1,2 +1,2 @@
 first
-- second
+second
`

// finished plays a session from its task to an approved push.
func (w *world) finished() *store.Lease {
	w.Helper()
	lease := w.session("add a login")
	outcome := w.play(lease,
		calls("look", map[string]string{"print": "line one\nline two", "summary": "2 lines"}),
		calls(runner.HandoffTool, map[string]string{"target_agent": "implementer", "reason": "next", "context": "write login.go"}),
		calls("git_push", map[string]string{"title": "Add a login"}),
	)
	if outcome.Status != runner.StatusInterrupted {
		w.Fatalf("the crew's run is %s: %v", outcome.Status, outcome.Err)
	}
	w.putPatch(lease, patch)
	w.ok(lease.Suspend(w.Context(), store.Suspension{State: store.StateAwaitingApproval, Reason: "waiting for a maintainer",
		Approvals: []store.Approval{{
			CallKey: outcome.Approvals[0].CallKey, Kind: "git_push", Digest: strings.Repeat("3fa9c1d2", 8), Commit: strings.Repeat("ab", 20),
			TargetRef: "refs/heads/copilot/12-login", Title: "Add a login", Record: json.RawMessage(`{"kind":"git_push","path":""}`), RoleNeeded: "write", ExpiresAt: w.store.Now().Add(time.Hour),
		}}}))
	return lease
}

func TestTheSessionsPageTellsAll(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.finished()
	w.shows(w.get(w.link(lease)),
		"awaiting approval", "waits for a maintainer", "acme/shop #12", "https://github.com/acme/shop/issues/12", // where and how it stands
		"add a login", "ann", // what and who
		"Write it", "Test it", // the checklist
		"look – 2 lines", "line one\nline two", "hands over to", "write login.go", "asks a maintainer about git push", // what happened
		strings.Repeat("3fa9c1d2", 8), "refs/heads/copilot/12-login", "needs write", "{\n  &#34;kind&#34;: &#34;git_push&#34;", // the approval
		"<td>Copilot</td><td>2</td><td>2.4k</td><td>68</td><td>$0.04</td>", "<td>Implementer</td><td>1</td>", // costs
		`<tr class="add"><td></td><td>2</td><td>&#43;&#43; b/other.go</td></tr>`, `<tr class="del"><td>2</td><td></td><td>- second</td></tr>`, // the diff
		"work.patch", "journal.jsonl", "This link works until", "data-live=",
	)
}

func TestAnApprovalShowsWhoDecidedAndHow(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.finished()
	approvals, err := w.store.ApprovalsOfSession(t.Context(), lease.Session().ID)
	w.ok(err)
	w.ok(w.store.MarkPrompted(t.Context(), approvals[0].ID, 99, "hash", time.Time{}))
	w.clock.Advance(time.Minute)
	_, err = w.store.Decide(t.Context(), approvals[0].ID, store.Decision{State: store.ApprovalRejected, By: "bob", ByID: 9, Via: "check_run", Reason: "too early"})
	w.ok(err)
	w.shows(w.get(w.link(lease)), "rejected", "by <strong>bob</strong> (check run), <time", "too early")
}

func TestAnEndedSessionShowsItsAnswerAndIsNotLive(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("say hello")
	w.play(lease, says("**Hello**, said [the crew](https://example.org/)."))
	w.ok(lease.Finish(t.Context(), store.Ending{State: store.StateFailed, Code: "LIMIT_TURNS", Reason: "the limit of 40 turns was reached"}))
	page := w.get(w.link(lease))
	w.shows(page, "<strong>Hello</strong>", "the limit of 40 turns was reached", "LIMIT_TURNS", "ended early")
	if strings.Contains(page.body, "data-live") || strings.Contains(page.body, "live.js") {
		t.Error("the page of an ended session waits for more")
	}
}

func TestASessionThatHasNotBegunHasAPage(t *testing.T) {
	w := newWorld(t, nil)
	w.session("the first of its issue")
	second := store.Session{InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 12, Task: "wait"}
	w.ok(w.store.CreateSession(t.Context(), &second))
	link, err := w.links.Session(t.Context(), second.ID, time.Hour)
	w.ok(err)
	w.shows(w.get(link.URL), "queued", "Nothing yet.")
}

func TestTheOverviewListsWhatWaitsFirst(t *testing.T) {
	w := newWorld(t, nil)
	w.finished()
	link, err := w.links.Overview(t.Context(), time.Hour)
	w.ok(err)
	w.shows(w.get(link.URL), "Waiting for somebody", "awaiting approval", "acme/shop #12", "A login")
	stranger := w.get("/")
	w.shows(stranger, "A comment becomes an approved pull request", "handoff sessions link")
	if strings.Contains(stranger.body, "acme") {
		t.Error("the front page tells a stranger of sessions")
	}
}

func TestTheJournalCanBeSaved(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.finished()
	for _, href := range linksOf(t, w.get(w.link(lease)).body) {
		if !strings.Contains(href, "/journal.jsonl") {
			continue
		}
		saved := w.get(href)
		lines := strings.Split(strings.TrimSpace(saved.body), "\n")
		records, err := w.store.Records(t.Context(), lease.Session().ID, 1)
		w.ok(err)
		var last runner.Record
		w.ok(json.Unmarshal([]byte(lines[len(lines)-1]), &last))
		if len(lines) != len(records) || last.Seq != int64(len(records)) || !strings.HasPrefix(saved.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%d lines of %d records, the last is %d; %v", len(lines), len(records), last.Seq, saved.header)
		}
		return
	}
	t.Error("no link to the journal")
}

func TestOnlyFilesForPeopleAreHandedOut(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	_, err := lease.PutArtifact(t.Context(), store.Artifact{Name: "seal-1.json", MediaType: "application/json", Body: []byte(`{}`)})
	w.ok(err)
	page := w.get(w.link(lease))
	if w.shows(page); strings.Contains(page.body, "seal-1") {
		t.Error("the conductor's own file is offered")
	}
	link, err := w.links.Patch(t.Context(), lease.Session().ID, "seal-1.json")
	w.ok(err)
	w.refuses(w.get(link.URL), "the conductor's own file")
}

// Every answer, whatever it is, forbids the browser whatever it does not need.
func TestEveryAnswerIsLockedDown(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.finished()
	file, err := w.links.Patch(t.Context(), lease.Session().ID, "work.patch")
	w.ok(err)
	addresses := []string{"/", "/sessions/" + lease.Session().ID, w.link(lease), file.URL, "/assets/style.css", "/assets/live.js"}
	for _, address := range addresses {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			header := w.ask(method, address, "").header
			policy := header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
				t.Errorf("%s %s: policy %q", method, address, policy)
			}
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "X-Robots-Tag": "noindex, nofollow"} {
				if got := header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q", method, address, name, got)
				}
			}
			if cache := header.Get("Cache-Control"); cache != "private, no-store" && !strings.HasPrefix(address, "/assets/") {
				t.Errorf("%s %s may be kept: %q", method, address, cache)
			}
		}
	}
	if got := w.get("/assets/../pages.go"); got.status == http.StatusOK {
		t.Error("more than the assets is handed out")
	}
}

func TestAnAssetIsFetchedOnce(t *testing.T) {
	w := newWorld(t, nil)
	first := w.get("/assets/style.css")
	w.shows(first, "prefers-color-scheme: dark")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+"/assets/style.css", nil)
	w.ok(err)
	request.Header.Set("If-None-Match", first.header.Get("ETag"))
	again, err := w.server.Client().Do(request)
	w.ok(err)
	again.Body.Close()
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("an asset that has not changed is sent again: %d", again.StatusCode)
	}
}

// hostile is what people, models and programs may write anywhere.
const hostile = "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(1)>\x1b[31mred\x1b]0;title\x07" +
	"![i](https://evil.example/pixel.png) [c](javascript:alert(1)) [d](data:text/html,x) <https://evil.example/a> \u202egnp.exe\u202c" +
	"\u200b</pre></td></table></main><style>*{display:none}</style><svg onload=alert(1)>\" autofocus onfocus=alert(1) x=\"</title>" +
	"<iframe src=//evil.example></iframe>{{.Digest}}<!-- x -->"

// TestHostileTextIsShownAndDoesNothing puts the same text into every field that
// somebody else writes.
func TestHostileTextIsShownAndDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	made := store.Session{
		InstallationID: 7, RepositoryID: 1, Owner: "acme/../x?y#z" + hostile, Repository: hostile, Issue: 12, RequesterLogin: hostile,
		Task: hostile, IssueTitle: hostile, IssueBody: hostile,
		Variables: agents.Variables{"pull_request_url": "javascript:alert(1)"},
	}
	w.ok(w.store.CreateSession(t.Context(), &made))
	lease, err := w.store.Acquire(t.Context(), w.node, store.Caps{})
	w.ok(err)
	outcome := w.play(lease,
		agents.Response{Text: hostile, Reasoning: hostile, FinishReason: "tool_calls", ToolCalls: calls("look", map[string]string{"print": hostile, "summary": hostile, "command": hostile}).ToolCalls},
		calls(runner.HandoffTool, map[string]string{"target_agent": "implementer", "reason": hostile, "context": hostile}),
		calls(hostile, map[string]string{"x": hostile}),
		says(hostile))
	if outcome.Status != runner.StatusFinal {
		t.Fatalf("the crew's run is %s: %v", outcome.Status, outcome.Err)
	}
	w.putPatch(lease, "diff --git a/"+hostile+" b/"+hostile+"\nBinary "+hostile+"\n@@ -1 +1 @@"+hostile+"\n-"+hostile+"\n+"+hostile+"\n"+hostile+"\n")
	w.ok(lease.Suspend(t.Context(), store.Suspension{State: store.StateAwaitingApproval, Reason: hostile, Approvals: []store.Approval{{
		CallKey: hostile, Kind: hostile, Digest: hostile, Commit: hostile, TargetRef: hostile, Title: hostile, Record: json.RawMessage(hostile), RoleNeeded: hostile, ExpiresAt: w.store.Now().Add(time.Hour),
	}}}))
	overview, err := w.links.Overview(t.Context(), time.Hour)
	w.ok(err)
	for _, address := range []string{w.link(lease), overview.URL} {
		page := w.get(address)
		w.shows(page, "alert(1)")
		harmless(t, page.body)
	}
}

// harmless reads a page as a browser does and fails on whatever acts.
func harmless(t *testing.T, page string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(`html head meta title link body header span main section p a h1 h2 h3 h4 h5 h6 strong em del div aside ul ol li
		small dl dt dd code pre details summary table thead tbody tr th td time blockquote article nav footer br hr`)
	mains := 0
	for node := range document.Descendants() {
		if node.Type == html.CommentNode {
			t.Errorf("a comment: %q", node.Data)
		}
		if node.Type == html.TextNode && strings.ContainsAny(node.Data, "\x1b\x07\u202e\u200b") {
			t.Errorf("control characters in %q", node.Data)
		}
		if node.Type != html.ElementNode {
			continue
		}
		if node.Data == "main" {
			mains++
		}
		if node.Data == "script" {
			if len(node.Attr) == 0 || node.Attr[0].Val != "/assets/live.js" || node.FirstChild != nil {
				t.Errorf("a script: %v", node.Attr)
			}
			continue
		}
		if !slices.Contains(allowed, node.Data) {
			t.Errorf("an element <%s>", node.Data)
		}
		for _, attribute := range node.Attr {
			checkAttribute(t, node.Data, attribute)
		}
	}
	if mains != 1 {
		t.Errorf("%d main elements: something broke out of its place", mains)
	}
}

func checkAttribute(t *testing.T, element string, attribute html.Attribute) {
	t.Helper()
	names := strings.Fields("lang charset name content rel href class data-live data-version datetime title download open id target")
	if !slices.Contains(names, attribute.Key) {
		t.Errorf("an attribute <%s %s=%q>", element, attribute.Key, attribute.Val)
	}
	if attribute.Key != "href" {
		return
	}
	address, err := url.Parse(attribute.Val)
	if err != nil || address.Scheme != "" && address.Scheme != "https" {
		t.Errorf("a link to %q", attribute.Val)
	}
	if element == "link" && attribute.Val != "/assets/style.css" {
		t.Errorf("a style sheet from %q", attribute.Val)
	}
}

// linksOf returns where a page leads.
func linksOf(t *testing.T, page string) []string {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for node := range document.Descendants() {
		for _, attribute := range node.Attr {
			if node.Data == "a" && attribute.Key == "href" {
				found = append(found, attribute.Val)
			}
		}
	}
	return found
}
