package fakegithub

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const manifestPath = "/settings/apps/new"

func (s *Server) routeAppPages(pages *echo.Group) {
	pages.GET("/apps/:slug", s.page(appPage))
	pages.GET("/apps/:slug/deliveries/:id", s.page(deliveryPage))
	pages.POST("/apps/:slug/deliveries/:id", s.submit(submitRedelivery))
	pages.GET("/settings/installations/:id", s.page(installationPage))
	pages.POST(manifestPath, s.manifestPage)
}

// appView is an App with its delivery log, newest first.
type appView struct {
	App           App
	Installations []Installation
	Deliveries    []deliveryRow
}

type deliveryRow struct {
	ID             int64
	GUID           string
	Event, Action  string
	Status         string
	StatusCode     int
	OK, Redelivery bool
	When           time.Time
	Duration       time.Duration
}

func row(d *delivery) deliveryRow {
	return deliveryRow{ID: d.id, GUID: d.guid, Event: d.event, Action: d.action, Status: d.status, StatusCode: d.statusCode,
		OK: wantedStatus("success", d), Redelivery: d.redelivery, When: d.delivered, Duration: d.duration.Round(time.Millisecond)}
}

func (v *visit) app() (*app, error) {
	if a := v.server.world.appBySlug(v.echo.Param("slug")); a != nil {
		return a, nil
	}
	return nil, errNotFound
}

func appPage(v *visit) (string, error) {
	a, err := v.app()
	if err != nil {
		return "", err
	}
	shown := appView{App: a.dump()}
	for _, i := range sorted(v.server.world.installations) {
		if i.app == a {
			shown.Installations = append(shown.Installations, i.dump())
		}
	}
	for _, d := range ownDeliveries(v.server, a) {
		shown.Deliveries = append(shown.Deliveries, row(d))
	}
	v.view.Title, v.view.Live, v.view.Page = a.name, true, shown
	return "app.html", nil
}

// deliveryView is one delivery with what was sent and what came back.
type deliveryView struct {
	Row               deliveryRow
	App, URL          string
	Request, Response map[string]string
	Payload, Answer   string
}

func (v *visit) delivery() (*delivery, error) {
	a, err := v.app()
	if err != nil {
		return nil, err
	}
	for _, d := range ownDeliveries(v.server, a) {
		if strconv.FormatInt(d.id, 10) == v.echo.Param("id") {
			return d, nil
		}
	}
	return nil, errNotFound
}

func deliveryPage(v *visit) (string, error) {
	d, err := v.delivery()
	if err != nil {
		return "", err
	}
	var payload bytes.Buffer
	if err := json.Indent(&payload, d.payload, "", "  "); err != nil {
		return "", err
	}
	v.view.Title = "Delivery " + d.guid
	v.view.Page = deliveryView{Row: row(d), App: d.app.slug, URL: d.url, Request: copyStrings(d.requestHeaders), Response: copyStrings(d.responseHeaders),
		Payload: payload.String(), Answer: d.responseBody}
	return "delivery.html", nil
}

func submitRedelivery(v *visit) (string, error) {
	d, err := v.delivery()
	if err != nil {
		return "", err
	}
	v.server.redeliver(d)
	return "/apps/" + d.app.slug, nil
}

func installationPage(v *visit) (string, error) {
	id, err := strconv.ParseInt(v.echo.Param("id"), 10, 64)
	if err != nil || v.server.world.installations[id] == nil {
		return "", errNotFound
	}
	return "", v.echo.Redirect(http.StatusFound, "/apps/"+v.server.world.installations[id].app.slug)
}

// manifestPage takes an App's manifest from the program that wants the App, asks the person, and sends the browser
// back with a code that can be traded for the App once.
func (s *Server) manifestPage(c echo.Context) error {
	var manifest appManifest
	if err := json.Unmarshal([]byte(c.FormValue("manifest")), &manifest); err != nil || manifest.Name == "" {
		return errorStatus(http.StatusUnprocessableEntity, "The manifest is not readable or names no App.")
	}
	target, err := url.Parse(manifest.RedirectURL)
	if err != nil || target.Host == "" {
		return errorStatus(http.StatusUnprocessableEntity, "The manifest has no redirect_url.")
	}
	// A form may not lead to another address under the pages' policy; this one leads back to who sent the manifest.
	// Only the first of two such directives would count, so it takes the place of the usual one.
	policy := strings.Replace(pagePolicy, "form-action 'self'", "form-action 'self' "+target.Scheme+"://"+target.Host, 1)
	c.Response().Header().Set("Content-Security-Policy", policy)
	state := c.FormValue("state") + c.QueryParam("state")
	s.mu.Lock()
	owner := s.actingAs(c)
	data := s.baseView(c, owner)
	s.mu.Unlock()
	if c.FormValue("confirm") == "" || owner == nil {
		data.Title, data.CSRF = "Create a GitHub App", freshCSRF(c)
		data.Page = object{"Manifest": manifest, "Source": c.FormValue("manifest"), "State": state}
		return s.render(c, http.StatusOK, "manifest.html", data)
	}
	code := s.offerManifest(manifest, owner.login)
	query := target.Query()
	query.Set("code", code)
	if state != "" {
		query.Set("state", state)
	}
	target.RawQuery = query.Encode()
	return c.Redirect(http.StatusSeeOther, target.String())
}

// freshCSRF gives a page that was reached by a post from elsewhere, and so without the middleware, the token that the
// middleware wants from its form.
func freshCSRF(c echo.Context) string {
	token := randomToken("")
	c.SetCookie(&http.Cookie{Name: csrfCookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return token
}
