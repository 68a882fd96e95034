// Package pages is what a person sees in a browser: the page of a session with
// its timeline, approvals, costs and diff, and the overview of all sessions.
//
// The idea is that a page is a view of what is recorded and nothing else. It is
// rendered on the server from the journal and the tables, each time anew; a
// reader that is shown a page an hour after a crash sees what one who watched
// saw. Pages change nothing, so there are no forms, no cookies and no sessions
// of a browser.
//
// # Who may see them
//
// The address of a page alone opens nothing. It is posted on GitHub, where it
// may be read by more people than the repository has, for longer than they have
// the right to. A page opens with a signature in its query (see [Links]): an
// HMAC over exactly this path and a time of expiry, by a key of the database.
// Links are made on demand by whoever runs the server, live for a day at most,
// and all become worthless when the key is renewed. A page's own links carry
// signatures with the same expiry as the one it was opened with, so a link
// opens a session and what belongs to it and never lives longer than it was
// given. Whatever has no valid signature gets one and the same answer, 404,
// with words about how to get a link: an outsider learns nothing, not even
// which sessions exist.
//
// One link is made for GitHub: that of the patch, in the last words of a session
// that ended ([Links.Patch]). It opens this file and no page, for seven days,
// and says so. The patch holds content of the repository and what the crew made
// of it, cleaned of secrets; people who read the comment are those who can read
// the repository, be that everybody or a few. The expiry is for those who leave
// and for copies that travel.
//
// # What is on them
//
// Everything that is shown was written by somebody else: people, models,
// programs. Templates escape it, invisible and control characters are taken out
// or shown as what they are, Markdown is rendered without HTML and images and
// cleaned once more, and a content security policy lets the browser load
// nothing but this server's own style sheet and one small script.
//
// The parts, one file each: links.go makes and checks signatures, guard.go
// stands before every page, session.go and timeline.go and diff.go turn records
// into what templates/ shows, live.go tells a browser that a session changed,
// files.go hands out downloads, words.go cleans.
package pages

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/report"
	"handoff/runner/store"
)

// Store is what pages read; *store.Store implements it. Nothing here writes,
// but for the signing key, which whoever asks first makes.
type Store interface {
	Keys
	Agents(ctx context.Context) ([]store.AgentRow, error)
	ApprovalsOfSession(ctx context.Context, sessionID string) ([]store.Approval, error)
	Artifact(ctx context.Context, id string) (store.Artifact, error)
	Artifacts(ctx context.Context, sessionID string) ([]store.Artifact, error)
	Notify(topics ...store.Topic) (changed <-chan struct{}, stop func())
	Records(ctx context.Context, sessionID string, from int64) ([]runner.Record, error)
	Session(ctx context.Context, id string) (store.Session, error)
	Sessions(ctx context.Context, filter store.SessionFilter, limit int) ([]store.Session, error)
	UsageByAgent(ctx context.Context, sessionID string) (map[string]agents.Usage, error)
}

// Options configure [New]. Fields without "may" in their description are needed.
type Options struct {
	Store Store
	Links *Links
	// GitHub is the web address of GitHub; "" means https://github.com.
	GitHub string
	// Checklist returns the plan that the items of a session's conversation add
	// up to; may be nil.
	Checklist func(items []agents.Item) []report.Task
	// PullRequest returns the address of a session's pull request, "" for none;
	// may be nil.
	PullRequest func(session store.Session) string
	// OpenOnLoopback opens pages without a signature to requests that name this
	// machine by a loopback address. It is for a demo, whose server listens on
	// loopback alone and whose sessions are made up.
	OpenOnLoopback bool
	// Stop, when closed, ends the streams of open pages, so that a server that
	// shuts down need not wait for them; may be nil.
	Stop <-chan struct{}
	// Logger is told what could not be shown; nil means nothing.
	Logger *slog.Logger
}

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	Options
	github  *url.URL
	streams *semaphore.Weighted
}

// New returns the pages. It fails on a GitHub address that is none.
func New(options Options) (*Pages, error) {
	if options.GitHub == "" {
		options.GitHub = "https://github.com"
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Checklist == nil {
		options.Checklist = func([]agents.Item) []report.Task { return nil }
	}
	if options.PullRequest == nil {
		options.PullRequest = func(store.Session) string { return "" }
	}
	address, err := url.Parse(strings.TrimRight(options.GitHub, "/"))
	if err != nil || address.Host == "" {
		return nil, errors.New("pages: the address of GitHub is none")
	}
	return &Pages{Options: options, github: address, streams: semaphore.NewWeighted(maxStreams)}, nil
}

// Register adds the routes to a group at the server's root.
func (p *Pages) Register(group *echo.Group) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		group.Add(method, "/", p.front)
		group.Add(method, "/sessions/:id", p.guarded(p.session))
		group.Add(method, "/sessions/:id/files/:name", p.guarded(p.file))
		group.Add(method, "/sessions/:id/journal.jsonl", p.guarded(p.journal))
		for name := range assets {
			group.Add(method, "/assets/"+name, p.asset)
		}
	}
	group.GET("/sessions/:id/live", p.guarded(p.live))
}

// templates are parsed at start, so that a defect shows at once.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clean":    clean,
	"reveal":   report.Reveal,
	"markdown": markdown,
	"duration": report.Duration,
	"tokens":   report.Tokens,
	"cost":     report.Cost,
	"when":     when,
	"clock":    func(t time.Time) string { return t.UTC().Format(time.TimeOnly) },
	"machine":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"label":    label,
	"size":     size,
	"indented": indented,
}).ParseFS(files, "templates/*.html"))

// A page is what the layout needs of each page.
type page struct {
	Title string
	// Base is the path below which the server is reached, "" for the root.
	Base string
	// Live is the address of the page's stream, "" for none.
	Live string
	// Home is the signed address of the overview, "" for none.
	Home string
	Body any
}

// render answers with a page. Nothing is sent before the template succeeded.
func (p *Pages) render(c echo.Context, status int, name string, shown page) error {
	shown.Base = p.Links.base.Path
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, shown); err != nil {
		return err
	}
	return c.HTML(status, b.String())
}
