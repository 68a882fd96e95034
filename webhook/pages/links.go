package pages

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// How long links live.
const (
	// MaxLifetime bounds links to pages.
	MaxLifetime = 24 * time.Hour
	// PatchLifetime is that of the link to a patch, posted at a session's end.
	PatchLifetime = 7 * 24 * time.Hour
)

// keyName is the purpose of the server's key that signs links.
const keyName = "pages"

// Keys hands out the server's own secrets; *store.Store implements it.
type Keys interface {
	// ServerKey returns the secret of a purpose, made when it is first asked for.
	ServerKey(ctx context.Context, name string) ([]byte, error)
	// RenewServerKey replaces it; by is who wanted that.
	RenewServerKey(ctx context.Context, name, by string) error
	// Now is the time by the database's clock.
	Now() time.Time
}

// Links makes signed links and checks them. The key is read each time it is
// needed, so that a renewed one counts at once and everywhere. It is safe for
// concurrent use.
type Links struct {
	keys Keys
	base *url.URL
}

// A Link is an address that works until it expires.
type Link struct {
	URL     string
	Expires time.Time
}

// NewLinks returns links to a server that people reach under an address,
// perhaps below a path. It fails on an address that is none.
func NewLinks(keys Keys, publicURL string) (*Links, error) {
	base, err := url.Parse(strings.TrimRight(publicURL, "/"))
	if err != nil || publicURL != "" && base.Host == "" {
		return nil, fmt.Errorf("PUBLIC_URL is %q, which is no http or https address", publicURL)
	}
	return &Links{keys: keys, base: base}, nil
}

// Session returns a link to a session's page. A lifetime above [MaxLifetime]
// counts as that.
func (l *Links) Session(ctx context.Context, id string, lifetime time.Duration) (Link, error) {
	return l.make(ctx, sessionPath(id), min(lifetime, MaxLifetime))
}

// Overview returns a link to the list of all sessions, which leads to each. A
// lifetime above [MaxLifetime] counts as that.
func (l *Links) Overview(ctx context.Context, lifetime time.Duration) (Link, error) {
	return l.make(ctx, "/", min(lifetime, MaxLifetime))
}

// Patch returns a link to one file of a session, for [PatchLifetime]. It opens
// nothing else.
func (l *Links) Patch(ctx context.Context, id, name string) (Link, error) {
	return l.make(ctx, filePath(id, name), PatchLifetime)
}

// Revoke makes all links that were ever given out worthless.
func (l *Links) Revoke(ctx context.Context, by string) error {
	return l.keys.RenewServerKey(ctx, keyName, by)
}

// Unsigned returns the address of a session's page, which opens nothing.
func (l *Links) Unsigned(id string) string { return l.base.String() + sessionPath(id) }

func (l *Links) make(ctx context.Context, path string, lifetime time.Duration) (Link, error) {
	key, err := l.keys.ServerKey(ctx, keyName)
	if err != nil {
		return Link{}, err
	}
	// A second is as exact as the query is.
	g := grant{key: key, expires: l.keys.Now().Add(lifetime).Truncate(time.Second)}
	return Link{URL: l.base.String() + g.sign(path), Expires: g.expires}, nil
}

// check returns what a request's query grants for its path; ok is false where
// that is nothing.
func (l *Links) check(ctx context.Context, path string, query url.Values) (g grant, ok bool, err error) {
	seconds, err := strconv.ParseInt(query.Get("expires"), 10, 64)
	if err != nil {
		return grant{}, false, nil
	}
	given, err := base64.RawURLEncoding.DecodeString(query.Get("signature"))
	if err != nil || len(given) == 0 {
		return grant{}, false, nil
	}
	g.expires = time.Unix(seconds, 0).UTC()
	if g.key, err = l.keys.ServerKey(ctx, keyName); err != nil {
		return grant{}, false, err
	}
	return g, hmac.Equal(given, g.mac(path)) && l.keys.Now().Before(g.expires), nil
}

// A grant is the right to see pages until it expires, as one request has it.
type grant struct {
	key     []byte
	expires time.Time
}

// sign returns a path with the query that opens it for as long as the grant
// lasts. Paths are given as they are before escaping.
func (g grant) sign(path string) string {
	query := url.Values{
		"expires":   {strconv.FormatInt(g.expires.Unix(), 10)},
		"signature": {base64.RawURLEncoding.EncodeToString(g.mac(path))},
	}
	return (&url.URL{Path: path, RawQuery: query.Encode()}).String()
}

// mac is over the path and the expiry. The number comes first, so that no two
// pairs give the same bytes.
func (g grant) mac(path string) []byte {
	mac := hmac.New(sha256.New, g.key)
	fmt.Fprintf(mac, "handoff link 1\n%d\n%s", g.expires.Unix(), path)
	return mac.Sum(nil)
}

func sessionPath(id string) string    { return "/sessions/" + id }
func filePath(id, name string) string { return sessionPath(id) + "/files/" + name }
