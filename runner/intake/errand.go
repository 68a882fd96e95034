package intake

import (
	"context"
	"errors"

	"handoff/agents"
	"handoff/runner/store"
)

// The session variables that say what a session is for, where that is more or
// less than doing its task.
const (
	// VariableErrand is [ErrandPlan], [ErrandCheck] or [ErrandFix].
	VariableErrand = "errand"
	// VariablePlanOf: work by the plan that the other session made.
	VariablePlanOf = "plan_of"
)

// The errands that a session can have.
const (
	// ErrandPlan: the first agent alone reads and makes a checklist, and the
	// session ends with it.
	ErrandPlan = "plan"
	// ErrandCheck: the host tries out everything that a session needs, without
	// any model.
	ErrandCheck = "check"
	// ErrandFix: the host runs the tests on the base, and where they fail the
	// crew mends the cause.
	ErrandFix = "fix"
)

// errandTasks stand where a session has its task, for errands that nobody
// words.
var errandTasks = map[string]string{
	ErrandCheck: "check that a session can work here",
	ErrandFix:   "find out why the tests fail, and mend the cause",
}

// errand starts a session with an errand.
func (r *Router) errand(command store.Command, detail store.CommentDetail, lane int, errand string) store.Routing {
	routing := r.task(command, detail, lane)
	routing.Session.Variables = agents.Variables{VariableErrand: errand}
	if task := errandTasks[errand]; task != "" {
		routing.Session.Task = task
	}
	return routing
}

// goOn starts the session that works by the plan that was made last. The plan
// is the last thing that happened on the issue: after anything else it may not
// fit any more.
func (r *Router) goOn(ctx context.Context, command store.Command, lane int) (store.Routing, error) {
	last, err := r.store.LastSession(ctx, command.RepositoryID, lane)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Routing{}, err
	}
	if err != nil || last.State != store.StateCompleted || last.Variables[VariableErrand] != ErrandPlan {
		return r.reply(command, "nothing_to_go", answerData{}), nil
	}
	routing := r.seen(command, outcomeSession)
	routing.Session = r.session(command, lane)
	routing.Session.Task, routing.Session.IssueTitle, routing.Session.IssueBody = last.Task, last.IssueTitle, last.IssueBody
	routing.Session.Variables = agents.Variables{VariablePlanOf: last.ID}
	return routing, nil
}
