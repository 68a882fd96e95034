package github

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A User is an account. ID decides who somebody is; a login can be given up
// and taken by somebody else.
type User struct {
	ID    int64
	Login string
	// Type is User, Bot, Organization or Mannequin.
	Type string
}

// A Repository is what GitHub says about a repository.
type Repository struct {
	ID    int64
	Owner string
	Name  string
	// OwnerID and OwnerType are the owning account's.
	OwnerID       int64
	OwnerType     string
	DefaultBranch string
	// SizeKilobytes is GitHub's own, rounded, updated now and then.
	SizeKilobytes int64
	Private       bool
	Archived      bool
	Disabled      bool
	Fork          bool
	HTMLURL       string
}

// FullName returns owner/name.
func (r Repository) FullName() string { return r.Owner + "/" + r.Name }

// Repository asks GitHub about the client's repository, by its id, so that a
// rename does not matter. The names are kept for later requests.
func (c *Client) Repository(ctx context.Context) (Repository, error) {
	const what = "read the repository"
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, scopeKey{}, c.scope), readTimeout)
	defer cancel()
	found, _, err := c.installation.client.Repositories.GetByID(ctx, c.scope.repository)
	if err != nil {
		return Repository{}, errorOf(c.installation.app.clock, what, err, false)
	}
	r := repositoryOf(found)
	if r.ID != c.scope.repository {
		return Repository{}, &Error{Code: CodeUnexpected, Message: "Could not read the repository: GitHub answered with another one."}
	}
	if err := checkName(r.Owner, r.Name); err != nil {
		return Repository{}, err
	}
	c.installation.rememberName(r.ID, repositoryName{r.Owner, r.Name})
	return r, nil
}

// An Issue is an issue or, with IsPullRequest, a pull request's conversation.
type Issue struct {
	Number        int
	Title         string
	Body          string
	State         string
	Locked        bool
	IsPullRequest bool
	Author        User
	HTMLURL       string
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Issue reads an issue or a pull request's conversation.
func (c *Client) Issue(ctx context.Context, number int) (Issue, error) {
	var issue Issue
	err := c.call(ctx, kindRead, fmt.Sprintf("read #%d", number), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		found, _, err := api.Issues.Get(ctx, at.owner, at.name, number)
		if err != nil {
			return err
		}
		issue = Issue{
			Number: found.GetNumber(), Title: found.GetTitle(), Body: found.GetBody(), State: found.GetState(),
			Locked: found.GetLocked(), IsPullRequest: found.IsPullRequest(), Author: userOf(found.User),
			HTMLURL: found.GetHTMLURL(), CreatedAt: found.GetCreatedAt().Time, UpdatedAt: found.GetUpdatedAt().Time,
		}
		return nil
	})
	return issue, err
}

// A Permission is what somebody may do in a repository.
type Permission struct {
	User User
	// Role is the exact role: admin, maintain, write, triage, read, none, or
	// the name of an organisation's custom role.
	Role string
	// Base is the built-in permission behind the role: admin, write, read or
	// none. It shows maintain as write and triage as read.
	Base string
}

// Permission looks up what a person may do. GitHub looks up by login, so the
// answer's id is compared with the one asked for: a login that changed hands
// gives [CodeConflict]. A person who does not exist gives [CodeNotFound].
func (c *Client) Permission(ctx context.Context, userID int64, login string) (Permission, error) {
	var answer struct {
		Permission string   `json:"permission"`
		RoleName   string   `json:"role_name"`
		User       *gh.User `json:"user"`
	}
	what := "look up the role of @" + login
	err := c.call(ctx, kindRead, what, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		if strings.Trim(login, ".") == "" {
			return &Error{Code: CodeValidation, Message: "Could not look up a role: the login is empty."}
		}
		// go-github's type lacks role_name.
		request, err := api.NewRequest("GET", fmt.Sprintf("repos/%s/%s/collaborators/%s/permission", at.owner, at.name, url.PathEscape(login)), nil)
		if err != nil {
			return err
		}
		_, err = api.Do(ctx, request, &answer)
		return err
	})
	if err != nil {
		return Permission{}, err
	}
	found := Permission{User: userOf(answer.User), Role: answer.RoleName, Base: answer.Permission}
	if found.User.ID != userID {
		return Permission{}, &Error{Code: CodeConflict, Message: fmt.Sprintf("The login @%s belongs to somebody else by now.", login)}
	}
	if found.Role == "" {
		found.Role = found.Base
	}
	return found, nil
}

// A File is a file's content at a commit.
type File struct {
	Path    string
	SHA     string
	Content []byte
}

// GetContents reads a file of up to 1 MB, GitHub's limit for this call, at a
// branch, tag or commit ("" is the default branch). Directories, symbolic
// links and submodules give [CodeValidation].
func (c *Client) GetContents(ctx context.Context, path, ref string) (File, error) {
	var file File
	err := c.call(ctx, kindRead, "read "+path, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		found, _, _, err := api.Repositories.GetContents(ctx, at.owner, at.name, path, &gh.RepositoryContentGetOptions{Ref: ref})
		if err != nil {
			return err
		}
		if found == nil || found.GetType() != "file" || found.Target != nil {
			return &Error{Code: CodeValidation, Message: path + " is not a regular file."}
		}
		content, err := found.GetContent()
		if err != nil {
			return &Error{Code: CodeValidation, Err: err, Message: path + " cannot be read through GitHub's API: it is larger than 1 MB."}
		}
		file = File{Path: found.GetPath(), SHA: found.GetSHA(), Content: []byte(content)}
		return nil
	})
	return file, err
}

// CommitSHA returns the commit that a branch, tag, full ref name or
// abbreviated commit stands for.
func (c *Client) CommitSHA(ctx context.Context, ref string) (string, error) {
	var sha string
	err := c.call(ctx, kindRead, "find "+ref, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		// go-github would not escape the ref; one file of the commit is enough.
		found, _, err := api.Repositories.GetCommit(ctx, at.owner, at.name, escapeRef(ref), &gh.ListOptions{PerPage: 1})
		sha = found.GetSHA()
		return err
	})
	return sha, err
}

// Contains says whether a branch has a commit among its history, itself
// included. A commit that GitHub does not have is in no branch.
func (c *Client) Contains(ctx context.Context, branch, commit string) (bool, error) {
	contained := false
	err := c.call(ctx, kindRead, "compare "+branch, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		// From the branch to its ancestor there are no commits to list.
		found, _, err := api.Repositories.CompareCommits(ctx, at.owner, at.name, branch, commit, &gh.ListOptions{PerPage: 1})
		contained = found.GetStatus() == "behind" || found.GetStatus() == "identical"
		return err
	})
	if CodeOf(err) == CodeNotFound {
		return false, nil
	}
	return contained, err
}

// Bot returns the account under which the App comments.
func (c *Client) Bot(ctx context.Context) (User, error) {
	identity, err := c.installation.app.Identity(ctx)
	if err != nil {
		return User{}, err
	}
	return c.User(ctx, identity.BotLogin())
}

// User looks up an account by its login.
func (c *Client) User(ctx context.Context, login string) (User, error) {
	var user User
	err := c.call(ctx, kindRead, "look up @"+login, func(ctx context.Context, _ repositoryName, api *gh.Client) error {
		found, _, err := api.Users.Get(ctx, url.PathEscape(login))
		user = userOf(found)
		return err
	})
	return user, err
}

// escapeRef escapes each part of a ref for an API address.
func escapeRef(ref string) string {
	parts := strings.Split(ref, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
