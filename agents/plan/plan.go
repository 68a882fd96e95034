// Package plan holds what a crew intends to do: the checklist that people
// watch on the issue.
//
// The idea is that a checklist is written by one agent and ticked by nobody:
// ticks are computed from what happened. A task belongs to an agent; when
// that agent passes control on to the work that comes after, its task is
// done; when control comes back to it, its task is open again. So the
// checklist cannot drift away from the session, and it needs no tool call and
// no model's word to move.
//
// A [Checklist] is a plain value, written as JSON into the session variable
// "plan" by the tool plan_task and folded over the session's items by [Fold]
// for whoever shows it. Its functions are pure and return new values.
//
// Beside it stands the [Plan] of a whole specification, for work that is not
// one session's: [Divide] asks a model for it, checks every word of the answer
// against the rules that the repository has, and [Plan.Write] keeps it.
package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"handoff/agents"
)

// Variable is the session variable that holds the checklist as JSON.
const Variable = "plan"

// The limits of a checklist. It is shown in a comment, where more is noise.
const (
	MaxTasks = 30
	// MaxTitle is in characters.
	MaxTitle = 160
)

// A Task is one outcome that can be checked.
type Task struct {
	Title string `json:"title" jsonschema:"one outcome that can be checked, in at most 160 characters"`
	Done  bool   `json:"done,omitempty" jsonschema:"true if this is done already"`
	Owner string `json:"owner,omitempty" jsonschema:"slug of the agent who will do it"`
}

// A Checklist is the crew's tasks in the order of the work.
type Checklist []Task

// Validate cleans the tasks and says what is wrong with them, for a model to
// act on. Owners are matched without regard to case; owners, when given, are
// the agents that exist.
func Validate(tasks []Task, owners []string) (Checklist, error) {
	if len(tasks) == 0 {
		return nil, fmt.Errorf("tasks is empty: list at least one task")
	}
	if len(tasks) > MaxTasks {
		return nil, fmt.Errorf("%d tasks are too many to watch; at most %d", len(tasks), MaxTasks)
	}
	list := make(Checklist, len(tasks))
	seen := map[string]int{}
	for i, task := range tasks {
		task.Title = agents.OneLine(task.Title)
		task.Owner = strings.ToLower(strings.TrimSpace(task.Owner))
		switch first, double := seen[strings.ToLower(task.Title)]; {
		case task.Title == "":
			return nil, fmt.Errorf("tasks[%d].title is empty", i)
		case utf8.RuneCountInString(task.Title) > MaxTitle:
			return nil, fmt.Errorf("tasks[%d].title has more than %d characters; say it shorter", i, MaxTitle)
		case double:
			return nil, fmt.Errorf("tasks[%d].title is the same as tasks[%d].title", i, first)
		case task.Owner != "" && len(owners) > 0 && !slices.Contains(owners, task.Owner):
			return nil, fmt.Errorf("tasks[%d].owner: no agent is called %q; the agents are %s", i, task.Owner, strings.Join(owners, ", "))
		}
		seen[strings.ToLower(task.Title)] = i
		list[i] = task
	}
	return list, nil
}

// Encode writes the checklist as the session variable holds it.
func (l Checklist) Encode() string {
	if l == nil {
		l = Checklist{}
	}
	text, err := json.Marshal(l)
	if err != nil {
		return "[]" // strings and booleans always encode
	}
	return string(text)
}

// Decode reads what [Checklist.Encode] wrote; "" is no checklist.
func Decode(text string) (Checklist, error) {
	if text == "" {
		return nil, nil
	}
	var list Checklist
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("the session's plan is not a checklist: %w", err)
	}
	return list, nil
}

// HandedOff is the checklist after control went from one agent to another.
//
// Going on to later work ticks what the giver has done: its first open task.
// Passing on earlier work, as a manager does whose own task comes last, ticks
// nothing. Going back to an agent whose work was done opens that agent's last
// task again, since the giver found something wrong.
func (l Checklist) HandedOff(from, to string) Checklist {
	next := slices.Clone(l)
	given, taken := next.firstOpen(from), next.firstOpen(to)
	again := next.lastDone(to)
	switch {
	case taken < 0 && again >= 0 && (given < 0 || again < given):
		next[again].Done = false
	case given >= 0 && (taken < 0 || taken >= given):
		next[given].Done = true
	}
	return next
}

// Current is the index of the task that the agent works at, -1 for none.
func (l Checklist) Current(agent string) int { return l.firstOpen(agent) }

func (l Checklist) firstOpen(owner string) int {
	return slices.IndexFunc(l, func(t Task) bool { return t.Owner == owner && !t.Done })
}

func (l Checklist) lastDone(owner string) int {
	for i, task := range slices.Backward(l) {
		if task.Owner == owner && task.Done {
			return i
		}
	}
	return -1
}

// ToolName is the tool that writes a checklist.
const ToolName = "plan_task"

// Fold computes the checklist from a session's items: the last one that was
// written, moved on by the handoffs after it. It is nil when there was none.
func Fold(items []agents.Item) Checklist {
	var list Checklist
	for _, item := range items {
		switch item.Kind {
		case agents.KindToolCallOutput:
			if written := writtenBy(item); written != nil {
				list = written
			}
		case agents.KindHandoffOutput:
			if item.From != "" && item.To != "" && !item.IsError {
				list = list.HandedOff(item.From, item.To)
			}
		}
	}
	return list
}

// writtenBy is the checklist that a tool output stands for, nil for none.
func writtenBy(item agents.Item) Checklist {
	if item.Call == nil || item.Call.Name != ToolName || item.IsError {
		return nil
	}
	var args struct {
		Tasks []Task `json:"tasks"`
	}
	if json.Unmarshal([]byte(item.Call.Arguments), &args) != nil {
		return nil
	}
	list, err := Validate(args.Tasks, nil)
	if err != nil {
		return nil
	}
	return list
}
