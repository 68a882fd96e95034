package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"handoff/runner/repoconfig"
	"handoff/runner/store"
	"handoff/runner/verdict"
)

// neededPermissions are those that a session uses, by GitHub's name, in the
// order in which they are told.
var neededPermissions = []string{"contents", "issues", "pull_requests", "checks"}

// A checked is what the host found out without any model.
type checked struct {
	Branch, Commit string
	// Missing are permissions that the account's owner has not granted to the
	// App; AskedAll says that they could be looked at.
	Missing  []string
	AskedAll bool
	Setup    []string
	// Limits says what the sandbox cannot do, "" for nothing; NoSandbox that
	// there is none.
	Limits    string
	NoSandbox bool
	// Tests are the configured commands, Run what they came to on the base in
	// the time of Duration, and Output what a run that failed printed last.
	Tests    []string
	Run      verdict.Run
	Duration time.Duration
	Output   string
	Caps     repoconfig.Limits
	// Timeout bounds each command.
	Timeout time.Duration
}

// faults counts what stands in the way of a session.
func (c checked) faults() int {
	count := len(c.Missing)
	if c.NoSandbox {
		return count + 1
	}
	if len(c.Tests) > 0 && c.Run.Outcome != verdict.Passed {
		count++
	}
	return count
}

// check tries out what a session needs: when it is called, the configuration
// was read, the repository fetched and the setup run, each of which would have
// ended the session with its reason. What is left are the permissions for
// later, and the tests on the base.
func (h *hold) check(ctx context.Context) error {
	if err := h.lease.SetState(ctx, store.StateRunning, ""); err != nil {
		return err
	}
	stopProgress := h.progress.keep(ctx)
	defer stopProgress()
	found := checked{
		Branch: h.beginsOn(), Commit: h.base.commit[:12], Setup: h.config.Setup, Limits: h.bench.limits, Caps: h.config.Limits, Timeout: h.config.Timeout,
		NoSandbox: h.bench.box == nil, Tests: h.config.Test,
	}
	if err := h.checkPermissions(ctx, &found); err != nil {
		return err
	}
	if len(h.config.Test) > 0 && !found.NoSandbox {
		tests, err := h.testBase(ctx)
		if err != nil {
			return err
		}
		found.Run, found.Duration = tests.Run, tests.duration
		if tests.Outcome != verdict.Passed {
			found.Output = tail(tests.output, maxTestOutput)
		}
	}
	return h.finishCheck(ctx, found)
}

// beginsOn is the branch that the session begins with: that of the open pull
// request, or the default branch.
func (h *hold) beginsOn() string { return cmp.Or(h.base.target, h.base.branch) }

// testBase runs the tests on what the session begins with.
func (h *hold) testBase(ctx context.Context) (testRun, error) {
	h.progress.hostDoes("testing the base")
	if err := h.progress.edit(ctx, "", nil); err != nil {
		return testRun{}, err
	}
	run, err := h.runBase(ctx)
	if err != nil {
		return run, err
	}
	return run, h.keepPassed(ctx, run.Run)
}

func (h *hold) checkPermissions(ctx context.Context, found *checked) error {
	if h.Granted == nil {
		return nil
	}
	granted, err := h.Granted(ctx, h.session.InstallationID)
	if err != nil {
		return hostFault(err)
	}
	found.AskedAll = true
	for _, name := range neededPermissions {
		if granted[name] != "write" {
			found.Missing = append(found.Missing, name)
		}
	}
	return nil
}

// finishCheck ends the session with what was found. A session whose checks
// found something has completed all the same: it did what it was asked.
func (h *hold) finishCheck(ctx context.Context, found checked) error {
	var result strings.Builder
	// The data are plain, so a failure is a defect of the template.
	if err := templates.ExecuteTemplate(&result, "check.txt", found); err != nil {
		return err
	}
	e := end{state: store.StateCompleted, headline: "Everything is ready", result: result.String(), next: "Comment `/copilot` and what you want done."}
	switch count := found.faults(); {
	case count == 1:
		e.headline, e.next = "One thing is not as it should be", "Put it right and comment `/copilot check` again."
	case count > 1:
		e.headline, e.next = fmt.Sprintf("%d things are not as they should be", count), "Put them right and comment `/copilot check` again."
	}
	return h.finish(ctx, e)
}
