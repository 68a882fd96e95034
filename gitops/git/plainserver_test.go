package git

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A plainServer speaks smart HTTP with go-git's own server and needs no git
// binary. It knows neither shallow fetches nor side bands.
type plainServer struct {
	*httptest.Server
	bare string
}

func servePlain(t testing.TB) *plainServer {
	t.Helper()
	s := &plainServer{bare: filepath.Join(t.TempDir(), "plain.git")}
	must(t, initBare(s.bare))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plain.git/info/refs", func(w http.ResponseWriter, r *http.Request) {
		s.advertise(r.Context(), w, r.URL.Query().Get("service"))
	})
	mux.HandleFunc("POST /plain.git/git-upload-pack", s.upload)
	mux.HandleFunc("POST /plain.git/git-receive-pack", s.receive)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *plainServer) transport() (transport.Transport, *transport.Endpoint) {
	store := filesystem.NewStorage(osfs.New(s.bare), cache.NewObjectLRUDefault())
	endpoint, _ := transport.NewEndpoint("http://plain/")
	return server.NewServer(server.MapLoader{endpoint.String(): store}), endpoint
}

func (s *plainServer) advertise(ctx context.Context, w http.ResponseWriter, service string) {
	speaker, endpoint := s.transport()
	var refs *packp.AdvRefs
	var err error
	if service == transport.UploadPackServiceName {
		session, _ := speaker.NewUploadPackSession(endpoint, nil)
		refs, err = session.AdvertisedReferencesContext(ctx)
	} else {
		session, _ := speaker.NewReceivePackSession(endpoint, nil)
		refs, err = session.AdvertisedReferencesContext(ctx)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	refs.Prefix = [][]byte{[]byte("# service=" + service), {}}
	_ = refs.Encode(w)
}

func (s *plainServer) upload(w http.ResponseWriter, r *http.Request) {
	speaker, endpoint := s.transport()
	session, _ := speaker.NewUploadPackSession(endpoint, nil)
	request := packp.NewUploadPackRequest()
	if err := request.Decode(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := session.UploadPack(r.Context(), request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = response.Encode(w)
}

func (s *plainServer) receive(w http.ResponseWriter, r *http.Request) {
	speaker, endpoint := s.transport()
	session, _ := speaker.NewReceivePackSession(endpoint, nil)
	request := packp.NewReferenceUpdateRequest()
	if err := request.Decode(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	report, err := session.ReceivePack(r.Context(), request)
	if report == nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = report.Encode(w)
}

func (s *plainServer) remote() Remote {
	return Remote{Host: "plain.example", InstallationID: 1, RepositoryID: 2, URL: s.URL + "/plain.git"}
}

// commit writes a commit of exactly these files, without git, as a branch's new
// head.
func (s *plainServer) commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	return commitFiles(t, s.bare, branch, files)
}

// commitFiles writes a commit into a bare repository by the package's own means.
// Names are taken as they are, so that hostile ones can be made.
func commitFiles(t testing.TB, bare, branch string, files map[string]string) string {
	t.Helper()
	edit := newTreeEdit()
	objects := filepath.Join(bare, "objects")
	for name, text := range files {
		mode := filemode.Regular
		if len(text) > 2 && text[:2] == "->" {
			mode, text = filemode.Symlink, text[2:]
		}
		blob := newObject(plumbing.BlobObject, []byte(text))
		must(t, writeLoose(objects, blob))
		edit.set(name, fileState{mode, blob.Hash()})
	}
	return commitEdit(t, bare, branch, edit)
}

func commitEdit(t testing.TB, bare, branch string, edit *treeEdit) string {
	t.Helper()
	objects := filepath.Join(bare, "objects")
	store := newObjectStore(1<<30, objects)
	tree, built, err := edit.apply(store, plumbing.ZeroHash)
	must(t, err)
	if tree == plumbing.ZeroHash {
		empty := newObject(plumbing.TreeObject, nil)
		tree, built = emptyTree, append(built, empty)
	}
	ref := filepath.Join(bare, "refs", "heads", filepath.FromSlash(branch))
	parent := plumbing.ZeroHash
	if raw, err := os.ReadFile(ref); err == nil {
		parent = plumbing.NewHash(string(bytes.TrimSpace(raw)))
	}
	commit, _, err := buildCommit(tree, parent, bot)
	must(t, err)
	if parent == plumbing.ZeroHash {
		raw, err := readAllObject(commit)
		must(t, err)
		commit = newObject(plumbing.CommitObject, bytes.Replace(raw, []byte("parent "+parent.String()+"\n"), nil, 1))
	}
	for _, object := range append(built, commit) {
		must(t, writeLoose(objects, object))
	}
	must(t, os.MkdirAll(filepath.Dir(ref), 0o755))
	must(t, os.WriteFile(ref, []byte(commit.Hash().String()+"\n"), 0o644))
	return commit.Hash().String()
}

func readAllObject(object plumbing.EncodedObject) ([]byte, error) {
	return readObject(one{object}, object.Hash(), object.Type(), 1<<30)
}

// one is a source of a single object.
type one struct{ object plumbing.EncodedObject }

func (o one) get(plumbing.Hash) (plumbing.EncodedObject, error) { return o.object, nil }

// localOf returns a repository made of these files on main, without git.
func localOf(t testing.TB, limits Limits, files map[string]string) (*Local, string) {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "local.git")
	must(t, initBare(bare))
	commit := commitFiles(t, bare, "main", files)
	local, err := OpenLocal(bare, limits)
	must(t, err)
	return local, commit
}

// workOn checks files out into a new workspace, without git.
func workOn(t testing.TB, limits Limits, files map[string]string) *Workspace {
	t.Helper()
	local, commit := localOf(t, limits, files)
	w, err := local.Checkout(t.Context(), commit, filepath.Join(t.TempDir(), "ws"))
	must(t, err)
	return w
}

// The whole line works with a server that can do little, and no git binary.
func TestWithoutGitAndWithoutShallow(t *testing.T) {
	server := servePlain(t)
	cache := newCache(t, Limits{})
	if _, err := cache.Fetch(t.Context(), server.remote(), "main"); CodeOf(err) != CodeEmpty {
		t.Errorf("an empty repository: %v", err)
	}
	server.commit(t, "main", small)
	base := server.commit(t, "main", map[string]string{"main.go": "package main\n"})
	w := hand(t, cache, server.remote(), "")
	if w.Base() != base {
		t.Fatalf("base %s, want %s", w.Base(), base)
	}
	put(t, w.Tree(), map[string]string{"main.go": "package main // changed\n", "new/file": "x\n"})
	sealed, err := w.Seal(t.Context(), bot)
	must(t, err)
	ref := RefPrefix + "7-x"
	_, err = w.Push(t.Context(), server.remote(), PushRequest{Ref: ref}, sealed)
	must(t, err)
	if there, err := cache.RemoteRef(t.Context(), server.remote(), ref); err != nil || there != sealed.Commit {
		t.Errorf("the server has %s, %v", there, err)
	}

	// The session goes on from its own branch, and updates it.
	second := hand(t, cache, server.remote(), "copilot/7-x")
	put(t, second.Tree(), map[string]string{"new/file": "y\n"})
	next, err := second.Seal(t.Context(), bot)
	must(t, err)
	_, err = second.Push(t.Context(), server.remote(), PushRequest{Ref: ref, Old: sealed.Commit}, next)
	must(t, err)
	if there, err := cache.RemoteRef(t.Context(), server.remote(), ref); err != nil || there != next.Commit {
		t.Errorf("the server has %s, %v", there, err)
	}
}
