package intake

import (
	"context"
	"errors"

	"handoff/agents"
	"handoff/runner/store"
)

// The session variables that say what a session is for, where it is not for
// doing its task.
const (
	// VariableErrand is [ErrandPlan] or [ErrandCheck].
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
)

// checkTask stands where a session has its task.
const checkTask = "check that a session can work here"

// errand starts a session that does not do its task.
func (r *Router) errand(command store.Command, detail store.CommentDetail, lane int, errand string) store.Routing {
	routing := r.task(command, detail, lane)
	routing.Session.Variables = agents.Variables{VariableErrand: errand}
	if errand == ErrandCheck {
		routing.Session.Task = checkTask
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
