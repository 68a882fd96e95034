package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/runner"
	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
)

// finish says how the run ended, and keeps the work that became no branch.
func (l *localRun) finish(ctx context.Context, id string, followed error) error {
	ended, err := l.store.Session(ctx, id)
	if err != nil {
		return err
	}
	records, err := l.store.Records(ctx, id, 1)
	if err != nil {
		return err
	}
	if ended.State == store.StateCompleted {
		l.finalWords(records)
	}
	l.show.line("")
	branch, err := branchOf(records)
	if err != nil {
		return err
	}
	if branch == "" {
		if err := l.keepWork(ctx, id); err != nil {
			l.show.alarm("The work could not be kept as a patch: " + err.Error())
		}
	}
	l.show.fact("tokens", fmt.Sprintf("%s in %d model calls", report.Tokens(ended.Usage.Total), ended.Usage.Requests))
	l.show.cost(ended.Usage)
	l.show.fact("time", report.Duration(time.Since(l.began)))
	if branch != "" {
		l.show.done("Branch: " + branch)
		l.show.fact("look", fmt.Sprintf("git diff %s...%s", l.base.branch, branch))
	}
	goOn := "go on with: handoff run --continue " + l.files.name
	switch {
	case followed != nil:
		return fmt.Errorf("%w; %s", followed, goOn)
	case ended.State != store.StateCompleted:
		return fmt.Errorf("%s: %s; %s", ended.Code, strings.TrimRight(ended.Reason, "."), goOn)
	case branch == "":
		l.show.line("The crew is done and made no branch.")
	}
	return l.files.clear()
}

// branchOf returns the branch that a session made, as its journal has it.
func branchOf(records []runner.Record) (string, error) {
	state, err := runner.Fold(records)
	if err != nil {
		return "", err
	}
	return state.Variables[outbox.VariableBranch], nil
}

// finalWords shows all of the crew's answer, of which the live view had a line.
func (l *localRun) finalWords(records []runner.Record) {
	events, err := runner.Replay(records, 1)
	if err != nil {
		l.log.Warn("the crew's answer cannot be read", "error", err)
		return
	}
	for _, event := range slices.Backward(events) {
		if event.Kind == runner.EventRunEnded && !event.Nested {
			l.show.line("")
			l.show.quote(plain, event.Text)
			return
		}
	}
}

// keepWork writes the workspace's changes as a patch, if there are any.
func (l *localRun) keepWork(ctx context.Context, id string) error {
	workspace, err := l.base.local.Open(filepath.Join(l.files.data(), "ws", id))
	if git.CodeOf(err) == git.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	diff, err := workspace.Diff(ctx)
	if err != nil || diff == "" {
		return err
	}
	name, err := l.files.keepPatch(redactWith(l.scanner, diff))
	if err != nil {
		return err
	}
	l.show.fact("patch", name)
	return nil
}
