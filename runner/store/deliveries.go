package store

import (
	"context"
	"time"
)

// PutDelivery stores a delivery and its commands in one transaction. A GUID
// that is known gives stored=false and nothing is written. A command whose Key
// exists is left out silently, though the delivery is stored. ID, CreatedAt,
// State and ReceivedAt are filled in where empty.
func (s *Store) PutDelivery(ctx context.Context, delivery Delivery, commands []Command) (stored bool, err error) {
	panic("soon")
}

// KnownDeliveries returns which of the GUIDs are stored.
func (s *Store) KnownDeliveries(ctx context.Context, guids []string) (map[string]bool, error) {
	panic("soon")
}

// SweepMark returns how far the sweeper has read GitHub's delivery log, the
// zero time before its first run.
func (s *Store) SweepMark(ctx context.Context) (time.Time, error) { panic("soon") }

// SetSweepMark remembers how far the sweeper has read. It never goes back.
func (s *Store) SetSweepMark(ctx context.Context, mark time.Time) error { panic("soon") }
