package store

import (
	"context"
)

var (
	seedAgent  = named("seed_agent")
	putAgent   = named("put_agent")
	listAgents = named("agents")
	agentByID  = named("agent")
)

// SeedAgents writes the shipped agents: new ones, and those that nobody has
// edited since. Edited ones are kept unless force. It returns the ids of those
// written and of edited ones that were kept; one that is as shipped already is in
// neither.
func (s *Store) SeedAgents(ctx context.Context, rows []AgentRow, force bool) (written, kept []string, err error) {
	err = s.transact(ctx, func(t *tx) error {
		written, kept = nil, nil
		for _, row := range rows {
			changed, err := t.exec(ctx, seedAgent, row.ID, row.Version, row.Source, force)
			if err != nil {
				return err
			}
			if changed == 1 {
				written = append(written, row.ID)
				continue
			}
			have, err := one(ctx, t.conn, scanAgent, agentByID, row.ID)
			if err != nil {
				return err
			}
			if have.Version != row.Version {
				kept = append(kept, row.ID)
			}
		}
		return nil
	})
	return written, kept, err
}

// PutAgent stores an operator's edit of an agent, or a new one.
func (s *Store) PutAgent(ctx context.Context, row AgentRow) error {
	return s.transact(ctx, func(t *tx) error {
		_, err := t.exec(ctx, putAgent, row.ID, row.Version, row.Source)
		return err
	})
}

// Agents returns all agents by id.
func (s *Store) Agents(ctx context.Context) ([]AgentRow, error) {
	return all(ctx, s.reader(), scanAgent, listAgents)
}

// Agent returns the agent with that slug, or [ErrNotFound].
func (s *Store) Agent(ctx context.Context, slug string) (AgentRow, error) {
	return one(ctx, s.reader(), scanAgent, agentByID, slug)
}

func scanAgent(row scanner) (AgentRow, error) {
	var a AgentRow
	err := row.Scan(&a.ID, &a.Version, &a.Source, &a.Edited, at(&a.UpdatedAt))
	return a, err
}
