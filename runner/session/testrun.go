package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/runner/verdict"
	"handoff/sandbox"
)

// A testRun is one run of the configured tests, with what it printed.
type testRun struct {
	verdict.Run
	// output is that of the command that failed, or of the last one, without
	// secrets; duration is what the tests took, without the setup.
	output   string
	duration time.Duration
}

// testRun checks files out, runs the setup and the tests on them, and removes
// them again.
func (h *hold) testRun(ctx context.Context, name string, checkout func(context.Context, string) (*git.Workspace, error)) (_ testRun, err error) {
	dir := filepath.Join(h.workspaceDir(h.session.ID), name)
	if err := sandbox.RemoveTree(dir); err != nil {
		return testRun{}, err
	}
	workspace, err := checkout(ctx, dir)
	if err != nil {
		return testRun{}, gitFault(err)
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTree(dir)) }()
	cache := filepath.Join(dir, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return testRun{}, err
	}
	if err := h.seedCache(ctx, cache); err != nil {
		return testRun{}, err
	}
	box, err := h.createBox(ctx, workspace, h.spec(h.session.ID+"-"+name, workspace.Tree(), cache, filepath.Join(h.workspaceDir(h.session.ID), "logs")))
	if err != nil {
		return testRun{}, err
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
	if _, err := os.Stat(shared); err != nil {
		return nil // swept since
	}
	return copyCache(shared, cache)
}

// runTests runs the setup and then the tests, up to the first command that
// fails.
func (h *hold) runTests(ctx context.Context, box sandbox.Sandbox, cache string) (testRun, error) {
	run := testRun{Run: verdict.Run{Outcome: verdict.Passed}}
	for _, command := range h.config.Setup {
		result, _, err := h.testCommand(ctx, box, cache, command, &run)
		if err != nil {
			return run, err
		}
		if !result.OK() {
			run.Outcome, run.Detail = verdict.SetupFailed, ending(result)
			return run, nil
		}
	}
	for i, command := range h.config.Test {
		result, log, err := h.testCommand(ctx, box, cache, command, &run)
		if err != nil {
			return run, err
		}
		run.Command, run.ExitCode = i, result.ExitCode
		run.duration += result.Duration.Round(time.Millisecond)
		if run.Outcome = outcomeOf(result); run.Outcome == verdict.Failed {
			names, complete := log.Failures()
			run.Failures, run.Named = h.cleanNames(box, names), complete && len(names) > 0
		}
		if run.Outcome != verdict.Passed {
			run.Detail = result.Detail
			return run, nil
		}
	}
	return run, nil
}

// testCommand runs one command and reads its output as it comes: the whole of
// it, of which a result holds only the beginning and the end.
func (h *hold) testCommand(ctx context.Context, box sandbox.Sandbox, cache, command string, run *testRun) (sandbox.Result, *verdict.Log, error) {
	log := verdict.NewLog()
	result, err := box.Exec(ctx, sandbox.Command{
		Shell: command, Env: environment(box, cache),
		// A log takes whatever it is given.
		OnOutput: func(output []byte) { _, _ = log.Write(output) },
	})
	if err == nil && result.Reason == sandbox.ReasonCanceled {
		err = context.Cause(ctx)
	}
	run.output = strings.TrimSpace(h.redact(box.Normalize(result.Output)))
	return result, log, err
}

// cleanNames takes out of names what belongs to the host: secrets, and the paths
// of this one checkout, with which no name would be the same in another run.
func (h *hold) cleanNames(box sandbox.Sandbox, names []string) []string {
	clean := make([]string, 0, len(names))
	for _, name := range names {
		if name = h.redact(box.Normalize(name)); !slices.Contains(clean, name) {
			clean = append(clean, name)
		}
	}
	return clean
}

// outcomeOf says how a test command ended.
func outcomeOf(result sandbox.Result) verdict.Outcome {
	switch {
	case result.OK():
		return verdict.Passed
	case result.Reason == sandbox.ReasonExited:
		return verdict.Failed
	case result.Reason == sandbox.ReasonTimeout:
		return verdict.TimedOut
	case result.Reason == sandbox.ReasonSandbox:
		return verdict.Broken
	}
	return verdict.Limited
}
