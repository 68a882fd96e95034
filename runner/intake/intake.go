// Package intake decides what a stored command becomes: a new session, a
// message to a running one, a decision on an approval, the end of a session,
// or a refusal in words. It also fetches the deliveries that GitHub could not
// bring ([Sweeper]).
//
// The idea is that a command is routed like a letter, once, by whichever node
// takes it from the box first. The store hands commands out in the order of
// arrival within an issue; [Router] checks in this order, and the first
// objection ends it:
//
//  1. the account is one that the operator serves;
//  2. the person has not asked for more than is sensible lately;
//  3. the installation covers the repository, by GitHub's own word;
//  4. the person has the role, by GitHub's own word of this moment;
//  5. the verb makes sense now.
//
// Then everything that follows is written in one transaction: the command's
// end, the session or message or stop, and the effects (👀, an answer) as rows
// of the outbox. Nothing here talks to GitHub but to ask.
//
// It promises: an error of GitHub's API means wait, never yes; after some
// attempts it says so. A refusal is told once, with what to do next; a person
// without the role gets one answer per issue and then silence. A refused
// command never occupies an issue's lane. What a command quotes or pastes
// reaches the agents framed as data.
package intake

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// Store is what routing needs of the database; *store.Store implements it.
type Store interface {
	ClaimCommand(ctx context.Context, node *store.Node) (store.Command, error)
	RouteCommand(ctx context.Context, node *store.Node, id string, routing store.Routing) error
	ReleaseCommand(ctx context.Context, node *store.Node, id string, retryAt time.Time, reason string) error
	PutEffect(ctx context.Context, effect store.Effect) (stored bool, err error)
	EffectByKey(ctx context.Context, key string) (store.Effect, error)
	ActiveSession(ctx context.Context, repositoryID int64, issue int) (store.Session, error)
	LastSession(ctx context.Context, repositoryID int64, issue int) (store.Session, error)
	Sessions(ctx context.Context, filter store.SessionFilter, limit int) ([]store.Session, error)
	Cancel(ctx context.Context, sessionID, by string) (store.Session, error)
	SupersedeApprovals(ctx context.Context, sessionID, reason string) (int, error)
	Notify(topics ...store.Topic) (changed <-chan struct{}, stop func())
}

// Repository is what routing asks GitHub about; *github.Client implements it.
type Repository interface {
	Repository(ctx context.Context) (github.Repository, error)
	Permission(ctx context.Context, userID int64, login string) (github.Permission, error)
	PullRequest(ctx context.Context, number int) (github.PullRequest, error)
}

// Decisions takes answers to approval requests; *approval.Service implements
// it. An *approval.Refused is told to the person; any other error means that
// the same answer may be taken later.
type Decisions interface {
	DecideByComment(ctx context.Context, repositoryID int64, issue int, digest string, answer approval.Answer) (store.Approval, error)
	DecideByCheckRun(ctx context.Context, repositoryID int64, click approval.Click, answer approval.Answer) (store.Approval, error)
	VoidPrompt(ctx context.Context, repositoryID, commentID int64, reason string) error
}

// Options configure [NewRouter].
type Options struct {
	Store Store
	// Repository gives read access to a repository through an installation.
	Repository func(installation, repository int64) Repository
	Decisions  Decisions
	// AllowedOwners are the accounts, by login, whose repositories are served;
	// empty means every account that installed the App.
	AllowedOwners []string
	// Role is what a person needs to give commands; "" means write.
	Role repoconfig.Role
	// SessionURL returns the address of a session's page, "" for none; nil
	// means that there are no pages.
	SessionURL func(sessionID string) string
	// Forget, when set, drops what is kept in memory for an installation, whose
	// access has changed.
	Forget func(installation int64)
	// Logger is told what was routed; nil means nothing.
	Logger *slog.Logger
}

// A Router routes commands. It is safe for concurrent use.
type Router struct {
	store      Store
	repository func(installation, repository int64) Repository
	decisions  Decisions
	allowed    map[string]bool
	role       repoconfig.Role
	sessionURL func(string) string
	forget     func(int64)
	logger     *slog.Logger
	limits     *limiter
	now        func() time.Time
}

// NewRouter returns a router.
func NewRouter(options Options) *Router {
	r := &Router{
		store: options.Store, repository: options.Repository, decisions: options.Decisions,
		allowed: make(map[string]bool), role: cmp.Or(options.Role, repoconfig.RoleWrite),
		sessionURL: options.SessionURL, forget: options.Forget, logger: options.Logger,
		limits: newLimiter(), now: time.Now,
	}
	for _, owner := range options.AllowedOwners {
		r.allowed[strings.ToLower(strings.TrimSpace(owner))] = true
	}
	if r.sessionURL == nil {
		r.sessionURL = func(string) string { return "" }
	}
	if r.forget == nil {
		r.forget = func(int64) {}
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	return r
}

const (
	// workers is how many commands one node routes at a time; they mostly wait
	// for GitHub.
	workers = 4
	// pollInterval is how often a worker looks for a command that nobody told
	// it of, such as one whose time to be tried again has come.
	pollInterval = time.Second
)

// Run routes commands for the node until ctx ends or the node's lease is lost.
func (r *Router) Run(ctx context.Context, node *store.Node) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			r.work(ctx, node)
			// One worker that learns of the lost lease ends them all.
			cancel()
		})
	}
	group.Wait()
}

// work routes one command after the other.
func (r *Router) work(ctx context.Context, node *store.Node) {
	changed, stop := r.store.Notify(store.TopicCommands)
	defer stop()
	for ctx.Err() == nil {
		command, err := r.store.ClaimCommand(ctx, node)
		switch {
		case err == nil:
			r.take(ctx, node, command)
			continue
		case errors.Is(err, store.ErrNodeExpired):
			return
		case !errors.Is(err, store.ErrNone) && ctx.Err() == nil:
			r.logger.WarnContext(ctx, "cannot claim a command", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(pollInterval):
		}
	}
}
