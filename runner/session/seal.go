package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/runner"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// A seal is a commit that is ready to be pushed, and what is needed to build
// the same commit again on another machine.
type seal struct {
	Sealed git.Sealed     `json:"sealed"`
	Info   git.CommitInfo `json:"info"`
	// Ref is the branch that will be moved, Old the commit it must be at, ""
	// to create it.
	Ref string `json:"ref"`
	Old string `json:"old"`
	// Checkpoint is the workspace that was sealed; its blobs are in the store.
	Checkpoint runner.Checkpoint `json:"checkpoint"`
	// Protected are refs that are never pushed to.
	Protected []string `json:"protected"`
	// BaseBranch is where the pull request goes.
	BaseBranch string `json:"base_branch"`
	// Verified says that GitHub makes the commit that is pushed, with the same
	// files, parent and message, and signs it.
	Verified bool `json:"verified,omitempty"`
}

// seal builds the commit of the workspace as it is now.
func (h *hold) seal(ctx context.Context, args pushArgs, state *runner.State) (seal, error) {
	branch := cmp.Or(state.Variables[varBranch], git.BranchName(h.session.Issue, args.Title, shortID(h.session.ID)))
	pushed := state.Variables[varPushedCommit]
	info, err := h.commitInfo(ctx, args)
	if err != nil {
		return seal{}, err
	}
	info.Parent = pushed
	s := seal{
		Ref: "refs/heads/" + branch, Old: pushed, BaseBranch: h.base.branch,
		Protected: []string{"refs/heads/" + h.base.branch}, Info: info,
		Verified: h.config.Commit.Verified && h.Signer != nil,
	}
	checkpoint, err := h.bench.Snapshot(ctx)
	if err != nil {
		return s, gitFault(err)
	}
	s.Checkpoint = *checkpoint
	sealed, err := h.bench.workspace.Seal(ctx, s.Info)
	switch git.CodeOf(err) {
	case "":
		s.Sealed = sealed
		return s, err
	case git.CodeNoChange, git.CodeRefused, git.CodeTooLarge:
		return s, &refusal{"Nothing was sealed: " + sentence(err)}
	}
	return s, gitFault(err)
}

// commitInfo is what the commit says beside its files: the crew's words, and
// people as the rules of the session name them.
func (h *hold) commitInfo(ctx context.Context, args pushArgs) (git.CommitInfo, error) {
	bot, err := h.bot(ctx)
	if err != nil {
		return git.CommitInfo{}, err
	}
	author, other, rules := bot, h.identity(h.session.RequesterLogin, h.session.RequesterID), h.config.Commit
	if rules.Author == repoconfig.AuthorRequester {
		author, other = other, author
	}
	info := git.CommitInfo{
		Author: author, Committer: bot, When: time.Now().UTC().Truncate(time.Second),
		Message: cmp.Or(args.CommitMessage, args.Title+"\n\n"+args.Body),
	}
	if rules.CoAuthor {
		info.CoAuthors = []git.Identity{other}
	}
	if rules.SignOff {
		info.SignOff = &author
	}
	if url := h.sessionURL(); url != "" {
		info.Trailers = []git.Trailer{{Key: "Session", Value: url}}
	}
	return info, nil
}

// shortID is the part of a session's id that tells two of an issue apart: the
// end, which is random, where the beginning is the time.
func shortID(id string) string {
	id = strings.ReplaceAll(id, "-", "")
	return id[max(0, len(id)-6):]
}

// bot is who makes the commits: the App's account, or whom the operator named.
func (h *hold) bot(ctx context.Context) (git.Identity, error) {
	if h.Bot != (git.Identity{}) {
		return h.Bot, nil
	}
	bot, err := h.host.Bot(ctx)
	return h.identity(bot.Login, bot.ID), err
}

// identity is an account under the address that GitHub keeps for those who
// show none; it is how commits are linked to accounts.
func (h *hold) identity(login string, id int64) git.Identity {
	if h.Identity != nil {
		return h.Identity(login, id)
	}
	domain := "users.noreply.github.com"
	if h.Host != "github.com" {
		domain = "users.noreply." + h.Host
	}
	return git.Identity{Name: login, Email: fmt.Sprintf("%d+%s@%s", id, login, domain)}
}

func sealName(approvalID string) string { return "seal-" + approvalID + ".json" }

// keepSeal stores the seal, with the blobs that the store lacks.
func (h *hold) keepSeal(ctx context.Context, approvalID string, s seal) error {
	checkpoint := s.Checkpoint
	if _, err := h.lease.Append(ctx, runner.Batch{Checkpoint: &checkpoint}); err != nil {
		return err
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = h.lease.PutArtifact(ctx, store.Artifact{Name: sealName(approvalID), MediaType: "application/json", Body: encoded})
	return err
}

// loadSeal returns the seal of an approval.
func (c *Conductor) loadSeal(ctx context.Context, row store.Approval) (seal, error) {
	var s seal
	artifacts, err := c.Store.Artifacts(ctx, row.SessionID)
	if err != nil {
		return s, err
	}
	for _, listed := range artifacts {
		if listed.Name != sealName(row.ID) {
			continue
		}
		artifact, err := c.Store.Artifact(ctx, listed.ID)
		if err != nil {
			return s, err
		}
		return s, json.Unmarshal(artifact.Body, &s)
	}
	return s, fmt.Errorf("approval %s has no sealed commit: %w", row.ID, store.ErrNotFound)
}
