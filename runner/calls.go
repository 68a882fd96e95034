package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"handoff/agents"
)

// A job is one call on its way to its outcome.
type job struct {
	call *CallState
	tool agents.Tool
	use  agents.Call
	// outcome is set when the call is settled without running.
	outcome *ToolOutcome
	// ask is set when a maintainer must be asked, waits when one was.
	ask   *approvalRequested
	waits bool
	// agent is set for calls of agents; thread is then the nested run's.
	agent  string
	thread string
	input  string
}

// parallel says whether the job may run beside others: it touches nothing.
func (j *job) parallel() bool {
	return j.outcome != nil || j.agent == "" && effectOf(j.tool) == agents.EffectNone
}

func effectOf(tool agents.Tool) agents.Effect {
	if tool.Effects != nil {
		return agents.EffectExternal
	}
	return cmp.Or(tool.Effect, agents.EffectNone)
}

// runCalls settles the calls of the pending turn, handoffs apart. Neighbours
// without effect run at once; a call with an effect waits for those before it
// and those after it wait for it (rule R20). It says whether any call waits
// for a decision; the others of the turn have then run (rule R92).
func (l *loop) runCalls(ctx context.Context, run *RunState, agent agents.Agent) (waiting bool, err error) {
	var group []*job
	var asks []draft
	for _, call := range run.Pending.Calls {
		if call.Outcome != nil || call.Name == HandoffTool {
			continue
		}
		job, err := l.prepare(ctx, run, agent, call)
		switch {
		case err != nil:
			return false, err
		case job.ask != nil:
			asks = append(asks, draft{run: run, kind: RecordApprovalRequested, payload: *job.ask})
			waiting = true
		case job.waits:
			waiting = true
		case job.parallel():
			group = append(group, job)
		default:
			if err := l.runGroup(ctx, run, group); err != nil {
				return false, err
			}
			group = nil
			waits, err := l.runAlone(ctx, run, job)
			if err != nil {
				return false, err
			}
			waiting = waiting || waits
		}
	}
	if err := l.runGroup(ctx, run, group); err != nil {
		return false, err
	}
	l.later = append(l.later, asks...)
	if waiting && run.Paused == pausedApproval {
		err = l.append(ctx, Batch{})
	}
	return waiting, err
}

// runGroup runs jobs without effect, a few at once, and records each outcome
// as it comes. The first that raises cancels the others.
func (l *loop) runGroup(ctx context.Context, run *RunState, jobs []*job) error {
	switch len(jobs) {
	case 0:
		return nil
	case 1: // the usual case
		return cmp.Or(l.performAndRecord(ctx, run, jobs[0]), ctx.Err())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make(chan performed, len(jobs))
	go l.performAll(ctx, cancel, jobs, results)
	var raised error
	for batch := collect(results); len(batch) > 0; batch = collect(results) {
		drafts, variables := make([]draft, 0, len(batch)), agents.Variables{}
		for _, done := range batch {
			if done.started {
				drafts = append(drafts, outcomeDraft(run, done.outcome))
				maps.Copy(variables, done.outcome.Variables)
			}
			raised = cmp.Or(raised, done.raised)
		}
		if err := l.append(ctx, Batch{Variables: variables}, drafts...); err != nil {
			cancel(err)
			for range results { // wait: nothing may run once the loop has gone
			}
			return err
		}
	}
	return cmp.Or(raised, ctx.Err())
}

// errSibling cancels the other calls of a turn when one raised.
var errSibling = errors.New("another call of the turn failed")

// performAll runs the jobs and closes results.
func (l *loop) performAll(ctx context.Context, cancel context.CancelCauseFunc, jobs []*job, results chan<- performed) {
	var group errgroup.Group
	group.SetLimit(l.config.MaxToolConcurrency)
	for _, job := range jobs {
		group.Go(func() error {
			// The loop's own faults are the loop's, in whichever goroutine.
			if err := Contain(func() error { l.performOne(ctx, cancel, job, results); return nil }); err != nil {
				results <- performed{raised: err}
			}
			return nil
		})
	}
	_ = group.Wait()
	close(results)
}

// performOne runs a job. One that raises cancels the others before its place
// is free, so that none starts after it (rule R23).
func (l *loop) performOne(ctx context.Context, cancel context.CancelCauseFunc, job *job, results chan<- performed) {
	done := l.perform(ctx, job)
	if done.raised != nil {
		cancel(errSibling)
	}
	results <- done
}

// collect waits for a result and takes those that are there as well, so that
// they are recorded in one append.
func collect(results <-chan performed) []performed {
	first, ok := <-results
	if !ok {
		return nil
	}
	batch := []performed{first}
	for {
		select {
		case next, ok := <-results:
			if !ok {
				return batch
			}
			batch = append(batch, next)
		default:
			return batch
		}
	}
}

// runAlone runs a call with an effect, or of an agent. It says whether the
// call waits.
func (l *loop) runAlone(ctx context.Context, run *RunState, job *job) (waits bool, err error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case job.agent != "":
		return l.runNested(ctx, run, job)
	case job.call.Intent != nil:
		done, err := l.recover(ctx, run, job)
		if err != nil || done {
			return job.waits, err
		}
	default:
		started, err := l.intend(ctx, run, job)
		if err != nil || !started {
			return false, err
		}
	}
	if job.call.Outbox {
		return false, l.await(ctx, run, job)
	}
	return false, l.performAndRecord(ctx, run, job)
}

// performAndRecord runs a job and records its outcome, if it came to one.
func (l *loop) performAndRecord(ctx context.Context, run *RunState, job *job) error {
	done := l.perform(ctx, job)
	if !done.started {
		return ctx.Err()
	}
	return l.record(ctx, run, job, done)
}

// intend records that the call is about to run. It says whether it may.
func (l *loop) intend(ctx context.Context, run *RunState, job *job) (bool, error) {
	intent, batch := toolIntent{Call: job.call.Key}, Batch{}
	var err error
	if job.tool.Prepare != nil {
		intent.Intent, err = job.tool.Prepare(ctx, job.use)
	}
	if intent.Intent.Tree == "" && effectOf(job.tool) == agents.EffectWorkspace {
		intent.Intent.Tree = l.state.Tree
	}
	if err == nil && job.tool.Effects != nil {
		intent.Outbox = true
		batch.Effects, err = l.effects(ctx, job)
	}
	if err != nil {
		refused := l.refusal(job.call, l.errorText(err))
		if err := l.append(ctx, Batch{}, outcomeDraft(run, *refused)); err != nil {
			return false, err
		}
		return false, raise(job, err)
	}
	return true, l.append(ctx, batch, draft{run: run, kind: RecordToolIntent, payload: intent})
}

func (l *loop) effects(ctx context.Context, job *job) ([]agents.EffectRequest, error) {
	if l.Hooks.Effects == nil {
		return nil, errors.New("nothing outside can be changed from here")
	}
	return job.tool.Effects(ctx, job.use)
}

// await waits for the outbox, whose own record of the outcome is read back. An
// outbox that leaves the record to us gets it written.
func (l *loop) await(ctx context.Context, run *RunState, job *job) error {
	if l.Hooks.Effects == nil {
		return errors.New("this run was started with an outbox and cannot go on without one")
	}
	// Waiting is not active time: what a maintainer allowed is not given up
	// because GitHub makes us wait.
	l.watch.pause()
	result, state, err := l.Hooks.Effects.Await(ctx, job.call.Key)
	l.watch.resume()
	if err != nil {
		return fmt.Errorf("wait for the outbox: %w", err)
	}
	if err := l.reload(ctx); err != nil || job.call.Outcome != nil {
		return err
	}
	return l.record(ctx, run, job, performed{started: true, outcome: l.outcomeOf(job, result, state, 0)})
}

// record appends the outcome of a call, with the workspace as a call that may
// change it left it.
func (l *loop) record(ctx context.Context, run *RunState, job *job, done performed) error {
	batch := Batch{Variables: done.outcome.Variables}
	if job.outcome == nil && effectOf(job.tool) == agents.EffectWorkspace && l.Hooks.Workspace != nil {
		// The call has run: its files are recorded even if the work was cancelled.
		checkpoint, err := l.Hooks.Workspace.Snapshot(context.WithoutCancel(ctx))
		unkept, tooMuch := errors.AsType[*Unkept](err)
		switch {
		case tooMuch:
			done.outcome.IsError, done.outcome.Effect = true, EffectFailed
			done.outcome.Output = prompt("unkept", agents.Variables{"reason": unkept.Reason, "output": done.outcome.Output})
		case err != nil:
			return fmt.Errorf("record the workspace: %w", err)
		case checkpoint != nil:
			batch.Checkpoint, done.outcome.Tree = checkpoint, checkpoint.Tree
		}
	}
	if err := l.append(ctx, batch, outcomeDraft(run, done.outcome)); err != nil {
		return err
	}
	return done.raised
}
