package session

import (
	"context"

	"handoff/gitops/git"
	"handoff/runner/approval"
	"handoff/runner/verdict"
)

// maxTestOutput is how much of a test run's output a prompt shows, in bytes.
const maxTestOutput = 8_000

// verify runs the configured tests on a clean checkout of the sealed commit.
// When they fail it runs them once more on another, to tell what is flaky, and
// on the base, to tell what is new. Nothing that the crew left behind takes
// part: not its files, not its caches, not its choice of a command.
func (h *hold) verify(ctx context.Context, sealed git.Sealed) (approval.Verification, error) {
	verification := approval.Verification{Commands: h.config.Test}
	switch {
	case len(h.config.Test) == 0:
		return verification, nil
	case h.bench.box == nil:
		verification.NotRun = h.bench.limits
		return verification, nil
	}
	h.progress.hostDoes("testing the sealed commit")
	first, err := h.testSealed(ctx, sealed)
	if err != nil {
		return verification, err
	}
	verification.Output, verification.Duration = tail(first.output, maxTestOutput), first.duration
	runs := []verdict.Run{first.Run}
	if first.Outcome == verdict.Failed {
		h.progress.hostDoes("testing the sealed commit once more, to tell what is flaky")
		second, err := h.testSealed(ctx, sealed)
		if err != nil {
			return verification, err
		}
		runs = append(runs, second.Run)
	}
	base, err := h.baseRuns(ctx, runs)
	if err != nil {
		return verification, err
	}
	verification.Verdict = verdict.Judge(runs, base)
	return verification, nil
}

func (h *hold) testSealed(ctx context.Context, sealed git.Sealed) (testRun, error) {
	return h.testRun(ctx, "sealed", func(ctx context.Context, dir string) (*git.Workspace, error) {
		return h.bench.workspace.CheckoutSealed(ctx, sealed, dir)
	})
}
