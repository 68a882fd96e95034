package session

import (
	"context"
	"errors"
	"maps"
	"strings"

	"handoff/gitops/git"
	"handoff/runner/repoconfig"
	"handoff/sandbox"
)

// createBox makes a sandbox around a workspace. Where the rules want it, its
// commands see a made-up .git.
func (h *hold) createBox(ctx context.Context, workspace *git.Workspace, spec sandbox.Spec) (sandbox.Sandbox, error) {
	box, err := h.Sandbox.Create(ctx, spec)
	if err != nil || !h.showsGit() {
		return box, err
	}
	return gitBox{box, workspace, git.SyntheticGit{Branch: h.base.branch, Tags: h.base.tags, Of: h.bench.workspace}}, nil
}

// A gitBox is a sandbox that makes a .git for each command alone, and takes it
// away after it, whatever it has become by then; nothing of it is ever read back.
type gitBox struct {
	sandbox.Sandbox
	workspace *git.Workspace
	made      git.SyntheticGit
}

// Exec implements [sandbox.Sandbox].
func (b gitBox) Exec(ctx context.Context, command sandbox.Command) (_ sandbox.Result, err error) {
	if err := b.workspace.PutGit(ctx, b.made); err != nil {
		return sandbox.Result{}, err
	}
	defer func() { err = errors.Join(err, b.workspace.DropGit()) }()
	// With a commit to name, Go may name it in what it builds.
	command.Env = maps.Clone(command.Env)
	delete(command.Env, "GOFLAGS")
	return b.Sandbox.Exec(ctx, command)
}

// showsGit says whether commands see a made-up .git.
func (h *hold) showsGit() bool { return h.config.Git == repoconfig.GitSynthetic }

// findTags finds the tags of the base commit, which a made-up .git has. They
// are pinned with the base: what a build is called must not change on the way.
func (h *hold) findTags(ctx context.Context) (err error) {
	if !h.showsGit() {
		return nil
	}
	if variables := h.session.Variables; variables[varBaseCommit] != "" {
		h.base.tags = strings.Fields(variables[varBaseTags])
		return nil
	}
	h.base.tags, err = h.Cache.Tags(ctx, h.base.remote, h.base.commit)
	return gitFault(err)
}
