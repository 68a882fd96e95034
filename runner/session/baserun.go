package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"handoff/gitops/git"
	"handoff/runner/verdict"
)

// baseRunAge is how long the result of a base is kept. Few sessions start from
// a commit that is older, and one more run is all that they lose.
const baseRunAge = 30 * 24 * time.Hour

// baseRuns returns what the tests come to on the base. They are run only where
// failures of the sealed commit are to be told apart, and once for all sessions
// that start from the same commit; otherwise what is known already is enough.
func (h *hold) baseRuns(ctx context.Context, sealed []verdict.Run) ([]verdict.Run, error) {
	recipe, err := h.recipe(ctx)
	if err != nil {
		return nil, err
	}
	if sealed[0].Outcome == verdict.Failed && sealed[len(sealed)-1].Outcome != verdict.Passed {
		return h.sharedBaseRuns(ctx, recipe)
	}
	kept, err := h.lease.BaseRun(ctx, h.base.commit, recipe)
	if err != nil || kept == nil {
		return nil, err
	}
	return decodeRuns(kept)
}

// sharedBaseRuns returns the result that is kept, makes it, or waits for the
// session that makes it, on whichever node that is.
func (h *hold) sharedBaseRuns(ctx context.Context, recipe string) ([]verdict.Run, error) {
	for {
		known, err := h.lease.ClaimBaseRun(ctx, h.base.commit, recipe)
		switch {
		case err != nil:
			return nil, err
		case known.Result != nil:
			return decodeRuns(known.Result)
		case known.Mine:
			return h.makeBaseRuns(ctx, recipe)
		}
		h.progress.hostDoes("waiting for the tests of the base, which another session runs")
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

// makeBaseRuns tests the base, once more if it fails, and keeps the result if
// the commit would come to the same again. A limit or a want of time may be the
// machine's, and holds for this session alone.
func (h *hold) makeBaseRuns(ctx context.Context, recipe string) ([]verdict.Run, error) {
	h.progress.hostDoes("testing the base, to tell new failures from old ones")
	var runs []verdict.Run
	for len(runs) < 2 {
		run, err := h.runBase(ctx)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run.Run)
		if !run.Conclusive() {
			return runs, nil
		}
		if run.Outcome == verdict.Passed {
			break
		}
	}
	return runs, h.keepBaseRuns(ctx, recipe, runs)
}

func (h *hold) keepBaseRuns(ctx context.Context, recipe string, runs []verdict.Run) error {
	encoded, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	return h.lease.KeepBaseRun(ctx, h.base.commit, recipe, encoded)
}

// keepPassed keeps that the base passes. One run that fails is not kept, because
// nobody has seen yet whether it always does.
func (h *hold) keepPassed(ctx context.Context, run verdict.Run) error {
	if run.Outcome != verdict.Passed {
		return nil
	}
	recipe, err := h.recipe(ctx)
	if err != nil {
		return err
	}
	return h.keepBaseRuns(ctx, recipe, []verdict.Run{run})
}

func (h *hold) runBase(ctx context.Context) (testRun, error) {
	return h.testRun(ctx, "base", func(ctx context.Context, dir string) (*git.Workspace, error) {
		return h.base.repository.Checkout(ctx, h.base.commit, dir)
	})
}

func decodeRuns(encoded json.RawMessage) (runs []verdict.Run, err error) {
	return runs, json.Unmarshal(encoded, &runs)
}

// recipe names whatever decides what tests come to on a commit besides the
// commit: the commands, their time, and the world in which they run.
func (h *hold) recipe(ctx context.Context) (string, error) {
	capabilities, err := h.Sandbox.Probe(ctx)
	if err != nil {
		return "", err
	}
	encoded, err := json.Marshal(map[string]any{
		"setup": h.config.Setup, "test": h.config.Test, "timeout": h.config.Timeout,
		"git": h.config.Git, "tags": h.base.tags,
		"driver": capabilities.Driver, "tier": capabilities.Tier, "mounts": h.ReadOnly, "env": h.Env,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16]), nil
}
