package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/outbox"
)

// publishSigned has GitHub make the approved commit, and moves the branch to it.
// The files are the approved ones by the id of their tree, parent and message
// are those of the sealed commit; author, time and signature are GitHub's, so
// the id is known only then.
//
// It may be called again after a crash. A commit of which nobody knows is lost,
// and nothing points to it; one that the branch is at is recognised by what was
// approved of it. The branch is created where there is none, or moved forward
// from where the last push left it: what somebody else pushed meanwhile makes
// GitHub refuse, and nothing is ever forced.
func (c *Conductor) publishSigned(ctx context.Context, workspace *git.Workspace, api Signer, session string, s seal) (outbox.PushResult, error) {
	request := git.PushRequest{Ref: s.Ref, Old: s.Old, Protected: s.Protected}
	if err := request.Validate(); err != nil {
		return outbox.PushResult{}, pushRefusal(err)
	}
	tip, arrived, err := signedTip(ctx, api, s)
	if err != nil || arrived {
		return outbox.PushResult{Commit: tip, Ref: s.Ref}, err
	}
	if err := c.upload(ctx, api, workspace, session, s); err != nil {
		return outbox.PushResult{}, apiRefusal(s, err)
	}
	commit, err := signedCommit(ctx, api, s)
	if err != nil {
		return outbox.PushResult{}, apiRefusal(s, err)
	}
	move := api.MoveBranch
	if s.Old == "" {
		move = api.CreateBranch
	}
	if err := move(ctx, s.Ref, commit); err != nil {
		// It may have been an earlier request of ours that was in the way.
		if tip, arrived, lookErr := signedTip(ctx, api, s); lookErr != nil || arrived {
			return outbox.PushResult{Commit: tip, Ref: s.Ref}, lookErr
		}
		return outbox.PushResult{}, apiRefusal(s, err)
	}
	return outbox.PushResult{Commit: commit, Ref: s.Ref}, nil
}

// isMadeAs says whether a commit is the sealed one but for its author, its time
// and its signature.
func (s seal) isMadeAs(tree string, parents []string, message string) bool {
	return tree == s.Sealed.Tree && slices.Equal(parents, []string{s.Sealed.Parent}) &&
		strings.TrimSpace(message) == strings.TrimSpace(s.Sealed.Message)
}

// signedTip looks where the branch is. It says true when it is at the commit that
// GitHub made before; where somebody else has moved it, that is a refusal.
func signedTip(ctx context.Context, api Signer, s seal) (tip string, arrived bool, err error) {
	if tip, err = api.Branch(ctx, s.Ref); err != nil || tip == s.Old {
		return tip, false, err
	}
	branch := strings.TrimPrefix(s.Ref, "refs/heads/")
	if tip == "" {
		return "", false, &outbox.Refusal{Reason: fmt.Sprintf("the branch %s was deleted meanwhile", branch)}
	}
	commit, err := api.Commit(ctx, tip)
	if err != nil {
		return "", false, err
	}
	if s.isMadeAs(commit.Tree, commit.Parents, commit.Message) {
		return tip, true, nil
	}
	return "", false, &outbox.Refusal{Reason: fmt.Sprintf("somebody else has pushed to %s: it is at %s", branch, approval.Short(tip))}
}

// upload stores the sealed commit's files and directories that GitHub lacks. Each
// must get the id that it has here. An attempt that is cut off, such as by
// GitHub's limit of requests a minute, goes on with the next one.
func (c *Conductor) upload(ctx context.Context, api Signer, workspace *git.Workspace, session string, s seal) error {
	objects, err := workspace.NewObjects(ctx, s.Sealed)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if c.uploads.has(session, object.ID) {
			continue
		}
		id, err := uploadOne(ctx, api, workspace, object)
		if err != nil {
			return err
		}
		if id != object.ID {
			return &outbox.Refusal{Reason: fmt.Sprintf("GitHub stored %s as %s, so the tree would not be the one that was approved; push without commit.verified", approval.Short(object.ID), approval.Short(id))}
		}
		c.uploads.add(session, object.ID)
	}
	return nil
}

// An uploads remembers which objects of which sessions GitHub has stored. It forgets
// all of them when there are too many, which costs requests and nothing else.
type uploads struct {
	mu     sync.Mutex
	stored map[[2]string]bool
}

// maxUploads bounds the memory, at about 200 bytes each.
const maxUploads = 20_000

func (u *uploads) has(session, object string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stored[[2]string{session, object}]
}

func (u *uploads) add(session, object string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stored == nil || len(u.stored) >= maxUploads {
		u.stored = map[[2]string]bool{}
	}
	u.stored[[2]string{session, object}] = true
}

func uploadOne(ctx context.Context, api Signer, workspace *git.Workspace, object git.NewObject) (string, error) {
	if object.Entries == nil {
		content, err := workspace.ReadSealed(ctx, object.ID)
		if err != nil {
			return "", err
		}
		return api.CreateBlob(ctx, content)
	}
	entries := make([]github.GitEntry, len(object.Entries))
	for i, entry := range object.Entries {
		entries[i] = github.GitEntry(entry)
	}
	return api.CreateTree(ctx, entries)
}

// signedCommit has the commit made and checks what came of it.
func signedCommit(ctx context.Context, api Signer, s seal) (string, error) {
	commit, err := api.CreateCommit(ctx, s.Sealed.Message, s.Sealed.Tree, s.Sealed.Parent)
	if err != nil {
		return "", err
	}
	if !s.isMadeAs(commit.Tree, commit.Parents, commit.Message) {
		return "", &outbox.Refusal{Reason: fmt.Sprintf("GitHub made a commit with the tree %s, not the approved %s", approval.Short(commit.Tree), approval.Short(s.Sealed.Tree))}
	}
	switch {
	case commit.Verified:
		return commit.ID, nil
	case strings.HasPrefix(commit.Reason, "gpgverify_"):
		// Its signing service is unwell, which passes.
		return "", fmt.Errorf("GitHub could not sign the commit now (%s)", commit.Reason)
	}
	return "", &outbox.Refusal{Reason: fmt.Sprintf("GitHub did not sign the commit (%s); switch the signing of commits on there, or commit.verified off", cmp.Or(commit.Reason, "no reason given"))}
}

// apiRefusal tells what GitHub declined from what may be tried again.
func apiRefusal(s seal, err error) error {
	failed, ok := errors.AsType[*github.Error](err)
	if !ok {
		return pushRefusal(err)
	}
	switch failed.Code {
	case github.CodeValidation, github.CodeForbidden, github.CodeConflict, github.CodeNotFound, github.CodeGone:
		return pushRefusal(git.Declined(s.Ref, cmp.Or(failed.Said, failed.Message)))
	}
	return err
}
