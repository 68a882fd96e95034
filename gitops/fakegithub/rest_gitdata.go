package fakegithub

import (
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// The Git Data API writes objects one by one. Nothing points to them until a ref is moved, which rest_git.go does.
// Source: https://docs.github.com/rest/git

type blobBody struct {
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
}

func createBlob(c *call) (any, error) {
	var wanted blobBody
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	content := []byte(wanted.Content)
	switch wanted.Encoding {
	case "", "utf-8":
	case "base64":
		// GitHub takes line ends in it, as its own answers have them.
		decoded, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(wanted.Content))
		if err != nil {
			return nil, errorStatus(http.StatusUnprocessableEntity, "content is not valid Base64")
		}
		content = decoded
	default:
		return nil, errorStatus(http.StatusUnprocessableEntity, "encoding must be utf-8 or base64")
	}
	if largest := int(c.server.limits.limits.LargestFile); largest > 0 && len(content) > largest {
		return nil, invalidBecause("Blob", "data", "is too large")
	}
	hash, err := writeBlob(c.server.storage(c.repo), content)
	if err != nil {
		return nil, err
	}
	address := c.server.repoAPI(c.repo) + "/git/blobs/" + hash.String()
	c.header("Location", address)
	return object{"sha": hash.String(), "url": address}, nil
}

type treeBody struct {
	BaseTree string          `json:"base_tree"`
	Tree     []treeEntryBody `json:"tree"`
}

type treeEntryBody struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	Type    string  `json:"type"`
	SHA     *string `json:"sha"`
	Content *string `json:"content"`
}

// createTree writes a tree, from nothing or on top of base_tree. Paths may lead into directories.
func createTree(c *call) (any, error) {
	var wanted treeBody
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	store := c.server.storage(c.repo)
	entries := map[string]fileEntry{}
	if wanted.BaseTree != "" {
		base, err := treeOf(store, wanted.BaseTree)
		if err != nil {
			return nil, errorStatus(http.StatusUnprocessableEntity, "base_tree is not a valid tree oid")
		}
		if entries, err = flatten(base); err != nil {
			return nil, err
		}
	}
	if len(wanted.Tree) == 0 {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Invalid tree info")
	}
	for _, entry := range wanted.Tree {
		if err := entry.put(store, entries); err != nil {
			return nil, err
		}
	}
	hash, err := writeTree(store, entries)
	if err != nil {
		return nil, err
	}
	return c.writtenTree(store, hash)
}

func (c *call) writtenTree(store *filesystem.Storage, hash plumbing.Hash) (any, error) {
	tree, err := gitobject.GetTree(store, hash)
	if err != nil {
		return nil, err
	}
	listed := each(tree.Entries, func(entry gitobject.TreeEntry) object {
		return c.server.treeEntry(c.repo, entry.Name, entry)
	})
	address := c.server.repoAPI(c.repo) + "/git/trees/" + hash.String()
	c.header("Location", address)
	return object{"sha": hash.String(), "url": address, "tree": listed, "truncated": false}, nil
}

// treeOf finds a tree by its hash or by that of a commit.
func treeOf(store *filesystem.Storage, sha string) (*gitobject.Tree, error) {
	if commit, err := gitobject.GetCommit(store, plumbing.NewHash(sha)); err == nil {
		return commit.Tree()
	}
	return gitobject.GetTree(store, plumbing.NewHash(sha))
}

var treeModes = map[string]filemode.FileMode{
	"100644": filemode.Regular, "100755": filemode.Executable, "040000": filemode.Dir, "160000": filemode.Submodule, "120000": filemode.Symlink,
}

// put adds an entry to a flat list of files, or takes it out.
func (e treeEntryBody) put(store *filesystem.Storage, entries map[string]fileEntry) error {
	mode, known := treeModes[e.Mode]
	switch {
	case e.Path == "":
		return errorStatus(http.StatusUnprocessableEntity, "Must supply tree.path")
	case strings.HasPrefix(e.Path, "/"):
		return errorStatus(http.StatusUnprocessableEntity, "tree.path cannot start with a slash")
	case !known:
		return errorStatus(http.StatusUnprocessableEntity, "Must supply a valid tree.mode")
	case path.Clean(e.Path) != e.Path, slices.ContainsFunc(strings.Split(e.Path, "/"), isMalformed):
		return errorStatus(http.StatusUnprocessableEntity, "tree.path contains a malformed path component")
	case e.SHA != nil && e.Content != nil:
		return errorStatus(http.StatusUnprocessableEntity, "Must supply either tree.sha or tree.content")
	case e.Content != nil:
		hash, err := writeBlob(store, []byte(*e.Content))
		entries[e.Path] = fileEntry{mode: mode, hash: hash}
		return err
	case e.SHA == nil:
		if _, there := entries[e.Path]; !there {
			return errorStatus(http.StatusUnprocessableEntity, "GitRPC::BadObjectState")
		}
		delete(entries, e.Path)
		return nil
	}
	return e.putObject(store, entries, mode)
}

func isMalformed(component string) bool {
	return component == "" || component == "." || component == ".." || strings.EqualFold(component, ".git")
}

// putObject adds an object that is there.
func (e treeEntryBody) putObject(store *filesystem.Storage, entries map[string]fileEntry, mode filemode.FileMode) error {
	hash := plumbing.NewHash(*e.SHA)
	if mode == filemode.Dir {
		tree, err := gitobject.GetTree(store, hash)
		if err != nil {
			return errorStatus(http.StatusUnprocessableEntity, "tree.sha %s is not a valid tree", *e.SHA)
		}
		below, err := flatten(tree)
		for name, entry := range below {
			entries[e.Path+"/"+name] = entry
		}
		return err
	}
	if mode != filemode.Submodule && store.HasEncodedObject(hash) != nil {
		return errorStatus(http.StatusUnprocessableEntity, "tree.sha %s is not a valid blob", *e.SHA)
	}
	entries[e.Path] = fileEntry{mode: mode, hash: hash}
	return nil
}

type commitBody struct {
	Message   string        `json:"message"`
	Tree      string        `json:"tree"`
	Parents   []string      `json:"parents"`
	Author    *identityBody `json:"author"`
	Committer *identityBody `json:"committer"`
	Signature string        `json:"signature"`
}

type identityBody struct {
	Name  string    `json:"name"`
	Email string    `json:"email"`
	Date  time.Time `json:"date"`
}

// createCommit writes a commit. One that a bot makes without naming an author or a committer is GitHub's own: signed,
// and committed by GitHub.
// Source: https://docs.github.com/authentication/managing-commit-signature-verification/about-commit-signature-verification#signature-verification-for-bots
func createCommit(c *call) (any, error) {
	var wanted commitBody
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	store := c.server.storage(c.repo)
	commit := gitobject.Commit{Message: wanted.Message, TreeHash: plumbing.NewHash(wanted.Tree), PGPSignature: wanted.Signature}
	if wanted.Message == "" {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Invalid request.\n\n\"message\" wasn't supplied.")
	}
	if _, err := gitobject.GetTree(store, commit.TreeHash); err != nil {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Tree SHA does not exist")
	}
	for _, sha := range wanted.Parents {
		if _, err := gitobject.GetCommit(store, plumbing.NewHash(sha)); err != nil {
			return nil, errorStatus(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object")
		}
		commit.ParentHashes = append(commit.ParentHashes, plumbing.NewHash(sha))
	}
	if err := c.sign(&commit, wanted); err != nil {
		return nil, err
	}
	hash, err := encodeObject(store, &commit)
	if err != nil {
		return nil, err
	}
	written, err := c.server.commitOf(c.repo, hash.String())
	if err != nil {
		return nil, err
	}
	result := c.server.gitCommit(c.repo, written)
	c.header("Location", result["url"].(string))
	return result, nil
}

// sign sets who a commit is by and, where nobody but a bot is named, GitHub's signature.
func (c *call) sign(commit *gitobject.Commit, wanted commitBody) error {
	now := c.server.Now()
	commit.Author = c.server.signature(c.caller.account, now)
	commit.Committer = commit.Author
	if wanted.Author != nil {
		commit.Author = wanted.Author.signature(now)
		commit.Committer = commit.Author
	}
	if wanted.Committer != nil {
		commit.Committer = wanted.Committer.signature(now)
	}
	if wanted.Author != nil || wanted.Committer != nil || wanted.Signature != "" || c.caller.installation == nil || c.server.unsigned.Load() {
		return nil
	}
	commit.Committer = gitobject.Signature{Name: "GitHub", Email: "noreply@github.com", When: now}
	payload, err := signedPart(commit)
	commit.PGPSignature = c.server.mark(payload)
	return err
}

func (i identityBody) signature(now time.Time) gitobject.Signature {
	if !i.Date.IsZero() {
		now = i.Date
	}
	return gitobject.Signature{Name: i.Name, Email: i.Email, When: now}
}
