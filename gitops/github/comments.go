package github

import (
	"context"
	"fmt"
	"net/http"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A Comment is a comment on an issue, or in a pull request's conversation.
type Comment struct {
	ID        int64
	Body      string
	Author    User
	HTMLURL   string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// CreateComment posts a new comment on an issue or a pull request. A body over
// [BodyLimit] gives [CodeValidation] without a request.
func (c *Client) CreateComment(ctx context.Context, issue int, body string) (Comment, error) {
	var made Comment
	if err := checkBody(body); err != nil {
		return made, err
	}
	err := c.call(ctx, kindCreate, fmt.Sprintf("comment on #%d", issue), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		comment, _, err := api.Issues.CreateComment(ctx, at.owner, at.name, issue, &gh.IssueComment{Body: &body})
		made = commentOf(comment)
		return err
	})
	return made, err
}

// EditComment replaces the text of a comment of the App's own.
func (c *Client) EditComment(ctx context.Context, id int64, body string) (Comment, error) {
	var edited Comment
	if err := checkBody(body); err != nil {
		return edited, err
	}
	err := c.call(ctx, kindEdit, "edit a comment", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		comment, _, err := api.Issues.EditComment(ctx, at.owner, at.name, id, &gh.IssueComment{Body: &body})
		edited = commentOf(comment)
		return err
	})
	return edited, err
}

// GetComment reads a comment; [CodeNotFound] when it was deleted.
func (c *Client) GetComment(ctx context.Context, id int64) (Comment, error) {
	var found Comment
	err := c.call(ctx, kindRead, "read a comment", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		comment, _, err := api.Issues.GetComment(ctx, at.owner, at.name, id)
		found = commentOf(comment)
		return err
	})
	return found, err
}

// ListComments returns the comments of an issue that were made or changed
// since then, oldest first; the zero time means all, up to 5,000.
func (c *Client) ListComments(ctx context.Context, issue int, since time.Time) ([]Comment, error) {
	var all []Comment
	err := c.call(ctx, kindRead, fmt.Sprintf("read the comments of #%d", issue), func(ctx context.Context, at repositoryName, api *gh.Client) error {
		options := &gh.IssueListCommentsOptions{ListOptions: gh.ListOptions{PerPage: pageSize}}
		if !since.IsZero() {
			options.Since = &since
		}
		for range pagesRead {
			page, response, err := api.Issues.ListComments(ctx, at.owner, at.name, issue, options)
			if err != nil {
				return err
			}
			for _, comment := range page {
				all = append(all, commentOf(comment))
			}
			if response.NextPage == 0 {
				return nil
			}
			options.Page = response.NextPage
		}
		return nil
	})
	return all, err
}

func commentOf(c *gh.IssueComment) Comment {
	return Comment{
		ID: c.GetID(), Body: c.GetBody(), Author: userOf(c.GetUser()), HTMLURL: c.GetHTMLURL(),
		CreatedAt: c.GetCreatedAt().Time, UpdatedAt: c.GetUpdatedAt().Time,
	}
}

// A Reaction is an emoji that somebody left on a comment.
type Reaction struct {
	ID   int64
	User User
	// Content is GitHub's word: +1, -1, laugh, confused, heart, hooray, rocket
	// or eyes.
	Content   string
	CreatedAt time.Time
}

// Reactions is the answer of [Client.ListReactions].
type Reactions struct {
	// NotModified says that nothing changed since the given ETag; All is empty
	// then.
	NotModified bool
	// ETag is for the next call; "" when there is none that covers the list.
	ETag string
	All  []Reaction
}

// CreateReaction reacts to a comment on an issue. GitHub answers a repeated
// reaction with the first one, so it may be sent again.
func (c *Client) CreateReaction(ctx context.Context, comment int64, content string) (Reaction, error) {
	return c.createReaction(ctx, "issues", comment, content)
}

// CreateReviewReaction reacts to a comment on a line of a pull request.
func (c *Client) CreateReviewReaction(ctx context.Context, comment int64, content string) (Reaction, error) {
	return c.createReaction(ctx, "pulls", comment, content)
}

func (c *Client) createReaction(ctx context.Context, of string, comment int64, content string) (Reaction, error) {
	var made reaction
	err := c.call(ctx, kindEdit, "react to a comment", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		// go-github's Reaction has no created_at.
		request, err := api.NewRequest("POST", fmt.Sprintf("repos/%s/%s/%s/comments/%d/reactions", at.owner, at.name, of, comment),
			map[string]string{"content": content})
		if err != nil {
			return err
		}
		_, err = api.Do(ctx, request, &made)
		return err
	})
	return made.value(), err
}

// ListReactions returns the reactions to a comment on an issue, oldest first.
// With the ETag of an earlier answer an unchanged list costs nothing of the
// request limit.
func (c *Client) ListReactions(ctx context.Context, comment int64, etag string) (Reactions, error) {
	var found Reactions
	err := c.call(ctx, kindRead, "read the reactions to a comment", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		found = Reactions{}
		for page := 1; page <= pagesRead; page++ {
			var reactions []reaction
			request, err := api.NewRequest("GET", fmt.Sprintf("repos/%s/%s/issues/comments/%d/reactions?per_page=%d&page=%d", at.owner, at.name, comment, pageSize, page), nil)
			if err != nil {
				return err
			}
			if page == 1 && etag != "" {
				request.Header.Set("If-None-Match", etag)
			}
			response, err := api.Do(ctx, request, &reactions)
			if page == 1 && response != nil && response.StatusCode == http.StatusNotModified {
				found = Reactions{NotModified: true, ETag: etag}
				return nil
			}
			if err != nil {
				return err
			}
			found.add(reactions)
			if response.NextPage == 0 {
				// The tag of a first page says nothing about later pages.
				if page == 1 {
					found.ETag = response.Header.Get("ETag")
				}
				return nil
			}
		}
		return nil
	})
	return found, err
}

func (r *Reactions) add(page []reaction) {
	for _, one := range page {
		r.All = append(r.All, one.value())
	}
}

// reaction is a reaction on the wire.
type reaction struct {
	ID        int64     `json:"id"`
	User      *gh.User  `json:"user"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

func (r reaction) value() Reaction {
	return Reaction{ID: r.ID, User: userOf(r.User), Content: r.Content, CreatedAt: r.CreatedAt}
}
