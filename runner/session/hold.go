package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"handoff/agents"
	"handoff/gitops/github"
	"handoff/runner"
	"handoff/runner/outbox"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// A hold is one session while this node works on it.
type hold struct {
	*Conductor
	lease   *store.Lease
	session store.Session
	log     *slog.Logger

	// host is access to the session's repository on GitHub.
	host Repository
	// base is what the session works on, and config its rules; both are known
	// after prepare.
	base    base
	config  repoconfig.Config
	notices []string
	crew    map[string]agents.Agent
	// plan is what the session shall work by, "" where nobody planned.
	plan string
	// failing is what the tests print on the base, "" unless they are to be
	// mended.
	failing  string
	bench    *bench
	progress *progress
	// ended says that the session is over.
	ended bool
}

// errStopped is the cause of a hold that somebody asked to stop.
func errStopped(by string) *agents.Error {
	return &agents.Error{Code: agents.CodeCancelled, Message: "The session was stopped by " + by + "."}
}

// hold works on a session until it is parked, over, or lost.
func (c *Conductor) hold(ctx context.Context, node *store.Node, lease *store.Lease) {
	session := lease.Session()
	h := &hold{
		Conductor: c, lease: lease, session: session,
		log:  c.Logger.With("session", session.ID, "repository", session.Owner+"/"+session.Repository, "issue", session.Issue),
		host: c.Repository(session.InstallationID, session.RepositoryID),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go h.watch(ctx, node, cancel)

	h.log.Info("holding the session", "state", session.State, "attempt", session.Attempts)
	err := runner.Contain(func() error { return h.work(ctx) })
	if broken, ok := errors.AsType[*runner.Panic](err); ok {
		cancel(broken)
		err = runner.Contain(func() error { return h.finishBroken(ctx, broken) })
	}
	if h.bench != nil {
		h.bench.close()
	}
	if h.ended {
		h.tidy(session.ID)
	}
	switch {
	case err == nil:
	case errors.Is(err, runner.ErrFenced):
		h.log.Warn("another node has the session now")
	default:
		h.giveBack(ctx, err)
	}
}

// watch ends the work when the node is lost or somebody asked for a stop.
func (h *hold) watch(ctx context.Context, node *store.Node, cancel context.CancelCauseFunc) {
	changed, stop := h.Store.Notify(store.TopicSessions)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-node.Lost():
			cancel(runner.ErrFenced)
			return
		case <-changed:
		case <-time.After(pollInterval):
		}
		requested, by, err := h.lease.CancelRequested(ctx)
		if err == nil && requested {
			cancel(errStopped(by))
			return
		}
	}
}

// rests are how long a session waits after each attempt in a row that failed:
// an hour in all, which most troubles of GitHub's and of ours do not outlast.
var rests = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 45 * time.Minute}

// rest is how long a session waits after a fault in its n-th attempt in a row.
func rest(fault error, attempt int) time.Duration {
	wait := rests[min(max(attempt, 1), len(rests))-1]
	if limited, ok := errors.AsType[*github.Error](fault); ok && !limited.RetryAt.IsZero() {
		wait = max(wait, time.Until(limited.RetryAt))
	}
	return wait
}

// giveBack returns the session after a fault that is not its own, to be tried
// again later, here or elsewhere. People may read why; the log has the rest.
func (h *hold) giveBack(ctx context.Context, fault error) {
	delay := time.Duration(0)
	reason := "the node was shut down"
	if ctx.Err() == nil && !errors.Is(fault, errShutdown) {
		delay = rest(fault, h.session.Attempts)
		reason = outbox.Reason(fault)
		h.log.Error("the session could not be worked on", "error", fault, "retry_in", delay)
	}
	// The request must go out although ctx may have ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.lease.Retry(ctx, h.Store.Now().Add(delay), reason); err != nil {
		h.log.Warn("the session could not be given back; another node will take it", "error", err)
	}
}

// A fault ends a session: its text is one sentence for whoever asked.
type fault struct {
	code    string
	message string
	next    string
	err     error
}

func (f *fault) Error() string { return f.code + ": " + f.message }
func (f *fault) Unwrap() error { return f.err }

// work does what there is to do. A returned error is a fault of ours and not
// of the session; the session is then given back.
func (h *hold) work(ctx context.Context) error {
	h.progress = newProgress(h)
	if err := h.progress.begin(ctx); err != nil {
		return err
	}
	if h.lease.Exhausted() {
		return h.finishFault(ctx, &fault{
			code:    "ATTEMPTS",
			message: "The session could not be worked on in several attempts; the last reason was: " + h.session.Reason,
			next:    "Comment `/copilot retry` once the cause is gone.",
		})
	}
	requested, by, err := h.lease.CancelRequested(ctx)
	if err != nil {
		return err
	}
	if requested {
		return h.finishCancelled(ctx, errStopped(by))
	}
	parked, err := h.decisions(ctx)
	if err == nil && !parked {
		if err = h.prepare(ctx); err == nil {
			err = h.serve(ctx)
		}
	}
	if failed, ok := errors.AsType[*fault](err); ok {
		return h.finishFault(ctx, failed)
	}
	if cause, ok := errors.AsType[*agents.Error](context.Cause(ctx)); ok && err != nil && cause.Code == agents.CodeCancelled {
		return h.finishCancelled(ctx, cause)
	}
	return err
}
