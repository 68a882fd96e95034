package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"handoff/agents"
	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// The session variables by which a session learns that it goes on from
// another one, whose id is the value.
const (
	// VariableRetryOf: begin with the other session's last checkpoint and task.
	VariableRetryOf = "retry_of"
	// VariableRenewOf is set beside it when an approval had expired: ask again
	// for the same, if nothing has changed without any model call.
	VariableRenewOf = "renew_of"
)

// comment routes a command that somebody wrote in a comment.
func (r *Router) comment(ctx context.Context, command store.Command, repository Repository) (store.Routing, error) {
	var detail store.CommentDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		return refused("the command's details cannot be read"), nil
	}
	refusal, err := r.checkPerson(ctx, command, repository)
	if err != nil {
		r.showSeen(ctx, command)
		return store.Routing{}, err
	}
	if refusal != nil {
		return r.once(ctx, *refusal)
	}
	if exceeded := r.limits.allowed(r.now(), command); exceeded != "" {
		return r.limited(ctx, command, exceeded)
	}
	lane, err := r.lane(ctx, command, detail, repository)
	if err != nil {
		r.showSeen(ctx, command)
		return store.Routing{}, err
	}
	return r.verb(ctx, command, detail, lane)
}

// checkPerson returns the refusal of a person without the role, nil for one
// who has it. An error means that GitHub cannot tell.
func (r *Router) checkPerson(ctx context.Context, command store.Command, repository Repository) (*store.Routing, error) {
	permission, err := repository.Permission(ctx, command.ActorID, command.ActorLogin)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeConflict || code == github.CodeValidation:
		permission = github.Permission{Role: "none"}
	case err != nil:
		return nil, err
	case permission.User.ID == command.ActorID && permission.User.Type == "User" &&
		(repoconfig.Role(permission.Role).AtLeast(r.role) || repoconfig.Role(permission.Base).AtLeast(r.role)):
		return nil, nil
	}
	routing := r.answer(command, store.CommandRefused, "the person lacks the role "+string(r.role), roleKey(command), "role", answerData{Needed: string(r.role), Role: permission.Role})
	return &routing, nil
}

// branchOfIssue matches the branches that sessions push, which begin with
// their issue's number.
var branchOfIssue = regexp.MustCompile(`^copilot/([1-9][0-9]{0,9})-`)

// lane returns the issue that a command belongs to: a comment on a pull
// request of ours belongs to the issue that the pull request came from.
func (r *Router) lane(ctx context.Context, command store.Command, detail store.CommentDetail, repository Repository) (int, error) {
	if !detail.IsPullRequest {
		return command.Issue, nil
	}
	pull, err := repository.PullRequest(ctx, command.Issue)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeGone:
		return command.Issue, nil
	case err != nil:
		return 0, err
	}
	return laneOf(pull.Head, command.Issue, pull.Author.Type == "Bot" && pull.HeadRepositoryID == command.RepositoryID), nil
}

// laneOf returns the issue in a branch's name if the branch is ours.
func laneOf(branch string, otherwise int, ours bool) int {
	if found := branchOfIssue.FindStringSubmatch(branch); ours && found != nil {
		if issue, err := strconv.Atoi(found[1]); err == nil {
			return issue
		}
	}
	return otherwise
}

// verb does what the command says, for a person who may say it.
func (r *Router) verb(ctx context.Context, command store.Command, detail store.CommentDetail, lane int) (store.Routing, error) {
	active, err := r.store.ActiveSession(ctx, command.RepositoryID, lane)
	running := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Routing{}, err
	}
	switch command.Verb {
	case "task":
		if running {
			return r.message(command, detail, active), nil
		}
		return r.task(command, detail, lane), nil
	case "plan", "go", "check", "fix":
		if running {
			return r.reply(command, "running", answerData{Verb: command.Verb, Session: r.sessionData(active)}), nil
		}
		return r.prepare(ctx, command, detail, lane)
	case "stop":
		if !running {
			return r.reply(command, "idle", answerData{Verb: "stop"}), nil
		}
		routing := r.seen(command, outcomeStopped)
		routing.CancelSession = active.ID
		return routing, nil
	case "approve", "reject":
		return r.decision(ctx, command, lane)
	case "status":
		return r.status(ctx, command, lane)
	case "retry", "renew":
		if running {
			return r.reply(command, "running", answerData{Verb: command.Verb, Session: r.sessionData(active)}), nil
		}
		return r.again(ctx, command, lane)
	case "help":
		return r.reply(command, "help", answerData{Word: command.Text}), nil
	default:
		return r.reply(command, "help", answerData{Word: command.Verb}), nil
	}
}

// prepare routes what is more or less than a task, on an issue where nothing
// runs.
func (r *Router) prepare(ctx context.Context, command store.Command, detail store.CommentDetail, lane int) (store.Routing, error) {
	switch {
	case command.Verb == "go":
		return r.goOn(ctx, command, lane)
	case command.Verb == "check":
		return r.errand(command, detail, lane, ErrandCheck), nil
	case command.Verb == "fix":
		return r.errand(command, detail, lane, ErrandFix), nil
	case strings.TrimSpace(command.Text) == "":
		return r.reply(command, "help", answerData{Word: command.Verb}), nil
	}
	return r.errand(command, detail, lane, ErrandPlan), nil
}

// task starts a session.
func (r *Router) task(command store.Command, detail store.CommentDetail, lane int) store.Routing {
	routing := r.seen(command, outcomeSession)
	routing.Session = r.session(command, lane)
	routing.Session.Task = taskText(command, detail)
	routing.Session.IssueTitle, routing.Session.IssueBody = detail.IssueTitle, detail.IssueBody
	return routing
}

func (r *Router) session(command store.Command, lane int) *store.Session {
	return &store.Session{
		InstallationID: command.InstallationID, RepositoryID: command.RepositoryID,
		Owner: command.Owner, Repository: command.Repository, Issue: lane, CommandID: command.ID,
		RequesterID: command.ActorID, RequesterLogin: command.ActorLogin, State: store.StateQueued,
	}
}

// message hands the text to the running session.
func (r *Router) message(command store.Command, detail store.CommentDetail, active store.Session) store.Routing {
	routing := r.seen(command, outcomeMessage)
	routing.Message = &store.Message{
		SessionID: active.ID, CommandID: command.ID, ActorID: command.ActorID, Actor: command.ActorLogin,
		Text: taskText(command, detail),
	}
	return routing
}

// decision passes an approval or a rejection on.
func (r *Router) decision(ctx context.Context, command store.Command, lane int) (store.Routing, error) {
	digest, reason, _ := strings.Cut(command.Text, " ")
	verdict := approval.Verdict(command.Verb == "approve")
	asked, err := r.decisions.DecideByComment(ctx, command.RepositoryID, lane, strings.Trim(digest, "`.,"), approval.Answer{
		Verdict: verdict, By: command.ActorLogin, ByID: command.ActorID,
		Via: "comment", Reason: strings.TrimSpace(reason),
	})
	if refusal, ok := errors.AsType[*approval.Refused](err); ok && !(command.Attempts > 1 && decidedBefore(asked, command.ActorID, "comment", verdict)) {
		return r.answer(command, store.CommandRefused, refusal.Reason, answerKey(command), "refused", answerData{Reason: refusal.Reason}), nil
	} else if err != nil && !ok {
		r.showSeen(ctx, command)
		return store.Routing{}, err
	}
	return r.seen(command, outcomeDecided), nil
}

// decidedBefore says whether a decision that is refused because it was made
// already was made by the same person in the same way: a crash between the
// decision and the routing, or a second click.
func decidedBefore(asked store.Approval, actor int64, via string, verdict approval.Verdict) bool {
	if asked.DecidedByID != actor || asked.DecidedVia != via {
		return false
	}
	approved := asked.State == store.ApprovalApproved || asked.State == store.ApprovalConsumed
	return (verdict == approval.Approve && approved) || (verdict == approval.Reject && asked.State == store.ApprovalRejected)
}

// again starts a session that goes on from the issue's last one.
func (r *Router) again(ctx context.Context, command store.Command, lane int) (store.Routing, error) {
	last, err := r.store.LastSession(ctx, command.RepositoryID, lane)
	if errors.Is(err, store.ErrNotFound) {
		return r.reply(command, "idle", answerData{Verb: command.Verb}), nil
	}
	if err != nil {
		return store.Routing{}, err
	}
	variables := agents.Variables{VariableRetryOf: last.ID}
	for _, name := range []string{VariableErrand, VariablePlanOf} {
		if value := last.Variables[name]; value != "" {
			variables[name] = value
		}
	}
	switch {
	case command.Verb == "renew" && last.State != store.StateExpired:
		return r.reply(command, "nothing_to_renew", answerData{Session: r.sessionData(last)}), nil
	case command.Verb == "renew":
		variables[VariableRenewOf] = last.ID
	case last.State == store.StateCompleted:
		return r.reply(command, "nothing_to_retry", answerData{Session: r.sessionData(last)}), nil
	}
	routing := r.seen(command, outcomeSession)
	routing.Session = r.session(command, lane)
	routing.Session.Task, routing.Session.IssueTitle, routing.Session.IssueBody = last.Task, last.IssueTitle, last.IssueBody
	routing.Session.Variables = variables
	return routing, nil
}

// status answers what is going on.
func (r *Router) status(ctx context.Context, command store.Command, lane int) (store.Routing, error) {
	last, err := r.store.LastSession(ctx, command.RepositoryID, lane)
	if errors.Is(err, store.ErrNotFound) {
		return r.reply(command, "idle", answerData{Verb: "status"}), nil
	}
	if err != nil {
		return store.Routing{}, err
	}
	return r.reply(command, "status", answerData{Session: r.sessionData(last)}), nil
}

// click passes a press on a check run's button on. There is no comment to
// answer to, so a refusal is told on the approval's issue, once per person.
func (r *Router) click(ctx context.Context, command store.Command) (store.Routing, error) {
	var detail store.CheckActionDetail
	if err := json.Unmarshal(command.Detail, &detail); err != nil {
		return refused("the click's details cannot be read"), nil
	}
	asked, err := r.decisions.DecideByCheckRun(ctx, command.RepositoryID, approval.Click{
		ApprovalID: detail.ExternalID, CheckRunID: detail.CheckRunID, HeadSHA: detail.HeadSHA, Identifier: detail.Identifier,
	}, approval.Answer{By: command.ActorLogin, ByID: command.ActorID, Via: "check_run"})
	refusal, ok := errors.AsType[*approval.Refused](err)
	verdict := approval.Verdict(detail.Identifier == approval.ActionApprove)
	switch {
	case ok && decidedBefore(asked, command.ActorID, "check_run", verdict):
	case ok && (asked.Issue == 0 || asked.RepositoryID != command.RepositoryID):
		return refused(refusal.Reason), nil
	case ok:
		command.Issue = asked.Issue
		return r.once(ctx, r.answer(command, store.CommandRefused, refusal.Reason,
			fmt.Sprintf("intake/click/%s/%d", asked.ID, command.ActorID), "refused", answerData{Reason: refusal.Reason}))
	case err != nil:
		return store.Routing{}, err
	}
	return store.Routing{State: store.CommandRouted, Outcome: outcomeDecided}, nil
}
