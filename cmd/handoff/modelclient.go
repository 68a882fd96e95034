package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"handoff/agents/llm"
	"handoff/agents/llm/tape"
	"handoff/gitops/secrets"
)

// A modelClient is the model that a command talks to, with what has to be
// closed after it.
type modelClient struct {
	*llm.Client
	closers []func() error
}

// tapeSettings replace the model by a tape, or make one.
type tapeSettings struct {
	Tape   string `help:"Replay this tape in place of a model." type:"path" placeholder:"FILE"`
	Strict bool   `help:"With --tape: end with the difference where a request is not the one on the tape."`
	Record string `help:"Write what the model says to this tape; an existing file is replaced." type:"path" placeholder:"FILE"`
}

// openModel returns the model that the settings name. Whatever is missing is
// said before anything is written or sent.
func openModel(settings modelSettings, tapes tapeSettings, scanner *secrets.Scanner, getenv func(string) string, log *slog.Logger, change ...func(*llm.Config)) (_ *modelClient, err error) {
	opened := &modelClient{}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}()
	config := llm.Config{
		Provider: settings.Provider, Model: settings.Model, AllowDataCollection: settings.AllowDataCollection,
		Upstreams: settings.Upstreams, Getenv: getenv, Logger: log,
		Redact: func(text string) string { return redactWith(scanner, text) },
	}
	for _, one := range change {
		one(&config)
	}
	if tapes.Tape != "" {
		if err := opened.play(tapes, &config); err != nil {
			return nil, err
		}
	}
	if opened.Client, err = llm.New(config); err != nil || tapes.Record == "" {
		return opened, err
	}
	recorder, finish, err := tape.Create(tapes.Record, config.Redact)
	if err != nil {
		return nil, err
	}
	opened.closers = append(opened.closers, finish)
	config.Recorder = recorder
	opened.Client, err = llm.New(config)
	return opened, err
}

// play serves a tape on loopback and points the configuration there.
func (m *modelClient) play(tapes tapeSettings, config *llm.Config) error {
	file, err := os.Open(tapes.Tape)
	if err != nil {
		return fmt.Errorf("the tape cannot be read: %w", err)
	}
	defer file.Close()
	answers, err := tape.Read(file)
	if err != nil {
		return fmt.Errorf("the tape %s cannot be played: %w", tapes.Tape, err)
	}
	server, err := tape.Serve(tape.NewPlayer(answers, tape.Options{Strict: tapes.Strict}))
	if err != nil {
		return err
	}
	m.closers = append(m.closers, server.Close)
	config.Provider, config.BaseURL, config.Model = llm.ProviderTape, server.URL, ""
	return nil
}

func (m *modelClient) close() error {
	var errs []error
	for _, one := range m.closers {
		errs = append(errs, one())
	}
	return errors.Join(errs...)
}

// modelSecrets are the keys of model providers that this process holds.
func modelSecrets(getenv func(string) string) []string {
	var known []string
	for _, name := range []string{"OPENROUTER_API_KEY", "OPENAI_API_KEY", "ZAI_API_KEY"} {
		if value := getenv(name); value != "" {
			known = append(known, value)
		}
	}
	return known
}

// redactWith takes secrets out of a text. Where the scanner itself fails the
// text is withheld: nothing that was not looked at may be kept.
func redactWith(scanner *secrets.Scanner, text string) string {
	clean, err := scanner.Redact(text)
	if err != nil {
		return "[withheld: the search for secrets failed]"
	}
	return clean
}
