package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
)

// prepare finds out what a call needs: the tool, checked arguments, and
// whether a maintainer must agree.
func (l *loop) prepare(ctx context.Context, run *RunState, agent agents.Agent, call *CallState) (*job, error) {
	j := &job{call: call}
	if l.state.Runs[call.Key] != nil { // a nested run is under way
		return l.prepareAgent(run, agent, j), nil
	}
	if !slices.Contains(agent.Tools, call.Name) {
		j.outcome = l.refusal(call, l.notFound(agent, call.Name))
		return j, nil
	}
	if l.isAgentCall(agent, call.Name) {
		return l.prepareAgent(run, agent, j), nil
	}
	tool, err := l.tool(agent, call.Name)
	if err != nil {
		return nil, err
	}
	j.tool = tool
	j.use = agents.Call{
		ToolCall: call.ToolCall, Session: l.Session, Agent: agent.ID, PathScope: agent.PathScope,
		IdempotencyKey: l.Session + "/" + call.Key, Args: arguments(call), Variables: l.state.Variables,
	}
	if call.Intent != nil && (call.Asked == nil || call.Asked.Conflict == "") {
		if call.Decision != nil {
			j.use.Approval = call.Decision.Approval
		}
		return j, nil // it was allowed once and is half done
	}
	if err := l.checkCall(ctx, j); err != nil || j.outcome != nil {
		return j, err
	}
	return j, l.checkApproval(ctx, j)
}

// tool returns an agent's tool by name.
func (l *loop) tool(agent agents.Agent, name string) (agents.Tool, error) {
	if l.Tools == nil {
		return agents.Tool{}, noTool(agent, name)
	}
	picked, err := l.Tools.Pick(name)
	if err != nil {
		return agents.Tool{}, noTool(agent, name)
	}
	return picked[0], nil
}

func noTool(agent agents.Agent, name string) error {
	return &agents.Error{Code: agents.CodeAgent, Message: fmt.Sprintf(
		"The agent %s names the tool %q, which does not exist here. Correct the agent's list of tools.", agent.ID, name)}
}

// checkCall refuses calls with wrong arguments and those that the tool's
// guardrail rejects, before anything else (rules R25 and R77).
func (l *loop) checkCall(ctx context.Context, j *job) error {
	if err := validate(j.tool.Schema, j.use.Args); err != nil {
		j.outcome = l.refusal(j.call, string(agents.CodeInvalidArgs)+": nothing was done; correct these arguments and call again:\n"+err.Error())
		return nil
	}
	if j.tool.InputGuardrail == nil {
		return nil
	}
	message, rejected, err := j.tool.InputGuardrail(ctx, j.use)
	if err != nil {
		return &agents.Error{Code: agents.CodeToolError, Err: err,
			Message: fmt.Sprintf("The guardrail of the tool %s could not decide: %v.", j.call.Name, err)}
	}
	if rejected {
		j.outcome = l.refusal(j.call, l.redact(message))
	}
	return nil
}

// checkApproval finds out whether the call was allowed, rejected, waits or
// must be asked for. A decision holds for these arguments only (rule R93).
func (l *loop) checkApproval(ctx context.Context, j *job) error {
	call := j.call
	if call.Asked != nil {
		switch {
		case call.Decision == nil:
			j.waits = true
		case call.Decision.Kind == DecisionApproved:
			j.use.Approval = call.Decision.Approval
		default:
			j.outcome = l.refusal(call, l.rejected(call))
			if call.Asked.Conflict != "" {
				j.outcome.Effect = EffectUnknown
			}
		}
		return nil
	}
	if j.tool.NeedsApproval == nil {
		return nil
	}
	needed, err := j.tool.NeedsApproval(ctx, j.use)
	if err != nil {
		j.outcome = l.refusal(call, l.errorText(err))
		return raise(j, err)
	}
	if needed {
		j.ask = &approvalRequested{Call: call.Key, Tool: call.Name, Hash: ArgumentHash(call.Name, call.Arguments)}
	}
	return nil
}

func (l *loop) rejected(call *CallState) string {
	decision := call.Decision
	text := NotApproved
	switch {
	case decision.By == ByHost:
		text = RefusedByHost
	case decision.Kind == DecisionExpired:
		text = "Not approved in time: nobody decided before the request expired"
	case decision.By != "":
		text += " by " + decision.By
	}
	if decision.Reason != "" {
		text += ": " + l.redact(decision.Reason)
	}
	return text + "\n" + notRun
}

// How the output of a call begins that was not run, and how it ends.
const (
	NotApproved   = "Not approved"
	RefusedByHost = "Refused by the host's rules"
	notRun        = "The call was not run. Do not repeat it unchanged."
)

// WhyRefused returns the reason in the output of a call that the host's own
// rules refused, and false for any other output.
func WhyRefused(output string) (reason string, refused bool) {
	reason, refused = strings.CutPrefix(output, RefusedByHost+": ")
	return strings.TrimSpace(strings.TrimSuffix(reason, notRun)), refused
}

// notFound answers a call to a tool that the agent does not have (rules R26
// and R59).
func (l *loop) notFound(agent agents.Agent, name string) string {
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	known := slices.Clone(agent.Tools)
	if len(l.targets(agent)) > 0 && !slices.Contains(known, HandoffTool) {
		known = append(known, HandoffTool)
	}
	if len(known) == 0 {
		return fmt.Sprintf("Tool %q not found: you have no tools. Answer in words.", strings.ToValidUTF8(name, "�"))
	}
	return fmt.Sprintf("Tool %q not found. Your tools are: %s.", strings.ToValidUTF8(name, "�"), strings.Join(known, ", "))
}

// offer lists what the model may call: the agent's tools in its order, then
// handoff_to. The list is the same at every turn, which keeps the beginning of
// requests the same.
func (l *loop) offer(agent agents.Agent) ([]agents.ToolSpec, error) {
	if specs, ok := l.offers[agent.ID]; ok {
		return specs, nil
	}
	var specs []agents.ToolSpec
	for _, name := range agent.Tools {
		switch {
		case name == HandoffTool:
		case l.isAgentCall(agent, name):
			specs = append(specs, l.agentSpec(agent, name))
		default:
			tool, err := l.tool(agent, name)
			if err != nil {
				return nil, err
			}
			schema := tool.Schema
			if len(schema) == 0 {
				schema = json.RawMessage(`{"type":"object","properties":{}}`)
			}
			specs = append(specs, agents.ToolSpec{Name: name, Description: tool.Description, Schema: schema})
		}
	}
	if targets := l.targets(agent); len(targets) > 0 {
		specs = append(specs, handoffSpec(l.Crew, targets))
	}
	l.offers[agent.ID] = specs
	return specs, nil
}
