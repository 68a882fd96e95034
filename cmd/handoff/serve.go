package main

import (
	"fmt"
	"net"
	"os"
)

type serveCommand struct {
	databaseSettings
	githubSettings
	modelSettings
	limitSettings
	approvalSettings
	serverSettings
	logSettings
}

// Run checks the settings, wires the App and serves until it is told to stop.
func (s *serveCommand) Run(p *process) error {
	if err := s.check(); err != nil {
		return err
	}
	log := s.logger(p)
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("LISTEN is %q, where nothing can listen: %w", s.Listen, err)
	}
	defer listener.Close()
	b, err := newBot(p.ctx, *s, surroundings{getenv: os.Getenv}, log)
	if err != nil && p.ctx.Err() != nil {
		// Whatever was cut off says so in its own words.
		log.Info("asked to stop before it had started", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer b.close()
	log.Info("listening", "address", listener.Addr().String(), "webhook", "/webhook")
	return b.run(p.ctx, listener)
}
