package fakegithub

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

func listBranches(c *call) (any, error) {
	refs, err := c.server.refs(c.repo, "refs/heads/")
	if err != nil {
		return nil, err
	}
	if wanted := c.request().URL.Query().Get("protected"); wanted != "" {
		refs = slices.DeleteFunc(refs, func(ref *plumbing.Reference) bool {
			return (c.repo.protection(ref.Name().Short()) != nil) != (wanted == "true")
		})
	}
	return each(paginate(c, refs), func(ref *plumbing.Reference) object {
		sha := ref.Hash().String()
		return object{"name": ref.Name().Short(), "protected": c.repo.protection(ref.Name().Short()) != nil,
			"commit": object{"sha": sha, "url": c.server.repoAPI(c.repo) + "/commits/" + sha}}
	}), nil
}

func getBranch(c *call) (any, error) {
	name := c.param("branch")
	sha := c.server.branchSHA(c.repo, name)
	if sha == "" {
		return nil, errorStatus(http.StatusNotFound, "Branch not found")
	}
	commit, err := c.server.commitOf(c.repo, sha)
	if err != nil {
		return nil, err
	}
	address := c.server.repoAPI(c.repo) + "/branches/" + escapePath(name)
	rule := c.repo.protection(name)
	return object{"name": name, "commit": c.server.commitObject(c.repo, commit), "protected": rule != nil,
		"protection":     object{"enabled": rule != nil, "required_status_checks": object{"enforcement_level": "off", "contexts": []string{}, "checks": []object{}}},
		"protection_url": address + "/protection",
		"_links":         object{"self": address, "html": c.server.repoPage(c.repo) + "/tree/" + escapePath(name)}}, nil
}

// listCommits walks back from a branch or commit, filtered by path and dates.
func listCommits(c *call) (any, error) {
	query := c.request().URL.Query()
	start := query.Get("sha")
	if start == "" {
		start = c.repo.defaultBranch
	}
	head, err := c.server.resolve(c.repo, start)
	if err != nil {
		return nil, err
	}
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	until, untilErr := time.Parse(time.RFC3339, query.Get("until"))
	var iterator gitobject.CommitIter = gitobject.NewCommitIterCTime(head, nil, nil)
	if path := query.Get("path"); path != "" {
		iterator = gitobject.NewCommitPathIterFromIter(func(changed string) bool {
			return changed == path || strings.HasPrefix(changed, path+"/")
		}, iterator, false)
	}
	var list []*gitobject.Commit
	err = iterator.ForEach(func(commit *gitobject.Commit) error {
		when := commit.Committer.When
		if !when.Before(since) && (untilErr != nil || !when.After(until)) {
			list = append(list, commit)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return each(paginate(c, list), commitIn(c)), nil
}

func getCommit(c *call) (any, error) {
	commit, err := c.server.resolve(c.repo, c.param("ref"))
	if failure, ok := errors.AsType[*apiError](err); ok && failure.status == http.StatusNotFound {
		return nil, errorStatus(http.StatusUnprocessableEntity, "%s", failure.message)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case c.accepts("sha"):
		return raw{contentType: "application/vnd.github.sha; charset=utf-8", data: []byte(commit.Hash.String())}, nil
	case c.accepts("diff"):
		_, diff, err := c.server.commitChange(commit)
		return raw{contentType: "application/vnd.github.diff; charset=utf-8", data: []byte(diff)}, err
	}
	return c.server.commitWithFiles(c.repo, commit)
}

// getContents shows a directory, a file with its content, a symlink or a submodule.
func getContents(c *call) (any, error) {
	ref := c.request().URL.Query().Get("ref")
	if ref == "" {
		ref = c.repo.defaultBranch
	}
	commit, err := c.server.resolve(c.repo, ref)
	if err != nil {
		return nil, err
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, err
	}
	path := strings.Trim(c.param("path"), "/")
	if path == "" {
		return c.directory(tree, ref, "")
	}
	entry, err := tree.FindEntry(path)
	if err != nil {
		return nil, errNotFound
	}
	if entry.Mode == filemode.Dir {
		below, err := tree.Tree(path)
		if err != nil {
			return nil, err
		}
		return c.directory(below, ref, path+"/")
	}
	return c.file(ref, path, *entry)
}

func (c *call) directory(tree *gitobject.Tree, ref, prefix string) (any, error) {
	list := []object{}
	for _, entry := range tree.Entries {
		size, err := tree.Size(entry.Name)
		if err != nil {
			size = 0 // directories and submodules have none
		}
		list = append(list, c.server.contentObject(c.repo, ref, prefix+entry.Name, entry, size))
	}
	return list, nil
}

// largestContent is up to what size GitHub puts a file's content into the answer.
// Source: https://docs.github.com/rest/repos/contents#get-repository-content
const largestContent = 1 << 20

func (c *call) file(ref, path string, entry gitobject.TreeEntry) (any, error) {
	if entry.Mode == filemode.Submodule {
		result := c.server.contentObject(c.repo, ref, path, entry, 0)
		result["submodule_git_url"] = nil
		return result, nil
	}
	content, err := c.server.blob(c.repo, entry.Hash)
	if err != nil {
		return nil, err
	}
	if c.accepts("raw") {
		return raw{contentType: "application/vnd.github.raw; charset=utf-8", data: content}, nil
	}
	result := c.server.contentObject(c.repo, ref, path, entry, int64(len(content)))
	if entry.Mode == filemode.Symlink {
		result["target"] = string(content)
		return result, nil
	}
	result["content"], result["encoding"] = wrapBase64(content), "base64"
	if len(content) > largestContent {
		result["content"], result["encoding"] = "", "none"
	}
	return result, nil
}

func (s *Server) blob(r *repository, hash plumbing.Hash) ([]byte, error) {
	blob, err := gitobject.GetBlob(s.storage(r), hash)
	if err != nil {
		return nil, errNotFound
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

func compareCommits(c *call) (any, error) {
	left, right, ok := strings.Cut(c.param("basehead"), "...")
	if !ok {
		return nil, errNotFound
	}
	difference, err := c.server.compareNames(c.repo, left, right)
	if err != nil {
		return nil, err
	}
	if c.accepts("diff") {
		return raw{contentType: "application/vnd.github.diff; charset=utf-8", data: []byte(difference.diff)}, nil
	}
	if difference.mergeBase == nil {
		return nil, errorStatus(http.StatusNotFound, "No common ancestor between %s and %s.", left, right)
	}
	address, page := c.server.repoAPI(c.repo)+"/compare/"+left+"..."+right, c.server.repoPage(c.repo)+"/compare/"+left+"..."+right
	return object{
		"url": address, "html_url": page, "permalink_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"base_commit":       c.server.commitObject(c.repo, difference.base),
		"merge_base_commit": c.server.commitObject(c.repo, difference.mergeBase), "status": difference.status(),
		"ahead_by": len(difference.commits), "behind_by": difference.behind, "total_commits": len(difference.commits),
		"commits": each(paginate(c, difference.commits), commitIn(c)),
		"files":   each(difference.files, c.server.fileObject(c.repo, difference.head.Hash.String())),
	}, nil
}

// compareNames compares what two names stand for; GitHub allows owner:branch for forks, of which there are none here.
func (s *Server) compareNames(r *repository, left, right string) (*change, error) {
	strip := func(name string) string { return strings.TrimPrefix(name, r.owner.login+":") }
	base, err := s.resolve(r, strip(left))
	if err != nil {
		return nil, errNotFound
	}
	head, err := s.resolve(r, strip(right))
	if err != nil {
		return nil, errNotFound
	}
	return s.compare(r, base.Hash.String(), head.Hash.String())
}

func (c *change) status() string {
	switch {
	case len(c.commits) > 0 && c.behind > 0:
		return "diverged"
	case len(c.commits) > 0:
		return "ahead"
	case c.behind > 0:
		return "behind"
	default:
		return "identical"
	}
}

// refNamed finds refs/<name>.
func refNamed(c *call) (*plumbing.Reference, error) {
	ref, err := c.server.storage(c.repo).Reference(plumbing.ReferenceName("refs/" + c.param("ref")))
	if err != nil {
		return nil, errNotFound
	}
	return ref, nil
}

func getRef(c *call) (any, error) {
	ref, err := refNamed(c)
	if err != nil {
		return nil, err
	}
	return c.server.refObject(c.repo, ref), nil
}

func matchingRefs(c *call) (any, error) {
	refs, err := c.server.refs(c.repo, "refs/"+c.param("ref"))
	if err != nil {
		return nil, err
	}
	return each(refs, func(ref *plumbing.Reference) object { return c.server.refObject(c.repo, ref) }), nil
}

type refBody struct {
	Ref   string `json:"ref"`
	SHA   string `json:"sha"`
	Force bool   `json:"force"`
}

func createRef(c *call) (any, error) {
	var wanted refBody
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	name := plumbing.ReferenceName(wanted.Ref)
	switch {
	case strings.Count(wanted.Ref, "/") < 2 || !strings.HasPrefix(wanted.Ref, "refs/"):
		return nil, errorStatus(http.StatusUnprocessableEntity, "Reference name must start with 'refs/' and contain at least two slashes.")
	case c.server.refSHA(c.repo, name) != "":
		return nil, errorStatus(http.StatusUnprocessableEntity, "Reference already exists")
	case !c.server.hasObject(c.repo, wanted.SHA):
		return nil, errorStatus(http.StatusUnprocessableEntity, "Object does not exist")
	}
	return c.moved(refUpdate{name: name, new: plumbing.NewHash(wanted.SHA)})
}

func (s *Server) hasObject(r *repository, sha string) bool {
	return plumbing.IsHash(sha) && s.storage(r).HasEncodedObject(plumbing.NewHash(sha)) == nil
}

func updateRef(c *call) (any, error) {
	ref, err := refNamed(c)
	if err != nil {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	var wanted refBody
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	if !c.server.hasObject(c.repo, wanted.SHA) {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Object does not exist")
	}
	update := refUpdate{name: ref.Name(), old: ref.Hash(), new: plumbing.NewHash(wanted.SHA)}
	if !wanted.Force && !isAncestor(c.server.storage(c.repo), update.old, update.new) {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Update is not a fast forward")
	}
	return c.moved(update)
}

func deleteRef(c *call) (any, error) {
	ref, err := refNamed(c)
	if err != nil {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	return nil, c.server.moveByAPI(c.repo, c.caller, refUpdate{name: ref.Name(), old: ref.Hash()})
}

func (c *call) moved(update refUpdate) (any, error) {
	if err := c.server.moveByAPI(c.repo, c.caller, update); err != nil {
		return nil, err
	}
	ref := plumbing.NewHashReference(update.name, update.new)
	result := c.server.refObject(c.repo, ref)
	c.header("Location", result["url"].(string))
	return result, nil
}

func getGitCommit(c *call) (any, error) {
	commit, err := c.server.commitOf(c.repo, c.param("commit_sha"))
	if err != nil {
		return nil, errNotFound
	}
	return c.server.gitCommit(c.repo, commit), nil
}

// getGitTree lists a tree, also by the hash or name of a commit; with recursive also what is below.
func getGitTree(c *call) (any, error) {
	store := c.server.storage(c.repo)
	name := c.param("tree_sha")
	tree, err := gitobject.GetTree(store, plumbing.NewHash(name))
	if err != nil {
		commit, resolveErr := c.server.resolve(c.repo, name)
		if resolveErr != nil {
			return nil, errNotFound
		}
		if tree, err = commit.Tree(); err != nil {
			return nil, err
		}
	}
	walker := gitobject.NewTreeWalker(tree, c.request().URL.Query().Has("recursive"), nil)
	defer walker.Close()
	entries := []object{}
	for {
		path, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, c.server.treeEntry(c.repo, path, entry))
	}
	sha := tree.Hash.String()
	return object{"sha": sha, "url": c.server.repoAPI(c.repo) + "/git/trees/" + sha, "tree": entries, "truncated": false}, nil
}

func (s *Server) treeEntry(r *repository, path string, entry gitobject.TreeEntry) object {
	sha := entry.Hash.String()
	mode, _ := strings.CutPrefix(entry.Mode.String(), "0")
	result := object{"path": path, "mode": mode, "sha": sha, "type": "blob", "url": s.repoAPI(r) + "/git/blobs/" + sha}
	switch entry.Mode {
	case filemode.Dir:
		result["type"], result["mode"], result["url"] = "tree", "040000", s.repoAPI(r)+"/git/trees/"+sha
	case filemode.Submodule:
		result["type"] = "commit"
		delete(result, "url")
	default:
		if blob, err := gitobject.GetBlob(s.storage(r), entry.Hash); err == nil {
			result["size"] = blob.Size
		}
	}
	return result
}
