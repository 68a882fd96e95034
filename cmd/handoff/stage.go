package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"handoff/agents/llm/tape"
	"handoff/gitops/fakegithub"
)

// The people and places of a stage. ada may do everything, bob may write, eve
// may only read.
const (
	stageOwner      = "acme"
	stageMaintainer = "ada"
	stageWriter     = "bob"
	stageReader     = "eve"
	stageApp        = "handoff-crew"
)

// A stage is a whole world in one process: a fake GitHub with one repository
// and a few people, the bot as a real App on it, and a tape for a model. The
// demo plays on it, and so do the conversation tests.
type stage struct {
	github   *fakegithub.Server
	bot      *bot
	model    *tape.Server
	listener net.Listener

	stop    context.CancelFunc
	running sync.WaitGroup
	ended   chan struct{}
	failed  error
}

// A stageSpec says what a stage is made of.
type stageSpec struct {
	dir string // for the database, the workspaces and the fake's repositories
	// repository is the name, files its first commit.
	repository string
	files      fs.FS
	player     *tape.Player
	listen     string // of the fake, "" for a free port
	git        fakegithub.GitBackend
	limits     fakegithub.Limits
	database   string // "" for SQLite in dir
	sandbox    string
	setupDir   string
	around     surroundings
	adjust     func(*serveCommand)
	log        *slog.Logger
}

// newStage sets everything up and starts it.
func newStage(ctx context.Context, spec stageSpec) (_ *stage, err error) {
	ctx, stop := context.WithCancel(ctx)
	s := &stage{stop: stop, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.model, err = tape.Serve(spec.player); err != nil {
		return nil, err
	}
	app, err := s.raiseGitHub(ctx, spec)
	if err != nil {
		return nil, err
	}
	settings := s.settings(spec, app)
	if spec.adjust != nil {
		spec.adjust(&settings)
	}
	around := spec.around
	around.getenv = func(name string) string {
		if spec.around.getenv != nil {
			return spec.around.getenv(name)
		}
		if name == "TAPE_URL" {
			return s.model.URL
		}
		return ""
	}
	if s.bot, err = newBot(ctx, settings, around, spec.log); err != nil {
		return nil, err
	}
	s.running.Go(func() {
		defer close(s.ended)
		s.failed = s.bot.run(ctx, s.listener)
	})
	return s, nil
}

// settings are those of a real App, as serve would get them.
func (s *stage) settings(spec stageSpec, app fakegithub.App) serveCommand {
	settings := serveCommand{
		githubSettings: githubSettings{
			AppID: app.ID, PrivateKey: app.PrivateKey, WebhookSecret: []string{app.WebhookSecret}, URL: s.github.URL(),
		},
		modelSettings: modelSettings{Provider: "tape"},
		limitSettings: limitSettings{
			MaxTurns: 40, MaxHandoffs: 12, MaxTokens: 2_000_000, MaxCost: 5, MaxTime: time.Hour,
			CommandTime: 5 * time.Minute,
		},
		approvalSettings: approvalSettings{Role: "write", Expires: time.Hour},
		serverSettings: serverSettings{
			DataDir: filepath.Join(spec.dir, "data"), SetupDir: spec.setupDir, ReadyTrees: 2, Sandbox: spec.sandbox, Sessions: 4, PerOwner: 4, ShutdownGrace: 5 * time.Second,
		},
	}
	settings.PublicURL = "http://" + s.listener.Addr().String()
	settings.DatabaseURL = spec.database
	if settings.DatabaseURL == "" {
		settings.DatabaseURL = "sqlite://" + filepath.Join(spec.dir, "handoff.db")
	}
	return settings
}

// raiseGitHub starts the fake with its people, its repository and the App.
func (s *stage) raiseGitHub(ctx context.Context, spec stageSpec) (app fakegithub.App, err error) {
	s.github, err = fakegithub.New(fakegithub.Options{
		DataDir: filepath.Join(spec.dir, "github"), Listen: spec.listen, Git: spec.git, Limits: spec.limits, ActingAs: stageMaintainer, Logger: spec.log,
	})
	if err != nil {
		return app, err
	}
	if err := s.people(); err != nil {
		return app, err
	}
	if err := s.repository(spec.repository, spec.files); err != nil {
		return app, err
	}
	app, err = s.github.AddApp(fakegithub.AppSpec{
		Slug: stageApp, Name: "handoff crew", Owner: stageOwner, WebhookSecret: rand.Text(),
		WebhookURL: fmt.Sprintf("http://%s/webhook", s.listener.Addr()),
		Permissions: map[string]string{
			"issues": "write", "pull_requests": "write", "contents": "write", "checks": "write", "actions": "read",
		},
	})
	if err != nil {
		return app, err
	}
	if _, err = s.github.Install(fakegithub.InstallationSpec{App: stageApp, Account: stageOwner}); err != nil {
		return app, err
	}
	// The bot has last words on its way out, so the fake stays until close.
	return app, s.github.Start(context.WithoutCancel(ctx))
}

// people adds the stage's accounts to the fake.
func (s *stage) people() error {
	users := []fakegithub.UserSpec{
		{Login: stageOwner, Type: "Organization"}, {Login: stageMaintainer, Name: "Ada"}, {Login: stageWriter, Name: "Bob"}, {Login: stageReader, Name: "Eve"},
	}
	for _, user := range users {
		if _, err := s.github.AddUser(user); err != nil {
			return err
		}
	}
	return nil
}

// repository adds a repository with the people's roles in it.
func (s *stage) repository(name string, files fs.FS) error {
	_, err := s.github.AddRepository(fakegithub.RepositorySpec{
		Owner: stageOwner, Name: name, Files: files,
		Roles: map[string]fakegithub.Role{
			stageMaintainer: fakegithub.RoleAdmin, stageWriter: fakegithub.RoleWrite, stageReader: fakegithub.RoleRead,
		},
	})
	return err
}

// health returns why the bot ended, nil while it runs.
func (s *stage) health() error {
	select {
	case <-s.ended:
		return fmt.Errorf("the bot has ended: %w", cmp.Or(s.failed, errors.New("nobody knows why")))
	default:
		return nil
	}
}

// close stops the bot, then the rest, and waits for all of it.
func (s *stage) close() error {
	s.stop()
	s.running.Wait()
	errs := []error{s.failed}
	if s.bot != nil {
		s.bot.close()
	}
	if s.model != nil {
		errs = append(errs, s.model.Close())
	}
	if s.github != nil {
		errs = append(errs, s.github.Close())
	}
	if s.listener != nil {
		_ = s.listener.Close() // closed already where the bot served on it
	}
	return errors.Join(errs...)
}
