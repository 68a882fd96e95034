package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"handoff/agents"
	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

// The session variables that a push sets.
const (
	VariablePullRequest    = "pull_request"
	VariablePullRequestURL = "pull_request_url"
	VariableBranch         = "branch"
	VariablePushedCommit   = "pushed_commit"
)

// maxAttempts is how often an effect that time may mend is tried: with the
// delays of [delay] that is about an hour.
const maxAttempts = 12

// delay is how long to wait after a number of attempts: 1, 2, 4 … seconds, ten
// minutes at most.
func delay(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 10), 10*time.Minute)
}

// failure says how an effect ends that err happened to.
func failure(effect store.Effect, err error, now time.Time) store.EffectEnd {
	end := store.EffectEnd{State: store.EffectFailed, Error: err.Error()}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return end
	}
	retry := store.EffectPending
	at := now.Add(delay(effect.Attempts))
	var unknown bool
	if failed, ok := errors.AsType[*github.Error](err); ok {
		end.Error = failed.Message
		switch {
		case failed.Code == github.CodeRateLimited:
			// Waiting for a limit is not a failed attempt.
			return store.EffectEnd{State: store.EffectPending, Error: failed.Message, RetryAt: failed.RetryAt}
		case failed.Code == github.CodeUnknownOutcome:
			retry, unknown = store.EffectSending, true
		case !failed.Temporary():
			return end
		}
	} else if effect.Kind == KindPush {
		// Nothing is known about a push that failed otherwise: look first.
		retry, unknown = store.EffectSending, true
	}
	if effect.Attempts >= maxAttempts {
		if unknown {
			end.State = store.EffectUnknown
		}
		return end
	}
	end.State, end.RetryAt = retry, at
	return end
}

// withOutcome adds to an effect's end what its tool call is told. A push
// succeeds with its pull request, if it is to have one; it fails with whichever of them failed.
func (o *Outbox) withOutcome(effect store.Effect, end store.EffectEnd, result any) store.EffectEnd {
	settled := end.State != store.EffectPending && end.State != store.EffectSending
	if effect.CallKey == "" || !settled {
		return end
	}
	outcome := runner.ToolOutcome{CallKey: effect.CallKey, Effect: runner.EffectDone}
	switch {
	case end.State == store.EffectDone && effect.Kind == KindPush:
		var payload Push
		_ = json.Unmarshal(effect.Payload, &payload) // decoded before, as below
		if !payload.BranchOnly {
			return end
		}
		pushed, _ := result.(PushResult)
		branch := strings.TrimPrefix(pushed.Ref, "refs/heads/")
		outcome.Output = fmt.Sprintf("The branch %s is at commit %s.", branch, pushed.Commit)
		outcome.Summary = "made the branch " + branch
		outcome.Variables = agents.Variables{VariableBranch: branch, VariablePushedCommit: pushed.Commit}
	case end.State == store.EffectDone:
		pull, _ := result.(PullRequestResult)
		var payload PullRequest
		// It was decoded before the request was sent.
		_ = json.Unmarshal(effect.Payload, &payload)
		outcome.Output = fmt.Sprintf("Pushed. The pull request is #%d: %s", pull.Number, pull.URL)
		outcome.Summary = fmt.Sprintf("pushed, pull request #%d", pull.Number)
		outcome.Variables = agents.Variables{
			VariablePullRequest: strconv.Itoa(pull.Number), VariablePullRequestURL: pull.URL,
			VariableBranch: payload.Head, VariablePushedCommit: payload.Commit,
		}
	case effect.Kind == KindPush && end.State == store.EffectUnknown:
		outcome.Output, outcome.IsError, outcome.Effect = "It is not known whether the push arrived: "+end.Error, true, runner.EffectUnknown
	case effect.Kind == KindPush:
		outcome.Output, outcome.IsError, outcome.Effect = "Nothing was pushed: "+end.Error, true, runner.EffectNotRun
	default:
		outcome.Output, outcome.IsError = "The branch was pushed, but its pull request could not be opened: "+end.Error, true
	}
	record, err := outcome.Record()
	if err != nil {
		o.Logger.Error("an outcome could not be encoded", "effect", effect.Key, "error", err)
		return end
	}
	end.Records = []runner.Record{record}
	return end
}
