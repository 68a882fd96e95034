package plan

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"handoff/agents"
)

// Path is where the plan of a specification is kept, relative to the
// repository.
const Path = ".bluprint/state/plan.json"

// planVersion is the version of the plan file's form.
const planVersion = 1

// temperature leaves a little freedom in how work is divided (rule R32).
const temperature = 0.3

// A Plan is a specification divided into assignments, in an order in which
// they can be done.
type Plan struct {
	Version int          `json:"version"`
	Tasks   []Assignment `json:"tasks"`
}

// An Assignment is a task that can be given away: it says all that is needed.
type Assignment struct {
	// ID is unique within the plan.
	ID           string `json:"id"`
	Title        string `json:"title"`
	Instructions string `json:"instructions"`
	// Rules are ids of the rules that hold for it, one at least.
	Rules []string `json:"rules"`
	// Scope says what may be changed, Criteria how to see that it is done.
	Scope    []string `json:"scope,omitempty"`
	Criteria []string `json:"criteria,omitempty"`
	// Dependencies are ids of assignments that must be done before.
	Dependencies []string `json:"dependencies,omitempty"`
}

// A Rule is what the planner knows of a rule file: see package agents/rules.
type Rule struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// A Generator asks a model one question. The client of package agents/llm is
// one. Errors are [*agents.Error] with code LLM_ERROR or CANCELLED.
type Generator interface {
	GenerateText(ctx context.Context, messages []*agents.Message, options agents.GenerateOptions) (agents.Response, error)
}

//go:embed prompts/divide.txt
var instructions string

// Divide asks the model to divide a specification. The model may look at the
// rules and at the repository's files. Divide fails with an [*agents.Error]
// with code LLM_ERROR when the model cannot be asked or its answer is no plan:
// not JSON, no tasks, an unknown rule or dependency, an id twice, a cycle.
func Divide(ctx context.Context, model Generator, repository *os.Root, specification string, rules []Rule) (Plan, agents.Usage, error) {
	tools, err := lookingTools(repository, rules)
	if err != nil {
		return Plan{}, agents.Usage{}, err
	}
	boundary := "B0" + rand.Text() // the digit lets tapes tell it from a word
	messages := []*agents.Message{
		{Role: agents.RoleSystem, Content: instructions},
		{Role: agents.RoleUser, Content: fmt.Sprintf("The specification:\n[begin %s]\n%s\n[end %s]", boundary, specification, boundary)},
	}
	low := temperature
	response, err := model.GenerateText(ctx, messages, agents.GenerateOptions{Name: "planner", Temperature: &low, Tools: tools})
	if err != nil {
		return Plan{}, agents.Usage{}, err
	}
	plan, err := parse(response.Text, rules)
	if err != nil {
		return Plan{}, response.Usage, &agents.Error{
			Code: agents.CodeLLM, Kind: agents.KindMalformed, Err: err, Usage: response.Usage,
			Message: fmt.Sprintf("The model's plan cannot be used: %v. Try again or use another model.", err),
		}
	}
	return plan, response.Usage, nil
}

// Write replaces the repository's plan file in one step.
func (p Plan) Write(repository *os.Root) error {
	encoded, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := repository.MkdirAll(path.Dir(Path), 0o755); err != nil {
		return fmt.Errorf("make the folder of the plan: %w", err)
	}
	temporary := Path + "." + rand.Text()
	if err := repository.WriteFile(temporary, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the plan: %w", errors.Join(err, repository.Remove(temporary)))
	}
	if err := repository.Rename(temporary, Path); err != nil {
		return fmt.Errorf("replace the plan: %w", errors.Join(err, repository.Remove(temporary)))
	}
	return nil
}

// parse reads a model's answer: the plan, or its list of tasks alone.
func parse(answer string, rules []Rule) (Plan, error) {
	answer = agents.Unfence(answer)
	plan := Plan{}
	err := json.Unmarshal([]byte(answer), &plan)
	if err != nil && strings.HasPrefix(answer, "[") {
		err = json.Unmarshal([]byte(answer), &plan.Tasks)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("it is not the JSON that was asked for: %w", err)
	}
	plan.Version = planVersion
	if n := len(plan.Tasks); n == 0 || n > MaxTasks {
		return Plan{}, fmt.Errorf("it has %d tasks, not 1 to %d", n, MaxTasks)
	}
	known := make(map[string]bool, len(rules))
	for _, rule := range rules {
		known[rule.ID] = true
	}
	ids := map[string]bool{}
	for i := range plan.Tasks {
		if err := plan.Tasks[i].check(known, ids); err != nil {
			return Plan{}, fmt.Errorf("tasks[%d]: %w", i, err)
		}
	}
	plan.Tasks, err = inOrder(plan.Tasks)
	return plan, err
}

// check cleans an assignment and says what is wrong with it alone.
func (a *Assignment) check(rules, ids map[string]bool) error {
	a.ID, a.Title = agents.OneLine(a.ID), agents.OneLine(a.Title)
	a.Instructions = strings.TrimSpace(a.Instructions)
	switch {
	case a.ID == "":
		return errors.New("the id is empty")
	case ids[a.ID]:
		return fmt.Errorf("the id %q is used twice", a.ID)
	case a.Title == "" || a.Instructions == "":
		return errors.New("the title or the instructions are empty")
	case utf8.RuneCountInString(a.Title) > MaxTitle:
		return fmt.Errorf("the title has more than %d characters", MaxTitle)
	case len(a.Rules) == 0:
		return errors.New("it names no rule")
	}
	ids[a.ID] = true
	for _, rule := range a.Rules {
		if !rules[rule] {
			return fmt.Errorf("there is no rule %q", rule)
		}
	}
	return nil
}

// inOrder puts assignments after those that they depend on and otherwise
// leaves their order alone.
func inOrder(tasks []Assignment) ([]Assignment, error) {
	for _, task := range tasks {
		for _, id := range task.Dependencies {
			if !slices.ContainsFunc(tasks, func(t Assignment) bool { return t.ID == id }) {
				return nil, fmt.Errorf("task %s depends on %q, which does not exist", task.ID, id)
			}
		}
	}
	ordered := make([]Assignment, 0, len(tasks))
	done := map[string]bool{}
	for len(ordered) < len(tasks) {
		next := slices.IndexFunc(tasks, func(t Assignment) bool {
			return !done[t.ID] && !slices.ContainsFunc(t.Dependencies, func(id string) bool { return !done[id] })
		})
		if next < 0 {
			return nil, errors.New("its dependencies form a circle")
		}
		ordered = append(ordered, tasks[next])
		done[tasks[next].ID] = true
	}
	return ordered, nil
}
