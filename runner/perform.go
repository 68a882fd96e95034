package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"handoff/agents"
)

// performed is what became of a job that was tried.
type performed struct {
	// started is false for a job that never ran, and for one that was cut
	// short because the process stops: it is settled when the run goes on.
	started bool
	outcome ToolOutcome
	// raised is the error that ends the run (rule R24), nil for none.
	raised error
}

// perform runs a tool within its time. It is called from several goroutines
// and touches no state of the loop.
func (l *loop) perform(ctx context.Context, job *job) performed {
	if ctx.Err() != nil {
		return performed{}
	}
	if job.outcome != nil {
		return performed{started: true, outcome: *job.outcome}
	}
	limit := cmp.Or(job.tool.Timeout, l.config.ToolTimeout)
	work, cancel := context.WithTimeoutCause(ctx, limit, errToolTime)
	defer cancel()
	start := time.Now()
	result, err := runTool(work, job)
	took := time.Since(start)
	if err == nil {
		return performed{started: true, outcome: l.outcomeOf(job, result, EffectDone, took)}
	}
	failed := ToolOutcome{CallKey: job.call.Key, IsError: true, Effect: EffectFailed, Millis: took.Milliseconds()}
	raised := raise(job, err)
	switch {
	case ctx.Err() != nil && stopping(ctx) == nil && !errors.Is(context.Cause(ctx), errSibling):
		return performed{}
	case ctx.Err() != nil:
		failed.Output, failed.Effect, raised = "Cancelled while it ran.", unknownUnlessNone(job), nil
	case errors.Is(context.Cause(work), errToolTime):
		failed.Output, failed.Effect = fmt.Sprintf("The call timed out after %s and was stopped.", limit), unknownUnlessNone(job)
		if raised != nil {
			raised = &agents.Error{Code: agents.CodeToolTimeout, Err: err, Message: fmt.Sprintf("The tool %s timed out after %s.", job.call.Name, limit)}
		}
	default:
		failed.say(l.redact(l.errorText(err)), 0, l.config.OutputCap)
	}
	return performed{started: true, outcome: failed, raised: raised}
}

var errToolTime = errors.New("the tool's time is used up")

func unknownUnlessNone(job *job) string {
	if effectOf(job.tool) == agents.EffectNone {
		return EffectFailed
	}
	return EffectUnknown
}

// stopGrace is how long a tool may take to notice that its time is over,
// before it is left behind.
const stopGrace = 10 * time.Second

// runTool calls the tool. A panic is an error of the tool; a tool that does
// not notice its context's end is left behind after a grace period.
func runTool(ctx context.Context, job *job) (agents.Result, error) {
	type end struct {
		result agents.Result
		err    error
	}
	if job.tool.Run == nil {
		return agents.Result{}, fmt.Errorf("the tool %s cannot be run here", job.call.Name)
	}
	ended := make(chan end, 1)
	go func() {
		var result agents.Result
		err := Contain(func() (err error) {
			result, err = job.tool.Run(ctx, job.use)
			return err
		})
		if broken, ok := errors.AsType[*Panic](err); ok {
			err = fmt.Errorf("the tool failed inside: %v", broken.Cause)
		}
		ended <- end{result, err}
	}()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case e := <-ended:
		return e.result, e.err
	case <-grace.C:
		return agents.Result{}, ctx.Err()
	}
}

// raise returns the error that ends the run when the tool's policy says so.
func raise(job *job, err error) error {
	if !job.tool.RaiseErrors {
		return nil
	}
	return &agents.Error{Code: agents.CodeToolError, Err: err,
		Message: fmt.Sprintf("The tool %s failed: %v.", job.call.Name, strings.TrimSuffix(err.Error(), "."))}
}

// errorText is what a model reads about a tool's error.
func (l *loop) errorText(err error) string {
	return l.redact(err.Error())
}

// outcomeOf makes the outcome of a result: redacted, cut to the cap and with
// variables that are plain scalars only.
func (l *loop) outcomeOf(job *job, result agents.Result, state string, took time.Duration) ToolOutcome {
	outcome := ToolOutcome{
		CallKey: job.call.Key, IsError: result.IsError, Effect: state,
		Summary: l.redact(result.Summary), Variables: result.Variables, Millis: took.Milliseconds(),
	}
	if result.IsError && state == EffectDone {
		outcome.Effect = EffectFailed
	}
	outcome.say(l.redact(result.Output), result.Omitted, l.config.OutputCap)
	if name := notScalar(result.Variables); name != "" {
		outcome.Variables, outcome.IsError = nil, true
		outcome.Output = fmt.Sprintf("The tool set the variable %s to something that is not a short line of text; nothing was set.\n%s", name, outcome.Output)
	}
	return outcome
}

// say sets the output, cut to the limit in bytes; what was cut here is kept
// beside it, what the tool has omitted is counted.
func (o *ToolOutcome) say(text string, omitted int64, limit int) {
	o.Output, o.Full = cut(text, limit)
	if o.Full != "" || omitted > 0 {
		o.Size = int64(len(text)) + omitted
	}
}

// variableLimit is the longest value of a variable in bytes: enough for a
// plan in JSON.
const variableLimit = 16 << 10

// notScalar returns the name of a variable that is none: variables go into
// instructions, so they must not carry an agent's free text.
func notScalar(variables agents.Variables) string {
	for name, value := range variables {
		if len(value) > variableLimit || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || variable.FindString("{{."+name+"}}") == "" {
			return name
		}
	}
	return ""
}

// refusal is the outcome of a call that does not run.
func (l *loop) refusal(call *CallState, text string) *ToolOutcome {
	return &ToolOutcome{CallKey: call.Key, IsError: true, Effect: EffectNotRun, Output: text}
}

// arguments returns the call's arguments as JSON; no text means no arguments.
func arguments(call *CallState) json.RawMessage {
	if strings.TrimSpace(call.Arguments) == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(call.Arguments)
}

// validate checks a value against a schema and returns the faults only.
func validate(schema, value json.RawMessage) error {
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	err := agents.Validate(schema, value)
	if cause, ok := errors.AsType[*agents.InvalidArgs](err); ok {
		return cause
	}
	return err
}
