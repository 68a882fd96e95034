package pages

import (
	"cmp"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"handoff/runner/store"
)

// maxSessions is how many sessions the overview lists.
const maxSessions = 200

// An overview lists sessions in the order in which somebody wants to know of
// them.
type overview struct {
	Groups  []group
	Expires time.Time
	More    bool
}

// A group is sessions of one kind of state.
type group struct {
	Title    string
	Sessions []line
}

// A line is one session of the overview.
type line struct {
	store.Session
	Title    string
	Headline string
	URL      string
}

// front shows the overview to whoever has a link, and to all others what this
// server is.
func (p *Pages) front(c echo.Context) error {
	setHeaders(c)
	g, ok, err := p.admit(c)
	if err != nil {
		return p.unavailable(c, err)
	}
	if !ok {
		return p.render(c, http.StatusOK, "welcome.html", page{Title: "handoff"})
	}
	sessions, err := p.Store.Sessions(c.Request().Context(), store.SessionFilter{}, maxSessions)
	if err != nil {
		return p.unavailable(c, err)
	}
	shown := overview{Expires: g.expires, More: len(sessions) == maxSessions, Groups: []group{
		{Title: "Waiting for somebody"}, {Title: "At work"}, {Title: "Ended"},
	}}
	for _, session := range sessions {
		place := &shown.Groups[groupOf(session.State)]
		place.Sessions = append(place.Sessions, line{
			Session: session, Title: cmp.Or(session.IssueTitle, session.Task), Headline: headlines[session.State],
			URL: p.href(g, sessionPath(session.ID)),
		})
	}
	return p.render(c, http.StatusOK, "overview.html", page{Title: "Sessions", Body: shown})
}

// groupOf is the place of a state in the overview.
func groupOf(state store.SessionState) int {
	switch {
	case state.Ended():
		return 2
	case state == store.StateAwaitingApproval || state == store.StateSuspended:
		return 0
	}
	return 1
}
