package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A session works with a token that reads one repository. Only the push asks
// for contents:write, and only then is such a token minted.
func TestTokensAreGoodForOneRepositoryAndOnePurpose(t *testing.T) {
	m := newMisbehaving(t)
	if _, err := m.reader().Issue(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	if _, err := m.writer().CreateComment(t.Context(), 12, "hello"); err != nil {
		t.Fatal(err)
	}
	token, err := m.writer().Token(t.Context(), true)
	if err != nil || !strings.HasPrefix(token.Value, canary) {
		t.Fatalf("Token = %v, %v", token, err)
	}
	want := []map[string]string{
		{"metadata": "read", "contents": "read", "issues": "read", "pull_requests": "read", "checks": "read"},
		{"metadata": "read", "contents": "read", "issues": "write", "pull_requests": "write", "checks": "write"},
		{"metadata": "read", "contents": "write"},
	}
	for i, body := range m.minted {
		repositories, granted := permissions(t, body)
		if !slices.Equal(repositories, []int64{testRepository}) {
			t.Errorf("token %d is for the repositories %v", i, repositories)
		}
		if diff := cmp.Diff(want[i], granted); diff != "" {
			t.Errorf("token %d (-want +got):\n%s", i, diff)
		}
	}
	if len(m.minted) != len(want) {
		t.Errorf("%d tokens were minted, want %d", len(m.minted), len(want))
	}
}

func TestAReaderCannotWriteOrPush(t *testing.T) {
	m := newMisbehaving(t)
	_, err := m.reader().CreateComment(t.Context(), 12, "hello")
	mustCode(t, err, CodeForbidden)
	_, err = m.reader().Token(t.Context(), true)
	mustCode(t, err, CodeForbidden)
	if len(m.minted)+len(m.requests) != 0 {
		t.Errorf("requests were made: %v %v", m.minted, m.requests)
	}
}

func TestATokenPrintsWithoutItsValue(t *testing.T) {
	token := Token{Value: canary, ExpiresAt: time.Now()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, token); strings.Contains(text, canary) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

// A token is renewed five minutes before its end, and one that still lives
// serves on when GitHub gives no new one.
func TestATokenIsRenewedEarly(t *testing.T) {
	m := newMisbehaving(t)
	issue := func() {
		t.Helper()
		if _, err := m.reader().Issue(t.Context(), 12); err != nil {
			t.Fatal(err)
		}
	}
	issue()
	m.pass(54 * time.Minute)
	issue()
	if len(m.minted) != 1 {
		t.Fatalf("%d tokens were minted while the first had six minutes left", len(m.minted))
	}
	m.pass(2 * time.Minute)
	m.mint = func(w http.ResponseWriter, _ *http.Request, nth int) bool {
		reply(w, 502, "bad gateway")
		return true
	}
	issue()
	if last := m.tokens[len(m.tokens)-1]; last != canary+"_1" {
		t.Errorf("the request came with %q, want the token that still lives", last)
	}
	m.mint = nil
	issue()
	if last := m.tokens[len(m.tokens)-1]; last == canary+"_1" {
		t.Error("the token was not renewed")
	}
}

func TestMintingIsRepeatedWhenGitHubIsUnwell(t *testing.T) {
	m := newMisbehaving(t)
	m.mint = func(w http.ResponseWriter, _ *http.Request, nth int) bool {
		if nth <= 2 {
			reply(w, 502, "<html>bad gateway</html>")
		}
		return nth <= 2
	}
	if _, err := m.reader().Issue(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	if len(m.minted) != 3 {
		t.Errorf("%d requests for a token, want 3", len(m.minted))
	}
}

func TestMintingThatIsRefusedSaysWhy(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   Code
	}{
		{404, `{"message":"Not Found"}`, CodeNotInstalled},
		{403, `{"message":"This installation has been suspended"}`, CodeNotInstalled},
		{422, `{"message":"There is at least one repository that does not exist or is not accessible to the parent installation."}`, CodeNotInstalled},
		{401, `{"message":"A JSON web token could not be decoded"}`, CodeUnauthorized},
		{403, `{"message":"API rate limit exceeded"}`, CodeRateLimited},
		{503, `unwell`, CodeUnavailable},
	} {
		m := newMisbehaving(t)
		m.mint = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			reply(w, c.status, c.body)
			return true
		}
		_, err := m.reader().Issue(t.Context(), 12)
		mustCode(t, err, c.want)
		if len(m.requests) != 0 {
			t.Errorf("%d: a request was sent without a token", c.status)
		}
	}
}

// GitHub refuses a JWT from the future. Its Date header tells by how much our
// clock is wrong, and the next JWT has the right time.
func TestAWrongClockIsCorrected(t *testing.T) {
	for _, skew := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		m := newMisbehaving(t)
		m.now = m.local.Add(skew)
		m.mint = func(w http.ResponseWriter, r *http.Request, _ int) bool {
			claims, err := m.claims(r, testKey())
			if err != nil {
				t.Errorf("bad JWT: %v", err)
			}
			if claims.IssuedAt.After(m.now) || claims.ExpiresAt.Before(m.now) || claims.ExpiresAt.Sub(m.now) > 10*time.Minute {
				reply(w, 401, `{"message":"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"}`)
				return true
			}
			return false
		}
		if _, err := m.reader().Issue(t.Context(), 12); err != nil {
			t.Fatalf("skew %v: %v", skew, err)
		}
		if len(m.minted) != 2 {
			t.Errorf("skew %v: %d requests for a token, want 2", skew, len(m.minted))
		}
		// The token's hour is GitHub's as well.
		if _, err := m.reader().Issue(t.Context(), 12); err != nil || len(m.minted) != 2 {
			t.Errorf("skew %v: the token was not kept (%d mints, %v)", skew, len(m.minted), err)
		}
	}
}

// Two callers want a token at once: one request is made, and a caller whose
// context ends leaves while the other waits on.
func TestWaitersShareAMintingAndLeaveWithTheirContext(t *testing.T) {
	m := newMisbehaving(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	m.mint = func(http.ResponseWriter, *http.Request, int) bool {
		close(arrived)
		<-release
		return false
	}
	impatient, leave := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.reader().Token(impatient, false)
		left <- err
	}()
	<-arrived
	go func() {
		_, err := m.reader().Token(t.Context(), false)
		stayed <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the impatient caller got %v", err)
	}
	close(release)
	if err := <-stayed; err != nil {
		t.Errorf("the patient caller got %v", err)
	}
	if len(m.minted) != 1 {
		t.Errorf("%d requests for a token, want one", len(m.minted))
	}
}

// GitHub's replicas learn of a token some seconds after it was made: a refusal
// of a fresh token is waited out, without another minting.
func TestAFreshTokenIsWaitedFor(t *testing.T) {
	m := newMisbehaving(t)
	m.handle = func(w http.ResponseWriter, r *http.Request, nth int) bool {
		if nth <= 3 {
			reply(w, 401, `{"message":"Bad credentials"}`)
		}
		return nth <= 3
	}
	if _, err := m.reader().Repository(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !reflect.DeepEqual(m.sleeps, want) || len(m.minted) != 1 {
		t.Errorf("waited %v with %d mintings, want %v with one", m.sleeps, len(m.minted), want)
	}
}

// An older token that is refused was revoked: it is replaced, once, and the
// request is sent again with its body.
func TestADeadTokenIsReplaced(t *testing.T) {
	m := newMisbehaving(t)
	if _, err := m.writer().Issue(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	m.pass(10 * time.Minute)
	m.handle = func(w http.ResponseWriter, r *http.Request, nth int) bool {
		if r.Header.Get("Authorization") == "token "+canary+"_1" {
			reply(w, 401, `{"message":"Bad credentials"}`)
			return true
		}
		if r.ContentLength < 1 {
			t.Error("the body was not sent again")
		}
		return false
	}
	if _, err := m.writer().CreateComment(t.Context(), 12, "hello"); err != nil {
		t.Fatal(err)
	}
	if len(m.minted) != 2 {
		t.Errorf("%d mintings, want 2", len(m.minted))
	}
}

// Where the permission is missing for good, replacing the token does not help
// and is not tried for every request.
func TestAMissingPermissionIsNotMistakenForADeadToken(t *testing.T) {
	m := newMisbehaving(t)
	if _, err := m.writer().Issue(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	m.pass(10 * time.Minute)
	m.handle = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.Method == "POST" {
			reply(w, 403, `{"message":"Resource not accessible by integration"}`)
		}
		return r.Method == "POST"
	}
	for range 3 {
		_, err := m.writer().CreateComment(t.Context(), 12, "hello")
		e := mustCode(t, err, CodeForbidden)
		if !strings.Contains(e.Message, "Resource not accessible by integration") || e.RequestID == "" {
			t.Errorf("the error lacks GitHub's words or request id: %+v", e)
		}
		m.pass(15 * time.Second)
	}
	if len(m.minted) != 2 {
		t.Errorf("%d mintings, want the first and one more", len(m.minted))
	}
}

func TestForgettingAnInstallationDropsItsTokens(t *testing.T) {
	m := newMisbehaving(t)
	for range 2 {
		if _, err := m.reader().Issue(t.Context(), 12); err != nil {
			t.Fatal(err)
		}
		m.app.Forget(testInstallation)
	}
	if len(m.minted) != 2 {
		t.Errorf("%d mintings, want 2", len(m.minted))
	}
}

func TestMemoryForInstallationsAndTokensIsBounded(t *testing.T) {
	m := newMisbehaving(t)
	for id := range int64(installationsKept + 50) {
		m.app.Installation(id + 1)
	}
	if n := len(m.app.installations); n > installationsKept {
		t.Errorf("%d installations are kept", n)
	}
	one := m.app.Installation(5)
	for id := range int64(sourcesKept + 50) {
		one.source(scope{repository: id + 1, access: accessRead})
	}
	if n := len(one.sources); n > sourcesKept {
		t.Errorf("%d token sources are kept", n)
	}
}

// A committer's token writes contents of one repository and nothing else, and
// whoever keeps texts clean hears of every token before it is used.
func TestEveryTokenIsToldBeforeItIsUsed(t *testing.T) {
	m := newMisbehaving(t)
	told := map[string]bool{}
	m.app.onToken = func(value string) {
		if len(m.requests) > 0 && len(told) == 0 {
			t.Error("a token was used before anybody was told")
		}
		told[value] = true
	}
	for _, client := range []*Client{m.reader(), m.writer(), &m.app.Installation(testInstallation).Committer(testRepository).client} {
		if _, err := client.Repository(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 3 || len(m.tokens) != 3 {
		t.Errorf("%d tokens were told of %d that were used", len(told), len(m.tokens))
	}
	for _, used := range m.tokens {
		if !told[used] {
			t.Errorf("nobody was told of the token of a request")
		}
	}
	if last := m.minted[len(m.minted)-1]; !strings.Contains(last, `"contents":"write"`) || strings.Contains(last, "issues") || strings.Count(last, `"write"`) != 1 {
		t.Errorf("a committer's token may do %s", last)
	}
}
