package github_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"handoff/gitops/fakegithub"
	"handoff/gitops/github"
)

// A stage is a fake GitHub with a repository, three people and our App.
type stage struct {
	*fakegithub.Server
	t            *testing.T
	app          *github.App
	installation *github.Installation
	repository   fakegithub.Repository
	mona         fakegithub.User
	log          *bytes.Buffer
}

func newStage(t *testing.T) *stage {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server, err := fakegithub.New(fakegithub.Options{DataDir: t.TempDir()})
	must(err)
	must(server.Start(t.Context()))
	t.Cleanup(func() { server.Close() })
	s := &stage{Server: server, t: t, log: &bytes.Buffer{}}
	for _, login := range []string{"mona", "hubot", "triager"} {
		user, err := server.AddUser(fakegithub.UserSpec{Login: login})
		must(err)
		if login == "mona" {
			s.mona = user
		}
	}
	_, err = server.AddUser(fakegithub.UserSpec{Login: "octo", Type: "Organization"})
	must(err)
	s.repository, err = server.AddRepository(fakegithub.RepositorySpec{
		Owner: "octo", Name: "login", Private: true,
		Files: fstest.MapFS{"README.md": {Data: []byte("# login\n")}, ".github/handoff.yml": {Data: []byte("test: go test ./...\n")}},
		Roles: map[string]fakegithub.Role{"mona": fakegithub.RoleMaintain, "triager": fakegithub.RoleTriage},
	})
	must(err)
	app, err := server.AddApp(fakegithub.AppSpec{
		Slug: "handoff", Owner: "octo", WebhookSecret: "0123456789abcdef",
		Permissions: map[string]string{"contents": "write", "issues": "write", "pull_requests": "write", "checks": "write"},
	})
	must(err)
	installation, err := server.Install(fakegithub.InstallationSpec{App: "handoff", Account: "octo"})
	must(err)
	s.app, err = github.NewApp(github.Config{
		AppID: app.ID, PrivateKey: app.PrivateKey, BaseURL: server.URL(),
		Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	must(err)
	s.installation = s.app.Installation(installation.ID)
	_, err = server.As("mona").CreateIssue("octo/login", "Add a login", "We need one.")
	must(err)
	return s
}

func (s *stage) reader() *github.Client { return s.installation.ReadOnly(s.repository.ID) }
func (s *stage) writer() *github.Client { return s.installation.Writer(s.repository.ID) }

// code fails the test unless the error has the code.
func (s *stage) code(err error, want github.Code) {
	s.t.Helper()
	if github.CodeOf(err) != want {
		s.t.Errorf("the error is %v, want the code %s", err, want)
	}
}

func TestReadingARepository(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	repository, err := s.reader().Repository(ctx)
	if err != nil || repository.FullName() != "octo/login" || !repository.Private || repository.Archived || repository.DefaultBranch != "main" || repository.OwnerType != "Organization" {
		t.Errorf("Repository = %+v, %v", repository, err)
	}
	issue, err := s.reader().Issue(ctx, 1)
	if err != nil || issue.Title != "Add a login" || issue.Body != "We need one." || issue.Author.ID != s.mona.ID || issue.State != "open" || issue.IsPullRequest {
		t.Errorf("Issue = %+v, %v", issue, err)
	}
	_, err = s.reader().Issue(ctx, 99)
	s.code(err, github.CodeNotFound)
	file, err := s.reader().GetContents(ctx, ".github/handoff.yml", "")
	if err != nil || string(file.Content) != "test: go test ./...\n" {
		t.Errorf("GetContents = %q, %v", file.Content, err)
	}
	byName, err := s.reader().CommitSHA(ctx, "main")
	if err != nil || byName != s.repository.Branches["main"] {
		t.Errorf("CommitSHA = %q, %v", byName, err)
	}
	for commit, want := range map[string]bool{byName: true, strings.Repeat("1", 40): false} {
		if got, err := s.reader().Contains(ctx, "main", commit); err != nil || got != want {
			t.Errorf("Contains(main, %s) = %v, %v", commit, got, err)
		}
	}
	bot, err := s.reader().Bot(ctx)
	if err != nil || bot.Type != "Bot" || bot.Login != "handoff[bot]" || bot.ID == 0 {
		t.Errorf("Bot = %+v, %v", bot, err)
	}
}

func TestRolesAsGitHubTellsThem(t *testing.T) {
	s := newStage(t)
	for login, want := range map[string][2]string{"mona": {"maintain", "write"}, "triager": {"triage", "read"}} {
		user, err := s.reader().User(t.Context(), login)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.reader().Permission(t.Context(), user.ID, login)
		if err != nil || got.Role != want[0] || got.Base != want[1] || got.User.Type != "User" {
			t.Errorf("Permission(%s) = %+v, %v, want %v", login, got, err, want)
		}
	}
	// The login was given up and taken by somebody else.
	if err := s.RenameUser("mona", "mona-elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddUser(fakegithub.UserSpec{Login: "mona"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.reader().Permission(t.Context(), s.mona.ID, "mona")
	s.code(err, github.CodeConflict)
}

func TestAConversation(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	made, err := s.writer().CreateComment(ctx, 1, "Working on it.")
	if err != nil || made.Body != "Working on it." || made.Author.Type != "Bot" || made.HTMLURL == "" || made.CreatedAt.IsZero() {
		t.Fatalf("CreateComment = %+v, %v", made, err)
	}
	edited, err := s.writer().EditComment(ctx, made.ID, "Done.")
	if err != nil || edited.Body != "Done." {
		t.Errorf("EditComment = %+v, %v", edited, err)
	}
	if _, err := s.As("mona").Comment("octo/login", 1, "Thanks."); err != nil {
		t.Fatal(err)
	}
	all, err := s.reader().ListComments(ctx, 1, time.Time{})
	if err != nil || len(all) != 2 || all[0].Body != "Done." || all[1].Author.Login != "mona" {
		t.Errorf("ListComments = %+v, %v", all, err)
	}
	s.Advance(time.Minute)
	late, err := s.reader().ListComments(ctx, 1, s.Now())
	if err != nil || len(late) != 0 {
		t.Errorf("ListComments since now = %+v, %v", late, err)
	}
	if err := s.As("mona").DeleteComment("octo/login", all[1].ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.reader().GetComment(ctx, all[1].ID)
	s.code(err, github.CodeNotFound)
}

func TestReactions(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	comment, err := s.writer().CreateComment(ctx, 1, "May I push this?")
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.writer().CreateReaction(ctx, comment.ID, "+1")
	if err != nil || first.Content != "+1" || first.CreatedAt.IsZero() {
		t.Fatalf("CreateReaction = %+v, %v", first, err)
	}
	again, err := s.writer().CreateReaction(ctx, comment.ID, "+1")
	if err != nil || again.ID != first.ID {
		t.Errorf("a repeated reaction is %+v, %v", again, err)
	}
	listed, err := s.reader().ListReactions(ctx, comment.ID, "")
	if err != nil || len(listed.All) != 1 || listed.ETag == "" {
		t.Fatalf("ListReactions = %+v, %v", listed, err)
	}
	same, err := s.reader().ListReactions(ctx, comment.ID, listed.ETag)
	if err != nil || !same.NotModified {
		t.Errorf("an unchanged list is %+v, %v", same, err)
	}
	if err := s.As("mona").React("octo/login", comment.ID, "-1"); err != nil {
		t.Fatal(err)
	}
	changed, err := s.reader().ListReactions(ctx, comment.ID, listed.ETag)
	if err != nil || changed.NotModified || len(changed.All) != 2 || changed.All[1].User.ID != s.mona.ID {
		t.Errorf("a changed list is %+v, %v", changed, err)
	}
}

func TestCheckRuns(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	head, err := s.reader().CommitSHA(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	request := github.CheckRunRequest{
		Name: "copilot push #1 3fa9c1d2", HeadSHA: head, ExternalID: "approval-1", Status: "completed", Conclusion: "neutral",
		Title: "May I push?", Summary: "Three files.", Actions: []github.CheckRunAction{{Label: "Approve push", Description: "Push exactly this", Identifier: "approve"}},
	}
	made, err := s.writer().CreateCheckRun(ctx, request)
	if err != nil || made.ExternalID != "approval-1" || made.AppID != s.app.ID() {
		t.Fatalf("CreateCheckRun = %+v, %v", made, err)
	}
	request.Conclusion, request.Actions = "success", nil
	changed, err := s.writer().UpdateCheckRun(ctx, made.ID, request)
	if err != nil || changed.Conclusion != "success" || changed.Name != request.Name {
		t.Errorf("UpdateCheckRun = %+v, %v", changed, err)
	}
	listed, err := s.reader().ListCheckRunsForRef(ctx, head)
	if err != nil || len(listed) != 1 || listed[0] != changed {
		t.Errorf("ListCheckRunsForRef = %+v, %v", listed, err)
	}
	got, err := s.reader().GetCheckRun(ctx, made.ID)
	if err != nil || got != changed {
		t.Errorf("GetCheckRun = %+v, %v", got, err)
	}
}

func TestPullRequests(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	if _, err := s.Commit(fakegithub.CommitSpec{Repository: "octo/login", Branch: "copilot/1-login", From: "main", Author: "mona", Message: "Add a login", Files: map[string]string{"login.go": "package login\n"}}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.reader().FindPullRequestByHead(ctx, "copilot/1-login"); found || err != nil {
		t.Fatalf("a pull request before there is one: %v, %v", found, err)
	}
	request := github.PullRequestRequest{Title: "Add a login", Body: "Fixes #1", Head: "copilot/1-login", Base: "main"}
	made, err := s.writer().CreatePullRequest(ctx, request)
	if err != nil || made.State != "open" || made.Head != "copilot/1-login" || made.HeadRepositoryID != s.repository.ID || made.Author.Type != "Bot" {
		t.Fatalf("CreatePullRequest = %+v, %v", made, err)
	}
	_, err = s.writer().CreatePullRequest(ctx, request)
	s.code(err, github.CodeValidation)
	request.Title = "Add a login page"
	if changed, err := s.writer().UpdatePullRequest(ctx, made.Number, request); err != nil || changed.Title != "Add a login page" {
		t.Errorf("UpdatePullRequest = %+v, %v", changed, err)
	}
	if _, err := s.As("mona").MergePull("octo/login", made.Number); err != nil {
		t.Fatal(err)
	}
	found, ok, err := s.reader().FindPullRequestByHead(ctx, "copilot/1-login")
	if err != nil || !ok || found.Number != made.Number || !found.Merged || found.State != "closed" {
		t.Errorf("FindPullRequestByHead = %+v, %v, %v", found, ok, err)
	}
}

// Each token does what it is for at GitHub, not only here.
func TestTokensAtGitHub(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	address, err := s.writer().GitURL(ctx)
	if err != nil || address != s.URL()+"/octo/login.git" {
		t.Fatalf("GitURL = %q, %v", address, err)
	}
	for _, c := range []struct {
		service string
		write   bool
		want    int
	}{
		{"git-upload-pack", false, 200}, {"git-receive-pack", false, 403},
		{"git-upload-pack", true, 200}, {"git-receive-pack", true, 200},
	} {
		token, err := s.writer().Token(ctx, c.write)
		if err != nil {
			t.Fatal(err)
		}
		request, _ := http.NewRequestWithContext(ctx, "GET", address+"/info/refs?service="+c.service, nil)
		request.SetBasicAuth("x-access-token", token.Value)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s with write=%v: %d, want %d", c.service, c.write, response.StatusCode, c.want)
		}
		if strings.Contains(s.log.String(), token.Value) {
			t.Error("a token is in the log")
		}
	}
}

// The fake revokes all tokens; the next request gets along.
func TestRevokedTokensAreReplaced(t *testing.T) {
	s := newStage(t)
	if _, err := s.reader().Issue(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.installation = s.app.Installation(s.installation.ID())
	s.ExpireTokens()
	s.Advance(2 * time.Hour)
	if _, err := s.reader().Issue(t.Context(), 1); err != nil {
		t.Errorf("with a dead token: %v", err)
	}
}

func TestTheGroundMoves(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	if _, err := s.writer().Issue(ctx, 1); err != nil {
		t.Fatal(err)
	}
	// A renamed repository is found by its old name's redirect and by its id.
	if err := s.RenameRepository("octo/login", "signin"); err != nil {
		t.Fatal(err)
	}
	if made, err := s.writer().CreateComment(ctx, 1, "Still here."); err != nil || made.ID == 0 {
		t.Errorf("after a rename: %+v, %v: %v", made, err, errors.Unwrap(err))
	}
	if err := s.As("mona").LockIssue("octo/signin", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.ArchiveRepository("octo/signin"); err != nil {
		t.Fatal(err)
	}
	_, err := s.writer().CreateComment(ctx, 1, "Hello?")
	s.code(err, github.CodeForbidden)
	if err := s.Suspend(s.installation.ID(), true); err != nil {
		t.Fatal(err)
	}
	s.app.Forget(s.installation.ID())
	s.installation = s.app.Installation(s.installation.ID())
	_, err = s.reader().Issue(ctx, 1)
	s.code(err, github.CodeNotInstalled)
	if err := s.Uninstall(s.installation.ID()); err != nil {
		t.Fatal(err)
	}
	_, err = s.reader().Issue(ctx, 1)
	s.code(err, github.CodeNotInstalled)
}

// A token for one repository does not open another one.
func TestAnotherRepositoryIsOutOfReach(t *testing.T) {
	s := newStage(t)
	other, err := s.AddRepository(fakegithub.RepositorySpec{Owner: "hubot", Name: "elsewhere", Private: true, Files: fstest.MapFS{"x": {Data: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.installation.ReadOnly(other.ID).Repository(t.Context())
	s.code(err, github.CodeNotInstalled)
}

func TestFaultsOnTheWay(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	if _, err := s.writer().Repository(ctx); err != nil {
		t.Fatal(err)
	}
	comments := "/repos/octo/login/issues/1/comments"
	count := func() int {
		t.Helper()
		all, err := s.reader().ListComments(ctx, 1, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	s.AddFault(fakegithub.Fault{Kind: fakegithub.FaultLostAnswer, Method: "POST", Path: comments})
	_, err := s.writer().CreateComment(ctx, 1, "once")
	s.code(err, github.CodeUnknownOutcome)
	if got := count(); got != 1 {
		t.Errorf("%d comments, want the one whose answer was lost", got)
	}
	s.AddFault(fakegithub.Fault{Kind: fakegithub.FaultBadGateway, Method: "GET", Path: comments})
	count()
	s.AddFault(fakegithub.Fault{Kind: fakegithub.FaultSecondaryLimit, Method: "POST", Path: comments, RetryAfter: 30})
	_, err = s.writer().CreateComment(ctx, 1, "twice")
	s.code(err, github.CodeRateLimited)
	if got := len(s.State().Repositories[0].Issues[0].Comments); got != 1 {
		t.Errorf("%d comments", got)
	}
}

// The delivery log is read back as it was written.
func TestTheDeliveryLog(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	received := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get("X-GitHub-Delivery")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer hook.Close()
	if err := s.SetWebhook("handoff", hook.URL, "0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.As("mona").Comment("octo/login", 1, "/copilot add a login"); err != nil {
		t.Fatal(err)
	}
	guid := <-received
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.WaitIdle(wait); err != nil {
		t.Fatal(err)
	}
	for delivery, err := range s.app.Deliveries(ctx, s.Now().Add(-time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		if delivery.GUID != guid {
			continue
		}
		if delivery.Event != "issue_comment" || delivery.Action != "created" || delivery.StatusCode != 503 {
			t.Errorf("the entry is %+v", delivery)
		}
		request, err := s.app.Delivery(ctx, delivery.ID)
		if err != nil || !bytes.Contains(request.Payload, []byte("/copilot add a login")) {
			t.Errorf("Delivery = %.200s, %v", request.Payload, err)
		}
		return
	}
	t.Errorf("delivery %s is not in the log", guid)
}

func TestInstallations(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	all, err := s.app.Installations(ctx)
	if err != nil || len(all) != 1 || all[0].Account.Login != "octo" || !all[0].AllRepositories || all[0].Permissions["contents"] != "write" {
		t.Errorf("Installations = %+v, %v", all, err)
	}
	info, err := s.installation.Info(ctx)
	if err != nil || info.ID != s.installation.ID() || info.Suspended {
		t.Errorf("Info = %+v, %v", info, err)
	}
	id, err := s.app.RepositoryInstallation(ctx, "octo", "login")
	if err != nil || id != s.installation.ID() {
		t.Errorf("RepositoryInstallation = %d, %v", id, err)
	}
	_, err = s.app.RepositoryInstallation(ctx, "octo", "nothing")
	s.code(err, github.CodeNotFound)
	if _, err := s.app.RepositoryInstallation(ctx, "..", "x"); github.CodeOf(err) != github.CodeValidation {
		t.Errorf("a name that is none: %v", err)
	}
	if got := fmt.Sprint(io.Discard, s.app); strings.Contains(got, "PRIVATE") {
		t.Error("printing the App shows its key")
	}
}
