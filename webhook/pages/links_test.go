package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"handoff/runner/store"
	"handoff/webhook/pages"
)

func TestTheAddressAloneOpensNothing(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	w.putPatch(lease, "diff --git a/x b/x\n")
	there := w.get("/sessions/" + lease.Session().ID)
	w.refuses(there, "no signature")
	nowhere := w.get("/sessions/" + store.NewID())
	if there.status != nowhere.status || len(there.body) != len(nowhere.body) {
		t.Error("an outsider can tell which sessions exist")
	}
	for _, path := range []string{"/live", "/journal.jsonl", "/files/work.patch"} {
		w.refuses(w.get("/sessions/"+lease.Session().ID+path), path)
	}
	w.refuses(w.get(`/sessions/%22%3E%3Cscript%3E`), "an id that is none")
}

func TestALinkOpensOneSessionUntilItExpires(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	link, err := w.links.Session(t.Context(), lease.Session().ID, time.Hour)
	w.ok(err)
	if want := w.clock.Now().Add(time.Hour); !link.Expires.Equal(want) {
		t.Errorf("the link says that it works until %v, want %v", link.Expires, want)
	}
	w.shows(w.get(link.URL), "A login", "add a login")
	w.clock.Advance(time.Hour - time.Second)
	w.shows(w.get(link.URL), "A login")
	w.clock.Advance(time.Second)
	w.refuses(w.get(link.URL), "expired")
}

func TestAChangedLinkOpensNothing(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	signed, err := url.Parse(w.link(lease))
	w.ok(err)
	change := func(do func(u *url.URL, query url.Values)) string {
		changed, query := *signed, signed.Query()
		do(&changed, query)
		changed.RawQuery = query.Encode()
		return changed.String()
	}
	later := signed.Query().Get("expires") + "0"
	for why, address := range map[string]string{
		"a later expiry":         change(func(_ *url.URL, q url.Values) { q.Set("expires", later) }),
		"no expiry":              change(func(_ *url.URL, q url.Values) { q.Del("expires") }),
		"a negative expiry":      change(func(_ *url.URL, q url.Values) { q.Set("expires", "-1") }),
		"no signature":           change(func(_ *url.URL, q url.Values) { q.Del("signature") }),
		"an empty signature":     change(func(_ *url.URL, q url.Values) { q.Set("signature", "") }),
		"half a signature":       change(func(_ *url.URL, q url.Values) { q.Set("signature", q.Get("signature")[:22]) }),
		"a made-up signature":    change(func(_ *url.URL, q url.Values) { q.Set("signature", strings.Repeat("A", 43)) }),
		"another session":        change(func(u *url.URL, _ url.Values) { u.Path = "/sessions/" + store.NewID() }),
		"the overview":           change(func(u *url.URL, _ url.Values) { u.Path = "/sessions" }),
		"a path below":           change(func(u *url.URL, _ url.Values) { u.Path += "/journal.jsonl" }),
		"a path with two dots":   change(func(u *url.URL, _ url.Values) { u.Path += "/../" + lease.Session().ID + "/live" }),
		"the same with a number": change(func(u *url.URL, _ url.Values) { u.Path += "0" }),
	} {
		if got := w.get(address); got.status == http.StatusOK || strings.Contains(got.body, "A login") {
			t.Errorf("%s: the answer is %d", why, got.status)
		}
	}
	// The overview is told from the front door by its signature alone.
	if got := w.get("/?" + signed.RawQuery); strings.Contains(got.body, "acme") {
		t.Error("a session's link opens the overview")
	}
}

func TestALinkLivesForADayAtMost(t *testing.T) {
	w := newWorld(t, nil)
	session, err := w.links.Session(t.Context(), store.NewID(), 30*24*time.Hour)
	w.ok(err)
	overview, err := w.links.Overview(t.Context(), 30*24*time.Hour)
	w.ok(err)
	for _, link := range []pages.Link{session, overview} {
		if link.Expires.Sub(w.clock.Now()) != pages.MaxLifetime {
			t.Errorf("%s works until %v", link.URL, link.Expires)
		}
	}
}

func TestThePatchesLinkOpensThePatchAndNothingElse(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	w.putPatch(lease, "diff --git a/x b/x\n")
	link, err := w.links.Patch(t.Context(), lease.Session().ID, "work.patch")
	w.ok(err)
	got := w.get(link.URL)
	w.shows(got, "diff --git a/x b/x")
	if kind := got.header.Get("Content-Disposition"); kind != `attachment; filename=work.patch` {
		t.Errorf("the patch is not saved but shown: %q", kind)
	}
	_, query, _ := strings.Cut(link.URL, "?")
	w.refuses(w.get("/sessions/"+lease.Session().ID+"?"+query), "the session's page")
	w.refuses(w.get("/sessions/"+lease.Session().ID+"/journal.jsonl?"+query), "the journal")
	w.refuses(w.get("/sessions/"+lease.Session().ID+"%2Ffiles%2Fwork.patch?"+query), "the same path, written otherwise")
	w.clock.Advance(pages.PatchLifetime)
	w.refuses(w.get(link.URL), "expired")
}

func TestRevokingMakesEveryLinkWorthless(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	before := w.link(lease)
	w.shows(w.get(before), "A login")
	w.ok(w.links.Revoke(t.Context(), "ann"))
	w.refuses(w.get(before), "revoked")
	w.shows(w.get(w.link(lease)), "A login")
}

func TestLinksOfAPageNeverOutliveIt(t *testing.T) {
	w := newWorld(t, nil)
	lease := w.session("add a login")
	w.putPatch(lease, "diff --git a/x b/x\n")
	overview, err := w.links.Overview(t.Context(), time.Hour)
	w.ok(err)
	page := w.get(overview.URL)
	w.shows(page, "acme/shop")
	var session string
	for _, href := range linksOf(t, page.body) {
		if strings.HasPrefix(href, "/sessions/") {
			session = href
		}
	}
	followed := w.get(session)
	w.shows(followed, "A login")
	ours := []string{session}
	for _, href := range linksOf(t, followed.body) {
		if strings.HasPrefix(href, "/sessions/") {
			w.shows(w.get(href))
			ours = append(ours, href)
		}
	}
	if len(ours) != 3 {
		t.Fatalf("the pages link to %q, want the session, its patch and its journal", ours)
	}
	w.clock.Advance(time.Hour)
	for _, href := range ours {
		w.refuses(w.get(href), href)
	}
}

func TestOnLoopbackADemoIsOpen(t *testing.T) {
	w := newWorld(t, func(options *pages.Options) { options.OpenOnLoopback = true })
	lease := w.session("add a login")
	path := "/sessions/" + lease.Session().ID
	w.shows(w.get("/"), "acme/shop")
	w.shows(w.get(path), "A login")
	// A page of somebody else's may have its name point to this machine.
	for _, host := range []string{"evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "localhost"} {
		w.refuses(w.ask(http.MethodGet, path, host), host)
	}
}

func TestLinksBelowAPath(t *testing.T) {
	w := newWorld(t, nil)
	links, err := pages.NewLinks(w.store, "https://example.org/bots/handoff/")
	w.ok(err)
	link, err := links.Session(t.Context(), "7", time.Hour)
	w.ok(err)
	if !strings.HasPrefix(link.URL, "https://example.org/bots/handoff/sessions/7?") {
		t.Error(link.URL)
	}
	if got := links.Unsigned("7"); got != "https://example.org/bots/handoff/sessions/7" {
		t.Error(got)
	}
	if _, err := pages.NewLinks(w.store, "not an address"); err == nil {
		t.Error("an address that is none was taken")
	}
}
