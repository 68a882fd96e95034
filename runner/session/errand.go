package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/intake"
	"handoff/runner/report"
	"handoff/runner/store"
	"handoff/runner/verdict"
)

// varPlan holds the plan that a session made, for the one that works by it.
const varPlan = "plan"

// maxPlan bounds a plan, in bytes.
const maxPlan = 20_000

// planTools are what the first agent may use for a plan: nothing that changes
// anything, and nobody to hand over to.
var planTools = []string{"plan_task", "list_files", "search_files", "read_file"}

// errand says what the session is for, "" for doing its task.
func (h *hold) errand() string { return h.session.Variables[intake.VariableErrand] }

// serve does what the session is for.
func (h *hold) serve(ctx context.Context) error {
	switch h.errand() {
	case intake.ErrandCheck:
		return h.check(ctx)
	case intake.ErrandFix:
		if err := h.findFailure(ctx); err != nil || h.ended {
			return err
		}
	}
	return h.run(ctx)
}

// findFailure runs the tests on the base, for the crew to know what fails. Where
// nothing does the session ends without any model.
func (h *hold) findFailure(ctx context.Context) error {
	switch {
	case h.lease.Session().NextSeq > 1:
		return nil // the crew was told
	case len(h.config.Test) == 0:
		return &fault{
			code: "NO_TESTS", message: "No test command is configured, so nothing says what is broken.",
			next: "Name one as `test` in `.github/handoff.yml`, or comment `/copilot` and what is to be mended.",
		}
	case h.bench.box == nil:
		return nil
	}
	tests, err := h.testBase(ctx)
	if err != nil {
		return err
	}
	if tests.Outcome == verdict.Passed {
		return h.finish(ctx, end{
			state: store.StateCompleted, headline: "Nothing is broken",
			result: fmt.Sprintf("The tests pass on `%s` at %s.", h.beginsOn(), h.base.commit[:12]),
			next:   "Comment `/copilot` and what is wrong, if they do not tell.",
		})
	}
	h.failing = quoteLines(tail(tests.output, maxTestOutput))
	return nil
}

// planOnly leaves to the first agent what makes a plan, so that nothing can
// change and nobody else gets to work. What an agent cannot do is not a matter
// of its instructions.
func (h *hold) planOnly() {
	agent := h.crew[firstAgent]
	agent.Handoffs = nil
	agent.Tools = slices.DeleteFunc(slices.Clone(agent.Tools), func(tool string) bool { return !slices.Contains(planTools, tool) })
	h.crew[firstAgent] = agent
}

// finishPlan ends a session with its plan, which is kept for the session that
// will work by it.
func (h *hold) finishPlan(ctx context.Context, outcome runner.Outcome) error {
	past, err := h.history(ctx)
	if err != nil {
		return err
	}
	var plan strings.Builder
	for _, task := range Checklist(past.items) {
		plan.WriteString("- " + task.Title)
		if task.Owner != "" {
			plan.WriteString(" (" + task.Owner + ")")
		}
		plan.WriteString("\n")
	}
	plan.WriteString("\n" + outcome.Output)
	kept := report.Cut(strings.TrimSpace(plan.String()), maxPlan)
	if _, err := h.lease.Append(ctx, runner.Batch{Variables: agents.Variables{varPlan: kept}}); err != nil {
		return err
	}
	return h.finish(ctx, end{
		state: store.StateCompleted, headline: "The plan is ready", result: outcome.Output,
		next: "Comment `/copilot go` to let the crew work by this plan, or `/copilot plan` and what should be different for another one. Nothing has been changed.",
	})
}

// loadPlan finds the plan that the session shall work by. It is an agent's text
// and reaches the crew quoted, like everything that a person did not write.
func (h *hold) loadPlan(ctx context.Context) error {
	from := h.session.Variables[intake.VariablePlanOf]
	if from == "" {
		return nil
	}
	past, err := h.Store.Session(ctx, from)
	switch {
	case err != nil:
		return fmt.Errorf("the session that made the plan: %w", err)
	case past.RepositoryID != h.session.RepositoryID || past.InstallationID != h.session.InstallationID || past.Variables[varPlan] == "":
		return nil
	}
	h.plan = quoteLines(past.Variables[varPlan])
	return nil
}
