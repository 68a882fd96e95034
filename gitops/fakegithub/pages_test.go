package fakegithub

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// browser is a person at the pages: it keeps cookies and follows redirects.
type browser struct {
	stage *stage
	http  *http.Client
}

func (s *stage) browser() *browser {
	s.Helper()
	jar, err := cookiejar.New(nil)
	s.ok(err)
	return &browser{stage: s, http: &http.Client{Jar: jar}}
}

// open loads a page and wants this status.
func (b *browser) open(path string, status int) string {
	b.stage.Helper()
	response, err := b.http.Get(b.stage.server.URL() + path)
	b.stage.ok(err)
	return b.read(response, status)
}

func (b *browser) read(response *http.Response, status int) string {
	b.stage.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	b.stage.ok(err)
	if response.StatusCode != status {
		b.stage.Fatalf("%s: got %d, want %d:\n%s", response.Request.URL.Path, response.StatusCode, status, body)
	}
	return string(body)
}

var csrfField = regexp.MustCompile(`name="_csrf" value="([^"]+)"`)

// lastField is the token of a page's last form, or nothing.
func lastField(page string) string {
	fields := csrfField.FindAllStringSubmatch(page, -1)
	if len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1][1]
}

// submit posts a form with the token of the start page.
func (b *browser) submit(path string, status int, fields ...string) string {
	b.stage.Helper()
	form := url.Values{"_csrf": {csrfField.FindStringSubmatch(b.open("/", 200))[1]}}
	for at := 0; at < len(fields); at += 2 {
		form.Set(fields[at], fields[at+1])
	}
	response, err := b.http.PostForm(b.stage.server.URL()+path, form)
	b.stage.ok(err)
	return b.read(response, status)
}

func TestPersonAtThePages(t *testing.T) {
	s := newStage(t)
	b := s.browser()
	if page := b.open("/acme/hello/issues/new", 200); !strings.Contains(page, "Choose at the top as whom you act") {
		t.Error("nobody is offered a form")
	}
	b.submit("/acme/hello/issues", 401, "title", "x")
	b.submit("/login/as", 200, "login", "maria", "back", "/acme/hello")
	page := b.submit("/acme/hello/issues", 200, "title", "One", "body", "first\r\nsecond")
	if !strings.Contains(page, "first<br") {
		t.Errorf("the text is not there:\n%s", page)
	}
	page = b.submit("/acme/hello/issues/1/comments", 200, "body", "/copilot go")
	if !strings.Contains(page, "/copilot go") {
		t.Error("the comment is not there")
	}
	state, _ := s.server.State().Repository("acme/hello")
	comment := state.Issues[0].Comments[0]
	if comment.Author != "maria" || state.Issues[0].Body != "first\nsecond" {
		t.Errorf("posted %+v", state.Issues[0])
	}
	at := strings.TrimPrefix(comment.URL[:strings.Index(comment.URL, "#")], s.server.URL())
	if !strings.Contains(b.open(at, 200), `id="`+comment.URL[strings.Index(comment.URL, "#")+1:]+`"`) {
		t.Error("the comment has no anchor")
	}
	s.reactAndClick(b, comment)
}

func (s *stage) reactAndClick(b *browser, comment Comment) {
	s.Helper()
	path := "/acme/hello/comments/" + jsonNumber(comment.ID)
	b.submit(path+"/reactions", 200, "content", "+1")
	reactions := func() []Reaction {
		state, _ := s.server.State().Repository("acme/hello")
		return state.Issues[0].Comments[0].Reactions
	}
	if got := reactions(); len(got) != 1 || got[0].Content != "+1" || got[0].User != "maria" {
		s.Errorf("reactions are %v", got)
	}
	b.submit(path+"/reactions", 200, "content", "+1")
	if got := reactions(); len(got) != 0 {
		s.Errorf("a second click left %v", got)
	}
	b.submit(path+"/reactions", 422, "content", "shrug")
	check := s.bot().post("/repos/acme/hello/check-runs", map[string]any{"name": "copilot push #1", "head_sha": s.repository.Branches["main"],
		"conclusion": "neutral", "actions": []map[string]any{{"label": "Approve push", "description": "d", "identifier": "approve"}}}).is(201)
	s.told()
	if page := b.open("/acme/hello/issues/1", 200); !strings.Contains(page, "Approve push") {
		s.Error("the issue does not show the button of its check run")
	}
	b.submit("/acme/hello/runs/"+jsonNumber(check.id())+"/actions", 200, "identifier", "approve", "back", "/acme/hello/issues/1")
	if got := names(s.told()); !slices.Equal(got, []string{"check_run.requested_action"}) {
		s.Errorf("told %v", got)
	}
	b.submit("/login/as", 200, "login", "ralph")
	b.submit("/acme/hello/runs/"+jsonNumber(check.id())+"/actions", 403, "identifier", "approve")
	b.submit(path+"/edit", 403, "body", "x")
	b.submit("/acme/hello/issues/1/state", 403, "state", "closed")
}

func jsonNumber(id int64) string {
	text, _ := json.Marshal(id)
	return string(text)
}

// TestFormsFromElsewhere: without the token of our own pages, and under another name for this host, nothing happens.
func TestFormsFromElsewhere(t *testing.T) {
	s := newStage(t, func(o *Options) { o.ActingAs = "maria" })
	for _, form := range []url.Values{{"title": {"x"}}, {"title": {"x"}, "_csrf": {"guess"}}} {
		response, err := http.PostForm(s.server.URL()+"/acme/hello/issues", form)
		s.ok(err)
		response.Body.Close()
		if response.StatusCode != 400 && response.StatusCode != 403 {
			t.Errorf("a foreign form was answered with %d", response.StatusCode)
		}
	}
	request, err := http.NewRequest(http.MethodGet, s.server.URL()+"/", nil)
	s.ok(err)
	request.Host = "evil.example"
	response, err := http.DefaultClient.Do(request)
	s.ok(err)
	response.Body.Close()
	if response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("as evil.example: %d", response.StatusCode)
	}
	if state, _ := s.server.State().Repository("acme/hello"); len(state.Issues) != 0 {
		t.Errorf("there are issues: %v", state.Issues)
	}
	for back, want := range map[string]string{"//evil.example/x": "/", "https://evil.example": "/", "/acme": "/acme", `/\evil`: "/", "acme": "/"} {
		if got := localPath(back); got != want {
			t.Errorf("localPath(%q) is %q, want %q", back, got, want)
		}
	}
}

func TestMarkdownIsCleaned(t *testing.T) {
	here := place{repository: "/acme/hello", known: func(login string) bool { return login == "maria" }}
	for _, text := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "<a href='javascript:alert(1)'>x</a>",
		"<!-- /copilot push -->", "<iframe src=//evil></iframe>", "<style>body{}</style>", "<form action=//evil><button>x</button></form>",
		"<svg onload=alert(1)>", "```<script>\nx\n```", "![x](javascript:alert(1))", "<details open ontoggle=alert(1)>x</details>",
	} {
		html := strings.ToLower(string(renderComment(text, here)))
		for _, bad := range []string{"<script", "onerror", "javascript:", "<!--", "<iframe", "<style", "<form", "onload", "ontoggle", "<svg"} {
			if strings.Contains(html, bad) {
				t.Errorf("%q became %q", text, html)
			}
		}
	}
	for text, want := range map[string]string{
		"- [x] done":    `type="checkbox"`,
		"|a|\n|-|\n|b|": "<table>",
		"<details><summary>s</summary>\n\n**b**\n</details>": "<details><summary>s</summary>",
		"```diff\n+a\n-b\n```":                               `<span class="line-add">+a</span>`,
		"a\nb":                                               "a<br",
		"closes #12.":                                        `closes <a href="/acme/hello/issues/12" rel="nofollow">#12</a>.`,
		"@maria":                                             `<a href="/maria" rel="nofollow">@maria</a>`,
		"@nobody":                                            "<p>@nobody</p>",
		"a@maria #1x":                                        "a@maria #1x",
		"`#1`":                                               "<code>#1</code>",
		"~~x~~":                                              "<del>x</del>",
	} {
		if html := string(renderComment(text, here)); !strings.Contains(html, want) {
			t.Errorf("%q became %q, want %q in it", text, html, want)
		}
	}
}

// TestEveryAddressLeadsSomewhere follows each html_url that the API hands out for a full little world.
func TestEveryAddressLeadsSomewhere(t *testing.T) {
	s := newStage(t)
	s.callIssues()
	s.callPulls()
	s.callChecks()
	bot := s.bot()
	found := map[string]bool{}
	for _, path := range []string{"", "/issues?state=all", "/issues/1", "/issues/1/comments", "/pulls?state=all", "/pulls/2", "/pulls/2/files", "/pulls/2/commits",
		"/pulls/2/comments", "/pulls/2/reviews", "/commits", "/commits/main", "/commits/main/check-runs", "/branches/main", "/contents/README.md",
		"/contents/internal", "/compare/main...topic", "/git/commits/" + s.repository.Branches["main"]} {
		var answer any
		if err := json.Unmarshal(bot.get("/repos/acme/hello"+path).body, &answer); err != nil {
			t.Fatal(err)
		}
		collect(answer, found)
	}
	b := s.browser()
	for _, address := range slices.Sorted(maps.Keys(found)) {
		b.open(strings.TrimPrefix(address, s.server.URL()), 200)
	}
	if len(found) < 25 {
		t.Errorf("only %d addresses were found", len(found))
	}
}

var pageFields = []string{"html_url", "blob_url", "raw_url", "diff_url", "patch_url", "permalink_url", "download_url", "avatar_url", "blob_href"}

func collect(value any, found map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			collect(one, found)
		}
	case map[string]any:
		for name, one := range value {
			if address, ok := one.(string); ok && slices.Contains(pageFields, name) {
				found[address] = true
			}
			collect(one, found)
		}
	}
}

func TestPrivatePagesAreNotFound(t *testing.T) {
	s := newStage(t)
	_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "secret", Private: true, Files: helloFiles(), Roles: map[string]Role{"ralph": RoleRead}})
	s.ok(err)
	b := s.browser()
	b.open("/acme/secret", 404)
	b.open("/api/v3/acme/hello", 404)
	if strings.Contains(b.open("/", 200), "secret") {
		t.Error("the list shows a private repository to nobody")
	}
	b.submit("/login/as", 200, "login", "ralph")
	b.open("/acme/secret", 200)
	b.open("/acme/secret/blob/main/internal/greet/greet.go", 200)
	b.open("/acme/secret/blob/main/nothing", 404)
}

// TestDeliveriesOnThePage: a person looks into the log and has something sent again.
func TestDeliveriesOnThePage(t *testing.T) {
	s := newStage(t, func(o *Options) { o.ActingAs = "maria" })
	s.told()
	b := s.browser()
	page := b.open("/apps/robot", 200)
	delivery := regexp.MustCompile(`/apps/robot/deliveries/\d+`).FindString(page)
	if !strings.Contains(b.open(delivery, 200), "X-Hub-Signature-256") {
		t.Error("the delivery does not show its headers")
	}
	b.submit(delivery, 200)
	if got := names(s.told()); !slices.Equal(got, []string{"installation.created"}) {
		t.Errorf("told %v", got)
	}
}

// TestManifestFlow: a program posts its manifest, the person agrees, the browser comes back with a code.
func TestManifestFlow(t *testing.T) {
	s := newStage(t, func(o *Options) { o.ActingAs = "maria" })
	manifest := `{"name":"New Robot","url":"http://127.0.0.1","redirect_url":"http://127.0.0.1:9/back?a=b","default_permissions":{"issues":"write"}}`
	b := s.browser()
	response, err := b.http.PostForm(s.server.URL()+manifestPath+"?state=s1", url.Values{"manifest": {manifest}})
	s.ok(err)
	page := b.read(response, 200)
	if !strings.Contains(page, "New Robot") || !strings.Contains(page, "issues: write") {
		t.Errorf("the page asks:\n%s", page)
	}
	// A browser takes the first directive of a name and no other.
	_, policy, _ := strings.Cut(response.Header.Get("Content-Security-Policy"), "form-action ")
	if policy, _, _ = strings.Cut(policy, ";"); policy != "'self' http://127.0.0.1:9" {
		t.Errorf("the page's form may lead to %s", policy)
	}
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	form := url.Values{"manifest": {manifest}, "state": {"s1"}, "confirm": {"1"}, "_csrf": {lastField(page)}}
	response, err = b.http.PostForm(s.server.URL()+manifestPath, form)
	s.ok(err)
	response.Body.Close()
	back, err := url.Parse(response.Header.Get("Location"))
	s.ok(err)
	if back.Host != "127.0.0.1:9" || back.Query().Get("state") != "s1" || back.Query().Get("a") != "b" {
		t.Fatalf("the browser goes to %s", back)
	}
	s.as("").post("/app-manifests/"+back.Query().Get("code")+"/conversions", nil).is(201)
}

// TestPageInABrowser loads a page in Chromium: its own policy must let its style and script through, and when somebody
// comments while it is open, the page shows it by itself.
func TestPageInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium is not installed: no page was loaded in a browser")
		t.SkipNow()
	}
	s := newStage(t, func(o *Options) { o.ActingAs = "maria" })
	_, err = s.server.As("maria").CreateIssue("acme/hello", "Looks right", "- [x] yes")
	s.ok(err)
	front := s.commentOnSecondLook("/acme/hello/issues/1")
	output, err := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=10000", "--dump-dom", front+"/acme/hello/issues/1").CombinedOutput()
	s.ok(err)
	page := string(output)
	for _, want := range []string{"Looks right", "while you were looking"} {
		if !strings.Contains(page, want) {
			t.Errorf("the browser does not show %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "Content Security Policy") {
		t.Errorf("the page breaks its own policy:\n%s", page)
	}
}

// commentOnSecondLook is a way to the server that has somebody comment just before the page is asked for again.
func (s *stage) commentOnSecondLook(path string) string {
	s.Helper()
	target, err := url.Parse(s.server.URL())
	s.ok(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	var looks atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == path && looks.Add(1) == 2 {
			if _, err := s.server.As("walter").Comment("acme/hello", 1, "while you were looking"); err != nil {
				s.Error(err)
			}
		}
		proxy.ServeHTTP(w, request)
	}))
	s.Cleanup(front.Close)
	return front.URL
}
