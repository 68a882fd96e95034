package runner

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"handoff/agents"
)

// root is the run that a run's budgets belong to.
func (l *loop) root(run *RunState) *RunState {
	for run.Parent != "" {
		run = l.state.Runs[run.Parent]
	}
	return run
}

// A budget is one thing that can run out.
type budget struct {
	name  string
	code  agents.Code
	used  int64
	limit int64
	shown func(int64) string
}

// budgets are the run's, in the order in which they are checked. The number of
// turns is the run's own; the others are those of its root.
func (l *loop) budgets(run *RunState) [4]budget {
	root := l.root(run)
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	return [...]budget{
		{"turns", agents.CodeLimitTurns, int64(run.Turn), int64(l.config.MaxTurns), count},
		{"tokens", agents.CodeLimitTokens, root.Usage.Total, l.config.MaxTotalTokens, count},
		{"dollars", agents.CodeLimitCost, root.Usage.CostMicros, l.config.MaxCostMicros, func(n int64) string {
			return fmt.Sprintf("%.2f", float64(n)/1e6)
		}},
		{"minutes", agents.CodeLimitTime, l.active(), l.config.RunTimeout.Milliseconds(), func(n int64) string {
			return fmt.Sprintf("%.1f", (time.Duration(n) * time.Millisecond).Minutes())
		}},
	}
}

// checkLimits fails when a budget is used up. The number of turns counts
// before a model call only: the tools of the last turn still run.
func (l *loop) checkLimits(run *RunState, beforeCall bool) error {
	for _, b := range l.budgets(run) {
		if b.used < b.limit || (b.code == agents.CodeLimitTurns && !beforeCall) {
			continue
		}
		return &agents.Error{Code: b.code, Message: fmt.Sprintf(
			"The session has used %s of its %s %s. What was done so far is kept; raise the limit or ask again to go on from here.",
			b.shown(b.used), b.shown(b.limit), b.name)}
	}
	return nil
}

// warn tells the agent once for each budget that 80 % are used (rule R79), and
// once that it goes round in circles (rule R78).
func (l *loop) warn(ctx context.Context, run *RunState) error {
	var drafts []draft
	for _, b := range l.budgets(run) {
		if run.warned[b.name] || b.used < b.limit-b.limit/5 {
			continue
		}
		drafts = append(drafts, draft{run: run, kind: RecordNoteAdded, payload: noteAdded{
			Kind: noteBudget, Budget: b.name,
			Text: prompt("budget", agents.Variables{"used": b.shown(b.used), "limit": b.shown(b.limit), "budget": b.name}),
		}})
	}
	if run.repeats >= l.config.LoopAfter && !run.loopTold {
		tool, _, _ := strings.Cut(run.repeated, "\x00")
		drafts = append(drafts, draft{run: run, kind: RecordNoteAdded, payload: noteAdded{
			Kind: noteLoop, Text: prompt("loop", agents.Variables{"tool": tool, "times": strconv.Itoa(run.repeats)}),
		}})
	}
	if len(drafts) == 0 {
		return nil
	}
	return l.append(ctx, Batch{}, drafts...)
}

// checkLoop ends a run whose model was told that it repeats itself and did so
// again.
func (l *loop) checkLoop(run *RunState) error {
	if !run.loopTold || run.repeats < l.config.LoopAfter {
		return nil
	}
	tool, _, _ := strings.Cut(run.repeated, "\x00")
	return &agents.Error{Code: agents.CodeLimitLoop, Message: fmt.Sprintf(
		"The agent called %s with the same arguments %d times in a row. What was done so far is kept; say what it should do differently and ask again.", tool, run.repeats)}
}
