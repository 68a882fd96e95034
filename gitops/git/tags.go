package git

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxTags is how many tags of one commit are told; a commit with more is no
// release.
const maxTags = 100

// Tags returns the names of the tags that stand for a commit on the server,
// sorted, a hundred at most. Nothing is fetched.
func (c *Cache) Tags(ctx context.Context, remote Remote, commit string) ([]string, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	_, advertised, err := c.upload(ctx, remote)
	if err != nil {
		return nil, err
	}
	tags := tagNames{}
	for ref, target := range advertised.References {
		if peeled, annotated := advertised.Peeled[ref]; annotated {
			target = peeled
		}
		tags.add(ref, target == id)
	}
	return tags.sorted(), nil
}

// Tags returns the names of the tags that stand for a commit, sorted, a hundred
// at most. One that leads to nothing is left out.
func (l *Local) Tags(ctx context.Context, commit string) ([]string, error) {
	id, err := parseID(commit)
	if err != nil {
		return nil, err
	}
	store := l.refs()
	defer store.Close()
	refs, err := store.IterReferences()
	if err != nil {
		return nil, ioError(err, "the repository's tags cannot be read")
	}
	defer refs.Close()
	tags := tagNames{}
	for {
		ref, err := refs.Next()
		switch {
		case errors.Is(err, io.EOF):
			return tags.sorted(), nil
		case err != nil:
			return nil, ioError(err, "the repository's tags cannot be read")
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !ref.Name().IsTag() || ref.Type() != plumbing.HashReference:
			continue
		}
		target, err := peel(l.objects, ref.Hash())
		tags.add(ref.Name().String(), err == nil && target == id)
	}
}

// tagNames collects the short names of tags.
type tagNames []string

func (t *tagNames) add(ref string, wanted bool) {
	// Tags and branches follow the same rules.
	if name, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag && wanted && ValidateBranch(name) == nil {
		*t = append(*t, name)
	}
}

func (t tagNames) sorted() []string {
	slices.Sort(t)
	return t[:min(len(t), maxTags)]
}
