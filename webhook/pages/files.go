package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"handoff/runner/store"
)

//go:embed templates/*.html assets/*
var files embed.FS

// mediaDiff is the media type of patches.
const mediaDiff = "text/x-diff"

// downloadable says whether an artifact is for people; the others are the
// conductor's own.
func downloadable(artifact store.Artifact) bool {
	return strings.HasPrefix(artifact.MediaType, "text/")
}

// file hands out an artifact of a session. The browser saves it and never shows
// it, whatever is in it.
func (p *Pages) file(c echo.Context, _ grant) error {
	ctx := c.Request().Context()
	listed, err := p.Store.Artifacts(ctx, c.Param("id"))
	if err != nil {
		return p.unavailable(c, err)
	}
	for _, artifact := range listed {
		if artifact.Name != c.Param("name") || !downloadable(artifact) {
			continue
		}
		if artifact, err = p.Store.Artifact(ctx, artifact.ID); err != nil {
			return p.unavailable(c, err)
		}
		attach(c, artifact.Name)
		return c.Blob(http.StatusOK, "text/plain; charset=utf-8", artifact.Body)
	}
	return p.refuse(c)
}

// journal hands out a session's records, one JSON object a line.
func (p *Pages) journal(c echo.Context, _ grant) error {
	ctx := c.Request().Context()
	session, err := p.Store.Session(ctx, c.Param("id"))
	if errors.Is(err, store.ErrNotFound) {
		return p.refuse(c)
	}
	if err != nil {
		return p.unavailable(c, err)
	}
	records, err := p.Store.Records(ctx, session.ID, 1)
	if err != nil {
		return p.unavailable(c, err)
	}
	attach(c, "journal-"+session.ID+".jsonl")
	c.Response().Header().Set(echo.HeaderContentType, "application/jsonl")
	encoder := json.NewEncoder(c.Response())
	for _, record := range records {
		if err := encoder.Encode(record); err != nil {
			return nil // the reader has gone
		}
	}
	return nil
}

// attach makes the answer a file to be saved.
func attach(c echo.Context, name string) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
}

// An asset is a file that pages load.
type asset struct {
	content   []byte
	mediaType string
	tag       string
}

var assets = readAssets()

// readAssets reads the embedded files, which are part of the program: a fault in
// them is a fault in the program.
func readAssets() map[string]asset {
	found := map[string]asset{}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(files, "assets/"+entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		found[entry.Name()] = asset{
			content: content, tag: `"` + hex.EncodeToString(sum[:8]) + `"`,
			mediaType: map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}[path.Ext(entry.Name())],
		}
	}
	return found
}

// asset hands out a style sheet or a script. They hold nothing of anybody's.
func (p *Pages) asset(c echo.Context) error {
	setHeaders(c)
	asset := assets[path.Base(c.Path())]
	header := c.Response().Header()
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", asset.tag)
	if c.Request().Header.Get("If-None-Match") == asset.tag {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, asset.mediaType, asset.content)
}
