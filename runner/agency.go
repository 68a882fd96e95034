package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
)

// SendMessageTool is the name of the tool by which an agent of an agency asks
// another and waits for the answer. The two keep a thread of their own over
// the whole session (rule R63).
const SendMessageTool = "send_message"

// maxDepth bounds agents that ask agents that ask agents.
const maxDepth = 8

// isAgentCall says whether a tool of the agent is answered by another agent.
func (l *loop) isAgentCall(agent agents.Agent, name string) bool {
	if _, ok := l.AgentTools[name]; ok {
		return true
	}
	return name == SendMessageTool && len(l.Chart[agent.ID]) > 0
}

func (l *loop) agentSpec(agent agents.Agent, name string) agents.ToolSpec {
	if tool, ok := l.AgentTools[name]; ok {
		return agents.ToolSpec{
			Name: name, Description: tool.Description,
			Schema: objectSchema([]property{{name: "input", description: "The complete task. The agent sees nothing else."}}),
		}
	}
	return agents.ToolSpec{
		Name: name, Description: "Send a message to another agent and wait for its answer. It remembers your earlier messages.",
		Schema: objectSchema([]property{
			{name: "recipient_agent", enum: l.Chart[agent.ID], description: "Who is asked."},
			{name: "message", description: "The message."},
		}),
	}
}

// prepareAgent finds out whom a call asks, or why it may not.
func (l *loop) prepareAgent(run *RunState, agent agents.Agent, j *job) *job {
	if tool, ok := l.AgentTools[j.call.Name]; ok {
		var args struct {
			Input string `json:"input"`
		}
		if fault := l.agentArguments(agent, j.call, &args); fault != "" {
			j.outcome = l.refusal(j.call, fault)
			return j
		}
		j.agent, j.thread, j.input = tool.Agent, j.call.Key, args.Input
		return l.checkDepth(run, j)
	}
	var args struct {
		Recipient string `json:"recipient_agent"`
		Message   string `json:"message"`
	}
	// The enumeration is checked apart, for an answer that helps (rule R64).
	if err := json.Unmarshal(arguments(j.call), &args); err == nil && !slices.Contains(l.Chart[agent.ID], args.Recipient) {
		j.outcome = l.refusal(j.call, fmt.Sprintf("You may not send messages to %q. You may send them to: %s.",
			args.Recipient, strings.Join(l.Chart[agent.ID], ", ")))
		return j
	}
	if fault := l.agentArguments(agent, j.call, &args); fault != "" {
		j.outcome = l.refusal(j.call, fault)
		return j
	}
	thread := agent.ID + "->" + args.Recipient
	if l.isPending(run, j.call, args.Recipient) {
		j.outcome = l.refusal(j.call, fmt.Sprintf("A message to %s is still pending; wait for its answer before you send another.", args.Recipient))
		return j
	}
	j.agent, j.thread, j.input = args.Recipient, thread, args.Message
	return l.checkDepth(run, j)
}

func (l *loop) agentArguments(agent agents.Agent, call *CallState, args any) string {
	err := validate(l.agentSpec(agent, call.Name).Schema, arguments(call))
	if err == nil {
		err = json.Unmarshal(arguments(call), args)
	}
	if err != nil {
		return string(agents.CodeInvalidArgs) + ": " + err.Error()
	}
	return ""
}

// isPending says whether the turn holds an earlier message to the recipient:
// to the model they were sent at the same time (rule R62).
func (l *loop) isPending(run *RunState, call *CallState, recipient string) bool {
	for _, earlier := range run.Pending.Calls {
		if earlier == call {
			return false
		}
		var args struct {
			Recipient string `json:"recipient_agent"`
		}
		if earlier.Name == SendMessageTool && json.Unmarshal(arguments(earlier), &args) == nil && args.Recipient == recipient {
			return true
		}
	}
	return false
}

func (l *loop) checkDepth(run *RunState, j *job) *job {
	depth := 0
	for r := run; r.Parent != ""; r = l.state.Runs[r.Parent] {
		depth++
		if r.Thread == j.thread {
			j.outcome = l.refusal(j.call, "That thread waits for your own answer; answer first.")
			return j
		}
	}
	if _, ok := l.Crew[j.agent]; !ok {
		j.outcome = l.refusal(j.call, fmt.Sprintf("There is no agent %q in this crew.", j.agent))
	}
	if depth >= maxDepth {
		j.outcome = l.refusal(j.call, fmt.Sprintf("Agents already ask each other %d levels deep; answer yourself.", depth))
	}
	return j
}

// runNested runs an agent on an input of its own and gives back its answer as
// one output. Approvals that it needs interrupt the outer run as well; the
// inner one then goes on where it stood (rules R60 and R61).
func (l *loop) runNested(ctx context.Context, run *RunState, j *job) (waits bool, err error) {
	key := j.call.Key
	if l.state.Runs[key] == nil {
		err := l.append(ctx, Batch{},
			draft{id: key, parent: run.ID, kind: RecordRunCreated, payload: runCreated{
				Agent: j.agent, Thread: j.thread, Call: key, Task: l.redact(j.input),
			}},
			draft{id: key, parent: run.ID, kind: RecordInputAdded, payload: inputAdded{Author: j.call.Agent, Text: l.redact(j.input)}})
		if err != nil {
			return false, err
		}
	}
	nested := l.state.Runs[key]
	if err := l.drive(ctx, nested); err != nil {
		return false, err
	}
	if !nested.Ended {
		return true, nil
	}
	outcome := ToolOutcome{CallKey: key, Effect: EffectDone}
	if failure := nested.End.Err; failure != nil {
		outcome.IsError, outcome.Effect = true, EffectFailed
		outcome.Output = fmt.Sprintf("%s did not answer: %v", nested.Agent, failure)
	} else {
		outcome.say(nested.End.Output, 0, l.config.OutputCap)
	}
	return false, l.append(ctx, Batch{}, outcomeDraft(run, outcome))
}
