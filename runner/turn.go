package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"handoff/agents"
)

// settle does what a recorded response asks for and says what comes next, in
// the order of rule R14. It returns nil for a soft stop inside a nested run.
// A [RunAgain] is not yet recorded: it goes with the next append.
func (l *loop) settle(ctx context.Context, run *RunState) (NextStep, error) {
	turn := run.Pending
	agent, ok := l.Crew[turn.Agent]
	if !ok {
		return nil, noAgent(turn.Agent)
	}
	if isCut(turn.response.Finish) {
		if err := l.refuseCut(ctx, run); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(turn.Calls, func(call *CallState) bool { return call.Outcome == nil && call.Intent == nil }) {
		if err := l.checkLimits(run, false); err != nil {
			return nil, err
		}
		if err := l.checkLoop(run); err != nil {
			return nil, err
		}
	}
	waiting, err := l.runCalls(ctx, run, agent)
	if err != nil {
		return nil, err
	}
	if waiting {
		return l.interrupt(ctx, run)
	}
	if to, err := l.handOff(ctx, run, agent); err != nil || to != "" {
		return Handoff{To: to}, err
	}
	return l.conclude(ctx, run, agent)
}

// isCut says whether a response ended before the model was done.
func isCut(finish string) bool {
	return finish == "length" || finish == "content_filter" || finish == "error"
}

// refuseCut closes the calls of a response that was cut off: they may be
// incomplete and are never run (rule R13).
func (l *loop) refuseCut(ctx context.Context, run *RunState) error {
	turn := run.Pending
	if len(turn.Calls) == 0 {
		switch {
		case turn.response.Text != "" || turn.response.Refusal != "" || turn.response.Withheld != "":
			return nil
		case turn.response.Finish == "content_filter":
			return &agents.Error{Code: agents.CodeModelRefusal, Message: "The provider's content filter held back the whole answer. Rephrase the task or use another model."}
		}
		return &agents.Error{Code: agents.CodeModelBehavior, Message: fmt.Sprintf(
			"The model's answer was cut off (%s) before it said anything. Allow longer answers or use another model.", turn.response.Finish)}
	}
	var drafts []draft
	for _, call := range turn.Calls {
		if call.Outcome == nil {
			drafts = append(drafts, outcomeDraft(run, ToolOutcome{
				CallKey: call.Key, IsError: true, Effect: EffectNotRun,
				Output: "Not run: your answer was cut off (" + turn.response.Finish + "). Send less at once, for example in several smaller calls.",
			}))
		}
	}
	if len(drafts) == 0 {
		return nil
	}
	return l.append(ctx, Batch{}, drafts...)
}

// interrupt records that the run waits for decisions, once for each wait.
func (l *loop) interrupt(ctx context.Context, run *RunState) (NextStep, error) {
	if l.stopped {
		return nil, nil
	}
	if run.Paused != pausedApproval {
		err := l.append(ctx, Batch{},
			draft{run: run, kind: RecordStepCommitted, payload: stepCommitted{Step: StepInterruption}},
			draft{run: run, kind: RecordRunPaused, payload: runPaused{Reason: pausedApproval, Active: l.active()}})
		if err != nil {
			return nil, err
		}
	}
	return Interruption{Approvals: l.state.Approvals(run.ID)}, nil
}

// conclude decides between a final output and another turn, once all calls are
// settled and there was no handoff.
func (l *loop) conclude(ctx context.Context, run *RunState, agent agents.Agent) (NextStep, error) {
	turn := run.Pending
	response := turn.response
	if len(turn.Calls) > 0 {
		output, done, err := l.stopsAtTool(ctx, run, agent)
		if err != nil {
			return nil, err
		}
		if done {
			return l.finish(ctx, run, agent, output)
		}
	}
	switch {
	case response.Refusal != "":
		return nil, &agents.Error{Code: agents.CodeModelRefusal, Message: "The model refused: " + l.redact(response.Refusal) + " Rephrase the task or use another model."}
	case response.Withheld != "":
		return nil, tripped(agents.CodeGuardrailOutput, "The answer was withheld", response.Withheld, response.Reason)
	case len(turn.Calls) > 0:
		return l.again(run), nil
	case agent.Output != nil:
		return l.finishStructured(ctx, run, agent, response.Text)
	}
	return l.final(ctx, run, response.Text)
}

// again puts the step off to the next append, which follows at once.
func (l *loop) again(run *RunState) NextStep {
	l.later = append(l.later, draft{run: run, kind: RecordStepCommitted, payload: stepCommitted{Step: StepRunAgain}})
	return RunAgain{}
}

// stopsAtTool says whether the outputs of this turn end the run (rule R40).
// Calls that were refused before they ran do not count.
func (l *loop) stopsAtTool(ctx context.Context, run *RunState, agent agents.Agent) (output string, done bool, err error) {
	behavior := agent.ToolUseBehavior
	if behavior.Func != nil {
		return l.askBehavior(ctx, run, behavior)
	}
	for _, call := range run.Pending.Calls {
		if call.Name == HandoffTool || call.Outcome.Effect == EffectNotRun {
			continue
		}
		switch behavior.Kind {
		case "stop_on_first_tool":
			return call.Outcome.Output, true, nil
		case "stop_at_tool_names":
			if slices.Contains(behavior.Names, call.Name) {
				return call.Outcome.Output, true, nil
			}
		}
	}
	return "", false, nil
}

func (l *loop) askBehavior(ctx context.Context, run *RunState, behavior agents.ToolUseBehavior) (string, bool, error) {
	var outputs []agents.Item
	for _, call := range run.Pending.Calls {
		outputs = append(outputs, agents.Item{
			Seq: call.outcomeSeq, Kind: agents.KindToolCallOutput, Agent: call.Agent, Time: call.outcomeTime,
			Text: call.Outcome.Output, Call: &call.ToolCall, IsError: call.Outcome.IsError, EffectState: call.Outcome.Effect,
		})
	}
	output, done, err := behavior.Func(ctx, outputs)
	if err != nil {
		return "", false, &agents.Error{Code: agents.CodeToolError, Err: err, Message: "The agent's tool use behaviour failed: " + err.Error()}
	}
	return output, done, nil
}

// finish ends the run with a tool's output, past the output guardrails.
func (l *loop) finish(ctx context.Context, run *RunState, agent agents.Agent, output string) (NextStep, error) {
	name, reason, err := guard(ctx, slices.Concat(l.outputGuardrails(run), agent.OutputGuardrails), output)
	if err != nil {
		return nil, err
	}
	if name != "" {
		return nil, tripped(agents.CodeGuardrailOutput, "The answer was withheld", name, reason)
	}
	return l.final(ctx, run, output)
}

// finishStructured checks a final answer against the agent's schema (rules
// R30 and R31).
func (l *loop) finishStructured(ctx context.Context, run *RunState, agent agents.Agent, text string) (NextStep, error) {
	if text == "" {
		return l.again(run), nil
	}
	value := agents.Unfence(text)
	fault := l.fits(run, value)
	if fault == nil {
		return l.final(ctx, run, value)
	}
	if run.repairs >= l.config.OutputRepairs {
		return nil, &agents.Error{Code: agents.CodeInvalidOutput, Err: fault,
			Message: fmt.Sprintf("The answer of %s does not have the required form: %v. Ask again or use another model.", agent.ID, fault)}
	}
	step := l.again(run)
	return step, l.append(ctx, Batch{}, draft{run: run, kind: RecordNoteAdded, payload: noteAdded{
		Kind: noteRepair, Text: prompt("repair", agents.Variables{"fault": fault.Error()}),
	}})
}

// fits checks a value against the output schema of the run's agent, if it has
// one.
func (l *loop) fits(run *RunState, value string) error {
	output := l.Crew[run.Agent].Output
	if output == nil {
		return nil
	}
	if !json.Valid([]byte(value)) {
		return fmt.Errorf("it is not JSON")
	}
	return validate(output.Schema, json.RawMessage(value))
}

// final ends the run with an answer, unless messages came in meanwhile: then
// the crew reads them first.
func (l *loop) final(ctx context.Context, run *RunState, value string) (NextStep, error) {
	inputs, err := l.waiting(ctx, run)
	if err != nil {
		return nil, err
	}
	if len(inputs) > 0 {
		step := l.again(run)
		return step, l.addInputs(ctx, run, inputs)
	}
	err = l.append(ctx, Batch{},
		draft{run: run, kind: RecordStepCommitted, payload: stepCommitted{Step: StepFinalOutput}},
		draft{run: run, kind: RecordRunEnded, payload: runEnded{Output: value, Active: l.active()}})
	return FinalOutput{Value: value}, err
}

func outcomeDraft(run *RunState, outcome ToolOutcome) draft {
	return draft{run: run, kind: RecordToolOutcome, payload: outcome}
}
