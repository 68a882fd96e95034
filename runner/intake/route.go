package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

// The words of [store.Command.Outcome] that programs look for.
const (
	outcomeSession  = "session"
	outcomeMessage  = "message"
	outcomeStopped  = "stopped"
	outcomeAnswered = "answered"
	outcomeDecided  = "decided"
	outcomeNoticed  = "noticed"
)

// attemptsKept is how often a command is tried when GitHub does not answer or
// something else fails: with the waits below, for about half an hour.
const attemptsKept = 12

// retryWait is the wait before the next attempt: 2 s, doubled up to 5 min.
func retryWait(attempt int) time.Duration {
	const longest = 5 * time.Minute
	if attempt > 8 {
		return longest
	}
	return min(2*time.Second<<max(attempt-1, 0), longest)
}

// routeAttempts bounds how often a command is decided again because a session
// ended, or another node said the same thing, between looking and writing.
const routeAttempts = 4

// take routes a claimed command or gives it back.
func (r *Router) take(ctx context.Context, node *store.Node, command store.Command) {
	log := r.logger.With("command", command.ID, "kind", string(command.Kind), "verb", command.Verb,
		"repository", command.RepositoryID, "issue", command.Issue, "actor", command.ActorID)
	outcome, err := r.tryRoute(ctx, node, command)
	switch {
	case err == nil:
		log.InfoContext(ctx, "routed a command", "outcome", outcome)
	case errors.Is(err, runner.ErrFenced), errors.Is(err, store.ErrNodeExpired), ctx.Err() != nil:
		log.InfoContext(ctx, "a command is left to another node", "error", err)
	default:
		log.WarnContext(ctx, "a command is tried again later", "attempt", command.Attempts, "error", err)
		r.release(ctx, node, command, err)
	}
}

// tryRoute decides about a command and writes the decision, again if things
// changed in between. It returns what became of the command.
func (r *Router) tryRoute(ctx context.Context, node *store.Node, command store.Command) (outcome string, err error) {
	for range routeAttempts {
		var routing store.Routing
		err = runner.Contain(func() (err error) {
			routing, err = r.decide(ctx, command)
			return err
		})
		if err != nil {
			if command.Attempts < attemptsKept {
				return "", err
			}
			routing = r.giveUp(command, err)
		}
		err = r.store.RouteCommand(ctx, node, command.ID, routing)
		// A session that ended meanwhile takes no message, and an answer that
		// another node gave is not given again: look once more.
		if !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrDuplicate) {
			return routing.Outcome, err
		}
	}
	return "", err
}

// release gives a command back for later.
func (r *Router) release(ctx context.Context, node *store.Node, command store.Command, cause error) {
	at := r.now().Add(retryWait(command.Attempts))
	if failed, ok := errors.AsType[*github.Error](cause); ok && failed.RetryAt.After(at) {
		at = failed.RetryAt
	}
	if errors.Is(cause, store.ErrTooEarly) {
		at = r.now().Add(store.ApprovalCooldown)
	}
	if err := r.store.ReleaseCommand(ctx, node, command.ID, at, cause.Error()); err != nil && ctx.Err() == nil {
		r.logger.WarnContext(ctx, "a command could not be given back; it returns when this node's lease ends", "command", command.ID, "error", err)
	}
}

// giveUp refuses a command that could not be decided for too long, so that it
// does not hold up the later ones of its issue for ever.
func (r *Router) giveUp(command store.Command, cause error) store.Routing {
	if command.Kind != store.CommandComment {
		return refused(fmt.Sprintf("given up: %v", cause))
	}
	return r.answer(command, store.CommandRefused, "given up: "+cause.Error(), answerKey(command), "unanswered", answerData{Reason: messageOf(cause)})
}

// messageOf returns the sentence of an error of GitHub's.
func messageOf(err error) string {
	if failed, ok := errors.AsType[*github.Error](err); ok {
		return failed.Message
	}
	return "Something went wrong on this side; the operator finds the reason in the log."
}

// refused ends a command without a word to anybody.
func refused(outcome string) store.Routing {
	return store.Routing{State: store.CommandRefused, Outcome: outcome}
}

// decide finds out what a command becomes. An error means later.
func (r *Router) decide(ctx context.Context, command store.Command) (store.Routing, error) {
	if command.Kind == store.CommandNotice {
		return r.notice(ctx, command)
	}
	if !r.serves(command.Owner) {
		if command.Kind != store.CommandComment {
			return refused("the account is not served here"), nil
		}
		return r.once(ctx, r.answer(command, store.CommandRefused, "the account is not served here",
			fmt.Sprintf("intake/owner/%d", command.InstallationID), "owner", answerData{}))
	}
	if exceeded := r.limits.arrived(r.now(), command); exceeded != "" {
		return r.limited(ctx, command, exceeded)
	}
	repository := r.repository(command.InstallationID, command.RepositoryID)
	facts, err := repository.Repository(ctx)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotInstalled, code == github.CodeNotFound, code == github.CodeForbidden:
		// Nothing can be said where the App has no access.
		return refused("the installation does not cover the repository"), nil
	case err != nil:
		return store.Routing{}, err
	case !r.serves(facts.Owner):
		return refused("the account is not served here"), nil
	case facts.Archived || facts.Disabled:
		return refused("the repository is archived"), nil
	}
	command.Owner, command.Repository = facts.Owner, facts.Name
	if command.Kind == store.CommandCheckAction {
		return r.click(ctx, command)
	}
	return r.comment(ctx, command, repository)
}

// limited refuses a command that is one too many, with one notice an hour for
// whatever is over its limit. Whoever was told before that the role is missing
// is not answered again.
func (r *Router) limited(ctx context.Context, command store.Command, exceeded string) (store.Routing, error) {
	outcome := "too many commands per " + exceeded
	_, err := r.store.EffectByKey(ctx, roleKey(command))
	switch {
	case err == nil || command.Kind != store.CommandComment:
		return refused(outcome), nil
	case !errors.Is(err, store.ErrNotFound):
		return store.Routing{}, err
	}
	name := map[string]int64{perPerson: command.ActorID, perIssue: int64(command.Issue)}[exceeded]
	key := fmt.Sprintf("intake/limited/%d/%s/%d/%s", command.RepositoryID, exceeded, name, command.CreatedAt.UTC().Format("2006-01-02T15"))
	return r.once(ctx, r.answer(command, store.CommandRefused, outcome, key, "limited", answerData{}))
}

// roleKey is the key of the answer to a person without the role. It is for
// ever: one answer to a person on an issue, then silence.
func roleKey(command store.Command) string {
	return fmt.Sprintf("intake/role/%d/%d/%d", command.RepositoryID, command.Issue, command.ActorID)
}

// serves says whether the operator serves an account.
func (r *Router) serves(owner string) bool {
	return len(r.allowed) == 0 || r.allowed[strings.ToLower(owner)]
}

// once leaves the answer out of a routing if it was given before.
func (r *Router) once(ctx context.Context, routing store.Routing) (store.Routing, error) {
	var kept []store.Effect
	for _, effect := range routing.Effects {
		_, err := r.store.EffectByKey(ctx, effect.Key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			kept = append(kept, effect)
		case err != nil:
			return store.Routing{}, err
		}
	}
	routing.Effects = kept
	return routing, nil
}
