package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"handoff/runner"
	"handoff/runner/approval"
	"handoff/runner/store"
)

// decisions takes what maintainers decided since the session was parked into
// the journal. It reports parked=true when the session was parked again,
// because nothing was decided yet.
func (h *hold) decisions(ctx context.Context) (parked bool, err error) {
	if h.session.State != store.StateAwaitingApproval {
		return false, nil
	}
	pending, err := h.pendingCalls(ctx)
	if err != nil {
		return false, err
	}
	if err := h.rejectByMessage(ctx); err != nil {
		return false, err
	}
	approvals, err := h.Store.ApprovalsOfSession(ctx, h.session.ID)
	if err != nil {
		return false, err
	}
	var waiting []store.Approval
	var records []runner.Record
	for _, call := range pending {
		row, ok := latest(approvals, call.CallKey)
		if !ok {
			continue
		}
		if row.State == store.ApprovalPending {
			if err := h.checkShown(ctx, row); err != nil {
				return false, err
			}
			waiting = append(waiting, row)
			continue
		}
		if err := h.close(ctx, row); err != nil {
			return false, err
		}
		if row.State == store.ApprovalExpired && row.Kind == toolGitPush {
			return false, &fault{
				code:    "EXPIRED",
				message: "Nobody decided about the push in time.",
				next:    "Comment `/copilot renew` to be asked again, or `/copilot retry` to go on from here.",
			}
		}
		if decision, decided := decisionOf(row, call); decided {
			record, err := decision.Record()
			if err != nil {
				return false, err
			}
			records = append(records, record)
		}
	}
	if len(records) > 0 {
		_, err = h.lease.Append(ctx, runner.Batch{Records: records})
		return false, err
	}
	if len(waiting) == 0 {
		return false, nil
	}
	return true, h.park(ctx, earliestExpiry(waiting))
}

// pendingCalls returns the calls that wait for a decision, from the journal.
func (h *hold) pendingCalls(ctx context.Context) ([]runner.PendingApproval, error) {
	records, err := h.lease.Load(ctx, 1)
	if err != nil {
		return nil, err
	}
	state, err := runner.Fold(records)
	if err != nil {
		return nil, err
	}
	return state.Approvals(state.Root), nil
}

// rejectByMessage takes a message to a crew that waits for a push to be
// approved as what it is: somebody wants something else first.
func (h *hold) rejectByMessage(ctx context.Context) error {
	messages, err := h.lease.PendingMessages(ctx)
	if err != nil || len(messages) == 0 {
		return err
	}
	approvals, err := h.Store.ApprovalsOfSession(ctx, h.session.ID)
	if err != nil {
		return err
	}
	for _, row := range approvals {
		if row.State != store.ApprovalPending {
			continue
		}
		_, err := h.Store.Decide(ctx, row.ID, store.Decision{
			State: store.ApprovalRejected, By: messages[0].Actor, ByID: messages[0].ActorID, Via: "comment",
			Reason: "a new message came before the decision",
		})
		if err != nil && !errors.Is(err, store.ErrAlreadyDecided) {
			return err
		}
	}
	return nil
}

// latest returns the newest approval of a call.
func latest(approvals []store.Approval, callKey string) (store.Approval, bool) {
	for i := len(approvals) - 1; i >= 0; i-- {
		if approvals[i].CallKey == callKey {
			return approvals[i], true
		}
	}
	return store.Approval{}, false
}

// decisionOf says what a row means for its call. A superseded one means
// nothing, and neither does one for other arguments: the question is asked
// again.
func decisionOf(row store.Approval, call runner.PendingApproval) (runner.Decision, bool) {
	if action, err := approval.ActionOf(row); err != nil || action.CallKey != call.CallKey || action.ArgumentsHash != call.ArgumentHash {
		return runner.Decision{}, false
	}
	decision := runner.Decision{
		CallKey: call.CallKey, ArgumentHash: call.ArgumentHash, Approval: row.ID, By: row.DecidedBy, Reason: row.Reason,
	}
	switch row.State {
	case store.ApprovalApproved, store.ApprovalConsumed:
		decision.Kind = runner.DecisionApproved
	case store.ApprovalRejected:
		decision.Kind = runner.DecisionRejected
	case store.ApprovalExpired:
		decision.Kind = runner.DecisionExpired
	default:
		return decision, false
	}
	return decision, true
}

// checkShown ends a session that waits for a decision about a prompt that nobody
// will ever see.
func (h *hold) checkShown(ctx context.Context, row store.Approval) error {
	prompt, err := h.Store.EffectByKey(ctx, approval.PromptKey(row))
	if err != nil {
		return fmt.Errorf("the prompt of approval %s: %w", row.ID, err)
	}
	switch prompt.State {
	case store.EffectPending, store.EffectSending, store.EffectDone:
		return nil
	}
	return &fault{
		code:    "PROMPT",
		message: "The maintainers could not be asked: " + prompt.Error,
		next:    "Make sure that the App may comment here, and comment `/copilot retry`.",
	}
}

// close shows on GitHub how an approval ended. Doing so again shows the newest
// end.
func (h *hold) close(ctx context.Context, row store.Approval) error {
	prompt, err := h.Store.EffectByKey(ctx, approval.PromptKey(row))
	if err != nil {
		return fmt.Errorf("the prompt of approval %s: %w", row.ID, err)
	}
	_, err = h.Store.EffectByKey(ctx, approval.CheckKey(row))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	effects, err := approval.Closing(row, approval.PromptBody(prompt), err == nil)
	if err != nil {
		return err
	}
	for _, effect := range effects {
		if err := h.lease.PutLatest(ctx, effect); err != nil {
			return err
		}
	}
	return nil
}

// park lets the session go until somebody decides or the time is up.
func (h *hold) park(ctx context.Context, until time.Time) error {
	return h.lease.Suspend(ctx, store.Suspension{
		State: store.StateAwaitingApproval, Reason: "waiting for a maintainer", WakeAt: until,
	})
}

func earliestExpiry(approvals []store.Approval) time.Time {
	var earliest time.Time
	for _, row := range approvals {
		if earliest.IsZero() || row.ExpiresAt.Before(earliest) {
			earliest = row.ExpiresAt
		}
	}
	return earliest
}
