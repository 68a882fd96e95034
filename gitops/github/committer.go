package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	gh "github.com/google/go-github/v62/github"
)

// A Committer makes commits in one repository through the Git Data API, where
// GitHub signs them. It holds permission to write contents and nothing else: ask
// for one only once a push was approved.
//
// Objects are named by their content, so making them again is harmless, and
// nothing points to them before a branch is moved.
type Committer struct{ client Client }

// Committer returns a committer for a repository.
func (i *Installation) Committer(repository int64) *Committer {
	return &Committer{Client{installation: i, scope: scope{repository: repository, access: accessPush}}}
}

// A GitCommit is a commit as GitHub has it.
type GitCommit struct {
	ID, Tree string
	Parents  []string
	Message  string
	// Verified says that GitHub vouches for the signature; Reason is its word for
	// why, or why not: valid, unsigned, gpgverify_unavailable …
	Verified bool
	Reason   string
}

// A GitEntry is one entry of a directory. Mode is git's, such as 100644; Kind is
// blob, tree or commit (a submodule).
type GitEntry struct{ Name, Mode, Kind, ID string }

// Branch returns the commit of a branch, "" when there is no such branch. ref is
// a full name; an answer about any other ref is not taken for it.
func (c *Committer) Branch(ctx context.Context, ref string) (commit string, err error) {
	err = c.client.call(ctx, kindRead, "look at "+short(ref), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		found, _, err := api.Git.GetRef(ctx, at.owner, at.name, ref)
		if err == nil && found.GetRef() == ref {
			commit = found.GetObject().GetSHA()
		}
		return err
	})
	if CodeOf(err) == CodeNotFound {
		return "", nil
	}
	return commit, err
}

// Commit returns a commit.
func (c *Committer) Commit(ctx context.Context, id string) (commit GitCommit, err error) {
	err = c.client.call(ctx, kindRead, "look at a commit", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		found, _, err := api.Git.GetCommit(ctx, at.owner, at.name, id)
		commit = gitCommitOf(found)
		return err
	})
	return commit, err
}

// CreateBlob stores a file's content and returns its id.
func (c *Committer) CreateBlob(ctx context.Context, content []byte) (id string, err error) {
	err = c.client.call(ctx, kindUpload, "store a file", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		made, _, err := api.Git.CreateBlob(ctx, at.owner, at.name, &gh.Blob{
			Content: new(base64.StdEncoding.EncodeToString(content)), Encoding: new("base64"),
		})
		id = made.GetSHA()
		return err
	})
	return id, err
}

// CreateTree stores a directory of entries that are there already, and returns
// its id.
func (c *Committer) CreateTree(ctx context.Context, entries []GitEntry) (id string, err error) {
	wanted := make([]*gh.TreeEntry, len(entries))
	for i, entry := range entries {
		wanted[i] = &gh.TreeEntry{Path: &entry.Name, Mode: &entry.Mode, Type: &entry.Kind, SHA: &entry.ID}
	}
	err = c.client.call(ctx, kindUpload, "store a directory", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		made, _, err := api.Git.CreateTree(ctx, at.owner, at.name, "", wanted)
		id = made.GetSHA()
		return err
	})
	return id, err
}

// CreateCommit makes a commit of a tree on top of one parent. It names neither
// an author nor a committer: GitHub then signs it as the App's.
func (c *Committer) CreateCommit(ctx context.Context, message, tree, parent string) (commit GitCommit, err error) {
	err = c.client.call(ctx, kindEdit, "make the commit", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		made, _, err := api.Git.CreateCommit(ctx, at.owner, at.name, &gh.Commit{
			Message: &message, Tree: &gh.Tree{SHA: &tree}, Parents: []*gh.Commit{{SHA: &parent}},
		}, nil)
		commit = gitCommitOf(made)
		return err
	})
	return commit, err
}

// CreateBranch makes a branch at a commit; one that exists is [CodeValidation].
// ref is a full name.
func (c *Committer) CreateBranch(ctx context.Context, ref, commit string) error {
	return c.client.call(ctx, kindCreate, "create "+short(ref), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		_, _, err := api.Git.CreateRef(ctx, at.owner, at.name, &gh.Reference{Ref: &ref, Object: &gh.GitObject{SHA: &commit}})
		return err
	})
}

// MoveBranch moves a branch forward to a commit; where that would lose commits
// of others it is [CodeValidation]. ref is a full name.
func (c *Committer) MoveBranch(ctx context.Context, ref, commit string) error {
	return c.client.call(ctx, kindCreate, "move "+short(ref), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		_, _, err := api.Git.UpdateRef(ctx, at.owner, at.name, &gh.Reference{Ref: &ref, Object: &gh.GitObject{SHA: &commit}}, false)
		return err
	})
}

func short(ref string) string {
	return fmt.Sprintf("the branch %.200s", strings.TrimPrefix(ref, "refs/heads/"))
}

func gitCommitOf(found *gh.Commit) GitCommit {
	commit := GitCommit{
		ID: found.GetSHA(), Tree: found.GetTree().GetSHA(), Message: found.GetMessage(),
		Verified: found.GetVerification().GetVerified(), Reason: found.GetVerification().GetReason(),
	}
	if found != nil {
		for _, parent := range found.Parents {
			commit.Parents = append(commit.Parents, parent.GetSHA())
		}
	}
	return commit
}
