package fakegithub

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"path/filepath"
)

// cgiGit serves git with git's own http-backend.
type cgiGit struct {
	server *Server
	path   string
}

func (g *cgiGit) advertise(w http.ResponseWriter, request *http.Request, r *repository, service string) error {
	g.run(w, request, r, "/info/refs", nil)
	return nil
}

func (g *cgiGit) upload(w http.ResponseWriter, request *http.Request, r *repository, body []byte) error {
	g.run(w, request, r, "/"+uploadPack, body)
	return nil
}

func (g *cgiGit) receive(w http.ResponseWriter, request *http.Request, r *repository, p *push) error {
	g.run(w, request, r, "/"+receivePack, p.body)
	return nil
}

// run hands a request to http-backend. Who may do what has been decided before, so the backend is told that
// everything is exported and that there is a user, which is what it wants before it accepts a push. No
// configuration of the machine's applies.
func (g *cgiGit) run(w http.ResponseWriter, request *http.Request, r *repository, service string, body []byte) {
	inner := request.Clone(request.Context())
	inner.URL.Path = "/" + filepath.Base(r.directory) + service
	inner.Header.Del("Authorization")
	inner.Header.Del("Content-Encoding")
	inner.TransferEncoding = nil
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	handler := cgi.Handler{
		Path: g.path,
		Root: "/",
		Dir:  g.server.dataDir,
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(r.directory), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=fakegithub",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + g.server.dataDir,
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			fmt.Sprintf("GIT_HTTP_MAX_REQUEST_BUFFER=%d", largestPush),
		},
		Logger: slog.NewLogLogger(g.server.log.Handler(), slog.LevelDebug),
		Stderr: io.Discard,
	}
	handler.ServeHTTP(w, inner)
}
