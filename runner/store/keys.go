package store

import (
	"context"
	"crypto/rand"
	"errors"
)

var (
	serverKey       = named("server_key")
	insertServerKey = named("insert_server_key")
	renewServerKey  = named("renew_server_key")
)

// serverKeySize is the length of a key in bytes.
const serverKeySize = 32

// ServerKey returns the server's own secret for a purpose: 32 random bytes that
// all nodes share. The first who asks makes it, atomically. A store opened with
// [ModeRead] fails with [ErrReadOnly] where it was not made yet.
func (s *Store) ServerKey(ctx context.Context, name string) ([]byte, error) {
	key, err := one(ctx, s.reader(), scanOne[[]byte], serverKey, name)
	if !errors.Is(err, ErrNotFound) {
		return key, err
	}
	fresh := newServerKey()
	err = s.transact(ctx, func(t *tx) (err error) {
		if _, err = t.exec(ctx, insertServerKey, name, fresh); err != nil {
			return err
		}
		// Another node may have been first.
		key, err = one(ctx, t.conn, scanOne[[]byte], serverKey, name)
		return err
	})
	return key, err
}

// RenewServerKey replaces a purpose's secret by a new one: whatever was signed
// with the old one is worthless from then on. By is who did it, for the audit
// log.
func (s *Store) RenewServerKey(ctx context.Context, name, by string) error {
	return s.transact(ctx, func(t *tx) error {
		t.audit(AuditEntry{Actor: by, Action: "server_key.renewed", Subject: name})
		_, err := t.exec(ctx, renewServerKey, name, newServerKey())
		return err
	})
}

func newServerKey() []byte {
	key := make([]byte, serverKeySize)
	// It never fails: the program ends where there is no randomness.
	_, _ = rand.Read(key)
	return key
}
