// Package outbox changes GitHub. It is the only package that does: every
// comment, reaction, check run, push and pull request is a row in the outbox
// table, and this package turns rows into requests, each exactly once.
//
// A row is written in the same transaction as the decision that wants it, by
// whoever decides; its payload is one of the types in payload.go. A worker
// here claims the row, which makes it "sending" and is the fence: nobody else
// may send it while the claimer's node is alive. It sends the request and
// closes the row in one transaction with what follows from it, such as the
// outcome of the tool call that asked for the push, or the place where an
// approval's prompt appeared.
//
// A crash, or an answer that was lost, leaves a row "sending". Whoever claims
// it next looks at GitHub before sending anything again:
//
//   - a comment is found by a hidden marker, which is signed, so that text of a
//     model that our own App posted can never be taken for one;
//   - a check run is found by its external id, a pull request by its branch;
//   - a push has arrived if the branch is at the sealed commit; a push is a
//     compare-and-swap of a commit with a fixed id, so repeating it is harmless;
//   - reactions and edits may simply be sent again.
//
// Failures that time mends are tried again, later and later; others end the
// row as failed with a sentence for a person, and end the rows that wait for
// it as well.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/store"
)

// workers is how many effects one node sends at a time. GitHub allows 100
// concurrent requests; the writer queue in the database is the real limit.
const workers = 4

// pollInterval is how often a worker looks for work that nobody told it of.
const pollInterval = time.Second

// Store is what the outbox needs of the database; *store.Store implements it.
type Store interface {
	ClaimEffect(ctx context.Context, node *store.Node) (effect store.Effect, reconcile bool, err error)
	EndEffect(ctx context.Context, node *store.Node, effect store.Effect, end store.EffectEnd) error
	EffectByKey(ctx context.Context, key string) (store.Effect, error)
	Approval(ctx context.Context, id string) (store.Approval, error)
	Notify(topics ...store.Topic) (changed <-chan struct{}, stop func())
	// Now is the database's time, by which effects are due.
	Now() time.Time
}

// Repository is what the outbox needs of GitHub for one repository;
// *github.Client implements it. A creation whose answer was lost fails with
// github.CodeUnknownOutcome.
type Repository interface {
	Bot(ctx context.Context) (github.User, error)
	CreateComment(ctx context.Context, issue int, body string) (github.Comment, error)
	EditComment(ctx context.Context, id int64, body string) (github.Comment, error)
	ListComments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error)
	CreateReaction(ctx context.Context, comment int64, content string) (github.Reaction, error)
	CreateReviewReaction(ctx context.Context, comment int64, content string) (github.Reaction, error)
	CreateCheckRun(ctx context.Context, request github.CheckRunRequest) (github.CheckRun, error)
	UpdateCheckRun(ctx context.Context, id int64, request github.CheckRunRequest) (github.CheckRun, error)
	ListCheckRunsForRef(ctx context.Context, ref string) ([]github.CheckRun, error)
	FindPullRequestByHead(ctx context.Context, branch string) (pull github.PullRequest, found bool, err error)
	CreatePullRequest(ctx context.Context, request github.PullRequestRequest) (github.PullRequest, error)
	UpdatePullRequest(ctx context.Context, number int, request github.PullRequestRequest) (github.PullRequest, error)
}

// A Publisher pushes the sealed commit of an approval. It checks the approval
// and everything it rests on again, consumes it, and pushes by
// compare-and-swap.
//
// Contract: Publish may be called again for the same effect after a crash; a
// branch that is already at the sealed commit is success. A refusal that will
// not pass by itself is a *[Refusal]; any other error means that nothing can
// be said and that Publish may be called again.
type Publisher interface {
	Publish(ctx context.Context, effect store.Effect, approval store.Approval) (PushResult, error)
}

// A Refusal is a push that will not happen: the approval is no longer good, or
// GitHub declined. Its text is one sentence for a person and for the crew.
type Refusal struct {
	Reason string
	Err    error
}

// Error returns the sentence.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// Options are what an [Outbox] is made of. All fields but Logger are needed.
type Options struct {
	Store Store
	// Repository returns access to one repository of an installation.
	Repository func(installation, repository int64) Repository
	Publisher  Publisher
	// Key signs markers. It must be the same on every node and after a
	// restart, at least 16 bytes long, and known to nobody else.
	Key []byte
	// Redact takes secrets out of every text before it leaves; nil means that
	// there are none. An error keeps the effect from being sent for now.
	Redact func(string) (string, error)
	Logger *slog.Logger
}

// An Outbox sends effects. Make one with [New] and run it on every node.
type Outbox struct {
	Options

	mu sync.Mutex
	// failures counts by effect how often in a row it failed here.
	failures map[int64]int
}

// New returns an outbox.
func New(options Options) *Outbox {
	if options.Redact == nil {
		options.Redact = func(text string) (string, error) { return text, nil }
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Outbox{Options: options, failures: map[int64]int{}}
}

// Run sends effects for the node until ctx is done or the node is lost, and
// returns after the requests that are under way have ended.
func (o *Outbox) Run(ctx context.Context, node *store.Node) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { o.work(ctx, node) })
	}
	group.Wait()
}

func (o *Outbox) work(ctx context.Context, node *store.Node) {
	changed, stop := o.Store.Notify(store.TopicOutbox)
	defer stop()
	for ctx.Err() == nil {
		effect, reconcile, err := o.Store.ClaimEffect(ctx, node)
		switch {
		case err == nil:
			o.send(ctx, node, effect, reconcile)
			continue
		case errors.Is(err, store.ErrNodeExpired):
			return
		case !errors.Is(err, store.ErrNone) && ctx.Err() == nil:
			o.Logger.Warn("cannot look for effects", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-node.Lost():
			return
		case <-changed:
		case <-time.After(pollInterval):
		}
	}
}

// The longest that a request may take, by kind. GitHub's client has shorter
// ones of its own; these keep a server that never answers from holding a worker
// for ever.
const (
	requestTimeout = 2 * time.Minute
	pushTimeout    = 15 * time.Minute
)

// send performs one effect and closes it. A request outlives ctx: a shutdown
// waits for it, because an answer that nobody reads has to be looked up again.
// A push does not, because it may take long and repeating it is harmless.
func (o *Outbox) send(ctx context.Context, node *store.Node, effect store.Effect, reconcile bool) {
	lasting := context.WithoutCancel(ctx)
	parent, timeout := lasting, requestTimeout
	if effect.Kind == KindPush {
		parent, timeout = ctx, pushTimeout
	}
	request, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	log := o.Logger.With("effect", effect.Key, "kind", effect.Kind)
	end, fault := o.perform(request, effect, reconcile)
	record, recorded := context.WithTimeout(lasting, requestTimeout)
	defer recorded()
	err := o.Store.EndEffect(record, node, effect, end)
	switch {
	case errors.Is(err, runner.ErrFenced):
		log.Warn("another node took the effect over")
	case err != nil:
		// The row stays "sending"; whoever claims it next looks at GitHub.
		log.Error("an effect's end could not be recorded", "error", err)
	case end.Error != "":
		log.Warn("an effect did not go through", "state", end.State, "reason", fault, "attempt", effect.Attempts)
	default:
		log.Debug("effect done")
	}
}
