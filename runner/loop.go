package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"handoff/agents"
)

// drive turns the crank until the run has ended, waits for decisions or was
// stopped. Its error is of the surroundings, never of the run.
func (l *loop) drive(ctx context.Context, run *RunState) error {
	for !run.Ended {
		wait, err := l.turn(ctx, run)
		switch {
		case err == nil && wait:
			return nil
		case err == nil:
			continue
		case errors.Is(err, ErrFenced):
			return err
		}
		if cause := stopping(ctx); cause != nil {
			err = withUsageOf(cause, err)
		} else if ctx.Err() != nil {
			return err
		}
		failure, ok := errors.AsType[*agents.Error](err)
		if !ok {
			return err
		}
		if err := l.end(ctx, run, failure); err != nil {
			return err
		}
	}
	return nil
}

// withUsageOf keeps what a cancelled model call cost.
func withUsageOf(cause *agents.Error, err error) error {
	failure, ok := errors.AsType[*agents.Error](err)
	if !ok {
		return cause
	}
	copied := *cause
	copied.Usage = failure.Usage
	return &copied
}

// turn settles the pending turn, if there is one, and asks the model for the
// next. It says whether the run must wait. An error with a code ends the run.
func (l *loop) turn(ctx context.Context, run *RunState) (wait bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if run.Pending != nil {
		step, err := l.settle(ctx, run)
		if err != nil {
			return false, err
		}
		switch step.(type) {
		case nil, Interruption:
			return true, nil
		case FinalOutput, Handoff:
			return false, nil
		}
	}
	if l.Hooks.SoftStop != nil && l.Hooks.SoftStop() {
		return true, l.pause(ctx, run)
	}
	agent, ok := l.Crew[run.Agent]
	if !ok {
		return false, noAgent(run.Agent)
	}
	if err := l.between(ctx, run, agent); err != nil {
		return false, err
	}
	return false, l.ask(ctx, run, agent)
}

func noAgent(id string) *agents.Error {
	return &agents.Error{Code: agents.CodeAgent, Message: fmt.Sprintf("The crew has no agent %q; restore it and try again.", id)}
}

// between is what happens before a model call: messages, limits, warnings,
// guardrails, and a shorter history.
func (l *loop) between(ctx context.Context, run *RunState, agent agents.Agent) error {
	inputs, err := l.waiting(ctx, run)
	if err != nil {
		return err
	}
	if len(inputs) > 0 {
		if err := l.addInputs(ctx, run, inputs); err != nil {
			return err
		}
	}
	if err := l.checkLimits(run, true); err != nil {
		return err
	}
	if err := l.guardInput(ctx, run, agent); err != nil {
		return err
	}
	if err := l.warn(ctx, run); err != nil {
		return err
	}
	return l.compactIfLong(ctx, run, agent)
}

// waiting returns the messages that wait for the crew. Only root runs take
// messages.
func (l *loop) waiting(ctx context.Context, run *RunState) ([]Input, error) {
	if l.Hooks.PendingInput == nil || run.Parent != "" {
		return nil, nil
	}
	inputs, err := l.Hooks.PendingInput(ctx)
	if err != nil {
		return nil, fmt.Errorf("read waiting messages: %w", err)
	}
	var fresh []Input
	for _, input := range inputs {
		if id := input.id(); id == "" || !l.state.Has(id) {
			fresh = append(fresh, input)
		}
	}
	return fresh, nil
}

func (l *loop) pause(ctx context.Context, run *RunState) error {
	l.stopped = true
	if run.Paused == pausedStopped && len(l.later) == 0 {
		return nil
	}
	return l.append(ctx, Batch{}, draft{run: run, kind: RecordRunPaused, payload: runPaused{Reason: pausedStopped, Active: l.active()}})
}

// ask records the request, asks the model and records its answer. A history
// that the model finds too long is shortened once.
func (l *loop) ask(ctx context.Context, run *RunState, agent agents.Agent) error {
	response, err := l.askOnce(ctx, run, agent)
	if failure, ok := errors.AsType[*agents.Error](err); ok && failure.Kind == agents.KindContextTooLong {
		shortened, failed := l.compact(ctx, run, agent, l.view(run).size/4)
		if failed != nil {
			return failed
		}
		if shortened {
			response, err = l.askOnce(ctx, run, agent)
		}
	}
	if err != nil {
		return err
	}
	return l.answered(ctx, run, agent, response)
}

func (l *loop) askOnce(ctx context.Context, run *RunState, agent agents.Agent) (agents.Response, error) {
	request, err := l.request(ctx, run, agent)
	if err != nil {
		return agents.Response{}, err
	}
	size := len(request.Messages[0].Content) + l.view(run).size
	err = l.append(ctx, Batch{Usage: run.lost()}, draft{run: run, kind: RecordModelRequest, payload: modelRequest{
		Agent: agent.ID, Turn: request.Turn, Model: agent.Model.ID, Bytes: int64(size), Estimate: run.tokens(size),
	}})
	if err != nil {
		return agents.Response{}, err
	}
	request.OnDelta = l.deltas(run)
	return l.respond(ctx, run, agent, request)
}

// request puts together what the model is asked.
func (l *loop) request(ctx context.Context, run *RunState, agent agents.Agent) (agents.Request, error) {
	instructions, err := l.instructions(ctx, run, agent)
	if err != nil {
		return agents.Request{}, err
	}
	tools, err := l.offer(agent)
	if err != nil {
		return agents.Request{}, err
	}
	request := agents.Request{
		Model: agent.Model, Session: l.Session, Agent: agent.ID, Turn: run.Turn + 1,
		Messages: l.view(run).under(instructions),
		Tools:    tools, Settings: agent.Settings, Output: agent.Output,
	}
	if run.toolUsed[agent.ID] && !agent.KeepToolChoice {
		request.Settings.ToolChoice = ""
	}
	if len(tools) == 0 {
		request.Settings.ToolChoice = ""
	}
	return request, nil
}

// answered records a response. The text of a final answer goes through the
// output guardrails first, so that what trips one is never recorded.
func (l *loop) answered(ctx context.Context, run *RunState, agent agents.Agent, response agents.Response) error {
	for i := range response.Usage.Entries {
		response.Usage.Entries[i].Agent = agent.ID
	}
	record := modelResponse{
		Agent: agent.ID, Turn: run.Turn + 1, Text: l.redact(response.Text), Reasoning: l.redact(response.Reasoning),
		Refusal: l.redact(response.Refusal), Calls: l.redactCalls(response.ToolCalls), Finish: response.FinishReason, Raw: response.Raw,
		Provider: response.Provider, Asked: response.Asked, Model: response.Model, RequestID: response.RequestID,
		Usage: response.Usage, Active: l.active(),
	}
	if record.Text != response.Text || record.Reasoning != response.Reasoning || !slices.Equal(record.Calls, response.ToolCalls) {
		record.Raw = nil
	}
	if len(record.Calls) == 0 && record.Text != "" && record.Refusal == "" {
		name, reason, err := guard(ctx, slices.Concat(l.outputGuardrails(run), agent.OutputGuardrails), record.Text)
		if err != nil {
			return err
		}
		if name != "" {
			record.Text, record.Reasoning, record.Raw = "", "", nil
			record.Withheld, record.Reason = name, reason
		}
	}
	return l.append(ctx, Batch{Usage: response.Usage}, draft{run: run, kind: RecordModelResponse, payload: record})
}

func (l *loop) outputGuardrails(run *RunState) []agents.Guardrail {
	if run.Parent != "" {
		return nil
	}
	return l.config.OutputGuardrails
}

// end closes what is open and ends the run with the failure, or with the
// fallback that the configuration has for it.
func (l *loop) end(ctx context.Context, run *RunState, failure *agents.Error) error {
	ended := runEnded{
		Code: failure.Code, Kind: failure.Kind, Message: failure.Message, Usage: failure.Usage, Active: l.active(),
	}
	if ended.Message == "" {
		ended.Message = failure.Error()
	}
	ended.Message = l.redact(ended.Message)
	for i := range ended.Usage.Entries {
		ended.Usage.Entries[i].Agent = run.Agent
	}
	if value, ok := l.config.Fallbacks[failure.Code]; ok && run.Parent == "" && l.fits(run, value) == nil {
		ended.Output, ended.Fallback, ended.Code, ended.Kind, ended.Message = value, failure.Code, "", "", ""
	}
	drafts, usage := l.closeCalls(run)
	if ended.Fallback != "" {
		drafts = append(drafts, draft{run: run, kind: RecordStepCommitted, payload: stepCommitted{Step: StepFinalOutput}})
	}
	if ended.costsNothing() {
		usage.Add(run.lost())
	}
	usage.Add(ended.Usage)
	drafts = append(drafts, draft{run: run, kind: RecordRunEnded, payload: ended})
	return l.append(ctx, Batch{Usage: usage}, drafts...)
}

// closeCalls gives every open call of the run, and of the runs nested in it,
// an outcome, so that no call id stays unanswered (rules R5 and R23). It
// returns what answers cost that will never be read.
func (l *loop) closeCalls(run *RunState) (drafts []draft, lost agents.Usage) {
	if run.Pending == nil {
		return nil, lost
	}
	for _, call := range run.Pending.Calls {
		if call.Outcome != nil {
			continue
		}
		if nested := l.state.Runs[call.Key]; nested != nil && !nested.Ended {
			inner, innerLost := l.closeCalls(nested)
			lost.Add(innerLost)
			lost.Add(nested.lost())
			drafts = append(drafts, inner...)
			drafts = append(drafts, draft{run: nested, kind: RecordRunEnded, payload: runEnded{
				Code: agents.CodeCancelled, Message: "The run that asked for this one ended.",
			}})
		}
		outcome := ToolOutcome{CallKey: call.Key, IsError: true, Effect: EffectNotRun, Output: "Not run: the session ended first."}
		if call.Intent != nil {
			outcome.Effect = EffectUnknown
			outcome.Output = prompt("unknown", agents.Variables{"tool": call.Name})
		}
		drafts = append(drafts, outcomeDraft(run, outcome))
	}
	return drafts, lost
}
