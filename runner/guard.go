package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
)

// guardInput runs the input guardrails before a run's first model call. They
// block: nothing is asked and nothing happens before they have passed (rule
// R75). Agents that the work is handed to are not asked again.
func (l *loop) guardInput(ctx context.Context, run *RunState, agent agents.Agent) error {
	if run.asked != nil {
		return nil // they had passed when the first request was recorded
	}
	return judgeInput(ctx, l.inputGuardrails(run, agent, false), l.inputText(run))
}

// inputGuardrails are those that judge the run's input now: none after the
// first model call.
func (l *loop) inputGuardrails(run *RunState, agent agents.Agent, parallel bool) []agents.Guardrail {
	if run.Turn > 0 {
		return nil
	}
	rails := agent.InputGuardrails
	if run.Parent == "" {
		rails = slices.Concat(l.config.InputGuardrails, rails)
	}
	return slices.DeleteFunc(slices.Clone(rails), func(rail agents.Guardrail) bool { return rail.Parallel != parallel })
}

func (l *loop) inputText(run *RunState) string {
	var text []string
	for _, item := range l.state.thread(run.Thread).Items[run.first:] {
		if item.Kind == agents.KindUserMessage {
			text = append(text, item.Text)
		}
	}
	return strings.Join(text, "\n\n")
}

func judgeInput(ctx context.Context, rails []agents.Guardrail, text string) error {
	name, reason, err := guard(ctx, rails, text)
	if err == nil && name != "" {
		err = tripped(agents.CodeGuardrailInput, "The task was not started", name, reason)
	}
	return err
}

// respond asks the model, beside the guardrails that may run in parallel. A
// verdict against the input comes before any answer, which is then neither
// recorded nor acted on.
func (l *loop) respond(ctx context.Context, run *RunState, agent agents.Agent, request agents.Request) (agents.Response, error) {
	rails := l.inputGuardrails(run, agent, true)
	if len(rails) == 0 {
		return l.Model.Respond(ctx, request)
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	text, verdict := l.inputText(run), make(chan error, 1)
	go func() {
		err := Contain(func() error { return judgeInput(ctx, rails, text) })
		if err != nil {
			cancel() // the answer is not wanted any more
		}
		verdict <- err
	}()
	response, err := l.Model.Respond(work, request)
	judged, refused := errors.AsType[*agents.Error](<-verdict)
	if !refused {
		return response, err
	}
	judged.Usage = response.Usage
	if failure, ok := errors.AsType[*agents.Error](err); ok {
		judged.Usage = failure.Usage
	}
	return agents.Response{}, judged
}

// guard returns the first guardrail that the text trips, with its reason. A
// guardrail that fails counts as an error of the run: it fails closed.
func guard(ctx context.Context, rails []agents.Guardrail, text string) (name, reason string, err error) {
	for _, rail := range rails {
		reason, trips, err := rail.Check(ctx, text)
		if err != nil {
			return "", "", &agents.Error{Code: agents.CodeToolError, Err: err,
				Message: fmt.Sprintf("The guardrail %s could not decide: %v. Nothing passes until it can.", rail.Name, err)}
		}
		if trips {
			return rail.Name, reason, nil
		}
	}
	return "", "", nil
}

func tripped(code agents.Code, what, name, reason string) error {
	message := fmt.Sprintf("%s: the guardrail %s refused it", what, name)
	if reason != "" {
		message += " (" + reason + ")"
	}
	return &agents.Error{Code: code, Message: message + ". Change the text and ask again."}
}
