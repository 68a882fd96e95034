package store

import (
	"cmp"
	"context"
	"time"
)

var (
	insertDelivery     = named("insert_delivery")
	deliveryKnown      = named("delivery_known")
	deliveryByGUID     = named("delivery_by_guid")
	insertCommand      = named("insert_command")
	ensureInstallation = named("ensure_installation")
	readMark           = named("read_mark")
	raiseMark          = named("raise_mark")
)

// PutDelivery stores a delivery and its commands in one transaction. A GUID
// that is known gives stored=false and nothing is written. A command whose Key
// exists is left out silently, though the delivery is stored. The times are the
// database's; ids, delivery and installation of the commands are filled in
// where they are empty.
func (s *Store) PutDelivery(ctx context.Context, delivery Delivery, commands []Command) (stored bool, err error) {
	err = s.transact(ctx, func(t *tx) error {
		rows, err := t.exec(ctx, insertDelivery, delivery.GUID, delivery.Event, delivery.Action, delivery.HookID,
			delivery.InstallationID, delivery.RepositoryID, delivery.Body, delivery.Source)
		stored = rows == 1
		if err != nil || !stored {
			return err
		}
		for _, command := range commands {
			command.DeliveryGUID = delivery.GUID
			command.InstallationID = cmp.Or(command.InstallationID, delivery.InstallationID)
			if err := t.putCommand(ctx, command); err != nil {
				return err
			}
		}
		return nil
	})
	return stored && err == nil, err
}

func (t *tx) putCommand(ctx context.Context, c Command) error {
	if _, err := t.exec(ctx, ensureInstallation, c.InstallationID); err != nil {
		return err
	}
	t.tell(TopicCommands)
	_, err := t.exec(ctx, insertCommand, cmp.Or(c.ID, NewID()), c.Key, c.Kind, c.DeliveryGUID, c.InstallationID,
		c.RepositoryID, c.Owner, c.Repository, c.Issue, c.CommentID, c.CommentKind, c.ActorID, c.ActorLogin,
		c.Verb, c.Text, c.Detail)
	return err
}

// KnownDeliveries returns which of the GUIDs are stored.
func (s *Store) KnownDeliveries(ctx context.Context, guids []string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, guid := range guids {
		found, err := one(ctx, s.reader(), scanOne[bool], deliveryKnown, guid)
		if err != nil {
			return nil, err
		}
		if found {
			known[guid] = true
		}
	}
	return known, nil
}

// SweepMark returns how far the sweeper has read GitHub's delivery log, the
// zero time before its first run.
func (s *Store) SweepMark(ctx context.Context) (time.Time, error) {
	var mark time.Time
	err := s.reader().row(ctx, readMark, "sweep").Scan(at(&mark))
	return mark, err
}

// SetSweepMark remembers how far the sweeper has read. It never goes back.
func (s *Store) SetSweepMark(ctx context.Context, mark time.Time) error {
	return s.transact(ctx, func(t *tx) error {
		_, err := t.exec(ctx, raiseMark, "sweep", mark)
		return err
	})
}

// Delivery returns a delivery as it came, or [ErrNotFound].
func (s *Store) Delivery(ctx context.Context, guid string) (Delivery, error) {
	return one(ctx, s.reader(), scanDelivery, deliveryByGUID, guid)
}

func scanDelivery(row scanner) (Delivery, error) {
	var d Delivery
	err := row.Scan(&d.GUID, &d.Event, &d.Action, &d.HookID, &d.InstallationID, &d.RepositoryID, &d.Body, &d.Source,
		at(&d.ReceivedAt))
	return d, err
}
