package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"handoff/agents/llm/tape"
	"handoff/gitops/secrets"
	"handoff/runner"
	"handoff/runner/session"
	"handoff/runner/store"
)

// tapeName is the file of an export that plays the session again.
const tapeName = "tape.jsonl"

var errNothingPlayed = errors.New("no model answered in this session, so there is nothing to play again; take one that got to work (handoff sessions list)")

type sessionsReplay struct {
	databaseSettings
	limitSettings
	ID       string `arg:"" help:"The session's id, or a beginning of it."`
	Repo     string `default:"." type:"path" help:"Top directory of a local clone of the session's repository." placeholder:"DIR"`
	Yes      bool   `short:"y" help:"Approve whatever the crew asks for; the result is a local branch."`
	Sandbox  string `env:"SANDBOX" default:"local" enum:"local,none" help:"Sandbox driver: local, or none to run commands without any isolation."`
	DataDir  string `name:"data-dir" env:"DATA_DIR" type:"path" help:"Directory for runs; empty for handoff in $XDG_STATE_HOME or ~/.local/state." placeholder:"DIR"`
	LogLevel string `name:"log-level" default:"error" enum:"debug,info,warn,error" help:"What is logged to standard error beside the live view."`
}

// Run plays a session again: what its models answered, with real tools, a real
// sandbox and real tests, on a local repository and nowhere else.
func (r *sessionsReplay) Run(p *process) (err error) {
	database, err := openToRead(p, r.databaseSettings)
	if err != nil {
		return err
	}
	found, err := oneSession(p.ctx, database, r.ID)
	if err != nil {
		return errors.Join(err, database.Close())
	}
	played, err := tapeOf(p.ctx, database, found)
	if err = errors.Join(err, database.Close()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "handoff-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, tapeName)
	if err := writeTape(name, played); err != nil {
		return err
	}
	if commit := found.Variables[session.VariableBaseCommit]; commit != "" {
		fmt.Fprintf(p.stdout, "The session began at commit %s; check that out in the clone to see the same again.\n\n", commit)
	}
	again := runCommand{
		tapeSettings: tapeSettings{Tape: name}, limitSettings: r.limitSettings, Task: found.Task,
		Repo: r.Repo, Yes: r.Yes, Sandbox: r.Sandbox, DataDir: r.DataDir, LogLevel: r.LogLevel,
	}
	return again.Run(p)
}

// tapeOf makes a tape of what a session's models answered.
func tapeOf(ctx context.Context, database *store.Store, found store.Session) (*tape.Tape, error) {
	records, err := database.Records(ctx, found.ID, 1)
	if err != nil {
		return nil, err
	}
	answers, err := runner.Answers(records)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		return nil, errNothingPlayed
	}
	scanner := secrets.New(modelSecrets(os.Getenv)...)
	redact := func(text string) string { return redactWith(scanner, text) }
	lines := make([]*tape.Line, len(answers))
	first := ""
	for i, answer := range answers {
		lines[i] = tape.Transcribe(answer.Agent, answer.Turn, answer.Response, redact)
		if calls := answer.Response.ToolCalls; first == "" && len(calls) > 0 {
			first = answer.Agent + " calls " + calls[0].Name
		}
		if answer.Compaction {
			// What is to be summed up begins with the first thing that was done.
			lines[i].When = first
		}
	}
	return tape.New(lines...)
}

func writeTape(name string, played *tape.Tape) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = played.WriteTo(file)
	return errors.Join(err, file.Close())
}
