package store

import (
	"context"
	"time"

	"handoff/runner"
)

var (
	suspendSession = named("suspend_session")
	retrySession   = named("retry_session")
	finishSession  = named("finish_session")
)

// A Suspension is a pause: everything in it is one transaction.
type Suspension struct {
	// State is awaiting_approval or suspended.
	State  SessionState
	Reason string
	// WakeAt is when the session must be looked at again, zero for never. It is
	// moved to the first expiry of a pending approval if that comes earlier.
	WakeAt time.Time
	// Batch is appended to the journal first.
	Batch runner.Batch
	// Approvals are asked for; owner, requester and repository are filled in.
	// There is one open approval for each call: an earlier one is superseded.
	Approvals []Approval
	// Effects are prompts and notices.
	Effects []Effect
}

// Suspend gives the session up until it is woken or WakeAt has come. It keeps
// its lane and frees its slot. If it was woken, stopped or written to since it
// was acquired, it is ready again at once; what was known then wakes nobody
// twice. The attempts start anew.
func (l *Lease) Suspend(ctx context.Context, suspension Suspension) error {
	batch := suspension.Batch
	return l.write(ctx, len(batch.Records), false, func(g *guarded) error {
		if err := g.append(ctx, batch); err != nil {
			return err
		}
		for _, approval := range suspension.Approvals {
			if err := g.putApproval(ctx, approval); err != nil {
				return err
			}
		}
		if err := g.putEffects(ctx, suspension.Effects); err != nil {
			return err
		}
		g.tell(TopicSessions)
		_, err := g.exec(ctx, suspendSession, g.session.ID, suspension.State, suspension.Reason, suspension.WakeAt)
		return err
	})
}

// Retry gives the session back after a fault of ours, to be taken again at that
// time by any node; what would wake it makes it ready before. The attempt
// counts. The state stays.
func (l *Lease) Retry(ctx context.Context, when time.Time, reason string) error {
	return l.write(ctx, 0, false, func(g *guarded) error {
		g.tell(TopicSessions)
		_, err := g.exec(ctx, retrySession, g.session.ID, reason, when)
		return err
	})
}

// An Ending is the end of a session: everything in it is one transaction.
type Ending struct {
	// State is completed, failed, cancelled or expired.
	State  SessionState
	Code   string
	Reason string
	// Batch is appended to the journal first.
	Batch   runner.Batch
	Effects []Effect
}

// Finish ends the session: open approvals are superseded, the lane is freed and
// its next session becomes ready.
func (l *Lease) Finish(ctx context.Context, ending Ending) error {
	batch := ending.Batch
	return l.write(ctx, len(batch.Records), true, func(g *guarded) error {
		if err := g.append(ctx, batch); err != nil {
			return err
		}
		if err := g.putEffects(ctx, ending.Effects); err != nil {
			return err
		}
		if _, err := g.supersedeAll(ctx, g.session.ID, "the session has ended"); err != nil {
			return err
		}
		_, err := g.exec(ctx, finishSession, g.session.ID, ending.State, ending.Code, ending.Reason)
		if err != nil {
			return err
		}
		return g.freeLane(ctx, g.session.RepositoryID, g.session.Issue)
	})
}
