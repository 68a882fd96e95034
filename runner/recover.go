package runner

import (
	"context"
	"fmt"

	"handoff/agents"
)

// recover settles a call whose intent was recorded and whose outcome was not:
// the process died while it ran. It says whether the call is settled, or waits
// for a person; otherwise it is to be run again.
//
//	outbox              → ask the outbox again, it knows
//	query or hash: done → done_reconciled, not run again
//	query: not done     → run again with the same idempotency key
//	query: conflict     → a person decides
//	workspace           → reset to the last recorded tree, run again
//	external otherwise  → unknown, never run again, the model is told
func (l *loop) recover(ctx context.Context, run *RunState, job *job) (settled bool, err error) {
	call := job.call
	if call.Outbox {
		return false, nil
	}
	if call.Asked != nil && call.Asked.Conflict != "" && call.Decision != nil && call.Decision.Kind == DecisionApproved {
		return false, nil // a person said to run it again
	}
	external := effectOf(job.tool) == agents.EffectExternal
	if job.tool.Query != nil && (job.tool.Reconcile == agents.ReconcileQuery || job.tool.Reconcile == agents.ReconcileHash) {
		result, done, err := job.tool.Query(ctx, job.use, *call.Intent)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && external:
			return true, l.askPerson(ctx, run, job, err)
		case err == nil && done:
			outcome := l.outcomeOf(job, result, EffectReconciled, 0)
			return true, l.record(ctx, run, job, performed{started: true, outcome: outcome})
		case external:
			return false, nil
		}
	}
	if external {
		outcome := ToolOutcome{
			CallKey: call.Key, IsError: true, Effect: EffectUnknown,
			Output: prompt("unknown", agents.Variables{"tool": call.Name}),
		}
		return true, l.append(ctx, Batch{}, outcomeDraft(run, outcome))
	}
	if l.Hooks.Workspace != nil {
		if err := l.Hooks.Workspace.Reset(ctx, l.state.Tree); err != nil {
			return false, fmt.Errorf("reset the workspace: %w", err)
		}
	}
	return false, nil
}

// askPerson asks about a half-done call that the outside world contradicts.
func (l *loop) askPerson(ctx context.Context, run *RunState, job *job, conflict error) error {
	job.waits = true
	return l.append(ctx, Batch{}, draft{run: run, kind: RecordApprovalRequested, payload: approvalRequested{
		Call: job.call.Key, Tool: job.call.Name, Hash: ArgumentHash(job.call.Name, job.call.Arguments),
		Conflict: l.redact("it was interrupted while it ran, and what is found now does not fit: " + conflict.Error()),
	}})
}
