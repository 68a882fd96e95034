package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"handoff/agents"
	"handoff/runner"
)

var (
	guardSession     = named("guard_session")
	setState         = named("set_state")
	setAgentVersions = named("set_agent_versions")
	pendingMessages  = named("pending_messages")
	cancelRequested  = named("cancel_requested")
)

// A Lease is a node's hold on a session. It is the session's [runner.Journal].
// All writes fail with [runner.ErrFenced] once the session was taken over,
// suspended or ended, or the node's own lease is gone. It is safe for
// concurrent use; writes follow one another.
type Lease struct {
	store *Store
	node  *Node

	// writing is held during a write, session by mutex only while it is read
	// or set, so that Session never waits for the database.
	writing sync.Mutex
	mutex   sync.Mutex
	session Session
}

var _ runner.Journal = (*Lease)(nil)

// Session returns the session as the lease knows it: as acquired, with the
// lease's own writes since. What others set is read by the methods below.
func (l *Lease) Session() Session {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	session := l.session
	session.Variables = maps.Clone(session.Variables)
	session.AgentVersions = maps.Clone(session.AgentVersions)
	return session
}

func (l *Lease) update(change func(*Session)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	change(&l.session)
}

// Exhausted says that the session was attempted more than [MaxAttempts] times:
// the holder tells people and finishes it, and does nothing that could bring
// the process down again.
func (l *Lease) Exhausted() bool { return l.Session().Attempts > MaxAttempts }

// A guarded transaction has passed the fence: its session's row is locked, and
// seq is the number of its first record.
type guarded struct {
	*tx
	session Session
	seq     int64
	now     time.Time
}

// write runs work in a transaction that holds the session: first the lane when
// the session may end, then the guard, which hands out numbers for n records.
func (l *Lease) write(ctx context.Context, n int, ends bool, work func(*guarded) error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	session := l.Session()
	if !l.node.Alive() {
		return fenced(session)
	}
	return l.store.transact(ctx, func(t *tx) error {
		if ends {
			if err := t.lockLane(ctx, session.RepositoryID, session.Issue); err != nil {
				return err
			}
		}
		g := &guarded{tx: t, session: session}
		err := t.row(ctx, guardSession, session.ID, session.Fence, session.Node, int64(n)).Scan(&g.seq, at(&g.now))
		if errors.Is(err, sql.ErrNoRows) {
			return fenced(session)
		}
		if err != nil {
			return err
		}
		l.store.at("guarded")
		return work(g)
	})
}

func fenced(session Session) error {
	return fmt.Errorf("session %s, fence %d: %w", session.ID, session.Fence, runner.ErrFenced)
}

// Append writes a batch in one transaction: records, outbox rows (owned by the
// session, with the call key of the batch's tool.intent record), checkpoint and
// blobs, active agent, variables, usage and its ledger entries, messages taken.
// An effect whose key exists with the same content is left alone, with another
// content the append fails with [ErrDuplicate]. It returns the sequence number
// of the first record. Numbers are gapless, but the outbox may have written an
// outcome in between: whoever finds first higher than expected loads the rest.
func (l *Lease) Append(ctx context.Context, batch runner.Batch) (first int64, err error) {
	err = l.write(ctx, len(batch.Records), false, func(g *guarded) error {
		first = g.seq
		return g.append(ctx, batch)
	})
	if err != nil {
		return 0, err
	}
	l.appended(batch, first)
	return first, nil
}

// appended brings the lease's own view up to a batch that was committed.
func (l *Lease) appended(batch runner.Batch, first int64) {
	l.update(func(s *Session) {
		s.NextSeq = first + int64(len(batch.Records))
		s.ActiveAgent, s.Variables = progress(*s, batch)
		usage := batch.Usage
		usage.Entries = nil
		s.Usage.Add(usage)
	})
}

// progress returns the session's active agent and variables after a batch.
func progress(s Session, batch runner.Batch) (agent string, variables agents.Variables) {
	agent, variables = s.ActiveAgent, agents.Variables{}
	if batch.ActiveAgent != "" {
		agent = batch.ActiveAgent
	}
	maps.Copy(variables, s.Variables)
	maps.Copy(variables, batch.Variables)
	return agent, variables
}

// Load returns the session's records from seq on, in order.
func (l *Lease) Load(ctx context.Context, from int64) ([]runner.Record, error) {
	return l.store.Records(ctx, l.Session().ID, from)
}

// SetState tells people what the session is doing: preparing, running or
// publishing, and why in Reason.
func (l *Lease) SetState(ctx context.Context, state SessionState, reason string) error {
	err := l.write(ctx, 0, false, func(g *guarded) error {
		g.tell(TopicJournal)
		_, err := g.exec(ctx, setState, g.session.ID, state, reason)
		return err
	})
	if err == nil {
		l.update(func(s *Session) { s.State, s.Reason = state, reason })
	}
	return err
}

// RecordAgents remembers which version of each agent the session uses.
func (l *Lease) RecordAgents(ctx context.Context, versions map[string]string) error {
	kept := maps.Clone(versions)
	err := l.write(ctx, 0, false, func(g *guarded) error {
		_, err := g.exec(ctx, setAgentVersions, g.session.ID, encode(kept))
		return err
	})
	if err == nil {
		l.update(func(s *Session) { s.AgentVersions = kept })
	}
	return err
}

// PutEffects puts effects of the session into the outbox, where the owner,
// installation and repository are filled in. A key that exists with the same
// content is left alone; with another content it is [ErrDuplicate].
func (l *Lease) PutEffects(ctx context.Context, effects []Effect) error {
	return l.write(ctx, 0, false, func(g *guarded) error { return g.putEffects(ctx, effects) })
}

func (g *guarded) putEffects(ctx context.Context, effects []Effect) error {
	for _, effect := range effects {
		if _, err := g.putEffect(ctx, g.own(effect)); err != nil {
			return err
		}
	}
	return nil
}

// own makes an effect the session's.
func (g *guarded) own(effect Effect) Effect {
	effect.SessionID = g.session.ID
	effect.InstallationID, effect.RepositoryID = g.session.InstallationID, g.session.RepositoryID
	effect.Owner, effect.Repository = g.session.Owner, g.session.Repository
	return effect
}

// PutLatest is [Store.PutLatest] under the lease.
func (l *Lease) PutLatest(ctx context.Context, effect Effect) error {
	return l.write(ctx, 0, false, func(g *guarded) error { return g.putLatest(ctx, g.own(effect)) })
}

// PendingMessages returns what people wrote to the session and no batch has
// taken yet, oldest first.
func (l *Lease) PendingMessages(ctx context.Context) ([]Message, error) {
	return all(ctx, l.store.reader(), scanMessage, pendingMessages, l.Session().ID)
}

// CancelRequested says whether somebody asked the session to stop, and who.
func (l *Lease) CancelRequested(ctx context.Context) (requested bool, by string, err error) {
	err = l.store.reader().row(ctx, cancelRequested, l.Session().ID).Scan(&requested, &by)
	return requested, by, err
}

// Checkpoint returns the last checkpoint without its blobs, nil when there is
// none. Blob loads the contents.
func (l *Lease) Checkpoint(ctx context.Context) (*runner.Checkpoint, error) {
	return l.store.Checkpoint(ctx, l.Session().ID)
}

// Blob returns the contents with that git blob id, or [ErrNotFound].
func (l *Lease) Blob(ctx context.Context, id string) ([]byte, error) {
	return l.store.Blob(ctx, l.Session().InstallationID, id)
}

// MissingBlobs returns which of the git blob ids the store lacks in the
// session's installation.
func (l *Lease) MissingBlobs(ctx context.Context, ids []string) ([]string, error) {
	return l.store.reader().missingBlobs(ctx, l.Session().InstallationID, slices.Values(ids))
}

// PutArtifact keeps a file that belongs to the session: a patch, the full text
// of a long output. The same name replaces. It returns the artifact's id.
func (l *Lease) PutArtifact(ctx context.Context, artifact Artifact) (id string, err error) {
	artifact.SessionID = l.Session().ID
	err = l.write(ctx, 0, false, func(g *guarded) error {
		id, err = g.putArtifact(ctx, artifact)
		return err
	})
	return id, err
}

func scanMessage(row scanner) (Message, error) {
	var m Message
	err := row.Scan(&m.ID, &m.SessionID, &m.CommandID, &m.ActorID, &m.Actor, &m.Text, at(&m.CreatedAt), &m.TakenSeq)
	return m, err
}

// intentCall reads the call's key from the payload of a tool.intent record.
func intentCall(payload json.RawMessage) (string, error) {
	var intent struct {
		Call string `json:"call"`
	}
	if err := json.Unmarshal(payload, &intent); err != nil {
		return "", fmt.Errorf("the payload of a tool.intent record: %w", err)
	}
	return intent.Call, nil
}
