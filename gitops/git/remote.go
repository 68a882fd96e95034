package git

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// A Remote names a repository on a host, by its ids and by an explicit URL.
// Nothing about it is ever read from a configuration file.
type Remote struct {
	// Host, InstallationID and RepositoryID key the cache. A repository is never
	// shared between installations, and survives being renamed.
	Host           string
	InstallationID int64
	RepositoryID   int64
	// URL is where git is spoken: https, or http on loopback; no credentials.
	URL string
	// Auth returns a token that is valid now; nil for anonymous reading. It is
	// asked once per exchange, and once more if the server has refused a token.
	// The token is held in memory only, and is given to URL's host alone.
	Auth func(ctx context.Context) (token string, err error)
}

// endpoint checks the URL. Plain http is for this machine only: anywhere else
// the token could be read on the way.
func (r Remote) endpoint() (*transport.Endpoint, error) {
	address, err := url.Parse(r.URL)
	switch {
	case err != nil || address.Host == "":
		return nil, failf(CodeInvalid, nil, "the repository's URL cannot be read")
	case address.User != nil:
		return nil, failf(CodeInvalid, nil, "the repository's URL must not contain credentials")
	case address.RawQuery != "" || address.Fragment != "":
		return nil, failf(CodeInvalid, nil, "the repository's URL must not contain a query or a fragment")
	case address.Scheme != "https" && (address.Scheme != "http" || !isLoopback(address.Hostname())):
		return nil, failf(CodeInvalid, nil, "the repository's URL must begin with https")
	}
	for segment := range strings.SplitSeq(strings.Trim(address.Path, "/"), "/") {
		if segment == ".." || segment == "." || segment == "" || strings.HasPrefix(segment, "-") ||
			strings.ContainsFunc(segment, unicode.IsControl) {
			return nil, failf(CodeInvalid, nil, "the repository's URL has an unusable owner or name")
		}
	}
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, failf(CodeInvalid, err, "the repository's URL cannot be read")
	}
	return endpoint, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// token returns the credentials for one exchange.
func (r Remote) token(ctx context.Context) (transport.AuthMethod, error) {
	if r.Auth == nil {
		return nil, nil
	}
	token, err := r.Auth(ctx)
	if err != nil {
		return nil, failf(CodeAuth, err, "no access token for the repository could be had")
	}
	// x-access-token is the user name that GitHub documents for App tokens.
	return &githttp.BasicAuth{Username: "x-access-token", Password: token}, nil
}

var errOtherHost = errors.New("redirect to another host")

// newTransport returns go-git's smart HTTP client. Redirects are followed only
// within the same scheme and host (a renamed repository) and only before
// anything is sent; bodies are cut at limit bytes.
func newTransport(base http.RoundTripper, limit int64, stall time.Duration) transport.Transport {
	client := &http.Client{
		Transport: limitedTransport{base: base, limit: limit, stall: stall},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			first := via[0].URL
			if request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
				return errOtherHost
			}
			return nil
		},
	}
	return githttp.NewClientWithOptions(client, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
}

// limitedTransport bounds every answer in size, since go-git reads error pages
// whole, and gives up on a server that says nothing for a while.
type limitedTransport struct {
	base  http.RoundTripper
	limit int64
	stall time.Duration
}

// stallTime is how long a server may say nothing. Git servers that are busy send
// something every few seconds.
const stallTime = 2 * time.Minute

var errStalled = errors.New("the server said nothing for too long")

// maxErrorPage is enough for any explanation that a server gives.
const maxErrorPage = 16 << 10

func (t limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	watch := time.AfterFunc(t.stall, func() { cancel(errStalled) })
	response, err := t.base.RoundTrip(request.WithContext(ctx))
	if err != nil {
		watch.Stop()
		cancel(err)
		return nil, err
	}
	response.Body = &watchedBody{from: response.Body, stall: t.stall, watch: watch, cancel: cancel}
	if response.StatusCode >= 300 {
		response.Body = limitedBody{io.LimitReader(response.Body, maxErrorPage), response.Body}
	} else {
		response.Body = limitedBody{&cappedReader{response.Body, t.limit}, response.Body}
	}
	if answer, ok := request.Context().Value(captureKey{}).(*capture); ok {
		answer.body = response.Body
		response.Body = limitedBody{io.TeeReader(response.Body, answer), response.Body}
	}
	return response, nil
}

// A capture keeps a copy of an answer. go-git reads the answer to a push only as
// far as the report, neither the words behind it nor to its end, and does not
// close it; the connection would be lost.
type capture struct {
	body io.ReadCloser
	kept []byte
}

type captureKey struct{}

// maxCapture is far more than any report and its words.
const maxCapture = 1 << 20

// Write keeps what is read, as far as it matters.
func (c *capture) Write(p []byte) (int, error) {
	room := max(0, maxCapture-len(c.kept))
	c.kept = append(c.kept, p[:min(room, len(p))]...)
	return len(p), nil
}

// finish reads the answer to its end, closes it and returns it.
func (c *capture) finish() []byte {
	if c.body != nil {
		// What cannot be read any more was not needed for the report.
		_, _ = io.Copy(c, io.LimitReader(c.body, maxCapture))
		_ = c.body.Close()
	}
	return c.kept
}

// watchedBody puts the end of patience off with everything that comes.
type watchedBody struct {
	from   io.ReadCloser
	stall  time.Duration
	watch  *time.Timer
	cancel context.CancelCauseFunc
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.Reset(b.stall)
	return b.from.Read(p)
}

func (b *watchedBody) Close() error {
	b.watch.Stop()
	defer b.cancel(nil)
	return b.from.Close()
}

type limitedBody struct {
	io.Reader
	io.Closer
}

var errTooMuch = errors.New("the answer is larger than allowed")

// cappedReader fails, rather than ending quietly, when more than left bytes come.
type cappedReader struct {
	from io.Reader
	left int64
}

func (r *cappedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooMuch
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.from.Read(p)
	r.left -= int64(n)
	return n, err
}

// RemoteRef returns the commit that a full ref name points to on the server
// now, "" when there is no such ref. It is how the outcome of a push is learnt
// when its answer was lost.
func (c *Cache) RemoteRef(ctx context.Context, remote Remote, ref string) (string, error) {
	refs, err := c.RemoteRefs(ctx, remote)
	if err != nil {
		return "", err
	}
	return refs[ref], nil
}

// RemoteRefs returns all refs of the server with their commits, by full name,
// and HEAD where the server has one. An empty repository has none.
func (c *Cache) RemoteRefs(ctx context.Context, remote Remote) (map[string]string, error) {
	_, advertised, err := c.upload(ctx, remote)
	if CodeOf(err) == CodeEmpty {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	refs := make(map[string]string, len(advertised.References)+1)
	for name, id := range advertised.References {
		refs[name] = id.String()
	}
	if advertised.Head != nil {
		refs["HEAD"] = advertised.Head.String()
	}
	return refs, nil
}

// upload opens a session to fetch and reads what the server has. A token that
// the server refuses is renewed once.
func (c *Cache) upload(ctx context.Context, remote Remote) (transport.UploadPackSession, *packp.AdvRefs, error) {
	endpoint, err := remote.endpoint()
	if err != nil {
		return nil, nil, err
	}
	var failure error
	for range 2 {
		auth, err := remote.token(ctx)
		if err != nil {
			return nil, nil, err
		}
		copied := *endpoint // go-git changes the endpoint when it is redirected
		session, err := c.transport.NewUploadPackSession(&copied, auth)
		if err != nil {
			return nil, nil, failf(CodeTransport, err, "the repository cannot be reached")
		}
		advertised, err := session.AdvertisedReferencesContext(ctx)
		if err == nil {
			return session, advertised, nil
		}
		failure = remoteError(ctx, err)
		if CodeOf(failure) != CodeAuth || remote.Auth == nil {
			break
		}
	}
	return nil, nil, failure
}

// remoteError turns what go-git's transport says into a code and a sentence.
func remoteError(ctx context.Context, err error) error {
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = unexpected.Err // it does not unwrap itself
	}
	if status, ok := errors.AsType[*githttp.Err](err); ok {
		fail := failf(CodeTransport, nil, "the git server answered with status %d; try again later", status.StatusCode())
		fail.Server = serverWords(status.Reason)
		return fail
	}
	switch {
	case CodeOf(err) != "":
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errOtherHost):
		return failf(CodeRedirect, nil, "the git server redirects to another host; nothing was sent there")
	case errors.Is(err, errTooMuch):
		return failf(CodeTooLarge, nil, "the repository is larger than the limit for one fetch")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return failf(CodeEmpty, nil, "the repository is empty; push a first commit to it")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return failf(CodeNotFound, nil, "the repository does not exist, or the App may not see it")
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		fail := failf(CodeAuth, nil, "the git server refused the access token; check that the App is still installed and may use this repository")
		_, words, _ := strings.Cut(err.Error(), ": ")
		fail.Server = serverWords(words)
		return fail
	}
	return failf(CodeTransport, err, "the git server could not be reached or broke off; try again later")
}

// serverWords cleans what a server says for showing: no control characters but
// line ends, no HTML page, a few kilobytes at most.
func serverWords(text string) string {
	if strings.Contains(strings.ToLower(clip(text, 512)), "<html") {
		return ""
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || !unicode.IsControl(r) && !isInvisible(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "�"))
	return clip(strings.TrimSpace(text), 4<<10)
}
