// Package session conducts one session from its command to its end. It is the
// only place where the other parts meet: it takes a session from the store,
// a workspace from the git layer and a sandbox for commands, lets package
// runner turn the crank, asks maintainers through package approval, and leaves
// to the outbox whatever GitHub shall see.
//
// A [Conductor] runs on every node. Its loop acquires sessions and holds each
// in a goroutine of its own, for as long as there is something to do:
//
//	queued ─ prepare ─ run ─┬─ final answer ───────────────▶ completed
//	           ▲            ├─ a call needs approval ──────▶ seal, ask, let go
//	           │            └─ limit, failure, stop ───────▶ failed, cancelled
//	           └── woken by a decision, a message, or the death of a node
//
// Between two holds a session has no goroutine, no sandbox and no token: all
// that it is stands in the journal, in its checkpoint and in the outbox. So a
// hold never asks "where was I": it rebuilds the workspace from the checkpoint
// if this machine does not have it, looks for decisions, and calls runner.Run,
// which goes on from the journal. A crash is nothing but a hold that ended
// early.
//
// What it promises: the base commit, the configuration and the agents' versions
// of a session never change once it has begun; what maintainers are asked to
// approve is a sealed commit whose tests the host ran itself, and whatever their
// approval stands on is looked at again when it is pushed; every end leaves the
// reason in words and the work as a patch, also where the program itself has a
// fault, which ends the session in which it happens and no other.
package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"handoff/agents"
	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/gitops/secrets"
	"handoff/runner"
	"handoff/runner/approval"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
	"handoff/sandbox"
)

// Store is what the conductor needs of the database; *store.Store implements it.
type Store interface {
	Acquire(ctx context.Context, node *store.Node, caps store.Caps) (*store.Lease, error)
	Agents(ctx context.Context) ([]store.AgentRow, error)
	Approval(ctx context.Context, id string) (store.Approval, error)
	ApprovalsOfSession(ctx context.Context, sessionID string) ([]store.Approval, error)
	Artifact(ctx context.Context, id string) (store.Artifact, error)
	Artifacts(ctx context.Context, sessionID string) ([]store.Artifact, error)
	Blob(ctx context.Context, installationID int64, id string) ([]byte, error)
	Checkpoint(ctx context.Context, sessionID string) (*runner.Checkpoint, error)
	Consume(ctx context.Context, id string, expects store.Consumption) (store.Approval, error)
	Decide(ctx context.Context, id string, decision store.Decision) (store.Approval, error)
	EffectByKey(ctx context.Context, key string) (store.Effect, error)
	EffectsOfSession(ctx context.Context, sessionID string) ([]store.Effect, error)
	ForgetBaseRuns(ctx context.Context, age time.Duration) (removed int64, err error)
	Notify(topics ...store.Topic) (changed <-chan struct{}, stop func())
	// Now is the database's time, by which approvals expire.
	Now() time.Time
	Session(ctx context.Context, id string) (store.Session, error)
	Sessions(ctx context.Context, filter store.SessionFilter, limit int) ([]store.Session, error)
}

// Repository is what the conductor needs of GitHub; *github.Client implements it.
type Repository interface {
	Tokens
	Repository(ctx context.Context) (github.Repository, error)
	GitURL(ctx context.Context) (string, error)
	// Bot is the account under which the App acts, and its commits are made.
	Bot(ctx context.Context) (github.User, error)
	Permission(ctx context.Context, userID int64, login string) (github.Permission, error)
	Issue(ctx context.Context, number int) (github.Issue, error)
	// Contains says whether a branch has a commit among its history.
	Contains(ctx context.Context, branch, commit string) (bool, error)
	ListReactions(ctx context.Context, comment int64, etag string) (github.Reactions, error)
	FindPullRequestByHead(ctx context.Context, branch string) (pull github.PullRequest, found bool, err error)
}

// Source is where the commits of repositories come from. *git.Cache implements
// it with a cache of what it fetches; for a repository of this machine it is
// the repository itself. Its errors are those of *git.Cache.
type Source interface {
	// Fetch makes sure of the tip of a branch and returns it, FetchCommit of
	// one commit.
	Fetch(ctx context.Context, remote git.Remote, branch string) (commit string, err error)
	FetchCommit(ctx context.Context, remote git.Remote, commit string) error
	// Tags are the names of the tags that stand for a commit.
	Tags(ctx context.Context, remote git.Remote, commit string) ([]string, error)
	// FetchHistory makes sure of the commits that end in one, so many at least
	// where there are as many.
	FetchHistory(ctx context.Context, remote git.Remote, commit string, depth int) error
	Repository(remote git.Remote) (*git.Repository, error)
}

// Deliver brings a sealed commit to its branch, which it moves only if it is
// where the request says. Doing so again succeeds. An *outbox.Refusal will not
// pass by itself; the other errors are those of [git.Workspace.Push].
type Deliver func(ctx context.Context, workspace *git.Workspace, remote git.Remote, request git.PushRequest, sealed git.Sealed) (git.PushResult, error)

// A Signer makes commits that GitHub signs; *github.Committer implements it.
type Signer interface {
	Branch(ctx context.Context, ref string) (commit string, err error)
	Commit(ctx context.Context, id string) (github.GitCommit, error)
	CreateBlob(ctx context.Context, content []byte) (id string, err error)
	CreateTree(ctx context.Context, entries []github.GitEntry) (id string, err error)
	CreateCommit(ctx context.Context, message, tree, parent string) (github.GitCommit, error)
	CreateBranch(ctx context.Context, ref, commit string) error
	MoveBranch(ctx context.Context, ref, commit string) error
}

// Tokens hands out tokens for git over HTTP. With write they may change
// contents, which only a client that was made for pushing can ask for.
type Tokens interface {
	Token(ctx context.Context, write bool) (github.Token, error)
	DropToken(token github.Token)
}

// Options are what a [Conductor] is made of. All fields without "may" in their
// description are needed.
type Options struct {
	Store Store
	// Repository returns access to one repository of an installation.
	Repository func(installation, repository int64) Repository
	// Pusher returns what mints tokens for pushing; it is asked only after an
	// approval was consumed.
	Pusher func(installation, repository int64) Tokens
	// Granted returns what an installation lets the App do, by GitHub's names
	// of permissions; may be nil.
	Granted func(ctx context.Context, installation int64) (map[string]string, error)
	// Signer returns what makes commits through GitHub's API, with permission to
	// write contents; it is asked only after an approval was consumed. nil means
	// that commits are pushed unsigned, whatever a repository wants.
	Signer func(installation, repository int64) Signer
	Cache  Source
	// Pool hands out workspaces that were made ahead of time; may be nil.
	Pool    Pool
	Sandbox sandbox.Driver
	// Model answers. One that knows how much each model holds is asked
	// ([runner.RunRequest.Model]).
	Model    agents.Model
	Scanner  *secrets.Scanner
	Operator repoconfig.Operator
	Caps     store.Caps
	// Deliver replaces the push over the network; may be nil.
	Deliver Deliver
	// BranchOnly says that an approved push ends with the branch: no pull
	// request is opened.
	BranchOnly bool
	// Workflows says that the App may change workflow files.
	Workflows bool
	// Identity is an account as commits name it; nil means under the address
	// that GitHub keeps for those who show none.
	Identity func(login string, id int64) git.Identity
	// Bot is the identity that commits carry; zero means the App's own account.
	Bot git.Identity
	// DataDir holds workspaces and caches; Host keys the cache of repositories.
	DataDir string
	Host    string
	// SetupDir holds the caches of repositories' setups; "" means a folder of
	// DataDir.
	SetupDir string
	// KeepWorkspaces leaves the workspaces of sessions that are over to whoever
	// made DataDir.
	KeepWorkspaces bool
	// PublicURL is where people reach this server; may be "".
	PublicURL string
	// PatchLink returns a link that opens one file of a session for a while and
	// nothing else. It is posted at the session's end; may be nil.
	PatchLink func(ctx context.Context, sessionID, name string) (Link, error)
	// ReadOnly are further directories that commands may read, such as
	// toolchains outside of /usr; may be nil.
	ReadOnly []sandbox.Mount
	// Env is added to the environment of commands; may be nil.
	Env map[string]string
	// OnEvent is told what happens in sessions that this node holds; it must
	// not block, and may be nil.
	OnEvent func(session string, event runner.Event)
	// OnDoing is told what the host itself does for a session, such as running
	// its setup; it must not block, and may be nil.
	OnDoing func(session, who, what string)
	// OnQuestion is told of every question that people are asked, with what
	// they are shown; it must not block, and may be nil.
	OnQuestion func(approval store.Approval, prompt approval.Prompt)
	Logger     *slog.Logger
}

// A Conductor holds sessions. Make one with [New]; it is safe for concurrent
// use.
type Conductor struct {
	Options
	// stopping is closed when no turn shall begin any more.
	stopping chan struct{}
	stop     sync.Once
	warmer   *warmer
	// uploads are what signed pushes have got through so far.
	uploads uploads
}

// New returns a conductor.
func New(options Options) *Conductor {
	if options.Deliver == nil {
		options.Deliver = push
	}
	return &Conductor{Options: options, stopping: make(chan struct{}), warmer: newWarmer()}
}

// StopSoftly makes the sessions that are held pause after their current turn
// and keeps new ones from being taken. They go on wherever they are taken next.
func (c *Conductor) StopSoftly() { c.stop.Do(func() { close(c.stopping) }) }

func (c *Conductor) isStopping() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// pollInterval is how often the conductor looks for sessions and stops that
// nobody told it of.
const pollInterval = time.Second

// Run acquires and holds sessions for the node until ctx is done, the node is
// lost or [Conductor.StopSoftly] was called, and returns when none is held any
// more.
func (c *Conductor) Run(ctx context.Context, node *store.Node) {
	changed, stop := c.Store.Notify(store.TopicSessions)
	defer stop()
	var held sync.WaitGroup
	defer held.Wait()
	sweeping, stopSweeping := context.WithCancel(ctx)
	defer stopSweeping()
	held.Go(func() { c.sweep(sweeping) })
	held.Go(func() { c.keepWarm(sweeping) })
	for ctx.Err() == nil && !c.isStopping() {
		lease, err := c.Store.Acquire(ctx, node, c.Caps)
		switch {
		case err == nil:
			held.Go(func() { c.hold(ctx, node, lease) })
			continue
		case errors.Is(err, store.ErrNodeExpired):
			return
		case !errors.Is(err, store.ErrNone) && ctx.Err() == nil:
			c.Logger.Warn("cannot look for sessions", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-c.stopping:
		case <-node.Lost():
			return
		case <-changed:
		case <-time.After(pollInterval):
		}
	}
}

// The places of the data directory.

func (c *Conductor) workspaceDir(sessionID string) string {
	return filepath.Join(c.DataDir, "ws", sessionID)
}

func (c *Conductor) setupDir(installation, repository int64, key string) string {
	return filepath.Join(c.setupRoot(), strconv.FormatInt(installation, 10), strconv.FormatInt(repository, 10), key)
}

func (c *Conductor) setupRoot() string { return cmp.Or(c.SetupDir, filepath.Join(c.DataDir, "setup")) }
