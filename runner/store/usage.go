package store

import (
	"context"
	"time"

	"handoff/agents"
)

// A UsageFilter selects ledger entries; empty fields select all.
type UsageFilter struct {
	InstallationID int64
	RepositoryID   int64
	RequesterID    int64
	SessionID      string
	Agent          string
	Since          time.Time
}

// Usage sums the ledger. Requests counts attempts; Entries is empty.
func (s *Store) Usage(ctx context.Context, filter UsageFilter) (agents.Usage, error) { panic("soon") }

// UsageByAgent sums a session's ledger for each agent.
func (s *Store) UsageByAgent(ctx context.Context, sessionID string) (map[string]agents.Usage, error) {
	panic("soon")
}
