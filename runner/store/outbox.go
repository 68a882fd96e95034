package store

import (
	"bytes"
	"context"
	"fmt"
)

var (
	lockEffectState  = named("lock_effect_state")
	insertEffect     = named("insert_effect")
	replaceEffect    = named("replace_effect")
	effectByKey      = named("effect_by_key")
	effectsOfSession = named("effects_of_session")
)

// resultPriority is the priority of effects that a journal's batch asks for.
const resultPriority = 1

// PutEffect puts an effect into the outbox that a command owns, or nobody. It
// reports stored=false for a key that exists with the same content, and fails
// with [ErrDuplicate] for one with another content. An effect whose After has
// failed already is stored as failed.
func (s *Store) PutEffect(ctx context.Context, effect Effect) (stored bool, err error) {
	err = s.transact(ctx, func(t *tx) error {
		stored, err = t.putEffect(ctx, effect)
		return err
	})
	return stored && err == nil, err
}

func (t *tx) putEffect(ctx context.Context, e Effect) (stored bool, err error) {
	if _, err := t.exec(ctx, ensureInstallation, e.InstallationID); err != nil {
		return false, err
	}
	state, reason, err := t.startingState(ctx, e.After)
	if err != nil {
		return false, err
	}
	rows, err := t.exec(ctx, insertEffect, e.Key, e.Kind, e.InstallationID, e.RepositoryID, e.Owner, e.Repository,
		e.SessionID, e.CommandID, e.CallKey, e.After, e.Priority, e.Payload, state, reason, e.NotBefore)
	if err != nil {
		return false, err
	}
	t.tell(TopicOutbox)
	if rows == 1 {
		return true, nil
	}
	return false, t.sameEffect(ctx, e)
}

// startingState is pending, unless what the effect waits for has ended badly.
// The row is locked, so that it cannot end badly unseen.
func (t *tx) startingState(ctx context.Context, after string) (EffectState, string, error) {
	if after == "" {
		return EffectPending, "", nil
	}
	state, err := one(ctx, t.conn, scanOne[EffectState], lockEffectState, after)
	switch {
	case noneFor(err) == ErrNone:
		return EffectPending, "", nil
	case err != nil:
		return "", "", err
	}
	if inherited, ends := dependentState(state); ends {
		return inherited, dependentError(after, state), nil
	}
	return EffectPending, "", nil
}

// dependentState is the state of a pending effect whose predecessor came to
// that state; ends is false while it may still be sent.
func dependentState(state EffectState) (inherited EffectState, ends bool) {
	switch state {
	case EffectFailed, EffectUnknown:
		return EffectFailed, true
	case EffectSuperseded:
		return EffectSuperseded, true
	}
	return "", false
}

func dependentError(after string, state EffectState) string {
	return fmt.Sprintf("not sent, because %s, which comes first, is %s", after, state)
}

// sameEffect says whether an effect with a key that exists is the one that is
// there.
func (t *tx) sameEffect(ctx context.Context, e Effect) error {
	have, err := one(ctx, t.conn, scanEffect, effectByKey, e.Key)
	if err != nil {
		return err
	}
	same := have.Kind == e.Kind && have.SessionID == e.SessionID && have.RepositoryID == e.RepositoryID &&
		bytes.Equal(have.Payload, []byte(cleanText(string(e.Payload))))
	if !same {
		return fmt.Errorf("effect %s: %w", e.Key, ErrDuplicate)
	}
	return nil
}

// PutLatest puts an effect whose newest payload alone matters, such as the text
// of the progress comment. While the effect with that key is pending the
// payload is replaced; when it is being sent or was sent, it becomes pending
// again after that. Version counts the replacements. A payload equal to the
// last one changes nothing, and neither does one for a superseded effect.
// NotBefore keeps the later of the two, Priority the newer one.
func (s *Store) PutLatest(ctx context.Context, effect Effect) error {
	return s.transact(ctx, func(t *tx) error { return t.putLatest(ctx, effect) })
}

func (t *tx) putLatest(ctx context.Context, e Effect) error {
	if _, err := t.exec(ctx, ensureInstallation, e.InstallationID); err != nil {
		return err
	}
	t.tell(TopicOutbox)
	state, reason, err := t.startingState(ctx, e.After)
	if err != nil {
		return err
	}
	rows, err := t.exec(ctx, insertEffect, e.Key, e.Kind, e.InstallationID, e.RepositoryID, e.Owner, e.Repository,
		e.SessionID, e.CommandID, e.CallKey, e.After, e.Priority, e.Payload, state, reason, e.NotBefore)
	if err != nil || rows == 1 {
		return err
	}
	_, err = t.exec(ctx, replaceEffect, e.Key, e.Payload, e.Priority, e.NotBefore, e.Kind)
	return err
}

// EffectByKey returns the effect with that key, or [ErrNotFound].
func (s *Store) EffectByKey(ctx context.Context, key string) (Effect, error) {
	return one(ctx, s.reader(), scanEffect, effectByKey, key)
}

// EffectsOfSession returns a session's effects, oldest first.
func (s *Store) EffectsOfSession(ctx context.Context, sessionID string) ([]Effect, error) {
	return all(ctx, s.reader(), scanEffect, effectsOfSession, sessionID)
}

func scanEffect(row scanner) (Effect, error) {
	var e Effect
	err := row.Scan(&e.ID, &e.Key, &e.Kind, &e.InstallationID, &e.RepositoryID, &e.Owner, &e.Repository, &e.SessionID,
		&e.CommandID, &e.CallKey, &e.After, &e.Priority, text(&e.Payload), &e.State, text(&e.Result), &e.Error,
		&e.Attempts, at(&e.NotBefore), &e.Node, &e.Version, at(&e.CreatedAt), at(&e.UpdatedAt))
	return e, err
}
