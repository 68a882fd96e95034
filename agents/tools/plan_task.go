package tools

import (
	"context"
	"fmt"
	"strings"

	"handoff/agents"
	"handoff/agents/plan"
)

type planTaskArgs struct {
	Tasks []plan.Task `json:"tasks" jsonschema:"the whole checklist, in the order of the work; it replaces the one before"`
}

func planTaskTool(b *Toolbox) (agents.Tool, error) {
	return agents.MakeTool(plan.ToolName,
		"Sets the checklist that people watch on the issue: three to seven outcomes, each with the agent who owns it. Tasks are ticked by themselves when their owner hands on.",
		b.planTask)
}

func (b *Toolbox) planTask(_ context.Context, _ agents.Call, args planTaskArgs) (agents.Result, error) {
	list, err := plan.Validate(args.Tasks, b.config.Agents)
	if err != nil {
		return refused("The checklist was not changed: %v.", err), nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "The checklist has %s:\n", plural(len(list), "task"))
	for i, task := range list {
		mark := " "
		if task.Done {
			mark = "x"
		}
		fmt.Fprintf(&out, "%d. [%s] %s", i+1, mark, task.Title)
		if task.Owner != "" {
			fmt.Fprintf(&out, " (%s)", task.Owner)
		}
		out.WriteByte('\n')
	}
	return agents.Result{
		Output:    strings.TrimRight(out.String(), "\n"),
		Summary:   plural(len(list), "task"),
		Variables: agents.Variables{plan.Variable: list.Encode()},
	}, nil
}
