package fakegithub

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

func TestAppCredentials(t *testing.T) {
	s := newStage(t)
	now := s.server.Now()
	claim := func(name string, value any) func(jwt.MapClaims) {
		return func(claims jwt.MapClaims) { claims[name] = value }
	}
	tooFar := "'Expiration time' claim ('exp') is too far in the future"
	expired := "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	notYet := "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	undecoded := "A JSON web token could not be decoded"
	for name, test := range map[string]struct {
		credential string
		status     int
		message    string
	}{
		"by client id":       {credential: s.jwt(claim("iss", s.clientID())), status: 200},
		"as a number":        {credential: s.jwt(claim("iss", s.app.ID)), status: 200},
		"ten minutes":        {credential: s.jwt(claim("exp", now.Add(10*time.Minute).Unix())), status: 200},
		"too long":           {credential: s.jwt(claim("exp", now.Add(11*time.Minute).Unix())), status: 401, message: tooFar},
		"expired":            {credential: s.jwt(claim("exp", now.Add(-time.Second).Unix())), status: 401, message: expired},
		"without expiry":     {credential: s.jwt(claim("exp", nil)), status: 401, message: expired},
		"issued in future":   {credential: s.jwt(claim("iat", now.Add(time.Minute).Unix())), status: 401, message: notYet},
		"no such App":        {credential: s.jwt(claim("iss", "7")), status: 404, message: "Integration not found"},
		"another key":        {credential: s.forged(jwt.SigningMethodRS256, parseKey(t, otherKey(t))), status: 401, message: undecoded},
		"HMAC":               {credential: s.forged(jwt.SigningMethodHS256, []byte("secret")), status: 401, message: undecoded},
		"unsigned":           {credential: s.forged(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), status: 401, message: undecoded},
		"nonsense":           {credential: "a.b.c", status: 401, message: undecoded},
		"nobody":             {credential: "", status: 401, message: undecoded},
		"installation token": {credential: s.token(), status: 401, message: undecoded},
		"token of nobody's":  {credential: "ghs_nobody", status: 401, message: "Bad credentials"},
		"personal token":     {credential: s.server.As("maria").Token(), status: 401, message: undecoded},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.as(test.credential).get("/app").is(test.status)
			if test.message != "" {
				answer.refused(test.status, test.message)
			}
		})
	}
}

func (s *stage) clientID() string { return s.as(s.jwt()).get("/app").text("client_id") }

func (s *stage) forged(method jwt.SigningMethod, key any) string {
	s.Helper()
	now := s.server.Now()
	text, err := jwt.NewWithClaims(method, jwt.MapClaims{"iss": fmt.Sprint(s.app.ID), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}).SignedString(key)
	s.ok(err)
	return text
}

func otherKey(t *testing.T) string {
	t.Helper()
	_, text, err := appKey("")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestInstallationTokenEnds(t *testing.T) {
	s := newStage(t)
	token := s.token()
	s.server.Advance(time.Hour - 2*time.Second)
	s.as(token).get("/repos/acme/hello").is(200)
	s.server.Advance(2 * time.Second)
	s.as(token).get("/repos/acme/hello").refused(401, "Bad credentials")

	token = s.token()
	s.server.ExpireTokens()
	s.as(token).get("/repos/acme/hello").refused(401, "Bad credentials")

	token = s.token()
	s.ok(s.server.Suspend(s.installation.ID, true))
	s.as(token).get("/repos/acme/hello").refused(403, "This installation has been suspended")
	s.as(s.jwt()).post(s.tokenAddress(), nil).refused(403, "This installation has been suspended")
	s.ok(s.server.Suspend(s.installation.ID, false))
	s.as(token).get("/repos/acme/hello").is(200)

	s.ok(s.server.Uninstall(s.installation.ID))
	s.as(token).get("/repos/acme/hello").refused(401, "Bad credentials")
	s.as(s.jwt()).post(s.tokenAddress(), nil).refused(404, "Not Found")
}

func (s *stage) tokenAddress() string {
	return fmt.Sprintf("/app/installations/%d/access_tokens", s.installation.ID)
}

func TestTokenReachesWhatItWasMintedFor(t *testing.T) {
	s := newStage(t)
	for _, name := range []string{"secret", "other"} {
		_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: name, Private: true, Files: helloFiles()})
		s.ok(err)
	}
	_, err := s.server.AddRepository(RepositorySpec{Owner: "stranger", Name: "elsewhere", Private: true, Files: helloFiles()})
	s.ok(err)
	scoped := s.as(s.token(map[string]any{"repositories": []string{"secret"}, "permissions": map[string]string{"issues": "read", "contents": "read"}}))
	scoped.get("/repos/acme/secret").is(200)
	scoped.get("/repos/acme/other").refused(404, "Not Found")
	scoped.get("/repos/stranger/elsewhere").refused(404, "Not Found")
	scoped.get("/repos/acme/hello/issues").is(200) // public, so it may be read
	const integration = "Resource not accessible by integration"
	scoped.post("/repos/acme/hello/issues", map[string]any{"title": "x"}).refused(403, integration)
	scoped.post("/repos/acme/secret/issues", map[string]any{"title": "x"}).refused(403, integration)
	refused := scoped.get("/repos/acme/secret/pulls")
	refused.refused(403, integration)
	if got := refused.response.Header.Get("X-Accepted-GitHub-Permissions"); got != "pull_requests=read" {
		t.Errorf("what would have been accepted is %q", got)
	}
	scoped.get("/user").refused(403, integration)
	s.as(s.jwt()).get("/repos/acme/hello").refused(403, integration)
	s.as(s.jwt()).get("/repos/acme/secret").refused(404, "Not Found")

	tokens := s.as(s.jwt())
	tokens.post(s.tokenAddress(), map[string]any{"repositories": []string{"nowhere"}}).is(422)
	tokens.post(s.tokenAddress(), map[string]any{"repository_ids": []int{1}}).is(422)
	tokens.post(s.tokenAddress(), map[string]any{"permissions": map[string]string{"administration": "write"}}).
		refused(422, "The permissions requested are not granted to this installation.")
	tokens.post(s.tokenAddress(), map[string]any{"permissions": map[string]string{"actions": "write"}}).is(422)
}

func TestPeopleMayWhatTheirRoleAllows(t *testing.T) {
	s := newStage(t)
	_, err := s.server.AddRepository(RepositorySpec{Owner: "acme", Name: "secret", Private: true, Files: helloFiles(),
		Roles: map[string]Role{"ralph": RoleRead, "maria": "security", "walter": RoleTriage}, CustomRoles: map[string]Role{"security": RoleMaintain}})
	s.ok(err)
	s.as("").get("/repos/acme/secret").refused(404, "Not Found")
	s.person("stranger").get("/repos/acme/secret").refused(404, "Not Found")
	s.as("").get("/repos/acme/hello/issues").is(200)
	s.as("").post("/repos/acme/hello/issues", map[string]any{"title": "x"}).refused(401, "Requires authentication")
	issue := s.person("stranger").post("/repos/acme/hello/issues", map[string]any{"title": "x", "labels": []string{"bug"}}).is(201)
	if labels := issue.field("labels").([]any); len(labels) != 0 {
		t.Errorf("a stranger set labels %v", labels)
	}
	s.person("ralph").patch("/repos/acme/hello/issues/1", map[string]any{"title": "y"}).is(403)
	s.person("stranger").patch("/repos/acme/hello/issues/1", map[string]any{"state": "closed"}).is(200)
	s.person("ralph").post("/repos/acme/hello/git/refs", map[string]any{"ref": "refs/heads/x", "sha": s.repository.Branches["main"]}).is(403)
	s.person("ralph").get("/repos/acme/hello/collaborators/maria/permission").is(403)
	s.person("maria").post("/repos/acme/hello/check-runs", map[string]any{"name": "x", "head_sha": s.repository.Branches["main"]}).
		refused(403, "You must authenticate via a GitHub App.")

	for login, want := range map[string][2]string{"maria": {"write", "security"}, "walter": {"read", "triage"}, "ralph": {"read", "read"},
		"stranger": {"none", "none"}, "acme": {"admin", "admin"}} {
		answer := s.bot().get("/repos/acme/secret/collaborators/" + login + "/permission").is(200)
		if got := [2]string{answer.text("permission"), answer.text("role_name")}; got != want {
			t.Errorf("%s: permission and role_name are %v, want %v", login, got, want)
		}
	}
	s.bot().get("/repos/acme/secret/collaborators/nobody-there/permission").refused(404, "Not Found")
}

func TestRepositoryMovesAndEnds(t *testing.T) {
	s := newStage(t)
	s.ok(s.server.RenameRepository("acme/hello", "hallo"))
	moved := s.bot().get("/repos/acme/hello/issues").is(http.StatusMovedPermanently)
	if want := s.server.api("/repositories/%d/issues", s.repository.ID); moved.response.Header.Get("Location") != want {
		t.Errorf("moved to %q, want %q", moved.response.Header.Get("Location"), want)
	}
	s.bot().get(fmt.Sprintf("/repositories/%d/issues", s.repository.ID)).is(200)
	s.ok(s.server.ArchiveRepository("acme/hallo"))
	s.bot().post("/repos/acme/hallo/issues", map[string]any{"title": "x"}).refused(403, "Repository was archived so is read-only.")
	s.ok(s.server.DeleteRepository("acme/hallo"))
	s.bot().get("/repos/acme/hallo").refused(404, "Not Found")
	s.bot().get("/repos/acme/hello").refused(404, "Not Found")
}
