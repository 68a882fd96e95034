package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/runner/approval"
	"handoff/sandbox"
)

// maxTestOutput is how much of a test run's output a prompt shows, in bytes.
const maxTestOutput = 8_000

// verify runs the configured tests on a clean checkout of the sealed commit.
// When they fail, it runs them on the base as well, to tell new failures from
// old ones. Nothing that the crew left behind takes part: not its files, not
// its caches, not its choice of a command.
func (h *hold) verify(ctx context.Context, sealed git.Sealed) (approval.Verification, error) {
	commands := h.config.Test
	switch {
	case len(commands) == 0:
		return approval.Verification{}, nil
	case h.bench.box == nil:
		return approval.Verification{Commands: commands, NotRun: h.bench.limits}, nil
	}
	h.progress.hostDoes("testing the sealed commit")
	result, err := h.testRun(ctx, "sealed", func(ctx context.Context, dir string) (*git.Workspace, error) {
		return h.bench.workspace.CheckoutSealed(ctx, sealed, dir)
	})
	if err != nil || result.Passed {
		return result, err
	}
	h.progress.hostDoes("testing the base, to tell new failures from old ones")
	base, err := h.testRun(ctx, "base", func(ctx context.Context, dir string) (*git.Workspace, error) {
		return h.base.repository.Checkout(ctx, h.base.commit, dir)
	})
	if err != nil {
		return result, err
	}
	result.BaseKnown, result.BasePassed = true, base.Passed
	before := failedTests(base.Output)
	for _, name := range failedTests(result.Output) {
		if slices.Contains(before, name) {
			result.OldFailures = append(result.OldFailures, name)
		} else {
			result.NewFailures = append(result.NewFailures, name)
		}
	}
	result.Output = tail(result.Output, maxTestOutput)
	return result, nil
}

// testRun checks files out, runs the setup and the tests on them, and removes
// them again.
func (h *hold) testRun(ctx context.Context, name string, checkout func(context.Context, string) (*git.Workspace, error)) (_ approval.Verification, err error) {
	dir := filepath.Join(h.workspaceDir(h.session.ID), name)
	if err := sandbox.RemoveTree(dir); err != nil {
		return approval.Verification{}, err
	}
	workspace, err := checkout(ctx, dir)
	if err != nil {
		return approval.Verification{}, gitFault(err)
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTree(dir)) }()
	cache := filepath.Join(dir, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return approval.Verification{}, err
	}
	if err := h.seedCache(ctx, cache); err != nil {
		return approval.Verification{}, err
	}
	box, err := h.Sandbox.Create(ctx, h.spec(h.session.ID+"-"+name, workspace.Tree(), cache, filepath.Join(h.workspaceDir(h.session.ID), "logs")))
	if err != nil {
		return approval.Verification{}, err
	}
	defer box.Close()
	return h.runTests(ctx, box, cache)
}

// seedCache copies what the setup put into its caches.
func (h *hold) seedCache(ctx context.Context, cache string) error {
	if len(h.config.Setup) == 0 {
		return nil
	}
	key, err := h.setupKey(ctx)
	if err != nil {
		return err
	}
	shared := h.setupDir(h.session.InstallationID, h.session.RepositoryID, key)
	if _, err := os.Stat(shared); err != nil {
		// Another node made the setup; the commands below fill the cache anew.
		return nil
	}
	unlock, err := lockSetup(ctx, shared)
	if err != nil {
		return err
	}
	defer unlock()
	return copyCache(shared, cache)
}

func (h *hold) runTests(ctx context.Context, box sandbox.Sandbox, cache string) (approval.Verification, error) {
	verification := approval.Verification{Commands: h.config.Test, Passed: true}
	for i, command := range slices.Concat(h.config.Setup, h.config.Test) {
		result, err := box.Exec(ctx, sandbox.Command{Shell: command, Env: environment(box, cache)})
		if err != nil {
			return verification, err
		}
		if result.Reason == sandbox.ReasonCanceled {
			return verification, context.Cause(ctx)
		}
		verification.Output = strings.TrimSpace(h.redact(box.Normalize(result.Output)))
		if i >= len(h.config.Setup) {
			verification.Duration += result.Duration.Round(time.Millisecond)
		}
		if result.OK() {
			continue
		}
		verification.Passed, verification.ExitCode = false, result.ExitCode
		if i < len(h.config.Setup) {
			verification.NotRun = "the setup fails on this commit (" + ending(result) + ")"
		}
		return verification, nil
	}
	return verification, nil
}

// failure matches the lines with which common test runners name a test that
// failed: go test, pytest, cargo, JUnit-like runners and TAP.
var failure = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: (\S+)|FAILED (\S+)|test (\S+) \.\.\. FAILED|not ok \d+ -? ?(.+))`)

// failedTests returns the names of the tests that an output says failed.
func failedTests(output string) []string {
	var names []string
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		name := strings.TrimSpace(strings.Join(match[1:], ""))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
