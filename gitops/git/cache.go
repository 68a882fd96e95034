package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Options configure a [Cache].
type Options struct {
	// Dir is where repositories are kept; it is created when missing.
	Dir string
	// Logger receives what was fetched, and how much; nil for silence.
	Logger *slog.Logger
	// Limits bound what one repository may cost.
	Limits Limits
	// HTTP carries all requests; nil for [http.DefaultTransport].
	HTTP http.RoundTripper
}

// A Cache keeps bare repositories at <dir>/<host>/<installation>/<id>.git, by
// numeric ids, never shared between installations. It is safe for concurrent
// use, also by several processes on one machine: one fetch at a time runs for
// one repository, and readers never wait for it.
type Cache struct {
	dir       string
	log       *slog.Logger
	limits    Limits
	transport transport.Transport

	mu    sync.Mutex
	repos map[string]*Repository
	locks map[string]*sync.Mutex
}

// NewCache returns a cache in a directory.
func NewCache(options Options) (*Cache, error) {
	if options.Dir == "" {
		return nil, failf(CodeInvalid, nil, "the git cache needs a directory")
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, ioError(err, "the git cache's directory cannot be made")
	}
	limits := options.Limits.withDefaults()
	return &Cache{
		dir:       options.Dir,
		log:       cmp.Or(options.Logger, slog.New(slog.DiscardHandler)),
		limits:    limits,
		transport: newTransport(cmp.Or[http.RoundTripper](options.HTTP, http.DefaultTransport), limits.FetchBytes, stallTime),
		repos:     map[string]*Repository{},
		locks:     map[string]*sync.Mutex{},
	}, nil
}

// Close releases descriptors. Repositories that were handed out stay usable.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, repo := range c.repos {
		repo.objects.close()
	}
	return nil
}

var hostName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?$`)

// place returns <host>/<installation>/<repository>, made of numbers and a checked
// host: what is kept of a repository is kept below it.
func (r Remote) place() (string, error) {
	host := strings.ToLower(r.Host)
	if !hostName.MatchString(host) || strings.Contains(host, "..") {
		return "", failf(CodeInvalid, nil, "%q is not a host name", clip(r.Host, 80))
	}
	if r.RepositoryID <= 0 || r.InstallationID < 0 {
		return "", failf(CodeInvalid, nil, "the repository has no id")
	}
	return filepath.Join(strings.ReplaceAll(host, ":", "_"),
		strconv.FormatInt(r.InstallationID, 10), strconv.FormatInt(r.RepositoryID, 10)), nil
}

// path returns the directory of the cached repository.
func (c *Cache) path(remote Remote) (string, error) {
	place, err := remote.place()
	if err != nil {
		return "", err
	}
	return c.at(place), nil
}

func (c *Cache) at(place string) string { return filepath.Join(c.dir, place+".git") }

// Repository returns the cached repository, to read what was fetched so far.
func (c *Cache) Repository(remote Remote) (*Repository, error) {
	place, err := remote.place()
	if err != nil {
		return nil, err
	}
	return c.repository(place), nil
}

func (c *Cache) repository(place string) *Repository {
	dir := c.at(place)
	c.mu.Lock()
	defer c.mu.Unlock()
	repo, ok := c.repos[dir]
	if !ok {
		repo = &Repository{
			objects:   newObjectStore(c.limits.FileBytes, filepath.Join(dir, "objects")),
			limits:    c.limits,
			transport: c.transport,
		}
		c.repos[dir] = repo
	}
	return repo
}

// Fetch brings a branch up to date and returns its commit. The name is a branch
// ("main"), a full ref name, or "" for the default branch. Only that commit is
// asked for, without its history where the server can leave it out; what is
// here already is not sent again.
//
// Errors: [CodeEmpty], [CodeNotFound] (repository or branch), [CodeAuth],
// [CodeRedirect], [CodeTransport], [CodeTooLarge].
func (c *Cache) Fetch(ctx context.Context, remote Remote, name string) (commit string, err error) {
	err = c.exclusively(ctx, remote, func(dir string) error {
		session, advertised, err := c.upload(ctx, remote)
		if err != nil {
			return err
		}
		id, err := resolve(advertised, name)
		if err != nil {
			return err
		}
		commit = id.String()
		return c.fetch(ctx, dir, session, advertised, id)
	})
	return commit, err
}

// FetchCommit makes sure that a commit is here, by id, also when no branch
// points to it any more. A server that has dropped the commit gives
// [CodeNotFound]: the base was force-pushed away and collected.
func (c *Cache) FetchCommit(ctx context.Context, remote Remote, commit string) error {
	id, err := parseID(commit)
	if err != nil {
		return err
	}
	return c.exclusively(ctx, remote, func(dir string) error {
		if hasTip(dir, id) {
			return nil
		}
		session, advertised, err := c.upload(ctx, remote)
		if err != nil {
			return err
		}
		err = c.fetch(ctx, dir, session, advertised, id)
		if CodeOf(err) == CodeEmpty || isDropped(err) {
			return failf(CodeNotFound, err, "the commit %s is no longer on the server; it was probably force-pushed away", commit[:12])
		}
		return err
	})
}

// isDropped says whether a server refused a commit because no ref leads to it. A
// server that is unwell must not look so, for what is given up then may be there.
// go-git passes on only the text: git's own words, and those of JGit.
func isDropped(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Code != CodeTransport || failed.Err == nil {
		return false // such as an error page, whatever it says
	}
	text := failed.Err.Error()
	return strings.Contains(text, "not our ref") || strings.Contains(text, "not valid")
}

// resolve finds the commit for a branch, a full ref name, or the default branch.
func resolve(advertised *packp.AdvRefs, name string) (plumbing.Hash, error) {
	if name == "" || name == "HEAD" {
		if advertised.Head == nil {
			return plumbing.ZeroHash, failf(CodeNotFound, nil, "the repository's default branch does not exist; name a branch")
		}
		return *advertised.Head, nil
	}
	full := name
	if !strings.HasPrefix(name, "refs/") {
		if err := ValidateBranch(name); err != nil {
			return plumbing.ZeroHash, err
		}
		full = "refs/heads/" + name
	}
	if peeled, ok := advertised.Peeled[full]; ok {
		return peeled, nil
	}
	id, ok := advertised.References[full]
	if !ok {
		return plumbing.ZeroHash, failf(CodeNotFound, nil, "the repository has no branch %q (any more)", clip(name, 80))
	}
	return id, nil
}

// fetch brings one commit into dir, unless it is there whole. A server that
// stumbles over what we say we have is asked once more for everything.
func (c *Cache) fetch(ctx context.Context, dir string, session transport.UploadPackSession, advertised *packp.AdvRefs, id plumbing.Hash) error {
	if hasTip(dir, id) {
		return nil
	}
	if err := c.renew(ctx, dir, session, advertised); err != nil {
		return err
	}
	tips, err := listTips(dir)
	if err != nil {
		return err
	}
	err = c.receiveWhole(ctx, dir, session, advertised, ask{id, tips, 1})
	if CodeOf(err) == CodeTransport && len(tips) > 0 {
		err = c.receiveWhole(ctx, dir, session, advertised, ask{id, nil, 1})
	}
	if err != nil {
		return err
	}
	return addTip(dir, id)
}

// receiveWhole asks for a commit and makes sure that all its files are here then.
func (c *Cache) receiveWhole(ctx context.Context, dir string, session transport.UploadPackSession, advertised *packp.AdvRefs, what ask) error {
	if err := c.receive(ctx, dir, session, advertised, what); err != nil {
		return err
	}
	objects := newObjectStore(c.limits.FileBytes, filepath.Join(dir, "objects"))
	defer objects.close()
	if err := checkWhole(objects, c.limits.Depth, what.want, what.haves); CodeOf(err) == CodeTooLarge {
		return err
	} else if err != nil {
		return failf(CodeTransport, err, "the git server did not send what was asked for; try again later")
	}
	return nil
}

// An ask is for one commit with so many commits of history, by somebody who has
// others.
type ask struct {
	want  plumbing.Hash
	haves []plumbing.Hash
	depth int
}

// receive asks for a commit and stores what comes.
func (c *Cache) receive(ctx context.Context, dir string, session transport.UploadPackSession, advertised *packp.AdvRefs, what ask) error {
	store := filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(0))
	defer store.Close()
	request, err := newRequest(store, advertised, what)
	if err != nil {
		return err
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return remoteError(ctx, err)
	}
	defer response.Close()
	size := &countingReader{from: packStream(request, response)}
	objects := filepath.Join(dir, "objects")
	here := newObjectStore(c.limits.FileBytes, objects)
	defer here.close()
	err = receivePack(ctx, objects, size, c.limits.FileBytes, here)
	if err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return remoteError(ctx, err)
	}
	if err := keepShallow(store, response); err != nil {
		return ioError(err, "the cache cannot be written")
	}
	c.log.InfoContext(ctx, "fetched", "commit", what.want.String(), "bytes", size.n, "shallow", !request.Depth.IsZero())
	return nil
}

// newRequest asks for one commit: without further history if the server can, and
// without what is here already.
func newRequest(store *filesystem.Storage, advertised *packp.AdvRefs, what ask) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	request.Wants = []plumbing.Hash{what.want}
	request.Haves = what.haves
	if !advertised.Capabilities.Supports(capability.Shallow) {
		return request, nil
	}
	request.Depth = packp.DepthCommits(what.depth)
	if err := request.Capabilities.Set(capability.Shallow); err != nil {
		return nil, failf(CodeTransport, err, "the server's capabilities contradict each other")
	}
	shallows, err := store.Shallow()
	if err != nil {
		return nil, ioError(err, "the cache cannot be read")
	}
	if len(what.haves) == 0 {
		return request, nil
	}
	request.Shallows = shallows
	// go-git takes this capability out of what servers advertise. One that does not
	// know it may send everything, or refuse and be asked for everything.
	if err := request.Capabilities.Set(capability.ThinPack); err != nil {
		return nil, failf(CodeTransport, err, "the server's capabilities contradict each other")
	}
	return request, nil
}

// packStream takes the pack out of the server's answer.
func packStream(request *packp.UploadPackRequest, response io.Reader) io.Reader {
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

func keepShallow(store *filesystem.Storage, response *packp.UploadPackResponse) error {
	if len(response.Shallows) == 0 && len(response.Unshallows) == 0 {
		return nil
	}
	known, err := store.Shallow()
	if err != nil {
		return err
	}
	set := map[plumbing.Hash]bool{}
	for _, id := range append(known, response.Shallows...) {
		set[id] = true
	}
	for _, id := range response.Unshallows {
		delete(set, id)
	}
	ids := make([]plumbing.Hash, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	return store.SetShallow(ids)
}

type countingReader struct {
	from io.Reader
	n    int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.n += int64(n)
	return n, err
}

// writeFile writes a file whole or not at all, also when the power fails.
func writeFile(name string, content []byte) error {
	return replaceFile(name, content, (*os.File).Sync)
}

// replaceFile writes a file under another name, lets settle do what must be done
// before it counts, and renames it.
func replaceFile(name string, content []byte, settle func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".tmp_")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	err = errors.Join(err, settle(file), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
