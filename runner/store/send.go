package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"handoff/runner"
)

var (
	nextUnsettledEffect = named("next_unsettled_effect")
	nextPendingEffect   = named("next_pending_effect")
	claimEffect         = named("claim_effect")
	spendToken          = named("spend_token")
	endEffect           = named("end_effect")
	endDependents       = named("end_dependents")
	advanceSession      = named("advance_session")
	showState           = named("show_state")
)

// The writer queue of an installation: one token bucket shared by all nodes,
// refilled by a token a second. GitHub allows 80 content creations a minute,
// those of people on its pages included.
const (
	WriterBurst = 10
	// WriterReserved tokens are kept for effects of priority 0.
	WriterReserved = 3

	// token is how many thousandths of a token one effect costs. The bucket
	// refills at one of them each millisecond, so elapsed time is tokens.
	token = 1000
)

// ClaimEffect gives the node the next effect to send, or [ErrNone]: first those
// whose sender died or gave up without knowing (reconcile=true: look at GitHub
// before anything is sent again), then pending ones in the order of Priority,
// installations taking turns. It honours After, NotBefore and the writer queue
// of the installation. The claim is the fence: State is sending, Node the node,
// and Attempts its number.
//
// The claim renews the node's lease, so that a request of at most
// [CreationTimeout] that starts now ends before anybody else may claim it.
func (s *Store) ClaimEffect(ctx context.Context, node *Node) (effect Effect, reconcile bool, err error) {
	sent := s.clock()
	var now time.Time
	err = s.transact(ctx, func(t *tx) error {
		if err := t.lockSched(ctx, "outbox"); err != nil {
			return err
		}
		if err := node.mayTake(ctx, t); err != nil {
			return err
		}
		cost := token
		if s.unpaced {
			cost = 0
		}
		effect, reconcile, err = t.claimNext(ctx, node, cost)
		if err != nil {
			return err
		}
		now, err = node.renew(ctx, t)
		return err
	})
	if err != nil {
		return Effect{}, false, err
	}
	node.renewed(sent, now)
	return effect, reconcile, nil
}

func (t *tx) claimNext(ctx context.Context, node *Node, cost int) (effect Effect, reconcile bool, err error) {
	id, err := one(ctx, t.conn, scanOne[int64], nextUnsettledEffect)
	if err == nil {
		// Looking at GitHub first usually costs no write, so no token either.
		effect, err = one(ctx, t.conn, scanEffect, claimEffect, id, node.ID)
		return effect, true, err
	}
	if !errors.Is(err, ErrNotFound) {
		return effect, false, err
	}
	id, err = one(ctx, t.conn, scanOne[int64], nextPendingEffect, WriterBurst*token, cost, (1+WriterReserved)*cost)
	if err != nil {
		return effect, false, noneFor(err)
	}
	if effect, err = one(ctx, t.conn, scanEffect, claimEffect, id, node.ID); err != nil {
		return effect, false, err
	}
	turn, err := one(ctx, t.conn, scanOne[int64], nextTurn, "outbox")
	if err != nil {
		return effect, false, err
	}
	_, err = t.exec(ctx, spendToken, effect.InstallationID, turn, WriterBurst*token, cost)
	return effect, false, err
}

// An EffectEnd is what became of a claimed effect: everything in it is one
// transaction.
type EffectEnd struct {
	// State is done, failed, unknown or superseded; pending to try again at
	// RetryAt when surely nothing was sent; sending to look again at RetryAt
	// when that is not sure.
	State EffectState
	// Result replaces the result of an earlier attempt unless it is empty.
	Result  json.RawMessage
	Error   string
	RetryAt time.Time
	// Records go to the journal of the effect's session: the outcome of its
	// call. They are written whoever holds the session, and also after its end.
	Records []runner.Record
	// WakeSession wakes the session; SessionState, when not empty, is what it
	// shows from now on unless it has ended.
	WakeSession  bool
	SessionState SessionState
	// ConsumeApproval is the approval that this effect used up.
	ConsumeApproval string
	// Prompt, when set, says where an approval's prompt appeared.
	Prompt *ApprovalPrompt
}

// EndEffect closes the claim. It fails with [runner.ErrFenced] when another
// node has claimed the effect since; nothing is written then. The claim alone
// is checked: an outcome may be recorded late as long as nobody else acts.
//
// Records get the session's next numbers and its current fence as epoch, in
// order with those of whoever holds it. When an effect is not done for good,
// pending effects that come after it end the same way. When a newer payload
// came while a coalesced effect was sent, it is pending again.
func (s *Store) EndEffect(ctx context.Context, node *Node, effect Effect, end EffectEnd) error {
	return s.transact(ctx, func(t *tx) error {
		// The session's row comes first, as in every other transaction.
		if err := t.endForSession(ctx, effect.SessionID, end); err != nil {
			return err
		}
		if err := t.endForApproval(ctx, effect, end); err != nil {
			return err
		}
		t.tell(TopicOutbox)
		_, err := one(ctx, t.conn, scanOne[EffectState], endEffect, effect.ID, node.ID, effect.Attempts, end.State,
			end.Result, end.Error, end.RetryAt, effect.Version)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("effect %s, claim %d: %w", effect.Key, effect.Attempts, runner.ErrFenced)
		}
		if err != nil {
			return err
		}
		return t.endDependents(ctx, effect.Key, end.State)
	})
}

// endForSession writes the outcome into the session's journal.
func (t *tx) endForSession(ctx context.Context, sessionID string, end EffectEnd) error {
	if sessionID == "" {
		return nil
	}
	var seq, fence int64
	var now time.Time
	err := t.row(ctx, advanceSession, sessionID, int64(len(end.Records))).Scan(&seq, at(&now), &fence)
	if err != nil {
		return err
	}
	if len(end.Records) > 0 {
		if err := t.putRecords(ctx, sessionID, fence, seq, millis(now), end.Records); err != nil {
			return err
		}
	}
	if end.SessionState != "" {
		if _, err := t.exec(ctx, showState, sessionID, end.SessionState); err != nil {
			return err
		}
	}
	if end.WakeSession {
		return t.wake(ctx, sessionID)
	}
	return nil
}

// endForApproval notes where a prompt appeared and which approval was used up.
func (t *tx) endForApproval(ctx context.Context, effect Effect, end EffectEnd) error {
	if end.Prompt != nil {
		if err := t.markPrompted(ctx, *end.Prompt); err != nil {
			return err
		}
	}
	if end.ConsumeApproval == "" {
		return nil
	}
	_, err := t.consume(ctx, end.ConsumeApproval, Consumption{EffectKey: effect.Key})
	if errors.Is(err, ErrAlreadyDecided) || errors.Is(err, ErrApprovalExpired) {
		// What happened, happened: the outcome is recorded all the same, and
		// the log says that it was not covered at this moment.
		t.store.logger.Error("an effect was done whose approval no longer stood",
			"effect", effect.Key, "approval", end.ConsumeApproval, "error", err)
		t.audit(AuditEntry{InstallationID: effect.InstallationID, RepositoryID: effect.RepositoryID,
			SessionID: effect.SessionID, Actor: "host", Action: "approval.missed", Subject: end.ConsumeApproval,
			Detail: detail("effect", effect.Key)})
		return nil
	}
	return err
}

// endDependents ends what can no longer be sent, and what waits for that in turn.
func (t *tx) endDependents(ctx context.Context, key string, state EffectState) error {
	inherited, ends := dependentState(state)
	if !ends {
		return nil
	}
	dependents, err := all(ctx, t.conn, scanOne[string], endDependents, key, inherited, dependentError(key, state))
	if err != nil {
		return err
	}
	for _, dependent := range dependents {
		if err := t.endDependents(ctx, dependent, inherited); err != nil {
			return err
		}
	}
	return nil
}
