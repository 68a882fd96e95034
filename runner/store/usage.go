package store

import (
	"context"
	"time"

	"handoff/agents"
)

var (
	sumUsage    = named("sum_usage")
	usageAgents = named("usage_agents")
)

// A UsageFilter selects ledger entries; empty fields select all.
type UsageFilter struct {
	InstallationID int64
	RepositoryID   int64
	// RequesterID is the person who asked for the session.
	RequesterID int64
	SessionID   string
	Agent       string
	Since       time.Time
}

// Usage sums the ledger. Requests counts attempts; Entries is empty.
func (s *Store) Usage(ctx context.Context, filter UsageFilter) (agents.Usage, error) {
	return one(ctx, s.reader(), scanUsage, sumUsage, filter.InstallationID, filter.RepositoryID, filter.RequesterID,
		filter.SessionID, filter.Agent, filter.Since)
}

// UsageByAgent sums a session's ledger for each agent.
func (s *Store) UsageByAgent(ctx context.Context, sessionID string) (map[string]agents.Usage, error) {
	names, err := all(ctx, s.reader(), scanOne[string], usageAgents, sessionID)
	if err != nil {
		return nil, err
	}
	sums := make(map[string]agents.Usage, len(names))
	for _, name := range names {
		if sums[name], err = s.Usage(ctx, UsageFilter{SessionID: sessionID, Agent: name}); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func scanUsage(row scanner) (agents.Usage, error) {
	var u agents.Usage
	err := row.Scan(&u.Requests, &u.Input, &u.Output, &u.Total, &u.Cached, &u.Reasoning, &u.CostMicros, &u.CostUnknown)
	return u, err
}
