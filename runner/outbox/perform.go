package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

// The results of effects, as [store.Effect.Result] holds them.
type (
	// A CommentResult is where a comment is.
	CommentResult struct {
		CommentID int64  `json:"comment_id"`
		URL       string `json:"url"`
	}
	// A CheckRunResult is where a check run is.
	CheckRunResult struct {
		CheckRunID int64  `json:"check_run_id"`
		URL        string `json:"url"`
	}
	// A PushResult is what was pushed where.
	PushResult struct {
		Commit string `json:"commit"`
		Ref    string `json:"ref"`
		// Server is what the git server said beside the result.
		Server string `json:"server,omitempty"`
	}
	// A PullRequestResult is the pull request that was opened or updated.
	PullRequestResult struct {
		Number int    `json:"number"`
		URL    string `json:"url"`
		// Commit is what its branch is at.
		Commit string `json:"commit"`
	}
)

// errWait means that an effect refers to one whose result is not there yet.
var errWait = errors.New("the comment or check run that this refers to is not there yet")

// perform sends one effect and says how it ends, and what went wrong.
func (o *Outbox) perform(ctx context.Context, effect store.Effect, reconcile bool) (store.EffectEnd, error) {
	end := store.EffectEnd{State: store.EffectDone}
	var result any
	err := runner.Contain(func() (err error) {
		result, err = o.dispatch(ctx, effect, reconcile, &end)
		return err
	})
	if err == nil {
		end.Result, err = json.Marshal(result)
	}
	if err != nil {
		end = failure(effect, err, o.count(effect.ID, err), o.Store.Now())
	}
	if settled(end.State) {
		o.forget(effect.ID)
	}
	return o.withOutcome(effect, end, result), err
}

func settled(state store.EffectState) bool {
	return state != store.EffectPending && state != store.EffectSending
}

// count returns how often in a row an effect has failed in this process, err
// included; waiting for a rate limit is no failure. The attempts of its row are
// no measure: those of a text that is replaced again and again go on for as
// long as its session.
func (o *Outbox) count(id int64, err error) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if github.CodeOf(err) != github.CodeRateLimited {
		o.failures[id]++
	}
	return o.failures[id]
}

func (o *Outbox) forget(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failures, id)
}

func (o *Outbox) dispatch(ctx context.Context, effect store.Effect, reconcile bool, end *store.EffectEnd) (any, error) {
	repository := o.Repository(effect.InstallationID, effect.RepositoryID)
	switch effect.Kind {
	case KindCommentCreate:
		return with(o, effect, func(payload CommentCreate) (any, error) {
			return o.createComment(ctx, repository, effect, payload, reconcile, end)
		})
	case KindCommentUpdate:
		return with(o, effect, func(payload CommentUpdate) (any, error) {
			return o.updateComment(ctx, repository, payload)
		})
	case KindReaction:
		return with(o, effect, func(payload Reaction) (any, error) {
			return o.react(ctx, repository, payload)
		})
	case KindCheckRunCreate:
		return with(o, effect, func(payload CheckRunCreate) (any, error) {
			return o.createCheckRun(ctx, repository, payload, reconcile, end)
		})
	case KindCheckRunUpdate:
		return with(o, effect, func(payload CheckRunUpdate) (any, error) {
			return o.updateCheckRun(ctx, repository, payload)
		})
	case KindPush:
		return with(o, effect, func(payload Push) (any, error) {
			return o.push(ctx, effect, payload)
		})
	case KindPullRequest:
		return with(o, effect, func(payload PullRequest) (any, error) {
			return o.pullRequest(ctx, repository, effect, payload)
		})
	}
	return nil, &Refusal{Reason: fmt.Sprintf("this version of handoff knows no effect of kind %q; upgrade this node", effect.Kind)}
}

// with takes the secrets out of the effect's payload and decodes it.
func with[P any](o *Outbox, effect store.Effect, do func(P) (any, error)) (any, error) {
	clean, err := o.redacted(effect.Payload)
	if err != nil {
		return nil, err
	}
	var payload P
	if err := json.Unmarshal(clean, &payload); err != nil {
		return nil, &Refusal{Reason: "the effect's payload cannot be read: " + err.Error(), Err: err}
	}
	return do(payload)
}

func (o *Outbox) push(ctx context.Context, effect store.Effect, payload Push) (any, error) {
	approval, err := o.Store.Approval(ctx, payload.ApprovalID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &Refusal{Reason: "there is no approval for it", Err: err}
	}
	if err != nil {
		return nil, err
	}
	result, err := o.Publisher.Publish(ctx, effect, approval)
	if err != nil && !o.mayHaveLeft(ctx, effect, payload) {
		err = notSent{err}
	}
	return result, err
}

// mayHaveLeft says whether something of a push can have reached the server:
// not before its approval was consumed.
func (o *Outbox) mayHaveLeft(ctx context.Context, effect store.Effect, payload Push) bool {
	approval, err := o.Store.Approval(context.WithoutCancel(ctx), payload.ApprovalID)
	return err != nil || approval.ConsumedBy == effect.Key
}

// pullRequest opens the pull request of a branch, or updates the open one. It
// looks first every time, so a repeated effect finds its own.
func (o *Outbox) pullRequest(ctx context.Context, repository Repository, effect store.Effect, payload PullRequest) (any, error) {
	commit, err := o.pushed(ctx, effect, payload)
	if err != nil {
		return nil, err
	}
	request := github.PullRequestRequest{
		Title: payload.Title, Body: disarm(payload.Body) + "\n" + Marker(o.Key, effect),
		Head: payload.Head, Base: payload.Base, Draft: payload.Draft,
	}
	pull, found, err := repository.FindPullRequestByHead(ctx, payload.Head)
	switch {
	case err != nil:
		return nil, err
	case found && pull.State == "open":
		pull, err = repository.UpdatePullRequest(ctx, pull.Number, request)
	default:
		pull, err = repository.CreatePullRequest(ctx, request)
	}
	return PullRequestResult{Number: pull.Number, URL: pull.HTMLURL, Commit: commit}, err
}

// pushed returns the commit that was pushed for a pull request: the approved
// one, or what GitHub made of it.
func (o *Outbox) pushed(ctx context.Context, effect store.Effect, payload PullRequest) (string, error) {
	if effect.After == "" {
		return payload.Commit, nil
	}
	_, push, err := made[PushResult](ctx, o, effect.After)
	return cmp.Or(push.Commit, payload.Commit), err
}

// made returns an earlier effect that this one refers to, and its result.
func made[R any](ctx context.Context, o *Outbox, key string) (effect store.Effect, result R, err error) {
	if effect, err = o.Store.EffectByKey(ctx, key); err != nil {
		return effect, result, err
	}
	result, err = resultOf[R](effect)
	return effect, result, err
}

// resultOf decodes the result of an effect that must be done.
func resultOf[R any](effect store.Effect) (R, error) {
	var result R
	switch effect.State {
	case store.EffectDone:
		return result, json.Unmarshal(effect.Result, &result)
	case store.EffectPending, store.EffectSending:
		return result, errWait
	}
	return result, &Refusal{Reason: fmt.Sprintf("what this refers to was not made: %s", effect.Error)}
}
