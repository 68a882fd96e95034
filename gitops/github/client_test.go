package github

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The login in the webhook was given up and taken by somebody else: the id
// decides, and it does not fit.
func TestPermissionGoesByID(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/collaborators/mona/permission") {
			return false
		}
		reply(w, 200, `{"permission":"write","role_name":"maintain","user":{"id":42,"login":"mona","type":"User"}}`)
		return true
	}
	got, err := m.reader().Permission(t.Context(), 42, "mona")
	if want := (Permission{User: User{42, "mona", "User"}, Role: "maintain", Base: "write"}); err != nil || got != want {
		t.Errorf("Permission = %+v, %v, want %+v", got, err, want)
	}
	_, err = m.reader().Permission(t.Context(), 41, "mona")
	mustCode(t, err, CodeConflict)
	_, err = m.reader().Permission(t.Context(), 42, "nobody")
	mustCode(t, err, CodeNotFound)
	_, err = m.reader().Permission(t.Context(), 0, "")
	mustCode(t, err, CodeValidation)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		reply(w, 500, `{}`)
		return true
	}
	_, err = m.reader().Permission(t.Context(), 42, "mona")
	mustCode(t, err, CodeUnavailable)
}

// An unchanged list of reactions answers 304, which go-github takes for an
// error.
func TestReactionsThatDidNotChange(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/reactions") {
			return false
		}
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		w.Header().Set("ETag", `"v1"`)
		reply(w, 200, `[{"id":1,"user":{"id":42,"login":"mona","type":"User"},"content":"+1","created_at":"2026-05-04T12:00:01Z"}]`)
		return true
	}
	first, err := m.reader().ListReactions(t.Context(), 5, "")
	if err != nil || len(first.All) != 1 || first.All[0].Content != "+1" || first.All[0].CreatedAt.IsZero() || first.ETag != `"v1"` {
		t.Fatalf("ListReactions = %+v, %v", first, err)
	}
	second, err := m.reader().ListReactions(t.Context(), 5, first.ETag)
	if err != nil || !second.NotModified || len(second.All) != 0 || second.ETag != first.ETag {
		t.Errorf("ListReactions = %+v, %v, want not modified", second, err)
	}
}

// Pages beyond the first are not covered by the first one's ETag, so that a
// long list has none.
func TestReactionsOverSeveralPages(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/reactions") {
			return false
		}
		w.Header().Set("ETag", `"v1"`)
		if r.URL.Query().Get("page") == "1" {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?per_page=100&page=2>; rel="next"`, m.URL, r.URL.Path))
		}
		reply(w, 200, fmt.Sprintf(`[{"id":%s,"user":null,"content":"eyes","created_at":"2026-05-04T12:00:01Z"}]`, r.URL.Query().Get("page")))
		return true
	}
	got, err := m.reader().ListReactions(t.Context(), 5, "")
	if err != nil || len(got.All) != 2 || got.ETag != "" {
		t.Errorf("ListReactions = %+v, %v", got, err)
	}
}

// A fork may have a branch of the same name; its pull request is not ours.
func TestAForksPullRequestIsNotTakenForOurs(t *testing.T) {
	m := newMisbehaving(t)
	pull := func(number int, state string, repository int) string {
		return fmt.Sprintf(`{"number":%d,"state":%q,"head":{"ref":"copilot/12-login","repo":{"id":%d}},"base":{"ref":"main"}}`, number, state, repository)
	}
	answer := ""
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.HasSuffix(r.URL.Path, "/pulls") {
			reply(w, 200, answer)
			return true
		}
		return false
	}
	for _, c := range []struct {
		answer string
		want   int
	}{
		{"[]", 0},
		{"[" + pull(9, "open", 666) + "]", 0},
		{"[" + pull(9, "open", 666) + "," + pull(7, "closed", testRepository) + "," + pull(5, "open", testRepository) + "]", 5},
		{"[" + pull(8, "closed", testRepository) + "," + pull(7, "closed", testRepository) + "]", 8},
		{`[{"number":3,"state":"closed","head":{"ref":"copilot/12-login","repo":null},"base":{"ref":"main"}}]`, 0},
	} {
		answer = c.answer
		got, found, err := m.reader().FindPullRequestByHead(t.Context(), "copilot/12-login")
		if err != nil || found != (c.want != 0) || got.Number != c.want {
			t.Errorf("%s: found %v #%d, %v, want #%d", c.answer, found, got.Number, err, c.want)
		}
	}
}

func TestContentsAreRegularFilesOnly(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		switch strings.TrimPrefix(r.URL.Path, "/api/v3/repos/octo/login/contents/") {
		case ".github/handoff.yml":
			reply(w, 200, `{"type":"file","path":".github/handoff.yml","sha":"abc","encoding":"base64","content":"dGVzdDogbWFrZQo="}`)
		case "link":
			reply(w, 200, `{"type":"symlink","path":"link","target":"/proc/self/environ"}`)
		case "linked":
			reply(w, 200, `{"type":"file","path":"linked","target":"/proc/self/environ","encoding":"base64","content":"eA=="}`)
		case "directory":
			reply(w, 200, `[]`)
		case "large":
			reply(w, 200, `{"type":"file","path":"large","encoding":"none","content":""}`)
		default:
			return false
		}
		return true
	}
	file, err := m.reader().GetContents(t.Context(), ".github/handoff.yml", "main")
	if err != nil || string(file.Content) != "test: make\n" {
		t.Errorf("GetContents = %+v, %v", file, err)
	}
	for _, path := range []string{"link", "linked", "directory", "large", "../x"} {
		_, err := m.reader().GetContents(t.Context(), path, "main")
		if CodeOf(err) != CodeValidation {
			t.Errorf("GetContents(%q) gives %v", path, err)
		}
	}
	_, err = m.reader().GetContents(t.Context(), "missing", "")
	mustCode(t, err, CodeNotFound)
}

func TestARefOfAnotherNameIsNotTheRef(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.Contains(r.URL.Path, "/git/ref/") {
			return false
		}
		reply(w, 200, `{"ref":"refs/heads/main","object":{"sha":"abc"}}`)
		return true
	}
	committer := m.app.Installation(testInstallation).Committer(testRepository)
	for ref, want := range map[string]string{"refs/heads/main": "abc", "refs/heads/mai": ""} {
		if commit, err := committer.Branch(t.Context(), ref); err != nil || commit != want {
			t.Errorf("Branch(%s) = %q, %v", ref, commit, err)
		}
	}
}

// A hostile or broken server cannot put anything into the addresses that we
// ask next.
func TestNamesOfRepositoriesAreChecked(t *testing.T) {
	for _, owner := range []string{"..", ".", "", "a/b", "a?b", "a#b", "a%2fb", "a\nb", strings.Repeat("a", 101)} {
		m := newMisbehaving(t)
		m.handle = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			reply(w, 200, fmt.Sprintf(`{"id":%d,"name":"login","owner":{"login":%q}}`, testRepository, owner))
			return true
		}
		_, err := m.reader().Issue(t.Context(), 1)
		mustCode(t, err, CodeValidation)
	}
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		reply(w, 200, `{"id":1,"name":"login","owner":{"login":"octo"}}`)
		return true
	}
	_, err := m.reader().Issue(t.Context(), 1)
	mustCode(t, err, CodeUnexpected)
}

func TestTheGitAddressIsOnTheConfiguredHost(t *testing.T) {
	m := newMisbehaving(t)
	got, err := m.reader().GitURL(t.Context())
	if err != nil || got != m.URL+"/octo/login.git" {
		t.Errorf("GitURL = %q, %v", got, err)
	}
}

func TestDeliveriesAreReadBackToAMoment(t *testing.T) {
	m := newMisbehaving(t)
	entry := func(id int, at time.Time) string {
		return fmt.Sprintf(`{"id":%d,"guid":"g%d","delivered_at":%q,"event":"issue_comment","action":"created","status_code":200,"installation_id":99}`, id, id, at.Format(time.RFC3339))
	}
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		switch cursor := r.URL.Query().Get("cursor"); {
		case strings.HasSuffix(r.URL.Path, "/deliveries/4"):
			reply(w, 200, `{"id":4,"guid":"g4","request":{"headers":{"X-GitHub-Event":"issue_comment"},"payload":{"action":"created","big":12345678901234567890}}}`)
		case cursor == "":
			w.Header().Set("Link", fmt.Sprintf(`<%s/app/hook/deliveries?per_page=100&cursor=two>; rel="next"`, m.URL))
			reply(w, 200, "["+entry(4, m.now)+","+entry(3, m.now.Add(-time.Minute))+"]")
		case cursor == "two":
			w.Header().Set("Link", fmt.Sprintf(`<%s/app/hook/deliveries?per_page=100&cursor=three>; rel="next"`, m.URL))
			reply(w, 200, "["+entry(2, m.now.Add(-2*time.Minute))+","+entry(1, m.now.Add(-time.Hour))+"]")
		default:
			t.Errorf("the log was read past the moment: cursor %q", cursor)
			reply(w, 200, "[]")
		}
		return true
	}
	var guids []string
	for delivery, err := range m.app.Deliveries(t.Context(), m.now.Add(-10*time.Minute)) {
		if err != nil {
			t.Fatal(err)
		}
		guids = append(guids, delivery.GUID)
	}
	if got := strings.Join(guids, " "); got != "g4 g3 g2" {
		t.Errorf("deliveries %q", got)
	}
	request, err := m.app.Delivery(t.Context(), 4)
	if err != nil || string(request.Payload) != `{"action":"created","big":12345678901234567890}` || request.Headers["X-GitHub-Event"] != "issue_comment" {
		t.Errorf("Delivery = %+v, %v", request, err)
	}
}

func TestTheAppKnowsWhoItIs(t *testing.T) {
	m := newMisbehaving(t)
	asked := 0
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		switch r.URL.Path {
		case "/api/v3/app":
			asked++
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
				t.Error("the App's own request came without a JWT")
			}
			reply(w, 200, `{"id":4711,"slug":"handoff","name":"handoff","permissions":{"issues":"write","checks":"write"},"events":["issue_comment"]}`)
		case "/api/v3/users/handoff[bot]":
			reply(w, 200, `{"id":777,"login":"handoff[bot]","type":"Bot"}`)
		default:
			return false
		}
		return true
	}
	for range 2 {
		bot, err := m.reader().Bot(t.Context())
		if want := (User{777, "handoff[bot]", "Bot"}); err != nil || bot != want {
			t.Fatalf("Bot = %+v, %v", bot, err)
		}
	}
	identity, err := m.app.Identity(t.Context())
	if err != nil || identity.Permissions["checks"] != "write" || asked != 1 {
		t.Errorf("Identity = %+v, %v after %d requests", identity, err, asked)
	}
}

func TestTextsThatAreTooLongAreNotSent(t *testing.T) {
	m := newMisbehaving(t)
	long := strings.Repeat("é", BodyLimit+1)
	buttons := []CheckRunAction{{"Approve push", "Push exactly this", "approve"}}
	for name, send := range map[string]func() error{
		"comment": func() error { _, err := m.writer().CreateComment(t.Context(), 1, long); return err },
		"empty":   func() error { _, err := m.writer().CreateComment(t.Context(), 1, " \n"); return err },
		"edit":    func() error { _, err := m.writer().EditComment(t.Context(), 1, long); return err },
		"title": func() error {
			_, err := m.writer().CreatePullRequest(t.Context(), PullRequestRequest{Title: strings.Repeat("x", TitleLimit+1)})
			return err
		},
		"four buttons": func() error {
			_, err := m.writer().CreateCheckRun(t.Context(), CheckRunRequest{Name: "n", Actions: append(buttons, append(buttons, append(buttons, buttons...)...)...)})
			return err
		},
		"label": func() error {
			_, err := m.writer().CreateCheckRun(t.Context(), CheckRunRequest{Name: "n", Actions: []CheckRunAction{{strings.Repeat("x", 21), "d", "i"}}})
			return err
		},
		"no name": func() error { _, err := m.writer().UpdateCheckRun(t.Context(), 1, CheckRunRequest{}); return err },
		"no conclusion": func() error {
			_, err := m.writer().UpdateCheckRun(t.Context(), 1, CheckRunRequest{Name: "n", Status: "completed"})
			return err
		},
		"text": func() error {
			_, err := m.writer().CreateCheckRun(t.Context(), CheckRunRequest{Name: "n", Text: strings.Repeat("x", CheckTextLimit+1)})
			return err
		},
	} {
		if err := send(); CodeOf(err) != CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(m.requests) != 0 {
		t.Errorf("requests were made: %v", m.requests)
	}
}
