package fakegithub

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// audience says who an operation is for.
type audience int

const (
	forRepository   audience = iota // whoever may do it in the repository of the path
	forAnyone                       // also anonymous
	forApp                          // an App, by its JWT
	forInstallation                 // an installation, by its token
	forPerson                       // a person, by a personal access token
)

// operation is one line of GitHub's API: who may call it and what answers.
type operation struct {
	method     string
	path       string // {name} is one segment, {name...} one or more
	audience   audience
	permission string // what an installation token needs, for example issues:write; any one of a comma-separated list
	role       Role   // what a person needs
	status     int    // of success; zero means 200
	creates    bool   // counts against the limit on creating content
	movesRefs  bool   // writes refs, so pushes must wait
	handle     func(*call) (any, error)
}

// call is one request to an operation.
type call struct {
	server    *Server
	echo      echo.Context
	operation *operation
	caller    *caller
	repo      *repository
	path      string // below the root, without /api/v3, with the repository as /repositories/{id}
	body      []byte
	status    int
	suffixed  map[string]string // values of {name...} parameters
}

func (c *call) request() *http.Request { return c.echo.Request() }

func (c *call) header(name, value string) { c.echo.Response().Header().Set(name, value) }

func (c *call) param(name string) string {
	if value, ok := c.suffixed[name]; ok {
		return value
	}
	return c.echo.Param(name)
}

// number reads a numeric path parameter; what is no number names nothing that exists.
func (c *call) number(name string) (int64, error) {
	number, err := strconv.ParseInt(c.param(name), 10, 64)
	if err != nil {
		return 0, errNotFound
	}
	return number, nil
}

// decode reads the JSON body into target. A value of the wrong type is a 422, as on GitHub, not a 400.
func (c *call) decode(target any) error {
	if len(c.body) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, target)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errorStatus(http.StatusUnprocessableEntity,
			"Invalid request.\n\nFor '%s', %s is not of the expected type.", mismatch.Field, mismatch.Value)
	}
	if err != nil {
		return errBadJSON
	}
	return nil
}

// largestRequest bounds a request body; the largest legal one is a blob of 100 MB in base64.
const largestRequest = 140 << 20

// serve answers one operation: limits, authentication, access, the handler, and GitHub's headers around the result.
func (s *Server) serve(op *operation) echo.HandlerFunc {
	return func(context echo.Context) error {
		return s.serveWith(op, context, nil)
	}
}

func (s *Server) serveWith(op *operation, context echo.Context, suffixed map[string]string) error {
	c := &call{server: s, echo: context, operation: op, status: op.status, suffixed: suffixed}
	if c.status == 0 {
		c.status = http.StatusOK
	}
	c.path = c.request().URL.Path
	c.header("X-GitHub-Request-Id", strings.ToUpper(uuid.NewString()[:18]))
	c.header("X-GitHub-Media-Type", "github.v3; format=json")
	c.header("Date", s.Now().Format(http.TimeFormat))
	body, err := io.ReadAll(http.MaxBytesReader(context.Response(), c.request().Body, largestRequest))
	if err != nil {
		return c.fail(errorStatus(http.StatusRequestEntityTooLarge, "Payload too large"))
	}
	c.body = body
	result, err := s.run(c)
	if err != nil {
		return c.fail(err)
	}
	return c.succeed(result)
}

// run does the work under the lock; what it returns shares nothing with the world.
func (s *Server) run(c *call) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	caller, err := s.authenticate(c.request())
	if err != nil {
		return nil, err
	}
	c.caller = caller
	if err := s.limits.admit(c); err != nil {
		return nil, err
	}
	if err := c.admitted(); err != nil {
		return nil, err
	}
	if c.operation.movesRefs {
		defer s.lockRefs(c.repo)()
	}
	return c.operation.handle(c)
}

// lockRefs waits for the repository's turn to write refs. The order is gitMu before mu, so mu is let go meanwhile.
func (s *Server) lockRefs(r *repository) (unlock func()) {
	s.mu.Unlock()
	r.gitMu.Lock()
	s.mu.Lock()
	return r.gitMu.Unlock
}

func (c *call) admitted() error {
	switch c.operation.audience {
	case forApp:
		if !c.caller.isApp() {
			return errNotDecodedJWT
		}
	case forInstallation:
		if c.caller.installation == nil {
			return errorStatus(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
		}
	case forPerson:
		return c.admitPerson()
	case forRepository:
		return c.admitToRepository()
	}
	return nil
}

func (c *call) admitPerson() error {
	switch {
	case c.caller.anonymous():
		return errRequiresAuth
	case c.caller.app != nil:
		return errIntegration
	}
	return nil
}

func (c *call) admitToRepository() error {
	owner, name := c.param("owner"), c.param("repo")
	c.repo = c.server.world.repository(owner, name)
	if c.repo == nil {
		return c.server.movedOrMissing(c, owner, name)
	}
	if err := c.admittedHere(); err != nil {
		return err
	}
	c.path = strings.Replace(c.path, "/repos/"+owner+"/"+name, "/repositories/"+strconv.FormatInt(c.repo.id, 10), 1)
	return nil
}

// admittedHere applies the operation's need in the repository, and says what it is as GitHub does. An operation
// without one is for Apps that look for their installation.
func (c *call) admittedHere() error {
	if c.operation.permission == "" {
		if !c.caller.isApp() && !c.caller.sees(c.repo) {
			return errNotFound
		}
		return nil
	}
	c.header("X-Accepted-GitHub-Permissions", strings.NewReplacer(":", "=", ",", "; ").Replace(c.operation.permission))
	return c.caller.may(c.repo, c.operation.permission, c.operation.role)
}

// movedOrMissing answers for a name that a repository once had with 301 and its lasting address.
func (s *Server) movedOrMissing(c *call, owner, name string) error {
	id, moved := s.world.moved[strings.ToLower(owner+"/"+name)]
	r := s.world.repositories[id]
	if !moved || r == nil || !c.caller.sees(r) {
		return errNotFound
	}
	rest := strings.TrimPrefix(c.path, "/repos/"+owner+"/"+name)
	address := s.api("/repositories/%d", id) + rest
	return &apiError{status: http.StatusMovedPermanently, message: "Moved Permanently", url: address,
		headers: map[string]string{"Location": address}}
}

func (c *call) fail(err error) error {
	failure, ok := errors.AsType[*apiError](err)
	if !ok {
		c.server.log.Error("the fake GitHub failed", "path", c.path, "error", err)
		failure = errorStatus(http.StatusInternalServerError, "Server Error")
	}
	for name, value := range failure.headers {
		c.header(name, value)
	}
	return c.echo.Blob(failure.status, "application/json; charset=utf-8", encode(failure.body()))
}

func (c *call) succeed(result any) error {
	if c.status == http.StatusNoContent {
		return c.echo.NoContent(http.StatusNoContent)
	}
	contentType, data := "application/json; charset=utf-8", []byte(nil)
	if other, ok := result.(raw); ok {
		if other.location != "" {
			return c.echo.Redirect(http.StatusFound, other.location)
		}
		contentType, data = other.contentType, other.data
	} else {
		data = encode(result)
	}
	if c.request().Method == http.MethodGet {
		tag := entityTag(data)
		c.header("ETag", tag)
		c.header("Cache-Control", "private, max-age=60, s-maxage=60")
		if matches(c.request().Header.Get("If-None-Match"), tag) {
			c.server.limits.giveBack(c)
			return c.echo.NoContent(http.StatusNotModified)
		}
	}
	return c.echo.Blob(c.status, contentType, data)
}

func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || one == strings.TrimPrefix(tag, "W/") {
			return header != ""
		}
	}
	return false
}
