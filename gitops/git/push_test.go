package git

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sealedChange hands out main, changes a file and seals it.
func sealedChange(t *testing.T, server *gitServer, text string) (*Workspace, Sealed) {
	t.Helper()
	w := hand(t, newCache(t, Limits{}), server.remote(), "main")
	put(t, w.Tree(), map[string]string{"main.go": text})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	return w, sealed
}

func (s *gitServer) hook(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(s.bare, "hooks", name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
}

// Edge case 22: a push that is declined says why in the server's own words, and
// what to do about the usual reasons.
func TestDeclinedPush(t *testing.T) {
	for _, c := range []struct{ words, advice string }{
		{"error: GH006: Protected branch update failed for refs/heads/copilot/1-x.", "protected"},
		{"error: GH013: Repository rule violations found for refs/heads/copilot/1-x.", "ruleset"},
		{"refusing to allow a GitHub App to create or update workflow .github/workflows/ci.yml without workflows permission", "Workflows: write"},
		{"error: GH001: Large files detected.", "too large"},
		{"pre-receive says no\x1b[2J", "pre-receive"},
	} {
		server := serve(t)
		server.commit(t, "main", small)
		w, sealed := sealedChange(t, server, "changed\n")
		server.hook(t, "pre-receive", "printf '%s\\n' '"+c.words+"' >&2\nexit 1\n")
		result, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed)
		if CodeOf(err) != CodeRejected || !strings.Contains(err.Error(), c.advice) {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		if !strings.Contains(err.Error(), strings.Split(c.words, "\x1b")[0]) || strings.Contains(err.Error(), "\x1b") || len(result.ServerMessages) == 0 {
			t.Errorf("the server's words are lost or unclean: %q, %+v", err, result)
		}
		if refs := cli(t, server.bare, "for-each-ref", "refs/heads/copilot"); refs != "" {
			t.Errorf("a ref was made: %s", refs)
		}
	}
}

// A push that is accepted brings the server's remarks as well.
func TestAcceptedPushBringsRemarks(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	w, sealed := sealedChange(t, server, "changed\n")
	server.hook(t, "post-receive", "echo 'Create a pull request by visiting https://x' >&2\n")
	result, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed)
	if err != nil || len(result.ServerMessages) != 1 || !strings.HasPrefix(result.ServerMessages[0], "Create a pull request") {
		t.Errorf("%+v, %v", result, err)
	}
}

// Edge case 23: nobody's commit is ever overwritten.
func TestPushComparesAndSwaps(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	w, sealed := sealedChange(t, server, "ours\n")
	ref := RefPrefix + "1-x"
	theirs := server.commit(t, "copilot/1-x", map[string]string{"main.go": "theirs\n"})
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref}, sealed); CodeOf(err) != CodeStale {
		t.Errorf("creating an existing branch: %v", err)
	}
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref, Old: w.Base()}, sealed); CodeOf(err) != CodeStale {
		t.Errorf("updating from elsewhere: %v", err)
	}
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "2-x", Old: w.Base()}, sealed); CodeOf(err) != CodeStale {
		t.Errorf("updating a missing branch: %v", err)
	}
	if now := cli(t, server.bare, "rev-parse", ref); now != theirs {
		t.Errorf("their commit is gone: %s", now)
	}

	// The branch moves between the advertisement and the request.
	server.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			cli(t, server.bare, "update-ref", RefPrefix+"3-x", theirs)
		}
		return false
	})
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "3-x"}, sealed); CodeOf(err) != CodeStale {
		t.Errorf("a race: %v", err)
	}
	if now := cli(t, server.bare, "rev-parse", RefPrefix+"3-x"); now != theirs {
		t.Errorf("their commit is gone: %s", now)
	}
}

// Edge case 23, the worst moment: the push arrived and its answer did not.
func TestAnswerLostAfterSuccess(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	w, sealed := sealedChange(t, server, "ours\n")
	cache := newCache(t, Limits{})
	for name, lose := range map[string]func(http.ResponseWriter){
		"502":     func(rw http.ResponseWriter) { http.Error(rw, "bad gateway", http.StatusBadGateway) },
		"nothing": func(http.ResponseWriter) {},
		"cut":     func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		ref := RefPrefix + "1-" + name
		server.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost {
				return false
			}
			server.pass(t, r)
			lose(rw)
			return true
		})
		if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref}, sealed); CodeOf(err) != CodeUnknown {
			t.Errorf("%s: %v", name, err)
		}
		server.intercept(nil)
		if there, err := cache.RemoteRef(t.Context(), server.remote(), ref); err != nil || there != sealed.Commit {
			t.Errorf("%s: reconciling finds %q, %v", name, there, err)
		}
		if again, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: ref}, sealed); err != nil || !again.AlreadyThere {
			t.Errorf("%s: pushing again: %+v, %v", name, again, err)
		}
	}
	if there, err := cache.RemoteRef(t.Context(), server.remote(), RefPrefix+"9-none"); err != nil || there != "" {
		t.Errorf("a ref that is not there: %q, %v", there, err)
	}
}

// pass lets git's server handle a request and throws its answer away.
func (s *gitServer) pass(t *testing.T, r *http.Request) {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.backend.ServeHTTP(recorder, r)
	if _, err := io.Copy(io.Discard, recorder.Result().Body); err != nil {
		t.Error(err)
	}
}

// Edge case 24: the token expires between the advertisement and the request.
func TestTokenExpiresDuringThePush(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	w, sealed := sealedChange(t, server, "ours\n")
	remote := server.remote()
	tokens := 0
	remote.Auth = func(context.Context) (string, error) { tokens++; return server.token, nil }
	refused := false
	server.intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && !refused {
			refused = true
			http.Error(rw, "Bad credentials", http.StatusUnauthorized)
			return true
		}
		return false
	})
	if _, err := w.Push(t.Context(), remote, PushRequest{Ref: RefPrefix + "1-x"}, sealed); err != nil || tokens != 2 {
		t.Errorf("%d tokens, %v", tokens, err)
	}
}

// Edge case 4: a default branch below copilot/, and one that is in the way.
func TestDefaultBranchInTheWay(t *testing.T) {
	server := serve(t)
	server.commit(t, "copilot/main", small)
	cli(t, server.bare, "symbolic-ref", "HEAD", "refs/heads/copilot/main")
	w := hand(t, newCache(t, Limits{}), server.remote(), "")
	put(t, w.Tree(), map[string]string{"main.go": "x\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	request := PushRequest{Ref: "refs/heads/copilot/main", Old: w.Base(), Protected: []string{"refs/heads/copilot/main"}}
	if _, err := w.Push(t.Context(), server.remote(), request, sealed); CodeOf(err) != CodeInvalid {
		t.Errorf("the default branch: %v", err)
	}
	cli(t, server.bare, "branch", "-m", "copilot/main", "copilot")
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed); CodeOf(err) != CodeRejected || !strings.Contains(err.Error(), "rename") {
		t.Errorf("a branch in the way: %v", err)
	}
}

// A push that nobody heard of changes nothing and says so.
func TestPushToNobody(t *testing.T) {
	server := serve(t)
	server.commit(t, "main", small)
	w, sealed := sealedChange(t, server, "ours\n")
	server.Close()
	if _, err := w.Push(t.Context(), server.remote(), PushRequest{Ref: RefPrefix + "1-x"}, sealed); CodeOf(err) != CodeTransport {
		t.Errorf("%v", err)
	}
}

// The same files and info give the same commit, at any time and place; any
// difference gives another.
func TestSealIsDeterministic(t *testing.T) {
	local, commit := localOf(t, Limits{}, small)
	seal := func(info CommitInfo) Sealed {
		w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
		must(t, err)
		put(t, w.Tree(), map[string]string{"main.go": "changed\n", "new/file": "x\n"})
		sealed, err := w.Seal(t.Context(), info)
		must(t, err)
		if !w.HasSealed(sealed) || w.HasSealed(Sealed{Commit: commit}) {
			t.Error("the workspace does not know what it sealed")
		}
		if content, err := w.ReadSealed(t.Context(), sealed.Files[0].Blob); err != nil || string(content) != "changed\n" {
			t.Errorf("%s of it holds %q, %v", sealed.Files[0].Path, content, err)
		}
		return sealed
	}
	first := seal(bot)
	elsewhere := bot
	elsewhere.When = bot.When.In(time.FixedZone("far", 5*3600)).Add(300 * time.Millisecond)
	if again := seal(elsewhere); again.Commit != first.Commit {
		t.Errorf("%s, then %s", first.Commit, again.Commit)
	}
	later := bot
	later.When = bot.When.Add(time.Second)
	if other := seal(later); other.Commit == first.Commit || other.Tree != first.Tree {
		t.Errorf("%+v and %+v", first, other)
	}
	w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	if _, err := w.Seal(t.Context(), bot); CodeOf(err) != CodeNoChange {
		t.Errorf("nothing changed: %v", err)
	}
}

// Nobody can make the host say who wrote, signed or reviewed a commit, nor keep
// CI from running on it.
func TestMessagesAndNamesAreCleaned(t *testing.T) {
	got := cleanMessage(CommitInfo{
		Message: "Fix it [skip ci]\r\n\r\nSigned-off-by: Boss <boss@example.com>\n  co-AUTHORED-by : Eve <eve@x>\nskip-checks: true\n" +
			"Because \x1b[31mred\u202e\x00.\nReviewed-by: Boss\n\n\n",
		Trailers:  []Trailer{{"Session", "https://x\nSigned-off-by: Boss <b@x>"}, {"Bad key", "x"}, {"Empty", ""}},
		CoAuthors: []Identity{{"Eve\nSigned-off-by: Boss <b@x>", "e@x>\nx: y"}, {"", ""}},
		SignOff:   &Identity{"Bot", "bot@x"},
	})
	want := "Fix it (skip ci)\n\nBecause [31mred.\n\nSession: https://x Signed-off-by: Boss <b@x>\n" +
		"Co-authored-by: Eve Signed-off-by: Boss b@x <e@xx:y>\nSigned-off-by: Bot <bot@x>\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := cleanMessage(CommitInfo{Message: "\n Signed-off-by: x\n"}); got != "Update files\n" {
		t.Errorf("an empty message: %q", got)
	}
	if got := cleanIdentity(Identity{" .Eve <eve@x>\r\n;", " e v e@x<> "}); got != (Identity{"Eve eve@x", "eve@x"}) {
		t.Errorf("an identity: %+v", got)
	}
}

// What GitHub's API says about a ref is explained like what its git server says.
func TestDeclinedSaysWhatToDo(t *testing.T) {
	for words, advice := range map[string]string{
		"Repository rule violations found Cannot create ref due to creations being restricted.": "let the App bypass it or change the rule",
		"Changes must be made through a pull request.":                                          "exclude copilot/* from the protection",
		"refusing to allow a GitHub App to create or update workflow `a` without `workflows`":   "Workflows: write",
		"Resource not accessible by integration":                                                "Contents: write",
		"something else\x1b[2J\u202e":                                                           "see the server's own words",
	} {
		declined := Declined("refs/heads/copilot/1-x", words)
		if declined.Code != CodeRejected || !strings.Contains(declined.Message, "declined the push to copilot/1-x: ") || !strings.Contains(declined.Message, advice) ||
			strings.ContainsAny(declined.Server, "\x1b\u202e") || !strings.HasPrefix(declined.Server, words[:10]) {
			t.Errorf("%s: %+v", words, declined)
		}
	}
}
