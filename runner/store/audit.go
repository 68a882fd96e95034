package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	readClock   = named("clock")
	auditHead   = named("audit_head")
	insertAudit = named("insert_audit")
	listAudit   = named("audit_log")
)

// An AuditEntry is one line of the audit log: who did what to what. Seq, At,
// Previous and Hash are given by the store.
type AuditEntry struct {
	Seq            int64
	At             time.Time
	InstallationID int64
	RepositoryID   int64
	SessionID      string
	Actor          string
	ActorID        int64
	// Action is a word such as approval.approved; Subject is what it was done to.
	Action  string
	Subject string
	// Detail is JSON, nil for none.
	Detail json.RawMessage
	// Hash is SHA-256, in hexadecimal, over the entry and the Previous one's.
	Previous string
	Hash     string
}

// An AuditHead names the last entry of the log; to keep it elsewhere is to
// notice that the log was rewritten.
type AuditHead struct {
	Seq  int64
	Hash string
}

// Audit appends an entry.
func (s *Store) Audit(ctx context.Context, entry AuditEntry) error {
	return s.transact(ctx, func(t *tx) error {
		t.audit(entry)
		return nil
	})
}

// writeAudit appends the transaction's entries to the chain.
func (t *tx) writeAudit(ctx context.Context) error {
	if len(t.entries) == 0 {
		return nil
	}
	if err := t.lockSched(ctx, "audit"); err != nil {
		return err
	}
	head, err := t.auditHead(ctx)
	if err != nil {
		return err
	}
	var now time.Time
	if err := t.row(ctx, readClock).Scan(at(&now)); err != nil {
		return err
	}
	for _, e := range t.entries {
		e.Seq, e.At, e.Previous = head.Seq+1, now, head.Hash
		e.clean()
		head = AuditHead{Seq: e.Seq, Hash: e.sum()}
		_, err := t.exec(ctx, insertAudit, e.Seq, e.At, e.InstallationID, e.RepositoryID, e.SessionID, e.Actor, e.ActorID,
			e.Action, e.Subject, e.Detail, e.Previous, head.Hash)
		if err != nil {
			return err
		}
	}
	return nil
}

// clean makes the entry what will be read back, so that its hash is of that.
func (e *AuditEntry) clean() {
	for _, field := range []*string{&e.SessionID, &e.Actor, &e.Action, &e.Subject} {
		*field = cleanText(*field)
	}
	e.Detail = json.RawMessage(cleanText(string(e.Detail)))
}

// sum is the entry's hash. Each field is preceded by its length, so that no two
// entries share their bytes.
func (e *AuditEntry) sum() string {
	hash := sha256.New()
	for _, field := range []any{e.Seq, e.At.UnixMilli(), e.InstallationID, e.RepositoryID, e.SessionID, e.Actor, e.ActorID,
		e.Action, e.Subject, string(e.Detail), e.Previous} {
		text := fmt.Sprint(field)
		fmt.Fprintf(hash, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// detail is a small JSON object of names and values for an entry.
func detail(pairs ...string) json.RawMessage {
	values := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		values[pair[0]] = pair[1]
	}
	return json.RawMessage(encode(values))
}

// AuditHead returns the last entry's number and hash, zero for an empty log.
func (s *Store) AuditHead(ctx context.Context) (AuditHead, error) { return s.reader().auditHead(ctx) }

func (c conn) auditHead(ctx context.Context) (AuditHead, error) {
	head, err := one(ctx, c, func(row scanner) (h AuditHead, err error) {
		err = row.Scan(&h.Seq, &h.Hash)
		return h, err
	}, auditHead)
	if errors.Is(err, ErrNotFound) {
		return AuditHead{}, nil
	}
	return head, err
}

// AuditLog returns entries from seq on, at most limit.
func (s *Store) AuditLog(ctx context.Context, from int64, limit int) ([]AuditEntry, error) {
	return all(ctx, s.reader(), scanAudit, listAudit, from, limit)
}

// VerifyAudit recomputes the whole chain and returns its head. It fails with
// [ErrAuditBroken], naming the first entry that does not fit. A log that was
// cut at its end verifies: compare the head with one kept elsewhere.
func (s *Store) VerifyAudit(ctx context.Context) (AuditHead, error) {
	const page = 1000
	var head AuditHead
	for {
		entries, err := s.AuditLog(ctx, head.Seq+1, page)
		if err != nil || len(entries) == 0 {
			return head, err
		}
		for _, entry := range entries {
			if entry.Seq != head.Seq+1 || entry.Previous != head.Hash || entry.sum() != entry.Hash {
				return head, fmt.Errorf("entry %d: %w", head.Seq+1, ErrAuditBroken)
			}
			head = AuditHead{Seq: entry.Seq, Hash: entry.Hash}
		}
	}
}

func scanAudit(row scanner) (AuditEntry, error) {
	var e AuditEntry
	err := row.Scan(&e.Seq, at(&e.At), &e.InstallationID, &e.RepositoryID, &e.SessionID, &e.Actor, &e.ActorID, &e.Action,
		&e.Subject, text(&e.Detail), &e.Previous, &e.Hash)
	return e, err
}
