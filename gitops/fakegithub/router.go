package fakegithub

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// isAPI marks, in a request's context, that an operation of the API was found for it.
const isAPI = "fakegithub.api"

// router puts the doors together. Static routes win over parameters in Echo, so /user is the API's and /{login} a page.
func (s *Server) router() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.answerError
	e.Pre(s.normalise)
	e.Use(markAPI, s.concurrent, s.faulty)
	s.routeOperations(e)
	s.routeGit(e)
	s.routeControls(e)
	s.routePages(e)
	return e
}

// normalise brings the API's three addresses into one form: without /api/v3, and with owner and name instead of
// /repositories/{id}. It also drops the escaped path, so that routing works on what the path means.
func (s *Server) normalise(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		address := c.Request().URL
		address.RawPath = ""
		path := address.Path
		if rest, ok := strings.CutPrefix(path, "/api/v3"); ok && (rest == "" || rest[0] == '/') {
			path = rest
			c.Set(isAPI, true)
		}
		if rest, ok := strings.CutPrefix(path, "/repositories/"); ok {
			number, tail, _ := strings.Cut(rest, "/")
			if name := s.nameOf(number); name != "" {
				path = strings.TrimSuffix("/repos/"+name+"/"+tail, "/")
			}
		}
		address.Path = path
		return next(c)
	}
}

func (s *Server) nameOf(number string) string {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.world.repositories[id]; r != nil {
		return r.fullName()
	}
	return ""
}

var apiPrefixes = []string{"/app", "/app-manifests", "/installation", "/meta", "/rate_limit", "/repos", "/repositories", "/user", "/users"}

func markAPI(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		for _, prefix := range apiPrefixes {
			if path == prefix || strings.HasPrefix(path, prefix+"/") {
				c.Set(isAPI, true)
			}
		}
		return next(c)
	}
}

var (
	manySegments = regexp.MustCompile(`\{(\w+)\.\.\.\}`)
	oneSegment   = regexp.MustCompile(`\{(\w+)\}`)
)

// routeOperations registers the table. Operations whose path goes on after a parameter of several segments share a
// wildcard route; the longest suffix that fits decides.
func (s *Server) routeOperations(e *echo.Echo) {
	wild := map[string][]*operation{}
	for i := range operations {
		op := &operations[i]
		at := manySegments.FindStringIndex(op.path)
		if at == nil {
			e.Add(op.method, oneSegment.ReplaceAllString(op.path, ":$1"), s.serve(op))
			continue
		}
		route := op.method + " " + oneSegment.ReplaceAllString(op.path[:at[0]], ":$1") + "*"
		wild[route] = append(wild[route], op)
	}
	for route, candidates := range wild {
		method, path, _ := strings.Cut(route, " ")
		e.Add(method, path, s.serveWild(candidates))
	}
}

func (s *Server) serveWild(candidates []*operation) echo.HandlerFunc {
	return func(c echo.Context) error {
		rest := c.Param("*")
		var found *operation
		var value, longest, name string
		for _, op := range candidates {
			at := manySegments.FindStringSubmatchIndex(op.path)
			suffix := op.path[at[1]:]
			head, ok := strings.CutSuffix(rest, suffix)
			if ok && (found == nil || len(suffix) > len(longest)) {
				found, value, longest, name = op, head, suffix, op.path[at[2]:at[3]]
			}
		}
		if found == nil {
			return errNotFound
		}
		return s.serveWith(found, c, map[string]string{name: value})
	}
}

// answerError words what Echo itself refuses: JSON for the API, a page for people.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	failure, ok := errors.AsType[*apiError](err)
	if !ok {
		failure = errorStatus(http.StatusInternalServerError, "Server Error")
		if other, ok := errors.AsType[*echo.HTTPError](err); ok {
			failure = errorStatus(other.Code, "%s", statusText(other.Code))
		} else {
			s.log.Error("the fake GitHub failed", "path", c.Request().URL.Path, "error", err)
		}
	}
	for name, value := range failure.headers {
		c.Response().Header().Set(name, value)
	}
	if c.Get(isAPI) == true {
		err = c.Blob(failure.status, "application/json; charset=utf-8", encode(failure.body()))
	} else {
		err = s.errorPage(c, failure)
	}
	if err != nil {
		s.log.Debug("the answer was not sent", "error", err)
	}
}
