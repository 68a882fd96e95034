package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/outbox"
	"handoff/runner/store"
	"handoff/sandbox"
)

// publishing makes the pushes of one session wait for each other: they share
// its workspace.
var publishing turns

// Publish implements [outbox.Publisher]. It may run on any node, whether or
// not that node has ever seen the session's workspace.
func (c *Conductor) Publish(ctx context.Context, effect store.Effect, row store.Approval) (outbox.PushResult, error) {
	end, err := publishing.take(ctx, row.SessionID)
	if err != nil {
		return outbox.PushResult{}, err
	}
	defer end()
	host := c.Repository(row.InstallationID, row.RepositoryID)
	session, err := c.Store.Session(ctx, row.SessionID)
	if err != nil {
		return outbox.PushResult{}, keptRefusal(err)
	}
	s, err := c.loadSeal(ctx, row)
	if err != nil {
		return outbox.PushResult{}, keptRefusal(err)
	}
	address, err := host.GitURL(ctx)
	if err != nil {
		return outbox.PushResult{}, err
	}
	remote := git.Remote{
		Host: c.Host, InstallationID: row.InstallationID, RepositoryID: row.RepositoryID, URL: address, Auth: tokenFrom(host, false),
	}
	if err := c.mayPush(ctx, host, remote, session, row, s); err != nil {
		if row.ConsumedBy == effect.Key {
			// What an earlier attempt did is done, whatever changed since.
			if tip, arrived := c.arrived(ctx, remote, s); arrived {
				return outbox.PushResult{Commit: tip, Ref: s.Ref}, nil
			}
		}
		return outbox.PushResult{}, err
	}
	workspace, err := c.sealedWorkspace(ctx, remote, session, s)
	if err != nil {
		return outbox.PushResult{}, err
	}
	_, err = c.Store.Consume(ctx, row.ID, store.Consumption{
		Digest: row.Digest, Commit: s.Sealed.Commit, TargetRef: s.Ref, ExpectedRemote: s.Old, EffectKey: effect.Key,
	})
	if err != nil {
		return outbox.PushResult{}, consumeRefusal(err)
	}
	// From here on, and nowhere else, there is a token that can write contents.
	if s.Verified {
		return c.publishSigned(ctx, workspace, c.Signer(row.InstallationID, row.RepositoryID), row.SessionID, s)
	}
	remote.Auth = tokenFrom(c.Pusher(row.InstallationID, row.RepositoryID), true)
	result, err := c.Deliver(ctx, workspace, remote, git.PushRequest{Ref: s.Ref, Old: s.Old, Protected: s.Protected}, s.Sealed)
	if err != nil {
		return outbox.PushResult{}, pushRefusal(err)
	}
	return outbox.PushResult{Commit: s.Sealed.Commit, Ref: s.Ref, Server: strings.Join(result.ServerMessages, "\n")}, nil
}

// arrived says whether the branch is at the sealed commit already, or at the one
// that GitHub made in its place.
func (c *Conductor) arrived(ctx context.Context, remote git.Remote, s seal) (tip string, arrived bool) {
	tip, err := c.Cache.Fetch(ctx, remote, strings.TrimPrefix(s.Ref, "refs/heads/"))
	if err != nil || !s.Verified {
		return tip, err == nil && tip == s.Sealed.Commit
	}
	repository, err := c.Cache.Repository(remote)
	if err != nil {
		return tip, false
	}
	commit, err := repository.Commit(ctx, tip)
	return tip, err == nil && s.isMadeAs(commit.Tree, commit.Parents, commit.Message)
}

// keptRefusal ends a push whose commit nobody can build any more.
func keptRefusal(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &outbox.Refusal{Reason: "the approved commit is not kept any more", Err: err}
	}
	return err
}

// push is [Deliver] over the network.
func push(ctx context.Context, workspace *git.Workspace, remote git.Remote, request git.PushRequest, sealed git.Sealed) (git.PushResult, error) {
	return workspace.Push(ctx, remote, request, sealed)
}

// mayPush checks everything that an approval rests on again, at the moment of
// the push.
func (c *Conductor) mayPush(ctx context.Context, host Repository, remote git.Remote, session store.Session, row store.Approval, s seal) error {
	action, err := approval.ActionOf(row)
	if err != nil {
		return &outbox.Refusal{Reason: "the approval's record was changed after it was made", Err: err}
	}
	if action.Kind != toolGitPush || action.Commit != s.Sealed.Commit || action.Tree != s.Sealed.Tree || action.TargetRef != s.Ref || action.ExpectedRemote != s.Old {
		return &outbox.Refusal{Reason: "the approval is for another commit"}
	}
	repository, err := host.Repository(ctx)
	switch github.CodeOf(err) {
	case github.CodeNotFound, github.CodeGone, github.CodeNotInstalled:
		return &outbox.Refusal{Reason: err.Error(), Err: err}
	}
	if err == nil && repository.Archived {
		return &outbox.Refusal{Reason: "the repository was archived"}
	}
	if err != nil {
		return err
	}
	ground := ground{
		Conductor: c, host: host, remote: remote, branch: repository.DefaultBranch,
		rules: session.Variables[varRulesCommit], row: row, action: action,
	}
	return ground.holds(ctx)
}

// A pushChecker is a repository of which only roles are asked.
type pushChecker struct{ Repository }

func (pushChecker) GetComment(context.Context, int64) (github.Comment, error) {
	return github.Comment{}, errors.ErrUnsupported
}

func consumeRefusal(err error) error {
	switch {
	case errors.Is(err, store.ErrStale):
		return &outbox.Refusal{Reason: "the approval is for another commit", Err: err}
	case errors.Is(err, store.ErrApprovalExpired):
		return &outbox.Refusal{Reason: "the approval has expired", Err: err}
	case errors.Is(err, store.ErrAlreadyDecided):
		return &outbox.Refusal{Reason: "the approval was taken back or used before", Err: err}
	}
	return err
}

// pushRefusal tells what the server declined from what may be tried again.
func pushRefusal(err error) error {
	switch git.CodeOf(err) {
	case git.CodeRejected, git.CodeStale, git.CodeInvalid, git.CodeNotFound, git.CodeRedirect:
		return &outbox.Refusal{Reason: sentence(err), Err: err}
	}
	return err
}

// sealedWorkspace returns a workspace that holds the sealed commit's objects:
// the session's own if it is on this machine, or one that is rebuilt from the
// checkpoint and sealed again, which must give the same commit.
func (c *Conductor) sealedWorkspace(ctx context.Context, remote git.Remote, session store.Session, s seal) (*git.Workspace, error) {
	for _, commit := range []string{s.Checkpoint.Base, cmp.Or(s.Info.Parent, s.Checkpoint.Base)} {
		if err := c.Cache.FetchCommit(ctx, remote, commit); err != nil {
			return nil, err
		}
	}
	repository, err := c.Cache.Repository(remote)
	if err != nil {
		return nil, err
	}
	if workspace, err := repository.Open(c.workspaceDir(session.ID)); err == nil && workspace.Base() == s.Checkpoint.Base && workspace.HasSealed(s.Sealed) {
		return workspace, nil
	}
	dir := filepath.Join(c.workspaceDir(session.ID), "publish")
	if err := sandbox.RemoveTree(dir); err != nil {
		return nil, err
	}
	from := git.Checkpoint{Base: s.Checkpoint.Base, Tree: s.Checkpoint.Tree}
	for _, change := range s.Checkpoint.Changes {
		from.Changes = append(from.Changes, git.CheckpointChange(change))
	}
	workspace, err := repository.Restore(ctx, from, dir, func(id string) ([]byte, error) {
		return c.Store.Blob(ctx, session.InstallationID, id)
	})
	if err != nil {
		return nil, err
	}
	again, err := workspace.Seal(ctx, s.Info)
	if err != nil {
		return nil, err
	}
	if again.Commit != s.Sealed.Commit {
		return nil, &outbox.Refusal{Reason: fmt.Sprintf("the approved commit %s could not be built again", approval.Short(s.Sealed.Commit))}
	}
	return workspace, nil
}
