package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	approvalSession  = named("approval_session")
	approve          = named("approve")
	reject           = named("reject")
	supersede        = named("supersede")
	expire           = named("expire")
	approvalFitness  = named("approval_fitness")
	consume          = named("consume")
	expiredApprovals = named("expired_approvals")
	openApprovals    = named("open_approvals")
	nextMark         = named("next_mark")
)

// The times of a decision. docs/github.md gives the reasons.
const (
	// ApprovalCooldown is how long a new prompt cannot be approved, so that a
	// switch under somebody's fingers is not.
	ApprovalCooldown = 5 * time.Second
	// ApprovalGrace is how long an approval can be taken back.
	ApprovalGrace = 10 * time.Second
)

// Values of [Decision.Via] that make a difference.
const (
	// ViaTerminal is an answer that was typed where the prompt was shown.
	ViaTerminal = "terminal"
	// ViaReaction is one that can be taken back without a word.
	ViaReaction = "reaction"
)

// A Decision is what somebody decided about an approval.
type Decision struct {
	// State is approved, rejected, superseded or expired.
	State ApprovalState
	By    string
	ByID  int64
	// Via is comment, reaction, check_run, terminal or host.
	Via    string
	Reason string
	// ActedAt is when the person acted, where that is known; zero means now. It
	// is compared with the time of the prompt.
	ActedAt time.Time
}

// Decide writes a decision in one conditional update, appends it to the audit
// log and wakes the session. It returns the row as it is then.
//
// An approval needs a pending row, a prompt that appeared [ApprovalCooldown]
// before ([ErrTooEarly]; no cooldown in a terminal, where one process shows the
// prompt and reads the answer) and time left by the database's clock
// ([ErrApprovalExpired]). A rejection needs a pending row, or an approval given
// less than [ApprovalGrace] ago: reject wins. Superseding needs a pending or
// approved row, expiring a pending one past its time (before, it is
// [ErrTooEarly]). Nothing from before a restored backup can be approved
// ([ErrStale]). Otherwise it is [ErrAlreadyDecided] with the row that stands.
func (s *Store) Decide(ctx context.Context, id string, decision Decision) (Approval, error) {
	return s.changeApproval(ctx, id, func(t *tx) (AuditEntry, error) { return t.decide(ctx, id, decision) })
}

func (t *tx) decide(ctx context.Context, id string, d Decision) (AuditEntry, error) {
	arguments := []any{id, d.State, d.By, d.ByID, d.Via, d.Reason}
	var rows int64
	var err error
	switch d.State {
	case ApprovalApproved:
		cooldown := ApprovalCooldown
		if d.Via == ViaTerminal {
			cooldown = 0
		}
		rows, err = t.exec(ctx, approve, append(arguments, millis(d.ActedAt), cooldown.Milliseconds())...)
	case ApprovalRejected:
		rows, err = t.exec(ctx, reject, append(arguments, ApprovalGrace.Milliseconds())...)
	case ApprovalSuperseded:
		rows, err = t.exec(ctx, supersede, arguments...)
	case ApprovalExpired:
		rows, err = t.exec(ctx, expire, arguments...)
	default:
		return AuditEntry{}, fmt.Errorf("approval %s: %q is not a decision", id, d.State)
	}
	if err == nil && rows == 0 {
		err = t.whyNot(ctx, id, d)
	}
	return AuditEntry{Actor: d.By, ActorID: d.ByID, Action: "approval." + string(d.State),
		Detail: detail("via", d.Via, "reason", d.Reason)}, err
}

// whyNot says why a decision changed nothing.
func (t *tx) whyNot(ctx context.Context, id string, d Decision) error {
	row, err := one(ctx, t.conn, scanApproval, approvalByID, id)
	if err != nil {
		return err
	}
	if row.State != ApprovalPending {
		return ErrAlreadyDecided
	}
	if d.State == ApprovalApproved {
		return cmp.Or(t.unfit(ctx, id), ErrTooEarly)
	}
	return ErrTooEarly
}

// unfit says why an approval can no longer be given or used: its time is over,
// or it is from before a restored backup.
func (t *tx) unfit(ctx context.Context, id string) error {
	var expired, stale bool
	if err := t.row(ctx, approvalFitness, id).Scan(&expired, &stale); err != nil {
		return err
	}
	switch {
	case expired:
		return ErrApprovalExpired
	case stale:
		return ErrStale
	}
	return nil
}

// changeApproval runs a change of one approval in a transaction: the session's
// row first, then the change, then the audit log, and the session is woken. It
// returns the row as it is then, also with an error that left it alone.
func (s *Store) changeApproval(ctx context.Context, id string, change func(*tx) (AuditEntry, error)) (Approval, error) {
	var row Approval
	err := s.transact(ctx, func(t *tx) error {
		if err := t.lockApprovalSession(ctx, id); err != nil {
			return err
		}
		entry, refused := change(t)
		var err error
		if row, err = one(ctx, t.conn, scanApproval, approvalByID, id); err != nil {
			return err
		}
		if refused != nil {
			return fmt.Errorf("approval %s: %w", id, refused)
		}
		entry.InstallationID, entry.RepositoryID, entry.SessionID = row.InstallationID, row.RepositoryID, row.SessionID
		entry.Subject = id
		t.tell(TopicApprovals)
		t.audit(entry)
		return t.wake(ctx, row.SessionID)
	})
	return row, err
}

// lockApprovalSession locks the session of an approval, which every transaction
// does that touches both.
func (t *tx) lockApprovalSession(ctx context.Context, id string) error {
	session, err := one(ctx, t.conn, scanOne[string], approvalSession, id)
	if err != nil {
		return fmt.Errorf("approval %s: %w", id, err)
	}
	_, err = one(ctx, t.conn, scanOne[string], lockSession, session)
	return err
}

// A Consumption is what is about to be done under an approval. Empty fields are
// not compared.
type Consumption struct {
	Digest         string
	Commit         string
	TargetRef      string
	ExpectedRemote string
	// EffectKey names the effect; the same effect may consume twice, so that a
	// push that a crash cut off can go on.
	EffectKey string
}

// Consume uses an approval up, once. It fails with [ErrStale] when the row is
// for something else or from before a restored backup, with
// [ErrApprovalExpired] past its time, and with [ErrAlreadyDecided] when it is
// not approved or was consumed by another effect.
func (s *Store) Consume(ctx context.Context, id string, expects Consumption) (Approval, error) {
	var row Approval
	err := s.transact(ctx, func(t *tx) (err error) {
		if err := t.lockApprovalSession(ctx, id); err != nil {
			return err
		}
		row, err = t.consume(ctx, id, expects)
		return err
	})
	return row, err
}

func (t *tx) consume(ctx context.Context, id string, expects Consumption) (Approval, error) {
	row, err := one(ctx, t.conn, scanApproval, approvalByID, id)
	if err != nil {
		return row, fmt.Errorf("approval %s: %w", id, err)
	}
	if !expects.matches(row) {
		return row, fmt.Errorf("approval %s: %w", id, ErrStale)
	}
	if row.State == ApprovalConsumed && expects.EffectKey != "" && row.ConsumedBy == expects.EffectKey {
		return row, nil
	}
	rows, err := t.exec(ctx, consume, id, expects.EffectKey)
	if err != nil {
		return row, err
	}
	if rows == 0 {
		return row, fmt.Errorf("approval %s: %w", id, t.whyNotConsumed(ctx, row))
	}
	t.tell(TopicApprovals)
	t.audit(AuditEntry{InstallationID: row.InstallationID, RepositoryID: row.RepositoryID, SessionID: row.SessionID,
		Actor: "host", Action: "approval.consumed", Subject: id, Detail: detail("effect", expects.EffectKey)})
	return one(ctx, t.conn, scanApproval, approvalByID, id)
}

func (t *tx) whyNotConsumed(ctx context.Context, row Approval) error {
	if row.State != ApprovalApproved {
		return ErrAlreadyDecided
	}
	return cmp.Or(t.unfit(ctx, row.ID), ErrAlreadyDecided)
}

func (c Consumption) matches(a Approval) bool {
	same := func(expected, have string) bool { return expected == "" || expected == have }
	return same(c.Digest, a.Digest) && same(c.Commit, a.Commit) && same(c.TargetRef, a.TargetRef) &&
		same(c.ExpectedRemote, a.ExpectedRemote)
}

// ExpireApprovals expires pending approvals past their time, wakes their
// sessions and returns them, at most limit.
func (s *Store) ExpireApprovals(ctx context.Context, limit int) ([]Approval, error) {
	due, err := all(ctx, s.reader(), scanOne[string], expiredApprovals, limit)
	if err != nil {
		return nil, err
	}
	var expired []Approval
	for _, id := range due {
		row, err := s.Decide(ctx, id, Decision{State: ApprovalExpired, By: "host", Via: "host", Reason: "nobody decided in time"})
		if errors.Is(err, ErrAlreadyDecided) {
			// Somebody, or another node, was faster.
			continue
		}
		if err != nil {
			return expired, err
		}
		expired = append(expired, row)
	}
	return expired, nil
}

// SupersedeApprovals supersedes all pending and approved approvals of a session
// and returns how many.
func (s *Store) SupersedeApprovals(ctx context.Context, sessionID, reason string) (int, error) {
	var count int64
	err := s.transact(ctx, func(t *tx) (err error) {
		if _, err := one(ctx, t.conn, scanOne[string], lockSession, sessionID); err != nil {
			return err
		}
		count, err = t.supersedeAll(ctx, sessionID, reason)
		return err
	})
	return int(count), err
}

// supersedeAll ends a session's open approvals, whose row the caller has locked.
func (t *tx) supersedeAll(ctx context.Context, sessionID, reason string) (int64, error) {
	count, err := t.exec(ctx, supersedeSession, sessionID, reason)
	if err != nil || count == 0 {
		return count, err
	}
	t.tell(TopicApprovals)
	t.audit(AuditEntry{SessionID: sessionID, Actor: "host", Action: "approval.superseded", Subject: sessionID,
		Detail: detail("reason", reason)})
	return count, nil
}

// NewRestoreEpoch is called after a backup was restored: pending and unconsumed
// approvals made before it are void, their sessions woken. It returns the new
// epoch and how many approvals it voided.
func (s *Store) NewRestoreEpoch(ctx context.Context) (epoch int64, voided int, err error) {
	err = s.transact(ctx, func(t *tx) (err error) {
		epoch, err = one(ctx, t.conn, scanOne[int64], nextMark, "restore_epoch")
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	// From here on nothing older can be consumed; the rows follow one by one.
	open, err := all(ctx, s.reader(), scanApproval, openApprovals)
	if err != nil {
		return epoch, 0, err
	}
	for _, row := range open {
		if row.RestoreEpoch >= epoch {
			continue
		}
		_, err := s.Decide(ctx, row.ID, Decision{State: ApprovalSuperseded, By: "host", Via: "host",
			Reason: "a backup was restored, so it is asked anew"})
		if errors.Is(err, ErrAlreadyDecided) {
			continue
		}
		if err != nil {
			return epoch, voided, err
		}
		voided++
	}
	return epoch, voided, nil
}
