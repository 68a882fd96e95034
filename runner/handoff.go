package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
)

// HandoffTool is the name of the tool by which agents pass control.
const HandoffTool = "handoff_to"

// handoffArguments is what a model sends. Reason and context are asked for but
// may be missing.
type handoffArguments struct {
	Target  string `json:"target_agent"`
	Reason  string `json:"reason"`
	Context string `json:"context"`
}

// targets are the agents that an agent may hand over to now.
func (l *loop) targets(agent agents.Agent) []string {
	var targets []string
	for _, handoff := range agent.Handoffs {
		_, known := l.Crew[handoff.Target]
		if known && !handoff.Disabled && handoff.Target != agent.ID {
			targets = append(targets, handoff.Target)
		}
	}
	return targets
}

// handoffSpec offers handoff_to with the targets as an enumeration.
func handoffSpec(crew map[string]agents.Agent, targets []string) agents.ToolSpec {
	var who []string
	for _, target := range targets {
		agent := crew[target]
		line := target
		if agent.Role != "" {
			line += " (" + agent.Role + ")"
		}
		who = append(who, line)
	}
	schema := objectSchema([]property{
		{name: "target_agent", enum: targets, description: "Who goes on."},
		{name: "reason", description: "Why, in one sentence."},
		{name: "context", description: "What the next agent must know: what is done, what is open, where to look."},
	})
	return agents.ToolSpec{
		Name:        HandoffTool,
		Description: "Pass the work to another agent of the crew and stop. One handoff per turn. Agents: " + strings.Join(who, ", ") + ".",
		Schema:      schema,
	}
}

// A property is one string argument of a host tool.
type property struct {
	name        string
	description string
	enum        []string
}

// objectSchema encodes a strict schema of required strings, in their order.
func objectSchema(properties []property) json.RawMessage {
	var fields, required []string
	for _, p := range properties {
		field := map[string]any{"type": "string", "description": p.description}
		if p.enum != nil {
			field["enum"] = p.enum
		}
		encoded, _ := json.Marshal(field) // strings can always be encoded
		name, _ := json.Marshal(p.name)
		fields = append(fields, string(name)+":"+string(encoded))
		required = append(required, string(name))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(fields, ",") +
		`},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`)
}

// handOff carries out the first valid handoff of the pending turn, after all
// its other calls. It answers every handoff call and returns the new agent, ""
// when there was no valid one. Everything is one append (rules R51 and R107).
func (l *loop) handOff(ctx context.Context, run *RunState, agent agents.Agent) (to string, err error) {
	var drafts []draft
	var committed *handoffCommitted
	for _, call := range run.Pending.Calls {
		if call.Name != HandoffTool || call.Outcome != nil {
			continue
		}
		switch target, args, refusal := l.checkHandoff(agent, call); {
		case refusal != "":
			drafts = append(drafts, outcomeDraft(run, *l.refusal(call, refusal)))
		case committed != nil:
			drafts = append(drafts, outcomeDraft(run, *l.refusal(call, "ignored: one handoff per turn, and this turn's went to "+committed.To+".")))
		default:
			committed = l.handoffRecord(agent, target, args, call)
		}
	}
	if committed == nil {
		if len(drafts) == 0 {
			return "", nil
		}
		return "", l.append(ctx, Batch{}, drafts...)
	}
	if run.Handoffs >= l.config.MaxHandoffs {
		return "", &agents.Error{Code: agents.CodeLimitHandoffs, Message: fmt.Sprintf(
			"The crew handed the work over %d times and wanted to once more. What was done so far is kept; say who should finish it and ask again.", run.Handoffs)}
	}
	batch := Batch{}
	if run.Parent == "" {
		batch.ActiveAgent = committed.To
	}
	drafts = append(drafts,
		draft{run: run, kind: RecordHandoffCommitted, payload: *committed},
		draft{run: run, kind: RecordStepCommitted, payload: stepCommitted{Step: StepHandoff, To: committed.To}})
	return committed.To, l.append(ctx, batch, drafts...)
}

// checkHandoff returns the target of a handoff call, or why it is refused.
// Targets match by slug or name, in any case (rule R54).
func (l *loop) checkHandoff(agent agents.Agent, call *CallState) (target agents.Handoff, args handoffArguments, refusal string) {
	targets := l.targets(agent)
	if len(targets) == 0 {
		return target, args, l.notFound(agent, HandoffTool)
	}
	choose := " Hand off to one of: " + strings.Join(targets, ", ") + "."
	if err := json.Unmarshal(arguments(call), &args); err != nil {
		return target, args, string(agents.CodeInvalidArgs) + ": the arguments must be a JSON object with target_agent, reason and context." + choose
	}
	wanted := strings.TrimSpace(args.Target)
	if wanted == "" {
		return target, args, string(agents.CodeInvalidArgs) + ": target_agent is required and missing." + choose
	}
	for _, handoff := range agent.Handoffs {
		if !slices.Contains(targets, handoff.Target) {
			continue
		}
		if strings.EqualFold(wanted, handoff.Target) || strings.EqualFold(wanted, l.Crew[handoff.Target].Name) {
			return handoff, args, ""
		}
	}
	if strings.EqualFold(wanted, agent.ID) || strings.EqualFold(wanted, agent.Name) {
		return target, args, "You are " + agent.ID + " already." + choose
	}
	if len(wanted) > 100 {
		wanted = wanted[:100]
	}
	return target, args, fmt.Sprintf("There is no agent %q that you may hand over to.", strings.ToValidUTF8(wanted, "�")) + choose
}

// contextLimit is the longest context that a handoff carries, in bytes.
const contextLimit = 16 << 10

// handoffRecord writes the note. The context is an agent's words: it is cut,
// cannot contain the boundary, and is framed as data (rule R50).
func (l *loop) handoffRecord(agent agents.Agent, target agents.Handoff, args handoffArguments, call *CallState) *handoffCommitted {
	context, _ := cut(l.unmarked(l.redact(args.Context)), contextLimit)
	if strings.TrimSpace(context) == "" {
		context = "(no context given)"
	}
	return &handoffCommitted{
		Call: call.Key, From: agent.ID, To: target.Target, Reason: l.redact(args.Reason), Context: context,
		Output: "Handed over to " + target.Target + ".",
		Note: prompt("handoff", agents.Variables{
			"from": agent.ID, "to": target.Target, "context": context, "boundary": l.state.Boundary,
		}),
		Nest: target.Nest || l.config.NestHistory, Filter: target.Filter != nil,
	}
}
