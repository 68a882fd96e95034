package store

import "context"

// SeedAgents writes the shipped agents: new ones, and those that nobody has
// edited since. Edited ones are kept unless force. It returns the ids of those
// written and of those kept; an unchanged one is in neither.
func (s *Store) SeedAgents(ctx context.Context, rows []AgentRow, force bool) (written, kept []string, err error) {
	panic("soon")
}

// PutAgent stores an operator's edit of an agent, or a new one.
func (s *Store) PutAgent(ctx context.Context, row AgentRow) error { panic("soon") }

// Agents returns all agents by id.
func (s *Store) Agents(ctx context.Context) ([]AgentRow, error) { panic("soon") }

// Agent returns the agent with that slug, or [ErrNotFound].
func (s *Store) Agent(ctx context.Context, slug string) (AgentRow, error) { panic("soon") }
