package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"handoff/agents"
	"handoff/gitops/git"
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

// maxFailures is how often in a row an effect is tried that time may mend: with
// the delays of [delay] that is about an hour.
const maxFailures = 15

// delay is how long to wait after a number of failures in a row: 1, 2, 4 …
// seconds, ten minutes at most.
func delay(failures int) time.Duration {
	return min(time.Second<<min(max(failures-1, 0), 10), 10*time.Minute)
}

// notSent marks a failed push of which nothing can have reached the server.
type notSent struct{ error }

func (n notSent) Unwrap() error { return n.error }

// failure says how an effect ends that err happened to, after a number of
// failures in a row with this one.
func failure(effect store.Effect, err error, failures int, now time.Time) store.EffectEnd {
	end := store.EffectEnd{State: store.EffectFailed, Error: Reason(err)}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return end
	}
	retry, unknown := store.EffectPending, false
	_, surely := errors.AsType[notSent](err)
	if failed, ok := errors.AsType[*github.Error](err); ok {
		switch {
		case failed.Code == github.CodeRateLimited:
			// The limit's end is by this machine's clock, ours by the database's.
			wait := max(time.Until(failed.RetryAt), time.Second)
			return store.EffectEnd{State: store.EffectPending, Error: end.Error, RetryAt: now.Add(wait)}
		case failed.Code == github.CodeUnknownOutcome:
			retry, unknown = store.EffectSending, true
		case !failed.Temporary():
			return end
		}
	} else if _, broke := errors.AsType[*runner.Panic](err); broke || effect.Kind == KindPush && !surely {
		// Nothing is known about a push that failed otherwise, nor about what a
		// fault of our own cut off: look first.
		retry, unknown = store.EffectSending, true
	}
	if failures >= maxFailures {
		if unknown {
			end.State = store.EffectUnknown
		}
		return end
	}
	end.State, end.RetryAt = retry, now.Add(delay(failures))
	return end
}

// Reason is what people and the crew are told about an error. What the
// machinery says about itself stays in the log: it may name the server's files.
func Reason(err error) string {
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return refused.Reason
	}
	if failed, ok := errors.AsType[*github.Error](err); ok {
		return failed.Message
	}
	if failed, ok := errors.AsType[*git.Error](err); ok && failed.Code != git.CodeIO {
		return failed.Message
	}
	return "a fault of the server, which its log describes"
}

// isLostPrompt says whether nobody will ever see an approval's prompt, which its
// session must know at once: it would wait for nothing.
func isLostPrompt(effect store.Effect, end store.EffectEnd) bool {
	var payload CommentCreate
	return effect.Kind == KindCommentCreate && settled(end.State) && end.State != store.EffectDone &&
		json.Unmarshal(effect.Payload, &payload) == nil && payload.ApprovalID != ""
}

// withOutcome adds to an effect's end what its tool call is told. A push
// succeeds with its pull request, if it is to have one; it fails with whichever of them failed.
func (o *Outbox) withOutcome(effect store.Effect, end store.EffectEnd, result any) store.EffectEnd {
	end.WakeSession = isLostPrompt(effect, end)
	if effect.CallKey == "" || !settled(end.State) {
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
			VariableBranch: payload.Head, VariablePushedCommit: pull.Commit,
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
