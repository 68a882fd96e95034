package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"handoff/runner"
)

var (
	commandByID    = named("command_by_id")
	nextCommand    = named("next_command")
	claimCommand   = named("claim_command")
	commandTurn    = named("command_turn")
	routeCommand   = named("route_command")
	releaseCommand = named("release_command")
	insertMessage  = named("insert_message")
	lockSched      = named("lock_sched")
	nextTurn       = named("next_turn")
)

// The states of a [Command].
const (
	CommandNew     = "new"
	CommandRouted  = "routed"
	CommandRefused = "refused"
)

// A Routing is what becomes of a command. RouteCommand writes all of it in one
// transaction.
type Routing struct {
	// State is [CommandRouted] or [CommandRefused]; Outcome says in a word or
	// sentence what became of the command.
	State   string
	Outcome string
	// Session, when set, is a new session in the lane of its issue. An empty
	// ID and CommandID are filled in.
	Session *Session
	// Message, when set, is text for a live session, which is woken. An empty
	// ID and CommandID are filled in.
	Message *Message
	// CancelSession and WakeSession name sessions to be cancelled or woken. A
	// session is cancelled in the name of the command's actor.
	CancelSession string
	WakeSession   string
	// Effects belong to the command unless they name a session.
	Effects []Effect
}

// ClaimCommand gives the node a command to route, or [ErrNone]. Commands of
// dead nodes come back. Installations take turns; within an issue the order of
// arrival is kept, so that a command waits for an earlier one that is being
// routed or retried. Attempts counts the claims.
func (s *Store) ClaimCommand(ctx context.Context, node *Node) (Command, error) {
	var command Command
	err := s.transact(ctx, func(t *tx) error {
		if err := t.lockSched(ctx, "commands"); err != nil {
			return err
		}
		if err := node.mayTake(ctx, t); err != nil {
			return err
		}
		id, err := one(ctx, t.conn, scanOne[string], nextCommand)
		if err != nil {
			return noneFor(err)
		}
		if command, err = one(ctx, t.conn, scanCommand, claimCommand, id, node.ID); err != nil {
			return err
		}
		return t.takeTurn(ctx, "commands", commandTurn, command.InstallationID)
	})
	return command, err
}

// lockSched makes this the only transaction that hands out this kind of work.
// Statements after it see what earlier holders committed.
func (t *tx) lockSched(ctx context.Context, kind string) error {
	_, err := one(ctx, t.conn, scanOne[int64], lockSched, kind)
	return err
}

// takeTurn puts an installation at the end of the row of those that wait.
func (t *tx) takeTurn(ctx context.Context, kind string, update query, installationID int64) error {
	turn, err := one(ctx, t.conn, scanOne[int64], nextTurn, kind)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, update, installationID, turn)
	return err
}

// noneFor turns "no row" into "nothing to do".
func noneFor(err error) error {
	if errors.Is(err, ErrNotFound) {
		return ErrNone
	}
	return err
}

// RouteCommand ends the routing of a command that the node has claimed. It
// fails with [runner.ErrFenced] when the node has lost it, and with
// [ErrSessionEnded] when the message's session ended meanwhile; nothing is
// written then, and the caller may route again.
func (s *Store) RouteCommand(ctx context.Context, node *Node, id string, routing Routing) error {
	return s.transact(ctx, func(t *tx) error {
		command, err := one(ctx, t.conn, scanCommand, routeCommand, id, node.ID, routing.State, routing.Outcome)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("command %s: %w", id, runner.ErrFenced)
		}
		if err != nil {
			return err
		}
		// The next command of the issue may be routed now.
		t.tell(TopicCommands)
		return t.route(ctx, command, routing)
	})
}

func (t *tx) route(ctx context.Context, command Command, routing Routing) error {
	if routing.Session != nil {
		routing.Session.CommandID = cmp.Or(routing.Session.CommandID, command.ID)
		if err := t.createSession(ctx, routing.Session); err != nil {
			return err
		}
	}
	if routing.Message != nil {
		routing.Message.CommandID = cmp.Or(routing.Message.CommandID, command.ID)
		if err := t.putMessage(ctx, *routing.Message); err != nil {
			return err
		}
	}
	if routing.CancelSession != "" {
		if _, err := t.cancel(ctx, routing.CancelSession, command.ActorLogin); err != nil {
			return err
		}
	}
	if routing.WakeSession != "" {
		if err := t.wake(ctx, routing.WakeSession); err != nil {
			return err
		}
	}
	for _, effect := range routing.Effects {
		if effect.SessionID == "" {
			effect.CommandID = cmp.Or(effect.CommandID, command.ID)
		}
		if _, err := t.putEffect(ctx, effect); err != nil {
			return err
		}
	}
	return nil
}

// putMessage stores a message and wakes its session, whose row it locks, so that
// the session cannot end without having seen it.
func (t *tx) putMessage(ctx context.Context, m Message) error {
	phase, err := one(ctx, t.conn, scanOne[string], lockSession, m.SessionID)
	if err != nil {
		return err
	}
	if phase == phaseEnded {
		return fmt.Errorf("session %s: %w", m.SessionID, ErrSessionEnded)
	}
	_, err = t.exec(ctx, insertMessage, cmp.Or(m.ID, NewID()), m.SessionID, m.CommandID, m.ActorID, m.Actor, m.Text)
	if err != nil {
		return err
	}
	return t.wake(ctx, m.SessionID)
}

// ReleaseCommand gives a claimed command back, to be claimed again at retryAt
// (zero: at once). The reason is kept in Outcome until it is routed.
func (s *Store) ReleaseCommand(ctx context.Context, node *Node, id string, retryAt time.Time, reason string) error {
	return s.transact(ctx, func(t *tx) error {
		t.tell(TopicCommands)
		return onlyOne(t.exec(ctx, releaseCommand, id, node.ID, retryAt, reason))(
			fmt.Errorf("command %s: %w", id, runner.ErrFenced))
	})
}

// Command returns the command with that id, or [ErrNotFound].
func (s *Store) Command(ctx context.Context, id string) (Command, error) {
	return one(ctx, s.reader(), scanCommand, commandByID, id)
}

func scanCommand(row scanner) (Command, error) {
	var c Command
	err := row.Scan(&c.ID, &c.Key, &c.Kind, &c.DeliveryGUID, &c.InstallationID, &c.RepositoryID, &c.Owner,
		&c.Repository, &c.Issue, &c.CommentID, &c.CommentKind, &c.ActorID, &c.ActorLogin, &c.Verb, &c.Text,
		text(&c.Detail), at(&c.CreatedAt), &c.State, &c.Outcome, &c.Attempts)
	return c, err
}
