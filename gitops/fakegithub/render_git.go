package fakegithub

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

func (s *Server) commitPage(r *repository, sha string) string {
	return s.repoPage(r) + "/commit/" + sha
}

// accountOf finds who a commit's signature belongs to, by GitHub's no-reply address.
func (s *Server) accountOf(signature gitobject.Signature) any {
	name, found := strings.CutSuffix(signature.Email, "@users.noreply.github.com")
	if !found {
		return nil
	}
	if _, login, numbered := strings.Cut(name, "+"); numbered {
		name = login
	}
	return s.simpleUser(s.world.account(name))
}

func gitSignature(signature gitobject.Signature) object {
	return object{"name": signature.Name, "email": signature.Email, "date": stamp(signature.When)}
}

func (s *Server) commitObject(r *repository, commit *gitobject.Commit) object {
	sha := commit.Hash.String()
	address := s.repoAPI(r) + "/commits/" + sha
	return object{
		"sha": sha, "node_id": nodeID("Commit", r.id), "url": address, "html_url": s.commitPage(r, sha),
		"comments_url": address + "/comments", "author": s.accountOf(commit.Author), "committer": s.accountOf(commit.Committer),
		"parents": s.parents(r, commit, "/commits/"),
		"commit": object{"author": gitSignature(commit.Author), "committer": gitSignature(commit.Committer),
			"message": strings.TrimSuffix(commit.Message, "\n"), "comment_count": 0, "verification": s.verification(commit),
			"url":  s.repoAPI(r) + "/git/commits/" + sha,
			"tree": object{"sha": commit.TreeHash.String(), "url": s.repoAPI(r) + "/git/trees/" + commit.TreeHash.String()}},
	}
}

func (s *Server) parents(r *repository, commit *gitobject.Commit, kind string) []object {
	return each(commit.ParentHashes, func(hash plumbing.Hash) object {
		return object{"sha": hash.String(), "url": s.repoAPI(r) + kind + hash.String(), "html_url": s.commitPage(r, hash.String())}
	})
}

// commitWithFiles is a commit by itself: with what it changed against its first parent.
func (s *Server) commitWithFiles(r *repository, commit *gitobject.Commit) (object, error) {
	files, _, err := s.commitChange(commit)
	if err != nil {
		return nil, err
	}
	additions, deletions := 0, 0
	for _, file := range files {
		additions += file.additions
		deletions += file.deletions
	}
	result := s.commitObject(r, commit)
	result["stats"] = object{"additions": additions, "deletions": deletions, "total": additions + deletions}
	result["files"] = each(files, s.fileObject(r, commit.Hash.String()))
	return result, nil
}

func (s *Server) commitChange(commit *gitobject.Commit) ([]fileChange, string, error) {
	to, err := commit.Tree()
	if err != nil {
		return nil, "", err
	}
	var from *gitobject.Tree
	if parent, err := commit.Parent(0); err == nil {
		if from, err = parent.Tree(); err != nil {
			return nil, "", err
		}
	}
	return diffTrees(from, to)
}

// fileObject renders one changed file at a commit.
func (s *Server) fileObject(r *repository, sha string) func(fileChange) object {
	return func(file fileChange) object {
		path := escapePath(file.name)
		result := object{
			"sha": file.sha, "filename": file.name, "status": file.status, "additions": file.additions,
			"deletions": file.deletions, "changes": file.additions + file.deletions,
			"blob_url": s.repoPage(r) + "/blob/" + sha + "/" + path, "raw_url": s.repoPage(r) + "/raw/" + sha + "/" + path,
			"contents_url": s.repoAPI(r) + "/contents/" + path + "?ref=" + sha,
		}
		if file.patch != "" {
			result["patch"] = file.patch
		}
		if file.previous != "" {
			result["previous_filename"] = file.previous
		}
		return result
	}
}

// gitCommit is a commit as the Git Data API shows it.
func (s *Server) gitCommit(r *repository, commit *gitobject.Commit) object {
	sha := commit.Hash.String()
	return object{
		"sha": sha, "node_id": nodeID("Commit", r.id), "url": s.repoAPI(r) + "/git/commits/" + sha,
		"html_url": s.commitPage(r, sha), "author": gitSignature(commit.Author), "committer": gitSignature(commit.Committer),
		"message": strings.TrimSuffix(commit.Message, "\n"), "verification": s.verification(commit),
		"tree":    object{"sha": commit.TreeHash.String(), "url": s.repoAPI(r) + "/git/trees/" + commit.TreeHash.String()},
		"parents": s.parents(r, commit, "/git/commits/"),
	}
}

// simpleCommit is a commit inside a check suite or workflow run.
func simpleCommit(commit *gitobject.Commit) object {
	return object{"id": commit.Hash.String(), "tree_id": commit.TreeHash.String(), "message": strings.TrimSuffix(commit.Message, "\n"),
		"timestamp": stamp(commit.Committer.When),
		"author":    object{"name": commit.Author.Name, "email": commit.Author.Email},
		"committer": object{"name": commit.Committer.Name, "email": commit.Committer.Email}}
}

func (s *Server) pushedCommitIn(r *repository) func(*gitobject.Commit) object {
	return func(commit *gitobject.Commit) object { return s.pushedCommit(r, commit) }
}

// pushedCommit is a commit inside a push event, with the names of the files it touched.
func (s *Server) pushedCommit(r *repository, commit *gitobject.Commit) object {
	result := simpleCommit(commit)
	result["timestamp"] = commit.Committer.When.Format(time.RFC3339)
	result["distinct"], result["url"] = true, s.commitPage(r, commit.Hash.String())
	added, removed, modified := []string{}, []string{}, []string{}
	files, _, err := s.commitChange(commit)
	if err != nil {
		s.log.Error("a pushed commit's files were not read", "error", err)
	}
	for _, file := range files {
		switch file.status {
		case "added":
			added = append(added, file.name)
		case "removed":
			removed = append(removed, file.name)
		case "renamed":
			added, removed = append(added, file.name), append(removed, file.previous)
		default:
			modified = append(modified, file.name)
		}
	}
	result["added"], result["removed"], result["modified"] = added, removed, modified
	return result
}

func (s *Server) refObject(r *repository, ref *plumbing.Reference) object {
	kind := "commit"
	if _, err := gitobject.GetTag(s.storage(r), ref.Hash()); err == nil {
		kind = "tag"
	}
	sha := ref.Hash().String()
	return object{"ref": ref.Name().String(), "node_id": nodeID("Ref", r.id),
		"url":    s.repoAPI(r) + "/git/" + ref.Name().String(),
		"object": object{"type": kind, "sha": sha, "url": s.repoAPI(r) + "/git/" + kind + "s/" + sha}}
}

// contentObject is one entry of a directory, or a file with its content.
func (s *Server) contentObject(r *repository, ref, path string, entry gitobject.TreeEntry, size int64) object {
	escaped := escapePath(path)
	kind, view := "file", "blob"
	switch entry.Mode {
	case filemode.Dir:
		kind, view = "dir", "tree"
	case filemode.Symlink:
		kind = "symlink"
	case filemode.Submodule:
		kind = "submodule"
	}
	address := s.repoAPI(r) + "/contents/" + escaped + "?ref=" + ref
	page := s.repoPage(r) + "/" + view + "/" + ref + "/" + escaped
	objects := s.repoAPI(r) + "/git/blobs/" + entry.Hash.String()
	if kind == "dir" {
		objects = s.repoAPI(r) + "/git/trees/" + entry.Hash.String()
	}
	result := object{
		"type": kind, "name": path[strings.LastIndex(path, "/")+1:], "path": path, "sha": entry.Hash.String(), "size": size,
		"url": address, "html_url": page, "git_url": objects, "download_url": nil,
		"_links": object{"self": address, "git": objects, "html": page},
	}
	if kind == "file" {
		result["download_url"] = s.repoPage(r) + "/raw/" + ref + "/" + escaped
	}
	return result
}

// wrapBase64 encodes as GitHub does: in lines of 60 characters.
func wrapBase64(content []byte) string {
	text := base64.StdEncoding.EncodeToString(content)
	var lines strings.Builder
	for len(text) > 60 {
		lines.WriteString(text[:60] + "\n")
		text = text[60:]
	}
	lines.WriteString(text + "\n")
	return lines.String()
}
