package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"handoff/agents"
	"handoff/gitops/git"
	"handoff/gitops/secrets"
	"handoff/runner/approval"
	"handoff/runner/session"
	"handoff/sandbox"
)

type runCommand struct {
	modelSettings
	tapeSettings
	limitSettings
	Task        string `arg:"" optional:"" help:"What the crew shall do."`
	Repo        string `default:"." type:"path" help:"Top directory of a local git repository." placeholder:"DIR"`
	Continue    string `help:"Go on with a run that was interrupted or ended early." placeholder:"RUN"`
	Yes         bool   `short:"y" help:"Approve whatever the crew asks for."`
	Sandbox     string `env:"SANDBOX" default:"local" enum:"local,none" help:"Sandbox driver: local, or none to run commands without any isolation."`
	DataDir     string `name:"data-dir" env:"DATA_DIR" type:"path" help:"Directory for runs; empty for handoff in $XDG_STATE_HOME or ~/.local/state." placeholder:"DIR"`
	DatabaseURL string `name:"database-url" env:"DATABASE_URL" help:"Take the agents from this database; empty for the shipped ones." placeholder:"URL"`
	LogLevel    string `name:"log-level" default:"error" enum:"debug,info,warn,error" help:"What is logged to standard error beside the live view."`
}

// check refuses arguments that make no sense together.
func (r *runCommand) check() error {
	switch {
	case r.Strict && r.Tape == "":
		return misuse("--strict says how a tape is played; name one with --tape")
	case r.Continue == "" && strings.TrimSpace(r.Task) == "":
		return misuse(`say what the crew shall do: handoff run --repo DIR "task"`)
	case r.Continue != "" && r.Task != "":
		return misuse("--continue goes on with the task of that run; leave out the new one")
	case r.Continue != "" && !runName.MatchString(r.Continue):
		return misuse(fmt.Sprintf("--continue is %q, which is no name of a run", r.Continue))
	}
	return errors.Join(r.limitSettings.faults()...)
}

// Run lets the crew work on a local repository. Everything that can be missing
// is looked for before anything is written.
func (r *runCommand) Run(p *process) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	show := newScreen(p.stdout)
	var level slog.Level
	if err := level.UnmarshalText([]byte(r.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
	files, err := r.files()
	if err != nil {
		return err
	}
	base, err := openBase(p.ctx, files.about.Repository)
	if err != nil {
		return err
	}
	scanner := secrets.New(modelSecrets(os.Getenv)...)
	model, err := openModel(r.modelSettings, r.tapeSettings, scanner, os.Getenv, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.close()) }()
	driver, err := r.driver(p.ctx, show, files, log)
	if err != nil {
		return err
	}
	work := &localRun{
		runCommand: r, files: files, base: base, show: show, log: log, scanner: scanner, model: model, driver: driver,
		events: make(chan told, 1024), questions: make(chan openQuestion, 16),
	}
	if !r.Yes {
		work.keys = newKeyboard(p.stdin)
	}
	return work.run(p.ctx)
}

// files finds the run's files: those of a run to go on with, or new ones.
func (r *runCommand) files() (*runFiles, error) {
	root, err := stateDir(r.DataDir)
	if err != nil {
		return nil, err
	}
	if r.Continue != "" {
		return openRunFiles(root, r.Continue)
	}
	repository, err := filepath.EvalSymlinks(r.Repo)
	if err != nil {
		return nil, fmt.Errorf("--repo is %q, which cannot be found: %w", r.Repo, err)
	}
	return newRunFiles(root, aboutRun{Repository: repository, Task: strings.TrimSpace(r.Task)}), nil
}

// A localBase is the repository and the commit that the crew starts from.
type localBase struct {
	localSource
	path   string
	branch string // what HEAD is on, "HEAD" when it is on none
}

// openBase opens the repository and finds the commit that HEAD is at.
func openBase(ctx context.Context, path string) (localBase, error) {
	base := localBase{path: path}
	var err error
	if base.local, err = git.OpenLocal(path, git.Limits{}); err != nil {
		return base, err
	}
	commit, branch, err := base.local.Resolve(ctx, "HEAD")
	base.base, base.branch = commit, strings.TrimPrefix(branch, "refs/heads/")
	if branch == "" {
		base.branch = "HEAD"
	}
	return base, err
}

// driver returns the sandbox. Without one nothing is run unless the person
// says so.
func (r *runCommand) driver(ctx context.Context, show *screen, files *runFiles, log *slog.Logger) (sandbox.Driver, error) {
	options := sandbox.LocalOptions{StateDir: files.sandbox(), Logger: log}
	if r.Sandbox == "none" {
		show.alarm("No sandbox: the crew's commands can do whatever you can do on this machine.")
		return sandbox.NewUnisolated(options), nil
	}
	driver := sandbox.NewLocal(options)
	return driver, mustIsolate(ctx, driver, show)
}

// mustIsolate shows how well the driver isolates, or says why not at all.
func mustIsolate(ctx context.Context, driver sandbox.Driver, show *screen) error {
	capabilities, err := driver.Probe(ctx)
	if err != nil {
		return err
	}
	if reason := capabilities.Err(); reason != nil {
		return fmt.Errorf("the crew's commands cannot be isolated on this machine, so it does not start; --sandbox=none runs them without isolation. %w", reason)
	}
	show.fact("sandbox", capabilities.String())
	return nil
}

// person is who sits at the terminal, as git would name them: by its variables,
// by its configuration, or else by login and machine.
func (b localBase) person() git.Identity {
	person := b.local.Person()
	person.Name = cmp.Or(os.Getenv("GIT_AUTHOR_NAME"), person.Name)
	person.Email = cmp.Or(os.Getenv("GIT_AUTHOR_EMAIL"), person.Email)
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return git.Identity{Name: cmp.Or(person.Name, login()), Email: cmp.Or(person.Email, login()+"@"+host)}
}

// login is what the machine calls the person at the terminal. It is what the
// crew is told: a name from a repository's configuration is anybody's text.
func login() string {
	if me, err := user.Current(); err == nil && me.Username != "" {
		return me.Username
	}
	return "you"
}

// pin takes the base that an earlier session of the run began with, if it came
// so far: the work that it left is work on that commit.
func (b *localBase) pin(variables agents.Variables) {
	if commit := variables[session.VariableBaseCommit]; commit != "" {
		b.base, b.branch = commit, variables[session.VariableBaseBranch]
	}
}

// String says what the crew starts from, and what it does not see.
func (b localBase) String() string {
	return fmt.Sprintf("%s at %s; what is not committed there is not part of it", b.branch, approval.Short(b.base))
}
