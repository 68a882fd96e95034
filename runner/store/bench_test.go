package store_test

import (
	"fmt"
	"strings"
	"testing"

	"handoff/runner"
	"handoff/runner/store"
	"handoff/runner/store/storetest"
)

// held returns the lease on a fresh session of an engine.
func held(b *testing.B, engine string) *store.Lease {
	b.Helper()
	s := storetest.Open(b, engine)
	node, err := s.Register(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	go node.Keep(b.Context())
	if err := s.CreateSession(b.Context(), &store.Session{InstallationID: 7, RepositoryID: 1, Issue: 1}); err != nil {
		b.Fatal(err)
	}
	lease, err := s.Acquire(b.Context(), node, store.Caps{})
	if err != nil {
		b.Fatal(err)
	}
	return lease
}

// BenchmarkAppend measures one durable append after another: SQLite with an
// fsync each, Postgres as the server is configured (storetest's own does not
// sync; HANDOFF_TEST_POSTGRES names one that does).
func BenchmarkAppend(b *testing.B) {
	for _, engine := range storetest.Engines {
		for _, size := range []int{1, 50} {
			b.Run(fmt.Sprintf("%s/records=%d", engine, size), func(b *testing.B) {
				lease := held(b, engine)
				var batch runner.Batch
				for range size {
					batch.Records = append(batch.Records, note(strings.Repeat("x", 300)))
				}
				for b.Loop() {
					if _, err := lease.Append(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// BenchmarkLoad measures reading a session of 500 records.
func BenchmarkLoad(b *testing.B) {
	for _, engine := range storetest.Engines {
		b.Run(engine, func(b *testing.B) {
			lease := held(b, engine)
			var batch runner.Batch
			for range 500 {
				batch.Records = append(batch.Records, note(strings.Repeat("x", 300)))
			}
			if _, err := lease.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				records, err := lease.Load(b.Context(), 1)
				if err != nil || len(records) != 500 {
					b.Fatal(err, len(records))
				}
			}
		})
	}
}

// BenchmarkDelivery measures what stands between a webhook and its answer.
func BenchmarkDelivery(b *testing.B) {
	for _, engine := range storetest.Engines {
		b.Run(engine, func(b *testing.B) {
			s := storetest.Open(b, engine)
			body := []byte(strings.Repeat("x", 8<<10))
			var n int
			for b.Loop() {
				n++
				key := fmt.Sprint(n)
				stored, err := s.PutDelivery(b.Context(), store.Delivery{GUID: key, InstallationID: 7, Body: body},
					[]store.Command{{Key: key, RepositoryID: 1, Issue: n}})
				if err != nil || !stored {
					b.Fatal(err, stored)
				}
			}
		})
	}
}

// BenchmarkIdle measures a poll of every queue with a thousand sessions that
// wait for an approval: what an idle node costs each second.
func BenchmarkIdle(b *testing.B) {
	for _, engine := range storetest.Engines {
		b.Run(engine, func(b *testing.B) {
			s := storetest.Open(b, engine)
			node, err := s.Register(b.Context(), "bench")
			if err != nil {
				b.Fatal(err)
			}
			go node.Keep(b.Context())
			for issue := range 1000 {
				if err := s.CreateSession(b.Context(), &store.Session{InstallationID: 7, RepositoryID: 1, Issue: issue}); err != nil {
					b.Fatal(err)
				}
				lease, err := s.Acquire(b.Context(), node, store.Caps{})
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Suspend(b.Context(), store.Suspension{State: store.StateAwaitingApproval}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := s.Acquire(b.Context(), node, store.Caps{Global: 20, PerInstallation: 5}); err != store.ErrNone {
					b.Fatal(err)
				}
				if _, err := s.ClaimCommand(b.Context(), node); err != store.ErrNone {
					b.Fatal(err)
				}
				if _, _, err := s.ClaimEffect(b.Context(), node); err != store.ErrNone {
					b.Fatal(err)
				}
				if _, err := s.DuePolls(b.Context(), node, 100); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
