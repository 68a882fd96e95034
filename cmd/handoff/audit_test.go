package main

import (
	"database/sql"
	"strings"
	"testing"

	"handoff/runner/store"
)

func TestTheAuditLogIsVerified(t *testing.T) {
	s := newShelf(t)
	for range 3 {
		must(t, s.store.Audit(t.Context(), store.AuditEntry{Actor: "ann", Action: "test", Subject: "s"}))
	}
	out, said := s.does(0, "audit", "verify")
	has(t, out, "3:")
	has(t, said, "3 entries are as they were written")
	head := strings.TrimSpace(out)

	must(t, s.store.Audit(t.Context(), store.AuditEntry{Actor: "ann", Action: "test", Subject: "t"}))
	out, _ = s.does(0, "audit", "verify", "--head", head)
	has(t, out, "4:")
	_, said = s.does(2, "audit", "verify", "--head", "3")
	has(t, said, "SEQ:HASH")
	_, said = s.does(1, "audit", "verify", "--head", "9"+head[1:])
	has(t, said, "the audit log was changed", "9 entries", "cut off")
	_, said = s.does(1, "audit", "verify", "--head", "2"+head[1:])
	has(t, said, "entry 2 is not the one that it was")

	file, err := sql.Open("sqlite", strings.TrimPrefix(s.url, "sqlite://"))
	must(t, err)
	defer file.Close()
	_, err = file.Exec("UPDATE audit_log SET actor = 'eve' WHERE seq = 2")
	must(t, err)
	_, said = s.does(1, "audit", "verify")
	has(t, said, "entry 2: the audit log was changed", "backup from before")
}

func TestARestoredBackupHasNoOpenApprovals(t *testing.T) {
	s := newShelf(t)
	_, said := s.does(1, "restored")
	has(t, said, "Another handoff process")
	must(t, s.store.Close())
	out, _ := s.does(0, "restored")
	has(t, out, "0 approvals")
}
