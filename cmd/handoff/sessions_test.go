package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"handoff/gitops/fakegithub"
	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
	"handoff/webhook/pages"
)

// posted finds links to patches in comments, with the words beside them.
var posted = regexp.MustCompile(`\[download\]\((\S+)\) \(this link works until ([^)]+)\)`)

// postedPatch fetches a session's work by the link in its comments, and makes
// sure that the same link opens nothing else.
func (s *scene) postedPatch(ctx context.Context, sessionID string) (string, error) {
	var link string
	err := s.poll(ctx, "a link to the session's patch", func(repository fakegithub.Repository) (bool, error) {
		for _, issue := range repository.Issues {
			for _, comment := range issue.Comments {
				for _, found := range posted.FindAllStringSubmatch(comment.Body, -1) {
					if strings.Contains(found[1], sessionID) {
						link = found[1]
					}
				}
			}
		}
		return link != "", nil
	})
	if err != nil {
		return "", err
	}
	status, patch, err := fetch(ctx, link)
	if err != nil || status != http.StatusOK {
		return "", fmt.Errorf("the posted link answers %d: %w", status, err)
	}
	page := s.stage.bot.sessionURL(sessionID)
	_, query, _ := strings.Cut(link, "?")
	for _, address := range []string{page, page + "?" + query, strings.SplitAfter(link, "?")[0]} {
		if status, _, err := fetch(ctx, address); err != nil || status != http.StatusNotFound {
			return "", fmt.Errorf("%s answers %d: %w", address, status, err)
		}
	}
	return patch, nil
}

func fetch(ctx context.Context, address string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// A shelf is a database with sessions and the program beside it.
type shelf struct {
	*testing.T
	url   string
	store *store.Store
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	url := storetest.URL(t, storetest.SQLite)
	return &shelf{t, url, storetest.OpenURL(t, url, store.Options{})}
}

// session makes a session that a node works on.
func (s *shelf) session(task string) *store.Lease {
	s.Helper()
	made := store.Session{InstallationID: 7, RepositoryID: 1, Owner: "acme", Repository: "shop", Issue: 12, RequesterLogin: "ann", Task: task}
	must(s.T, s.store.CreateSession(s.Context(), &made))
	node, err := s.store.Register(s.Context(), "node")
	must(s.T, err)
	lease, err := s.store.Acquire(s.Context(), node, store.Caps{})
	must(s.T, err)
	_, err = lease.Append(s.Context(), runner.Batch{Records: []runner.Record{
		{RunID: "r1", Version: 1, Kind: runner.RecordRunCreated, Payload: json.RawMessage(`{"agent":"copilot"}`)},
		{RunID: "r1", Version: 1, Kind: runner.RecordInputAdded, Payload: json.RawMessage(`{"author":"ann","text":"add a login \u001b[31m"}`)},
	}})
	must(s.T, err)
	_, err = lease.PutArtifact(s.Context(), store.Artifact{Name: "work.patch", MediaType: "text/x-diff", Body: []byte("the patch\n")})
	must(s.T, err)
	return lease
}

// does runs the program beside the server and returns what it said.
func (s *shelf) does(code int, arguments ...string) (stdout, stderr string) {
	s.Helper()
	var out, errs bytes.Buffer
	if got := run(append(arguments, "--database-url", s.url), strings.NewReader(""), &out, &errs); got != code {
		s.Fatalf("handoff %s ended with %d, want %d:\n%s%s", strings.Join(arguments, " "), got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// has checks that a text holds all words.
func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in\n%s", word, text)
		}
	}
}

func TestSessionsAreListedBesideAServer(t *testing.T) {
	s := newShelf(t)
	if out, _ := s.does(0, "sessions", "list"); out != "no sessions\n" {
		t.Errorf("without sessions: %q", out)
	}
	id := s.session("add a login\n\x1b]0;owned\x07\u202e").Session().ID
	out, _ := s.does(0, "sessions", "list")
	has(t, out, "ID", "STATE", id, "preparing", "acme/shop#12", "ann", "add a login ⟨U+001B⟩")
	if lines := strings.Count(out, "\n"); lines != 2 || strings.ContainsAny(out, "\x1b\x07") {
		t.Errorf("%d lines, or a terminal is told what to do:\n%q", lines, out)
	}
	out, _ = s.does(0, "sessions", "list", "--json", "--live")
	var listed sessionSummary
	must(t, json.Unmarshal([]byte(out), &listed))
	if listed.ID != id || listed.State != "preparing" || listed.Repository != "acme/shop" {
		t.Errorf("as JSON: %+v", listed)
	}
}

func TestASessionIsShown(t *testing.T) {
	s := newShelf(t)
	id := s.session("add a login").Session().ID
	out, _ := s.does(0, "sessions", "show", id)
	has(t, out, id, "acme/shop#12", "work.patch", "EVENTS", "user_message", "add a login ⟨U+001B⟩[31m")
	out, _ = s.does(0, "sessions", "show", id, "--json")
	var shown sessionDetail
	must(t, json.Unmarshal([]byte(out), &shown))
	if shown.ID != id || len(shown.Events) != 2 || len(shown.Files) != 1 {
		t.Errorf("as JSON: %+v", shown)
	}
	_, complaint := s.does(1, "sessions", "show", "nobody")
	has(t, complaint, `there is no session "nobody"; handoff sessions list shows`)
}

// The beginning of an id is enough while it names one session.
func TestASessionIsNamedByTheBeginningOfItsID(t *testing.T) {
	s := newShelf(t)
	id := s.session("add a login").Session().ID
	out, _ := s.does(0, "sessions", "show", strings.ToUpper(id[:8]))
	has(t, out, id)
	_, complaint := s.does(1, "sessions", "stop", id[:3])
	has(t, complaint, "there is no session")
	_, complaint = s.does(1, "sessions", "show", "%%%%")
	has(t, complaint, "there is no session")
	other := id[:8] + "-0000-7000-8000-000000000000"
	must(t, s.store.CreateSession(t.Context(), &store.Session{ID: other, InstallationID: 7, RepositoryID: 9, Issue: 99}))
	_, complaint = s.does(1, "sessions", "stop", id[:8])
	has(t, complaint, `more than one session begins with "`+id[:8]+`"`)
	out, _ = s.does(0, "sessions", "stop", other[:14])
	has(t, out, "session "+other+" is stopped")
}

func TestASessionIsStoppedFromOutside(t *testing.T) {
	s := newShelf(t)
	lease := s.session("add a login")
	out, _ := s.does(0, "sessions", "stop", lease.Session().ID)
	has(t, out, "will stop as soon as")
	requested, by, err := lease.CancelRequested(t.Context())
	must(t, err)
	if !requested || !strings.HasPrefix(by, "operator") {
		t.Errorf("its holder does not hear of it: %v by %q", requested, by)
	}
	log, err := s.store.AuditLog(t.Context(), 1, 10)
	must(t, err)
	if len(log) != 1 || log[0].Action != "session.stop_requested" || log[0].SessionID != lease.Session().ID {
		t.Errorf("the audit log says %+v", log)
	}
	must(t, lease.Finish(t.Context(), store.Ending{State: store.StateCancelled}))
	out, _ = s.does(0, "sessions", "stop", lease.Session().ID)
	has(t, out, "is over already: cancelled")
}

func TestASessionIsExported(t *testing.T) {
	s := newShelf(t)
	id := s.session("add a login").Session().ID
	if out, _ := s.does(0, "sessions", "export", id, "--file", "work.patch"); out != "the patch\n" {
		t.Errorf("the patch is %q", out)
	}
	name := filepath.Join(t.TempDir(), "out.zip")
	s.does(0, "sessions", "export", id, "-o", name)
	archive, err := zip.OpenReader(name)
	must(t, err)
	defer archive.Close()
	var names []string
	for _, file := range archive.File {
		if file.Modified.Year() < 2020 {
			t.Errorf("%s is dated %s", file.Name, file.Modified)
		}
		names = append(names, file.Name)
	}
	if got := strings.Join(names, " "); got != "session.json journal.jsonl events.jsonl files/work.patch" {
		t.Errorf("the archive holds %s", got)
	}
	// What is there is not written over.
	s.does(1, "sessions", "export", id, "-o", name)
	_, complaint := s.does(1, "sessions", "export", id, "--file", "nothing")
	has(t, complaint, "has no file")
}

func TestALinkIsMadeForAWhile(t *testing.T) {
	s := newShelf(t)
	id := s.session("add a login").Session().ID
	out, words := s.does(0, "sessions", "link", id, "--public-url", "https://handoff.example", "--for", "2h")
	link, err := url.Parse(strings.TrimSpace(out))
	must(t, err)
	if link.Host != "handoff.example" || link.Path != "/sessions/"+id {
		t.Errorf("the link is %s", link)
	}
	has(t, words, "It works until "+time.Now().Add(2*time.Hour).UTC().Format("2006-01-02"))
	log, err := s.store.AuditLog(t.Context(), 1, 10)
	must(t, err)
	if len(log) != 1 || log[0].Action != "link.made" || log[0].SessionID != id {
		t.Errorf("the audit log says %+v", log)
	}
	s.does(0, "sessions", "link", "--public-url", "https://handoff.example")
	_, complaint := s.does(1, "sessions", "link", id)
	has(t, complaint, "PUBLIC_URL is missing")
	_, complaint = s.does(2, "sessions", "link", id, "--public-url", "https://handoff.example", "--for", "25h")
	has(t, complaint, "for 24h0m0s at most")
	_, complaint = s.does(1, "sessions", "link", "nobody", "--public-url", "https://handoff.example")
	has(t, complaint, "there is no session")
}

func TestLinksAreRevoked(t *testing.T) {
	s := newShelf(t)
	before, err := s.store.ServerKey(t.Context(), "pages")
	must(t, err)
	s.does(0, "sessions", "revoke")
	after, err := s.store.ServerKey(t.Context(), "pages")
	must(t, err)
	if bytes.Equal(before, after) {
		t.Error("links that were given out still work")
	}
}

// TestAPatchesLinkNeedsAPublicAddress holds that a server that nobody reaches
// posts no addresses of itself.
func TestAPatchesLinkNeedsAPublicAddress(t *testing.T) {
	s := newShelf(t)
	links, err := pages.NewLinks(s.store, "")
	must(t, err)
	b := &bot{store: s.store, links: links}
	link, err := b.patchLink(t.Context(), "7", "work.patch")
	if err != nil || link.URL != "" || b.sessionURL("7") != "" {
		t.Errorf("it posts %q, %q: %v", link.URL, b.sessionURL("7"), err)
	}
}
