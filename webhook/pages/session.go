package pages

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/report"
	"handoff/runner/store"
)

// A sessionView is what the page of a session shows.
type sessionView struct {
	store.Session
	Version     string
	Headline    string
	Ended       bool
	IssueURL    string
	PullRequest string
	// Agent is the name of who works now, Doing what they do.
	Agent     string
	Doing     string
	Active    time.Duration
	Plan      []report.Task
	Answer    string
	Timeline  timeline
	Approvals []store.Approval
	Costs     []cost
	Diff      diff
	Files     []download
	Journal   string
	Expires   time.Time
}

// Why is the reason of the state, where that says more than the headline.
func (v sessionView) Why() string {
	switch v.State {
	case store.StateCompleted, store.StateAwaitingApproval:
		return ""
	}
	return v.Reason
}

// A cost is what one agent spent.
type cost struct {
	Agent string
	Usage agents.Usage
}

// A download is a file that belongs to the session.
type download struct {
	Name string
	Size int64
	URL  string
}

// session shows the page of a session.
func (p *Pages) session(c echo.Context, g grant) error {
	ctx := c.Request().Context()
	session, err := p.Store.Session(ctx, c.Param("id"))
	if errors.Is(err, store.ErrNotFound) {
		return p.refuse(c)
	}
	if err != nil {
		return p.unavailable(c, err)
	}
	view, err := p.view(ctx, session, g)
	if err != nil {
		return p.unavailable(c, err)
	}
	shown := page{Title: clean(cmp.Or(session.IssueTitle, session.Task)), Body: view}
	if !view.Ended {
		shown.Live = p.href(g, sessionPath(session.ID)+"/live")
	}
	return p.render(c, http.StatusOK, "session.html", shown)
}

// href is the address of a page of ours that opens as long as the grant lasts.
func (p *Pages) href(g grant, path string) string { return p.Links.base.Path + g.sign(path) }

// view gathers what is recorded about a session.
func (p *Pages) view(ctx context.Context, session store.Session, g grant) (view sessionView, err error) {
	view = sessionView{
		Session: session, Version: versionOf(session), Headline: headlines[session.State], Ended: session.State.Ended(), Expires: g.expires,
		Active:   time.Duration(session.ActiveMillis) * time.Millisecond,
		IssueURL: p.issueURL(session), PullRequest: p.onGitHub(p.PullRequest(session)),
		Journal: p.href(g, sessionPath(session.ID)+"/journal.jsonl"),
	}
	names, err := p.names(ctx)
	if err != nil {
		return view, err
	}
	if err := p.tell(ctx, &view, names); err != nil {
		return view, err
	}
	if view.Approvals, err = p.Store.ApprovalsOfSession(ctx, session.ID); err != nil {
		return view, err
	}
	slices.Reverse(view.Approvals) // the newest first
	spent, err := p.Store.UsageByAgent(ctx, session.ID)
	if err != nil {
		return view, err
	}
	for _, slug := range slices.Sorted(maps.Keys(spent)) {
		view.Costs = append(view.Costs, cost{names.of(slug), spent[slug]})
	}
	return view, p.addFiles(ctx, &view, g)
}

// tell reads the journal into the timeline, the checklist and the answer.
func (p *Pages) tell(ctx context.Context, view *sessionView, names names) error {
	records, err := p.Store.Records(ctx, view.ID, 1)
	if err != nil {
		return err
	}
	state, err := runner.Fold(records)
	if err != nil {
		return err
	}
	events, err := runner.Replay(records, 1)
	if err != nil {
		return err
	}
	view.Timeline = newTimeline(events, outputs(records), names)
	view.Plan = p.Checklist(state.Items())
	if root := state.Runs[state.Root]; root != nil && root.Ended {
		view.Answer = root.End.Output
	}
	if !view.Ended && view.State != store.StateAwaitingApproval && view.State != store.StateQueued {
		view.Agent, view.Doing = names.of(cmp.Or(state.ActiveAgent, view.ActiveAgent)), view.Timeline.pending()
	}
	return nil
}

// names are the agents' names by slug.
type names map[string]string

// names reads them from the crew in the database.
func (p *Pages) names(ctx context.Context) (names, error) {
	rows, err := p.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	known := names{}
	for _, row := range rows {
		// An agent that cannot be read keeps its slug for a name.
		if agent, err := agents.ParseAgent([]byte(row.Source)); err == nil {
			known[row.ID] = agent.Name
		}
	}
	return known, nil
}

func (n names) of(slug string) string { return cmp.Or(n[slug], slug) }

// addFiles lists what can be downloaded and shows the newest diff.
func (p *Pages) addFiles(ctx context.Context, view *sessionView, g grant) error {
	artifacts, err := p.Store.Artifacts(ctx, view.ID)
	if err != nil {
		return err
	}
	patch := ""
	for _, artifact := range artifacts {
		if !downloadable(artifact) {
			continue
		}
		view.Files = append(view.Files, download{Name: artifact.Name, Size: artifact.Size, URL: p.href(g, filePath(view.ID, artifact.Name))})
		if artifact.MediaType == mediaDiff {
			patch = artifact.ID
		}
	}
	if patch == "" {
		return nil
	}
	artifact, err := p.Store.Artifact(ctx, patch)
	if err != nil {
		return err
	}
	view.Diff = parseDiff(string(artifact.Body))
	return nil
}

// issueURL is where the session's issue is on GitHub.
func (p *Pages) issueURL(session store.Session) string {
	return p.github.JoinPath(session.Owner, session.Repository, "issues", strconv.Itoa(session.Issue)).String()
}

// onGitHub returns an address if it is one of GitHub's pages, otherwise "":
// variables of a session may have been written by a tool.
func (p *Pages) onGitHub(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != p.github.Scheme || !strings.EqualFold(parsed.Host, p.github.Host) {
		return ""
	}
	return parsed.String()
}
