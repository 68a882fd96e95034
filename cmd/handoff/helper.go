package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"handoff/gitops/secrets"
)

// A helperSettings is what a command needs that asks a model about a
// repository, without a crew, a session or a sandbox.
type helperSettings struct {
	modelSettings
	tapeSettings
	Repo string `default:"." type:"path" help:"Top directory of the repository." placeholder:"DIR"`
}

// A helper has the repository and the model; close it.
type helper struct {
	root  *os.Root
	model *modelClient
}

// open looks for everything before anything is written or sent.
func (s *helperSettings) open() (*helper, error) {
	if s.Strict && s.Tape == "" {
		return nil, misuse("--strict says how a tape is played; name one with --tape")
	}
	root, err := os.OpenRoot(s.Repo)
	if err != nil {
		return nil, fmt.Errorf("--repo names no directory that can be read: %w", err)
	}
	scanner := secrets.New(modelSecrets(os.Getenv)...)
	model, err := openModel(s.modelSettings, s.tapeSettings, scanner, os.Getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &helper{root, model}, nil
}

func (h *helper) close() error { return errors.Join(h.model.close(), h.root.Close()) }
