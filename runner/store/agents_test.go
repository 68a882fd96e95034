package store_test

import (
	"encoding/json"
	"testing"

	"handoff/runner/store"
)

func TestSeedingNeverOverwritesAnEdit(t *testing.T) {
	inEachWorld(t, func(w *world) {
		crew := []store.AgentRow{{ID: "copilot", Version: "c1", Source: "v1"}, {ID: "tester", Version: "t1", Source: "v1"}}
		seed := func(force bool) (written, kept []string) {
			w.Helper()
			written, kept, err := w.store.SeedAgents(w.Context(), crew, force)
			w.ok(err)
			return written, kept
		}
		written, kept := seed(false)
		w.equal(written, []string{"copilot", "tester"})
		w.equal(len(kept), 0)
		written, kept = seed(false)
		w.equal(len(written)+len(kept), 0)

		w.ok(w.store.PutAgent(w.Context(), store.AgentRow{ID: "tester", Version: "mine", Source: "edited"}))
		crew[0].Version, crew[1].Version = "c2", "t2"
		written, kept = seed(false)
		w.equal(written, []string{"copilot"})
		w.equal(kept, []string{"tester"})
		tester, err := w.store.Agent(w.Context(), "tester")
		w.ok(err)
		w.equal(tester.Source, "edited")
		w.equal(tester.Edited, true)

		written, _ = seed(true)
		w.equal(written, []string{"tester"})
		all, err := w.store.Agents(w.Context())
		w.ok(err)
		w.equal(len(all), 2)
		w.equal(all[1].Edited, false)
		_, err = w.store.Agent(w.Context(), "nobody")
		w.fails(err, store.ErrNotFound)
	})
}

func TestVersionsOfAgentsAreRecordedWithTheSession(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		w.ok(lease.RecordAgents(w.Context(), map[string]string{"tester": "t1"}))
		w.equal(w.load(id).AgentVersions, map[string]string{"tester": "t1"})
	})
}

func TestAuditLogIsAChain(t *testing.T) {
	inEachWorld(t, func(w *world) {
		head, err := w.store.VerifyAudit(w.Context())
		w.ok(err)
		w.equal(head, store.AuditHead{})
		for i := range 5 {
			w.ok(w.store.Audit(w.Context(), store.AuditEntry{Actor: "ann\x00\xff", ActorID: int64(i), Action: "test",
				Subject: "s", Detail: json.RawMessage(`{"a":"\u0000"}`)}))
		}
		head, err = w.store.VerifyAudit(w.Context())
		w.ok(err)
		w.equal(head.Seq, 5)
		stored, err := w.store.AuditHead(w.Context())
		w.ok(err)
		w.equal(stored, head)
	})
}

func TestRewrittenAuditLogIsNoticed(t *testing.T) {
	for name, rewrite := range map[string]string{
		"changed": "UPDATE audit_log SET actor = 'eve' WHERE seq = 3",
		"removed": "DELETE FROM audit_log WHERE seq = 3",
		"moved":   "UPDATE audit_log SET at = at + 1 WHERE seq = 2",
		"shifted": "UPDATE audit_log SET action = 'tes', subject = 'ts' WHERE seq = 4",
	} {
		t.Run(name, func(t *testing.T) {
			inEachWorld(t, func(w *world) {
				for range 5 {
					w.ok(w.store.Audit(w.Context(), store.AuditEntry{Actor: "ann", Action: "test", Subject: "s"}))
				}
				w.ok(w.store.Execute(w.Context(), rewrite))
				_, err := w.store.VerifyAudit(w.Context())
				w.fails(err, store.ErrAuditBroken)
			})
		})
	}
}

func TestDecisionsAreAudited(t *testing.T) {
	inEachWorld(t, func(w *world) {
		id := w.asks(w.node("a"), 1, digest, "prompt")
		w.prompted(id)
		_, err := w.store.Decide(w.Context(), id, yes())
		w.ok(err)
		_, err = w.store.Decide(w.Context(), id, yes())
		w.fails(err, store.ErrAlreadyDecided)
		_, err = w.store.Consume(w.Context(), id, store.Consumption{EffectKey: "push"})
		w.ok(err)
		entries, err := w.store.AuditLog(w.Context(), 1, 10)
		w.ok(err)
		var actions []string
		for _, entry := range entries {
			actions = append(actions, entry.Action)
			w.equal(entry.Subject, id)
			w.equal(entry.RepositoryID, 1)
		}
		w.equal(actions, []string{"approval.requested", "approval.approved", "approval.consumed"})
		_, err = w.store.VerifyAudit(w.Context())
		w.ok(err)
	})
}
