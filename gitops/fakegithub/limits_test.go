package fakegithub

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPaging(t *testing.T) {
	s := newStage(t)
	for n := range 7 {
		_, err := s.server.As("maria").CreateIssue("acme/hello", fmt.Sprintf("Issue %d", n+1), "")
		s.ok(err)
	}
	answer := s.bot().get("/repos/acme/hello/issues?per_page=3&page=2").is(200)
	if got := answer.list(); len(got) != 3 || got[0]["number"] != 4.0 {
		t.Errorf("second page is %v", got)
	}
	base := fmt.Sprintf("<%s/repositories/%d/issues?page=%%d&per_page=3>; rel=%%q", s.server.api(""), s.repository.ID)
	want := fmt.Sprintf(strings.Join([]string{base, base, base, base}, ", "), 1, "prev", 3, "next", 3, "last", 1, "first")
	if got := answer.response.Header.Get("Link"); got != want {
		t.Errorf("Link is\n%s, want\n%s", got, want)
	}
	if got := s.bot().get("/repos/acme/hello/issues").response.Header.Get("Link"); got != "" {
		t.Errorf("one page has Link %q", got)
	}
	if got := len(s.bot().get("/repos/acme/hello/issues?page=9").is(200).list()); got != 0 {
		t.Errorf("beyond the end are %d", got)
	}
}

func TestUnchangedAnswersAreFree(t *testing.T) {
	s := newStage(t)
	bot := s.bot()
	first := bot.get("/repos/acme/hello/issues").is(200)
	tag := first.response.Header.Get("ETag")
	second := bot.with("If-None-Match", tag).get("/repos/acme/hello/issues").is(http.StatusNotModified)
	if len(second.body) != 0 {
		t.Errorf("304 with body %q", second.body)
	}
	used := func(a *answer) string { return a.response.Header.Get("X-RateLimit-Used") }
	if used(first) != used(second) {
		t.Errorf("used went from %s to %s", used(first), used(second))
	}
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	bot.with("If-None-Match", tag).get("/repos/acme/hello/issues").is(200)
}

func TestPrimaryLimit(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Limits = Limits{PerHour: 3} })
	bot := s.bot()
	for range 3 {
		bot.get("/repos/acme/hello").is(200)
	}
	refused := bot.get("/repos/acme/hello")
	refused.refused(403, fmt.Sprintf("API rate limit exceeded for installation ID %d.", s.installation.ID))
	if got := refused.response.Header.Get("X-RateLimit-Remaining"); got != "0" {
		t.Errorf("remaining is %s", got)
	}
	bot.get("/rate_limit").is(200)
	s.person("maria").get("/repos/acme/hello").is(200) // counted apart
	s.server.Advance(time.Hour)
	s.bot().get("/repos/acme/hello").is(200)
}

func TestSecondaryLimits(t *testing.T) {
	fixed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := newStage(t, func(o *Options) {
		o.Clock = func() time.Time { return fixed }
		o.Limits = Limits{PointsPerMinute: 25, ContentPerMinute: 2}
	})
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	bot := s.bot()
	comment := func() *answer {
		return bot.post("/repos/acme/hello/issues/1/comments", map[string]any{"body": "x"})
	}
	comment().is(201)
	comment().is(201)
	refused := comment().is(403)
	if !strings.Contains(refused.text("message"), "secondary rate limit") || refused.response.Header.Get("Retry-After") != "60" {
		t.Errorf("refused with %s, Retry-After %q", refused.body, refused.response.Header.Get("Retry-After"))
	}
	s.server.Advance(30 * time.Second)
	if got := comment().is(403).response.Header.Get("Retry-After"); got != "30" {
		t.Errorf("Retry-After is %s", got)
	}
	s.server.Advance(30 * time.Second)
	comment().is(201)
	for range 20 {
		bot.get("/repos/acme/hello").is(200)
	}
	bot.get("/repos/acme/hello").is(403)
}

// TestConcurrencyLimit holds one request open by a planted fault and asks again meanwhile.
func TestConcurrencyLimit(t *testing.T) {
	s := newStage(t, func(o *Options) { o.Limits = Limits{Concurrent: 1} })
	leave, ok := s.server.limits.enter("Bearer " + s.server.As("maria").Token())
	if !ok {
		t.Fatal("the first request was not let in")
	}
	s.person("maria").get("/repos/acme/hello").is(403)
	s.person("walter").get("/repos/acme/hello").is(200)
	leave()
	s.person("maria").get("/repos/acme/hello").is(200)
}

func TestFaults(t *testing.T) {
	s := newStage(t)
	bot := s.bot()
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	s.server.AddFault(Fault{Kind: FaultTooManyRequests, Method: "GET", Path: "/repos/acme/hello", RetryAfter: 7})
	bot.get("/repos/acme/hello/issues").is(200)
	if got := bot.get("/repos/acme/hello").is(429).response.Header.Get("Retry-After"); got != "7" {
		t.Errorf("Retry-After is %s", got)
	}
	bot.get("/repos/acme/hello").is(200)

	s.server.AddFault(Fault{Kind: FaultSecondaryLimit, Path: "/repos/**", Count: 2})
	bot.get("/repos/acme/hello/issues").is(403)
	bot.get("/repos/acme/hello/issues/1").is(403)
	bot.get("/repos/acme/hello/issues/1").is(200)

	s.server.AddFault(Fault{Kind: FaultPrimaryLimit})
	if got := bot.get("/repos/acme/hello").is(403).response.Header.Get("X-RateLimit-Remaining"); got != "0" {
		t.Errorf("remaining is %s", got)
	}
	s.server.AddFault(Fault{Kind: FaultSlow, Delay: time.Nanosecond})
	bot.get("/repos/acme/hello").is(200)
	s.server.AddFault(Fault{Kind: FaultUnavailable, Count: 5})
	bot.get("/repos/acme/hello").is(503)
	s.server.ClearFaults()
	bot.get("/repos/acme/hello").is(200)

	s.server.AddFault(Fault{Kind: FaultBadGateway})
	response, err := s.request(bot, http.MethodGet, "/repos/acme/hello", "")
	s.ok(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadGateway || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the proxy's answer is %d of %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
}

// TestLostAnswer: the work is done, the client does not hear of it; with a lost request neither happens.
func TestLostAnswer(t *testing.T) {
	s := newStage(t)
	bot := s.bot()
	_, err := s.server.As("maria").CreateIssue("acme/hello", "One", "")
	s.ok(err)
	s.server.AddFault(Fault{Kind: FaultLostAnswer, Method: "POST", Path: "/repos/*/*/issues/*/comments"})
	s.broken(bot, "/repos/acme/hello/issues/1/comments")
	if got := bot.get("/repos/acme/hello/issues/1/comments").list(); len(got) != 1 {
		t.Errorf("after a lost answer there are %d comments, want 1", len(got))
	}
	s.server.AddFault(Fault{Kind: FaultLostRequest, Method: "POST"})
	s.broken(bot, "/repos/acme/hello/issues/1/comments")
	if got := bot.get("/repos/acme/hello/issues/1/comments").list(); len(got) != 1 {
		t.Errorf("after a lost request there are %d comments, want 1", len(got))
	}
}

// request asks without any retry, as Go's client would make one on a broken connection.
func (s *stage) request(c *client, method, path, body string) (*http.Response, error) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.server.URL()+path, strings.NewReader(body))
	s.ok(err)
	request.Header.Set("Authorization", "token "+c.credential)
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
}

func (s *stage) broken(c *client, path string) {
	s.Helper()
	response, err := s.request(c, http.MethodPost, path, `{"body":"x"}`)
	if err == nil {
		response.Body.Close()
		s.Errorf("POST %s: answered %d, want a broken connection", path, response.StatusCode)
	}
}
