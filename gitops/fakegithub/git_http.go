package fakegithub

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"
)

// GitBackend chooses what moves objects for git over HTTP. The rules for pushes are the same with each.
type GitBackend string

const (
	// GitAuto uses git's own http-backend where git is installed and go-git's server side otherwise.
	GitAuto GitBackend = ""
	// GitCGI uses git http-backend and fails without it.
	GitCGI GitBackend = "cgi"
	// GitNative uses go-git, which needs nothing installed. It cannot serve shallow clones.
	GitNative GitBackend = "native"
)

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// gitTransport moves objects between a repository and a client. The repository's gitMu is held during receive.
type gitTransport interface {
	// advertise answers GET info/refs.
	advertise(w http.ResponseWriter, request *http.Request, r *repository, service string) error
	// upload answers a fetch.
	upload(w http.ResponseWriter, request *http.Request, r *repository, body []byte) error
	// receive carries out a push that the rules allow.
	receive(w http.ResponseWriter, request *http.Request, r *repository, p *push) error
}

func newGitTransport(backend GitBackend, s *Server) (gitTransport, error) {
	switch backend {
	case GitNative:
		return &nativeGit{server: s}, nil
	case GitCGI, GitAuto:
		path, err := findHTTPBackend()
		if err == nil {
			return &cgiGit{server: s, path: path}, nil
		}
		if backend == GitAuto {
			return &nativeGit{server: s}, nil
		}
		return nil, fmt.Errorf("fakegithub: git http-backend was asked for: %w", err)
	default:
		return nil, fmt.Errorf("fakegithub: %q is no git backend; use cgi, native or leave it empty", backend)
	}
}

// findHTTPBackend looks for git and its http-backend, which some packages of git leave out.
func findHTTPBackend() (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", err
	}
	output, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(strings.TrimSpace(string(output)), "git-http-backend"))
}

// GitBackend says which backend serves git: GitCGI or GitNative.
func (s *Server) GitBackend() GitBackend {
	if _, native := s.git.(*nativeGit); native {
		return GitNative
	}
	return GitCGI
}

func (s *Server) routeGit(e *echo.Echo) {
	e.GET("/:owner/:repo/info/refs", s.advertiseRefs)
	e.POST("/:owner/:repo/"+uploadPack, s.serveFetch)
	e.POST("/:owner/:repo/"+receivePack, s.servePush)
}

func (s *Server) advertiseRefs(c echo.Context) error {
	service := c.QueryParam("service")
	if service != uploadPack && service != receivePack {
		return c.String(http.StatusForbidden, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.\n")
	}
	r, _, err := s.admitGit(c, service)
	if err != nil {
		return gitRefusal(c, err)
	}
	return s.git.advertise(c.Response(), c.Request(), r, service)
}

func (s *Server) serveFetch(c echo.Context) error {
	r, _, err := s.admitGit(c, uploadPack)
	if err != nil {
		return gitRefusal(c, err)
	}
	body, err := gitBody(c)
	if err != nil {
		return gitRefusal(c, err)
	}
	return s.git.upload(c.Response(), c.Request(), r, body)
}

// admitGit decides who may fetch and who may push. A repository that one may not see asks for credentials first, as
// git expects, and is not found once they have been given.
func (s *Server) admitGit(c echo.Context, service string) (*repository, *caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, err := s.authenticate(c.Request())
	if err != nil {
		return nil, nil, gitFailure(http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.")
	}
	name, _ := strings.CutSuffix(c.Param("repo"), ".git")
	r := s.world.repository(c.Param("owner"), name)
	if r == nil {
		r = s.world.repositories[s.world.moved[strings.ToLower(c.Param("owner")+"/"+name)]]
	}
	switch {
	case (r == nil || !who.sees(r)) && who.anonymous():
		return nil, nil, gitFailure(http.StatusUnauthorized, "Repository not found.")
	case r == nil || !who.sees(r) || who.isApp():
		return nil, nil, gitFailure(http.StatusNotFound, "Repository not found.")
	case service == receivePack:
		return r, who, mayPush(r, who)
	case who.installation != nil && who.reaches(r) && !grants(who.token.permissions, "contents:read"):
		return nil, nil, gitFailure(http.StatusForbidden, "Write access to repository not granted.")
	}
	return r, who, nil
}

func mayPush(r *repository, who *caller) error {
	switch {
	case who.anonymous():
		return gitFailure(http.StatusUnauthorized, "No anonymous write access.")
	case r.archived:
		return gitFailure(http.StatusForbidden, "This repository was archived so it is read-only.")
	case who.installation != nil && (!who.reaches(r) || !grants(who.token.permissions, "contents:write")):
		return gitFailure(http.StatusForbidden, "Write access to repository not granted.")
	case who.installation == nil && !r.role(who.account).atLeast(RoleWrite):
		return gitFailure(http.StatusForbidden, fmt.Sprintf("Permission to %s.git denied to %s.", r.fullName(), who.account.login))
	}
	return nil
}

// gitFailure is a refusal in the plain text that git clients show after "remote:".
func gitFailure(status int, sentence string) *apiError { return errorStatus(status, "%s", sentence) }

func gitRefusal(c echo.Context, err error) error {
	failure, ok := errors.AsType[*apiError](err)
	if !ok {
		return err
	}
	if failure.status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	}
	return c.String(failure.status, failure.message+"\n")
}

// largestPush bounds a request of git's; GitHub's own limit is 2 GiB.
const largestPush = 512 << 20

// gitBody reads the request, unpacked. Git compresses larger requests, and sends packs in chunks, which CGI cannot
// pass on.
func gitBody(c echo.Context) ([]byte, error) {
	var reader io.Reader = http.MaxBytesReader(c.Response(), c.Request().Body, largestPush)
	if c.Request().Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(reader)
		if err != nil {
			return nil, gitFailure(http.StatusBadRequest, "The request is not gzip.")
		}
		reader = io.LimitReader(unpacked, largestPush)
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		return nil, gitFailure(http.StatusBadRequest, "The request could not be read.")
	}
	return body, nil
}

// servePush reads a push, judges it, and only then lets the backend carry it out. One push at a time per repository.
func (s *Server) servePush(c echo.Context) error {
	r, who, err := s.admitGit(c, receivePack)
	if err != nil {
		return gitRefusal(c, err)
	}
	body, err := gitBody(c)
	if err != nil {
		return gitRefusal(c, err)
	}
	if bytes.Equal(body, []byte("0000")) {
		// Git sends an empty request first when a large one follows, to see whether it is let in.
		return c.Blob(http.StatusOK, "application/x-git-receive-pack-result", nil)
	}
	p, err := parsePush(body)
	if err != nil {
		return gitRefusal(c, gitFailure(http.StatusBadRequest, err.Error()))
	}
	r.gitMu.Lock()
	defer r.gitMu.Unlock()
	verdict := s.judge(r, who, p)
	if verdict.refused() {
		return verdict.answer(c.Response(), p)
	}
	if err := s.git.receive(c.Response(), c.Request(), r, p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refsMoved(r, who.account, s.carriedOut(r, p.updates))
	return nil
}

// carriedOut keeps the updates that git shows as done.
func (s *Server) carriedOut(r *repository, updates []refUpdate) []refUpdate {
	var done []refUpdate
	for _, update := range updates {
		now := s.refSHA(r, update.name)
		if now == update.new.String() || (now == "" && update.new.IsZero()) {
			done = append(done, update)
		}
	}
	return done
}
