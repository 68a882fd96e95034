package pages

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// policy is the content security policy: our own style sheet, our own script
// and its stream, and nothing else from anywhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers are set on every answer.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Robots-Tag":                 "noindex, nofollow",
	"Cache-Control":                "private, no-store",
}

func setHeaders(c echo.Context) {
	for name, value := range headers {
		c.Response().Header().Set(name, value)
	}
}

// guarded lets requests through to a page that may see it, and gives all others
// the same answer.
func (p *Pages) guarded(show func(echo.Context, grant) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		setHeaders(c)
		g, ok, err := p.admit(c)
		switch {
		case err != nil:
			return p.unavailable(c, err)
		case !ok:
			return p.refuse(c)
		}
		return show(c, g)
	}
}

// admit says what a request may see.
func (p *Pages) admit(c echo.Context) (grant, bool, error) {
	request := c.Request()
	if request.URL.RawPath != "" {
		// Routes go by the path as it was sent, signatures by what it means: a
		// path that can be read in two ways is not one that we wrote.
		return grant{}, false, nil
	}
	g, ok, err := p.Links.check(request.Context(), request.URL.Path, c.QueryParams())
	if ok || err != nil || !p.OpenOnLoopback || !loopbackHost(request.Host) {
		return g, ok, err
	}
	key, err := p.Store.ServerKey(request.Context(), keyName)
	return grant{key: key, expires: p.Store.Now().Add(time.Hour).Truncate(time.Second)}, err == nil, err
}

// loopbackHost says whether a request names this machine by a loopback address.
// A name does not count: a page of somebody else's could have it point here.
func loopbackHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.IsLoopback()
}

// refusal is what the answer to a request without a valid link says. The id is
// repeated only where it is one, whether or not there is such a session.
type refusal struct{ ID string }

func (p *Pages) refuse(c echo.Context) error {
	var shown refusal
	if id, err := uuid.Parse(c.Param("id")); err == nil {
		shown.ID = id.String()
	}
	return p.render(c, http.StatusNotFound, "refused.html", page{Title: "This page needs a link", Body: shown})
}

// unavailable answers when the database does not.
func (p *Pages) unavailable(c echo.Context, err error) error {
	if c.Request().Context().Err() != nil {
		return nil
	}
	p.Logger.WarnContext(c.Request().Context(), "a page could not be shown", "route", c.Path(), "error", err)
	return p.render(c, http.StatusServiceUnavailable, "unavailable.html", page{Title: "Not now"})
}
