package tools

import (
	"context"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"handoff/agents"
)

// PushArgs is what a model says about a push. Everything else (branch, commit,
// author, target) is the host's.
type PushArgs struct {
	Title         string `json:"title" jsonschema:"title of the pull request: one imperative line of at most 72 characters"`
	Body          string `json:"body" jsonschema:"text of the pull request in Markdown: what changed and why, how it was tested, what to look at"`
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"message of the commit; title and body if left out"`
}

// Publishing is what the session's conductor does for git_push. The functions
// are called by the runner in this order: NeedsApproval seals the commit and
// asks; after the approval either Effects, when the outbox does the work, or
// Run; Query settles a push that was interrupted by asking the remote.
//
// The arguments that they get are cleaned: the title is one line, neither
// title nor body is blank.
type Publishing struct {
	// NeedsApproval decides whether the call waits; nil means always. It is
	// not called for arguments that are refused.
	NeedsApproval func(context.Context, agents.Call, PushArgs) (bool, error)
	// Prepare returns the intent: remote, ref, old and new commit.
	Prepare func(context.Context, agents.Call, PushArgs) (agents.Intent, error)
	// Effects returns the outbox's effects; Run pushes by itself. One is set.
	Effects func(context.Context, agents.Call, PushArgs) ([]agents.EffectRequest, error)
	Run     func(context.Context, agents.Call, PushArgs) (agents.Result, error)
	Query   func(context.Context, agents.Call, agents.Intent) (agents.Result, bool, error)
}

// The limits of GitHub's own fields.
const (
	maxPushTitle = 256
	maxPushBody  = 60_000
)

func gitPushTool(b *Toolbox) (agents.Tool, error) {
	p := b.config.Publishing
	tool, err := agents.MakeTool("git_push",
		"Asks to publish the work as a pull request. The host seals the exact commit, runs the configured tests on it and shows it to a maintainer; the session waits until it is approved or rejected. Use it once the work is whole.",
		func(ctx context.Context, call agents.Call, args PushArgs) (agents.Result, error) {
			if p.Run == nil {
				return agents.Result{}, errNoPush
			}
			return p.Run(ctx, call, args.clean())
		},
		func(schema *jsonschema.Schema) {
			schema.Properties["title"].MinLength = jsonschema.Ptr(1)
			schema.Properties["title"].MaxLength = jsonschema.Ptr(maxPushTitle)
			schema.Properties["title"].Pattern = `\S`
			schema.Properties["body"].MinLength = jsonschema.Ptr(1)
			schema.Properties["body"].MaxLength = jsonschema.Ptr(maxPushBody)
			schema.Properties["body"].Pattern = `\S`
			schema.Properties["commit_message"].MaxLength = jsonschema.Ptr(maxPushBody)
		})
	tool.Effect = agents.EffectExternal
	tool.Reconcile = agents.ReconcileQuery
	tool.NeedsApproval = func(ctx context.Context, call agents.Call) (bool, error) {
		if p.NeedsApproval == nil {
			return true, nil
		}
		return decodePush(call, func(args PushArgs) (bool, error) { return p.NeedsApproval(ctx, call, args) })
	}
	if p.Prepare != nil {
		tool.Prepare = func(ctx context.Context, call agents.Call) (agents.Intent, error) {
			return decodePush(call, func(args PushArgs) (agents.Intent, error) { return p.Prepare(ctx, call, args) })
		}
	}
	if p.Effects != nil {
		tool.Effects = func(ctx context.Context, call agents.Call) ([]agents.EffectRequest, error) {
			return decodePush(call, func(args PushArgs) ([]agents.EffectRequest, error) { return p.Effects(ctx, call, args) })
		}
	}
	tool.Query = p.Query
	return tool, err
}

// errNoPush is returned where the outbox should have done the work.
var errNoPush = errors.New("a push goes through the outbox in this session")

// clean makes the title one line and both texts valid.
func (a PushArgs) clean() PushArgs {
	a.Title = strings.Join(strings.Fields(a.Title), " ")
	a.Body = strings.TrimSpace(strings.ToValidUTF8(a.Body, "\ufffd"))
	a.CommitMessage = strings.TrimSpace(strings.ToValidUTF8(a.CommitMessage, "\ufffd"))
	return a
}

// decodePush calls do with the call's cleaned arguments.
func decodePush[T any](call agents.Call, do func(PushArgs) (T, error)) (T, error) {
	args, err := agents.DecodeArgs[PushArgs](call)
	if err != nil {
		var none T
		return none, err
	}
	return do(args.clean())
}
