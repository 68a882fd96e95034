package fakegithub

import (
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

//go:embed templates static
var assets embed.FS

// actingCookie remembers as whom a browser acts. It is no proof of anything: whoever reaches this server may be anyone.
const actingCookie = "fakegithub_acting_as"

// pagePolicy lets a page load its own style, script and pictures and nothing from elsewhere, whatever a comment says.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// csrfCookie holds what every form has to repeat.
const csrfCookie = "fakegithub_csrf"

func (s *Server) routePages(e *echo.Echo) {
	e.GET("/static/style.css", asset("static/style.css", "text/css; charset=utf-8"))
	e.GET("/static/live.js", asset("static/live.js", "text/javascript; charset=utf-8"))
	e.GET("/static/avatar/:login", avatar)

	pages := e.Group("", notAPI, localHost, pageHeaders, middleware.CSRFWithConfig(middleware.CSRFConfig{
		TokenLookup: "form:_csrf", CookieName: csrfCookie, CookiePath: "/", CookieHTTPOnly: true,
		CookieSameSite: http.SameSiteStrictMode,
		Skipper:        func(c echo.Context) bool { return c.Path() == manifestPath && c.FormValue("confirm") == "" },
	}))
	pages.GET("/", s.page(homePage))
	pages.POST("/login/as", s.actAs)
	pages.GET("/:login", s.page(accountPage))
	s.routeAppPages(pages)
	s.routeCodePages(pages)
	s.routeIssuePages(pages)
}

// notAPI keeps the pages out from below /api/v3.
func notAPI(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Get(isAPI) == true {
			return errNotFound
		}
		return next(c)
	}
}

// localHost refuses names that only point at this machine: a web site could otherwise make a browser talk to the
// fake in its name.
func localHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		host := c.Request().Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return errorStatus(http.StatusMisdirectedRequest, "This server answers to its loopback address only.")
		}
		return next(c)
	}
}

func pageHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		return next(c)
	}
}

func asset(name, contentType string) echo.HandlerFunc {
	return func(c echo.Context) error {
		data, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, contentType, data)
	}
}

// avatar draws an account's picture: its first letter on a colour of its own.
func avatar(c echo.Context) error {
	login := c.Param("login")
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, login)
	letter := template.HTMLEscapeString(strings.ToUpper(string([]rune(login + "?")[:1])))
	picture := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40" fill="hsl(%d 32%% 46%%)"/>`+
		`<text x="20" y="27" font-family="sans-serif" font-size="19" fill="#fff" text-anchor="middle">%s</text></svg>`, sum.Sum32()%360, letter)
	return c.Blob(http.StatusOK, "image/svg+xml", []byte(picture))
}

// view is what every template gets.
type view struct {
	Title  string
	CSRF   string
	Path   string
	Actor  *actorView
	People []string
	Repo   *repositoryView
	Tab    string
	Live   bool // the page looks after itself
	Page   any  // what the page itself shows
}

type actorView struct{ Login string }

// repositoryView is the head of a repository's pages.
type repositoryView struct {
	Owner, Name, Path, Description, DefaultBranch string
	Private, Archived, MayWrite                   bool
	OpenIssues, OpenPulls                         int
}

// visit is one request for a page, with Server.mu held.
type visit struct {
	server *Server
	echo   echo.Context
	actor  *account
	repo   *repository
	view   view
}

// page renders what build puts together under the lock. The template's name is build's result; empty means that
// build has answered itself.
func (s *Server) page(build func(*visit) (string, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		name, v, err := s.prepare(c, build)
		if err != nil || name == "" {
			return err
		}
		return s.render(c, http.StatusOK, name, v.view)
	}
}

func (s *Server) prepare(c echo.Context, build func(*visit) (string, error)) (string, *visit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &visit{server: s, echo: c, actor: s.actingAs(c)}
	if c.Param("owner") != "" {
		v.repo = s.world.repository(c.Param("owner"), c.Param("repo"))
		if v.repo == nil || !(&caller{account: v.actor}).sees(v.repo) {
			return "", nil, errNotFound
		}
	}
	v.view = s.baseView(c, v.actor)
	if v.repo != nil {
		v.view.Repo = v.repositoryHead()
	}
	name, err := build(v)
	return name, v, err
}

func (s *Server) baseView(c echo.Context, actor *account) view {
	result := view{Path: c.Request().URL.Path}
	if actor != nil {
		result.Actor = &actorView{actor.login}
	}
	result.CSRF, _ = c.Get(middleware.DefaultCSRFConfig.ContextKey).(string)
	for _, a := range s.world.accounts {
		if a.kind == "User" {
			result.People = append(result.People, a.login)
		}
	}
	slices.Sort(result.People)
	return result
}

func (v *visit) repositoryHead() *repositoryView {
	r := v.repo
	head := &repositoryView{Owner: r.owner.login, Name: r.name, Path: "/" + r.fullName(), Description: r.description, DefaultBranch: r.defaultBranch,
		Private: r.private, Archived: r.archived, MayWrite: r.role(v.actor).atLeast(RoleWrite)}
	for _, i := range r.issues {
		switch {
		case i.closed:
		case i.pull != nil:
			head.OpenPulls++
		default:
			head.OpenIssues++
		}
	}
	return head
}

// actingAs is the account the browser acts as; without a choice it is Options.ActingAs, or nobody.
func (s *Server) actingAs(c echo.Context) *account {
	login := s.options.ActingAs
	if cookie, err := c.Cookie(actingCookie); err == nil {
		login = cookie.Value
	}
	if a := s.world.account(login); a != nil && a.kind == "User" {
		return a
	}
	return nil
}

func (s *Server) actAs(c echo.Context) error {
	c.SetCookie(&http.Cookie{Name: actingCookie, Value: c.FormValue("login"), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return c.Redirect(http.StatusSeeOther, localPath(c.FormValue("back")))
}

// localPath keeps a redirect on this server.
func localPath(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || !strings.HasPrefix(parsed.Path, "/") || strings.HasPrefix(parsed.Path, "//") || parsed.Host != "" || strings.Contains(path, "\\") {
		return "/"
	}
	return parsed.RequestURI()
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"short":  func(sha string) string { return sha[:min(len(sha), 8)] },
	"ago":    stampForPeople,
	"plural": plural,
	"class":  lineClass,
	"dict":   dict,
	"lines":  func(text string) []string { return strings.Split(text, "\n") },
}).ParseFS(assets, "templates/*.html"))

// dict hands several values to a template inside a template: names and values in turn.
func dict(pairs ...any) object {
	result := object{}
	for at := 0; at+1 < len(pairs); at += 2 {
		result[fmt.Sprint(pairs[at])] = pairs[at+1]
	}
	return result
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(count) + " " + noun + "s"
}

func (s *Server) render(c echo.Context, status int, name string, data view) error {
	var buffer strings.Builder
	if err := templates.ExecuteTemplate(&buffer, name, data); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	return c.HTML(status, buffer.String())
}

// errorPage says what went wrong, within the pages' frame.
func (s *Server) errorPage(c echo.Context, failure *apiError) error {
	s.mu.Lock()
	data := s.baseView(c, s.actingAs(c))
	s.mu.Unlock()
	data.Title = statusText(failure.status)
	data.Page = object{"Status": failure.status, "Message": sentence(failure)}
	return s.render(c, failure.status, "error.html", data)
}

// sentence is a failure in words, with those of its parts.
func sentence(failure *apiError) string {
	words := failure.message
	for _, part := range failure.errors {
		if fields, ok := part.(object); ok {
			words += fmt.Sprintf(" (%v %v %v)", fields["field"], fields["code"], fields["message"])
		}
	}
	return strings.ReplaceAll(words, " <nil>", "")
}

// submit is a form: work changes something as the acting person, and the browser goes to the page that work names.
func (s *Server) submit(work func(*visit) (string, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		target, _, err := s.prepare(c, func(v *visit) (string, error) {
			if v.actor == nil {
				return "", errorStatus(http.StatusUnauthorized, "Choose at the top as whom you act.")
			}
			if v.repo != nil && v.repo.archived {
				return "", errArchived
			}
			return work(v)
		})
		if failure, ok := errors.AsType[*apiError](err); ok {
			return s.errorPage(c, failure)
		}
		if err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, target)
	}
}
