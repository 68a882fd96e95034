package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"handoff/agents"
	"handoff/runner/store"
)

// openStore opens the database and brings its schema up to date.
func openStore(ctx context.Context, url string, options store.Options) (*store.Store, error) {
	opened, err := store.Open(ctx, url, options)
	if err != nil {
		return nil, err
	}
	if err := opened.Migrate(ctx); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// seedAgents writes the shipped crew into the database. Edited agents stay as
// they are unless force.
func seedAgents(ctx context.Context, database *store.Store, force bool, log *slog.Logger) error {
	sources := agents.CrewSources()
	rows := make([]store.AgentRow, 0, len(sources))
	for _, slug := range slices.Sorted(maps.Keys(sources)) {
		sum := sha256.Sum256(sources[slug])
		rows = append(rows, store.AgentRow{ID: slug, Version: hex.EncodeToString(sum[:8]), Source: string(sources[slug])})
	}
	written, kept, err := database.SeedAgents(ctx, rows, force)
	if err != nil {
		return fmt.Errorf("the agents could not be written: %w", err)
	}
	if len(written) > 0 || len(kept) > 0 {
		log.Info("agents seeded", "written", strings.Join(written, " "), "kept_edited", strings.Join(kept, " "))
	}
	return nil
}

type seedCommand struct {
	databaseSettings
	logSettings
	Force bool `help:"Overwrite agents that were edited."`
}

// Run writes the shipped agents.
func (s *seedCommand) Run(p *process) error {
	database, err := openStore(p.ctx, s.DatabaseURL, store.Options{Mode: store.ModeShare, Logger: s.logger(p)})
	if err != nil {
		return err
	}
	defer database.Close()
	if err := seedAgents(p.ctx, database, s.Force, s.logger(p)); err != nil {
		return err
	}
	rows, err := database.Agents(p.ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		edited := ""
		if row.Edited {
			edited = "  (edited, kept)"
		}
		fmt.Fprintf(p.stdout, "%-14s %s%s\n", row.ID, row.Version, edited)
	}
	return nil
}

type migrateCommand struct {
	databaseSettings
	logSettings
}

// Run brings the schema up to date.
func (m *migrateCommand) Run(p *process) error {
	database, err := openStore(p.ctx, m.DatabaseURL, store.Options{Mode: store.ModeShare, Logger: m.logger(p)})
	if err != nil {
		return err
	}
	defer database.Close()
	fmt.Fprintf(p.stdout, "the %s database is up to date\n", database.Engine())
	return nil
}
