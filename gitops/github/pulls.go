package github

import (
	"context"
	"fmt"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A PullRequest is a pull request as GitHub has it.
type PullRequest struct {
	Number int
	Title  string
	Body   string
	// State is open or closed; Merged tells the two kinds of closed apart.
	State   string
	Merged  bool
	Draft   bool
	HTMLURL string
	Author  User
	Base    string
	// Head is the branch, HeadSHA its commit, HeadRepositoryID where it lives:
	// 0 when that repository was deleted, another id for a fork.
	Head             string
	HeadSHA          string
	HeadRepositoryID int64
	CreatedAt        time.Time
}

// A PullRequestRequest is a pull request to be opened or changed.
type PullRequestRequest struct {
	Title string
	Body  string
	// Head and Base are branches of this repository; used when it is opened.
	Head  string
	Base  string
	Draft bool
}

// PullRequest reads a pull request.
func (c *Client) PullRequest(ctx context.Context, number int) (PullRequest, error) {
	var found PullRequest
	err := c.call(ctx, kindRead, fmt.Sprintf("read pull request #%d", number), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		pull, _, err := api.PullRequests.Get(ctx, at.owner, at.name, number)
		found = pullRequestOf(pull)
		return err
	})
	return found, err
}

// FindPullRequestByHead returns the pull request of a branch of this
// repository: the open one, otherwise the newest closed one. Found is false
// when there is none. A fork's branch of the same name is not taken for it.
func (c *Client) FindPullRequestByHead(ctx context.Context, branch string) (pull PullRequest, found bool, err error) {
	err = c.call(ctx, kindRead, "look for the pull request of "+branch, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		page, _, err := api.PullRequests.List(ctx, at.owner, at.name, &gh.PullRequestListOptions{
			State: "all", Head: at.owner + ":" + branch, Sort: "created", Direction: "desc",
			ListOptions: gh.ListOptions{PerPage: pageSize},
		})
		if err != nil {
			return err
		}
		for _, one := range page {
			candidate := pullRequestOf(one)
			if candidate.Head != branch || candidate.HeadRepositoryID != c.scope.repository {
				continue
			}
			if !found || (pull.State != "open" && candidate.State == "open") {
				pull, found = candidate, true
			}
		}
		return nil
	})
	return pull, found, err
}

// CreatePullRequest opens a pull request. One that exists for the same head
// and base gives [CodeValidation]; find it by its head.
func (c *Client) CreatePullRequest(ctx context.Context, request PullRequestRequest) (PullRequest, error) {
	var made PullRequest
	if err := request.check(); err != nil {
		return made, err
	}
	err := c.call(ctx, kindCreate, "open a pull request", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		pull, _, err := api.PullRequests.Create(ctx, at.owner, at.name, &gh.NewPullRequest{
			Title: &request.Title, Body: &request.Body, Head: &request.Head, Base: &request.Base, Draft: &request.Draft,
			// The branch lives in this repository: there is no fork whose
			// maintainers could be let in.
			MaintainerCanModify: new(false),
		})
		made = pullRequestOf(pull)
		return err
	})
	return made, err
}

// UpdatePullRequest replaces the title and the body.
func (c *Client) UpdatePullRequest(ctx context.Context, number int, request PullRequestRequest) (PullRequest, error) {
	var changed PullRequest
	if err := request.check(); err != nil {
		return changed, err
	}
	err := c.call(ctx, kindEdit, fmt.Sprintf("change pull request #%d", number), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		pull, _, err := api.PullRequests.Edit(ctx, at.owner, at.name, number, &gh.PullRequest{Title: &request.Title, Body: &request.Body})
		changed = pullRequestOf(pull)
		return err
	})
	return changed, err
}

func pullRequestOf(p *gh.PullRequest) PullRequest {
	return PullRequest{
		Number: p.GetNumber(), Title: p.GetTitle(), Body: p.GetBody(), State: p.GetState(),
		Merged: p.GetMerged() || !p.GetMergedAt().IsZero(), Draft: p.GetDraft(), HTMLURL: p.GetHTMLURL(),
		Author: userOf(p.GetUser()), Base: p.GetBase().GetRef(), Head: p.GetHead().GetRef(),
		HeadSHA: p.GetHead().GetSHA(), HeadRepositoryID: p.GetHead().GetRepo().GetID(), CreatedAt: p.GetCreatedAt().Time,
	}
}
