package runner_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"handoff/runner"
)

// A memorySession is a session without a database: the records and who may
// append to them.
type memorySession struct {
	mu      sync.Mutex
	records []runner.Record
	batches []runner.Batch
	epoch   int64
}

// take gives the session to a new holder; journals taken before are fenced.
func (s *memorySession) take() runner.Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	return &memoryJournal{session: s, epoch: s.epoch}
}

type memoryJournal struct {
	session *memorySession
	epoch   int64
}

func (j *memoryJournal) Append(ctx context.Context, batch runner.Batch) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	if j.epoch != j.session.epoch {
		return 0, runner.ErrFenced
	}
	first := int64(len(j.session.records) + 1)
	for i, record := range batch.Records {
		record.Seq, record.Epoch, record.Time = first+int64(i), j.epoch, time.Now()
		record.Payload = slices.Clone(record.Payload)
		j.session.records = append(j.session.records, record)
	}
	j.session.batches = append(j.session.batches, batch)
	return first, nil
}

func (j *memoryJournal) Load(ctx context.Context, from int64) ([]runner.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	return slices.Clone(j.session.records[min(from-1, int64(len(j.session.records))):]), nil
}

func TestMemoryJournal(t *testing.T) {
	runner.TestJournal(t, func(t *testing.T) (runner.Journal, func(t *testing.T) runner.Journal) {
		session := &memorySession{}
		return session.take(), func(*testing.T) runner.Journal { return session.take() }
	})
}
