package runner

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"strings"

	"handoff/agents"
)

// The prompts are the host's own words to models; a test renders each of them.
//
//go:embed prompts/*.txt
var promptFiles embed.FS

// variable is a place in instructions or a prompt that a value goes to.
var variable = regexp.MustCompile(`\{\{\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// expand replaces the variables in text, each once: values are not expanded
// again. An unknown variable is an error that names it.
func expand(text string, variables agents.Variables) (string, error) {
	var missing error
	expanded := variable.ReplaceAllStringFunc(text, func(match string) string {
		name := variable.FindStringSubmatch(match)[1]
		value, ok := variables[name]
		if !ok && missing == nil {
			missing = fmt.Errorf("the variable %q is not set in this session", name)
		}
		return value
	})
	return expanded, missing
}

// prompt renders one of the embedded prompts, without the line end that
// editors put at the end of a file.
func prompt(name string, values agents.Variables) string {
	text, err := promptFiles.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		panic("runner: no such prompt: " + name) // a misspelt constant, found by the first test
	}
	expanded, err := expand(strings.TrimSuffix(string(text), "\n"), values)
	if err != nil {
		panic("runner: prompt " + name + ": " + err.Error())
	}
	return expanded
}

// taskLimit caps how much of a long task is repeated to each agent, in bytes.
const taskLimit = 16 << 10

// instructions returns the system prompt of the run's agent: its own words
// and, when it was handed the work, the task (rule R50).
func (l *loop) instructions(ctx context.Context, run *RunState, agent agents.Agent) (string, error) {
	text, err := agent.Instructions, error(nil)
	if agent.InstructionsFunc != nil {
		text, err = agent.InstructionsFunc(ctx, l.state.Variables)
	} else {
		text, err = expand(text, l.state.Variables)
	}
	if err != nil {
		return "", &agents.Error{
			Code: agents.CodeAgent, Err: err,
			Message: fmt.Sprintf("The instructions of the agent %s cannot be used: %v. Correct the agent, or set what it refers to.", agent.ID, err),
		}
	}
	if run.entered && run.Task != "" {
		task, _ := cut(run.Task, taskLimit)
		text += prompt("task", agents.Variables{"boundary": l.state.Boundary, "task": l.unmarked(task)})
	}
	return text, nil
}

// unmarked takes the session's boundary out of words that are about to be put
// inside it, so that nobody can close the frame from within.
func (l *loop) unmarked(text string) string {
	if l.state.Boundary == "" {
		return text
	}
	return strings.ReplaceAll(text, l.state.Boundary, "")
}
