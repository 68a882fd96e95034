package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/outbox"
	"handoff/runner/store"
)

// firstAgent is who takes every task.
const firstAgent = "copilot"

// run lets the crew work until there is an answer, an end, or a question that
// only a maintainer can answer.
func (h *hold) run(ctx context.Context) error {
	if err := h.lease.SetState(ctx, store.StateRunning, ""); err != nil {
		return err
	}
	stopProgress := h.progress.keep(ctx)
	defer stopProgress()
	for {
		outcome, err := runner.Run(ctx, h.request())
		if err != nil {
			return err
		}
		// The outbox may have recorded a push before anybody waited for it.
		if err := h.published(ctx); err != nil {
			return err
		}
		switch outcome.Status {
		case runner.StatusFinal:
			return h.finishFinal(ctx, outcome)
		case runner.StatusEnded:
			return h.finishEnded(ctx, outcome)
		case runner.StatusStopped:
			return errShutdown
		case runner.StatusInterrupted:
			parked, err := h.ask(ctx, outcome)
			if parked || err != nil {
				return err
			}
		default:
			return fmt.Errorf("the loop returned with the unknown status %q", outcome.Status)
		}
	}
}

// errShutdown gives a session back whose node is going down.
var errShutdown = errors.New("the node is shutting down")

// request is the session as package runner takes it.
func (h *hold) request() runner.RunRequest {
	limits := h.config.Limits
	return runner.RunRequest{
		Session: h.session.ID,
		Journal: h.lease,
		Crew:    h.crew,
		Start:   h.start(),
		Tools:   h.bench.tools,
		Model:   h.Model,
		Config: runner.RunConfig{
			MaxTurns: limits.Turns, MaxHandoffs: limits.Handoffs, MaxTotalTokens: limits.Tokens,
			MaxCostMicros: limits.CostMicros, RunTimeout: limits.ActiveTime, ToolTimeout: h.config.Timeout + time.Minute,
		},
		Input: runner.Input{
			ID: h.session.CommandID, Author: h.session.RequesterLogin,
			Text: h.input(), Task: h.session.Task,
		},
		Variables: h.variables(),
		Hooks: runner.Hooks{
			OnEvent:      h.onEvent,
			PendingInput: h.pendingInput,
			SoftStop:     h.isStopping,
			Redact:       h.bench.redact,
			RedactCall:   h.Scanner.RedactKnown,
			Effects:      awaiter{h},
			Workspace:    h.bench,
		},
	}
}

// start is who takes the task; a run that goes on stays with whoever is active.
func (h *hold) start() string {
	if h.lease.Session().NextSeq > 1 {
		return ""
	}
	return firstAgent
}

func (h *hold) onEvent(event runner.Event) {
	h.progress.note(event)
	if h.OnEvent != nil {
		h.OnEvent(h.session.ID, event)
	}
}

// pendingInput gives the crew what people wrote since.
func (h *hold) pendingInput(ctx context.Context) ([]runner.Input, error) {
	messages, err := h.lease.PendingMessages(ctx)
	inputs := make([]runner.Input, len(messages))
	for i, message := range messages {
		inputs[i] = runner.Input{Message: message.ID, Author: message.Actor, Text: message.Actor + " adds:\n\n" + message.Text}
	}
	return inputs, err
}

// An awaiter lets package runner wait for what the outbox does.
type awaiter struct{ *hold }

// Await implements [runner.Effects].
func (a awaiter) Await(ctx context.Context, callKey string) (agents.Result, string, error) {
	if err := a.lease.SetState(ctx, store.StatePublishing, ""); err != nil {
		return agents.Result{}, "", err
	}
	changed, stop := a.Store.Notify(store.TopicOutbox, store.TopicJournal)
	defer stop()
	for {
		done, err := a.settled(ctx, callKey)
		if err != nil {
			return agents.Result{}, "", err
		}
		if done {
			// The outbox has recorded the outcome; this one counts only if it
			// could not.
			unknown := agents.Result{Output: "It is not known what became of this.", IsError: true}
			return unknown, runner.EffectUnknown, errors.Join(a.published(ctx), a.lease.SetState(ctx, store.StateRunning, ""))
		}
		select {
		case <-ctx.Done():
			return agents.Result{}, "", context.Cause(ctx)
		case <-changed:
		case <-time.After(pollInterval):
		}
	}
}

// published takes what the outbox recorded about pushes into the session's
// variables, where later sessions of the issue look for it.
func (h *hold) published(ctx context.Context) error {
	past, err := h.history(ctx)
	if err != nil {
		return err
	}
	known, pushed := h.lease.Session().Variables, agents.Variables{}
	for _, name := range []string{varBranch, varPushedCommit, varPullRequest, outbox.VariablePullRequestURL} {
		if value := past.variables[name]; value != "" && value != known[name] {
			pushed[name] = value
		}
	}
	if len(pushed) == 0 {
		return nil
	}
	_, err = h.lease.Append(ctx, runner.Batch{Variables: pushed})
	return err
}

// settled says whether all effects of a call have ended.
func (a awaiter) settled(ctx context.Context, callKey string) (bool, error) {
	effects, err := a.Store.EffectsOfSession(ctx, a.session.ID)
	if err != nil {
		return false, err
	}
	for _, effect := range effects {
		if effect.CallKey == callKey && (effect.State == store.EffectPending || effect.State == store.EffectSending) {
			return false, nil
		}
	}
	return true, nil
}
