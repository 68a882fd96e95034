package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// The time that requests may take, repetitions and token included.
const (
	// writeTimeout bounds a request that changes something. A lease on an
	// effect outlasts it, which is what keeps two nodes from creating twice and
	// a node that was declared dead from writing over its successor.
	writeTimeout = 8 * time.Second
	// uploadTimeout bounds a request with a file in it. What it makes is named by
	// its content, so it may be made twice.
	uploadTimeout = 2 * time.Minute
	// readTimeout bounds a read.
	readTimeout = 30 * time.Second
)

// pageSize is GitHub's largest page.
const pageSize = 100

// pagesRead bounds how much of a list is read, so that an issue with a hundred
// thousand comments cannot use up the hour's requests.
const pagesRead = 50

// A Client is one installation narrowed to one repository and one set of
// permissions. It costs nothing to make.
type Client struct {
	installation *Installation
	scope        scope
}

// RepositoryID returns the id of the client's repository.
func (c *Client) RepositoryID() int64 { return c.scope.repository }

// repositoryName is how a repository is called at the moment.
type repositoryName struct{ owner, name string }

// A kind of request decides its time and what a lost answer means.
type kind int

const (
	kindRead kind = iota
	// kindEdit may be sent again with the same result.
	kindEdit
	// kindCreate must not be sent again without looking.
	kindCreate
	// kindUpload is an edit that may carry megabytes.
	kindUpload
)

func (k kind) timeout() time.Duration {
	switch k {
	case kindRead:
		return readTimeout
	case kindUpload:
		return uploadTimeout
	}
	return writeTimeout
}

// call runs one request about the client's repository. What completes the
// sentence "Could not …".
func (c *Client) call(ctx context.Context, kind kind, what string, do func(ctx context.Context, at repositoryName, api *gh.Client) error) error {
	if kind != kindRead && c.scope.access == accessRead {
		return &Error{Code: CodeForbidden, Message: fmt.Sprintf("Could not %s: this client may only read.", what)}
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, scopeKey{}, c.scope), kind.timeout())
	defer cancel()
	err := c.named(ctx, what, kind, do)
	if errors.Is(err, errMoved) {
		c.installation.forgetName(c.scope.repository)
		err = c.named(ctx, what, kind, do)
	}
	if CodeOf(err) == CodeNotFound {
		// The name may belong to another repository by now; the id decides.
		c.installation.forgetName(c.scope.repository)
	}
	return err
}

// named runs the request with the repository's present name.
func (c *Client) named(ctx context.Context, what string, kind kind, do func(ctx context.Context, at repositoryName, api *gh.Client) error) error {
	at, err := c.name(ctx)
	if err != nil {
		return err
	}
	ctx, sent := withSent(ctx)
	err = do(ctx, at, c.installation.client)
	return errorOf(c.installation.app.clock, what, err, kind == kindCreate && sent.Load() && !errors.Is(err, errMoved) && !errors.Is(err, errOtherHost))
}

// name returns the repository's present owner and name, asking GitHub for them
// by the repository's id when they are not known.
func (c *Client) name(ctx context.Context) (repositoryName, error) {
	c.installation.mu.Lock()
	known, ok := c.installation.names[c.scope.repository]
	c.installation.mu.Unlock()
	if ok {
		return known, nil
	}
	repository, err := c.Repository(ctx)
	return repositoryName{repository.Owner, repository.Name}, err
}

func (i *Installation) forgetName(repository int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.names, repository)
}

// rememberName keeps a repository's names for later requests. Old ones go
// when there are as many as tokens; they cost one request each to learn.
func (i *Installation) rememberName(repository int64, name repositoryName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.names) >= sourcesKept {
		clear(i.names)
	}
	i.names[repository] = name
}

// Token returns a token for git over HTTP, good for this repository alone and
// for five minutes at least. With write it may change contents: ask for that
// only once a push was approved. The user name that goes with it is
// "x-access-token".
func (c *Client) Token(ctx context.Context, write bool) (Token, error) {
	wanted := scope{repository: c.scope.repository, access: accessRead}
	if write {
		if c.scope.access != accessWrite {
			return Token{}, &Error{Code: CodeForbidden, Message: "Could not get a token to push with: this client may only read."}
		}
		wanted.access = accessPush
	}
	if err := c.installation.limits.check(); err != nil {
		return Token{}, err
	}
	made, err := c.installation.source(wanted).get(ctx)
	return made.token, errorOf(c.installation.app.clock, "get a token for git", err, false)
}

// DropToken forgets a token that a git server refused, so that the next call
// of [Client.Token] mints another.
func (c *Client) DropToken(token Token) {
	for _, access := range []access{accessRead, accessPush} {
		c.installation.source(scope{repository: c.scope.repository, access: access}).drop(minted{token: token})
	}
}

// GitURL returns the address of the repository for git over HTTP, on the host
// that was configured, without credentials.
func (c *Client) GitURL(ctx context.Context) (string, error) {
	at, err := c.name(ctx)
	if err != nil {
		return "", err
	}
	return c.installation.app.WebURL() + "/" + at.owner + "/" + at.name + ".git", nil
}
