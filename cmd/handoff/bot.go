package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"net/url"
	"os"
	"path/filepath"
	"strings"

	"time"

	"handoff/agents/llm"
	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/gitops/secrets"
	"handoff/runner"
	"handoff/runner/approval"
	"handoff/runner/intake"
	"handoff/runner/outbox"
	"handoff/runner/session"
	"handoff/runner/store"
	"handoff/sandbox"
	"handoff/webhook"
	"handoff/webhook/pages"
)

// A bot is the running App: everything that serve and demo have in common.
type bot struct {
	settings  serveCommand
	around    surroundings
	log       *slog.Logger
	store     *store.Store
	app       *github.App
	cache     *git.Cache
	pool      *git.Pool
	driver    sandbox.Driver
	scanner   *secrets.Scanner
	model     *modelClient
	conductor *session.Conductor
	router    *intake.Router
	sweeper   *intake.Sweeper
	outbox    *outbox.Outbox
	poller    *approval.Poller
	web       *webhook.Server
	links     *pages.Links
	// owners are the accounts that are served, nil for all.
	owners []string
	// dataLock keeps other processes out of the data directory.
	dataLock *os.File
}

// Surroundings are what serve takes from the process and a stage sets itself.
type surroundings struct {
	// watch is told what happens in sessions; may be nil.
	watch func(session string, event runner.Event)
	// doing is told what the host does for a session beside its events.
	doing func(session, who, what string)
	// getenv looks up keys and addresses of model providers.
	getenv func(string) string
	// sweepEvery is the time between two looks at GitHub's delivery log, 0 for
	// the usual.
	sweepEvery time.Duration
	// openPages opens the pages to whoever reaches them on loopback.
	openPages bool
}

// newBot wires the App together. It talks to the database and to GitHub, so
// that what is wrong with the settings shows now and not at the first command.
func newBot(ctx context.Context, settings serveCommand, around surroundings, log *slog.Logger) (_ *bot, err error) {
	b := &bot{settings: settings, around: around, log: log}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	// What needs nobody else comes first, before anything is made.
	if err := b.readKeys(); err != nil {
		return nil, err
	}
	if b.settings.DataDir, err = makeDataDir(settings.DataDir); err != nil {
		return nil, err
	}
	if b.store, err = openStore(ctx, settings.DatabaseURL, store.Options{Mode: store.ModeServe, Logger: log}); err != nil {
		return nil, err
	}
	if b.dataLock, err = lockDataDir(b.settings.DataDir); err != nil {
		return nil, err
	}
	if err := seedAgents(ctx, b.store, false, log); err != nil {
		return nil, err
	}
	if err := b.identify(ctx); err != nil {
		return nil, err
	}
	if err := b.wire(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// readKeys reads the App's key and the model provider's, and tells of both.
func (b *bot) readKeys() (err error) {
	b.scanner = secrets.New(b.knownSecrets()...)
	b.model, err = openModel(b.settings.modelSettings, tapeSettings{Record: b.settings.Record}, b.scanner, b.around.getenv, b.log)
	app, failed := github.NewApp(github.Config{
		AppID: b.settings.AppID, PrivateKey: b.settings.PrivateKey, BaseURL: b.settings.URL, Workflows: b.settings.Workflows,
		OnToken: b.scanner.Learn, Logger: b.log,
	})
	b.app = app
	return errors.Join(failed, err)
}

// identify asks GitHub who the App is.
func (b *bot) identify(ctx context.Context) error {
	identity, err := b.app.Identity(ctx)
	if broken, ok := errors.AsType[*github.Error](err); ok && broken.Code == github.CodeUnavailable {
		return fmt.Errorf("GitHub cannot be asked about this App: %w", err)
	}
	if err != nil {
		return fmt.Errorf("GitHub does not know this App: %w", err)
	}
	b.log.Info("this App is known to GitHub", "slug", identity.Slug, "id", identity.AppID)
	b.owners, err = allowedOwners(b.settings.AllowedOwners, identity)
	return err
}

// everybody, in place of accounts, serves whoever installs the App.
const everybody = "*"

// allowedOwners are the accounts whose repositories are served, nil for all. A
// private App can be installed by its owner alone; where nobody else is named
// the same holds for a public one, or strangers could install it and spend the
// operator's money.
func allowedOwners(named []string, app github.Identity) ([]string, error) {
	var owners []string
	for _, owner := range named {
		if owner = strings.TrimSpace(owner); owner == everybody {
			return nil, nil
		} else if owner != "" {
			owners = append(owners, owner)
		}
	}
	switch {
	case len(owners) > 0:
		return owners, nil
	case app.Owner.Login == "":
		return nil, errors.New("ALLOWED_OWNERS is missing, and GitHub names no account that owns this App: name the accounts whose repositories may spend, or * for all")
	}
	return []string{app.Owner.Login}, nil
}

func (b *bot) wire(ctx context.Context) (err error) {
	if b.driver, err = b.newDriver(ctx); err != nil {
		return err
	}
	if b.cache, err = git.NewCache(git.Options{Dir: filepath.Join(b.settings.DataDir, "cache"), Logger: b.log}); err != nil {
		return err
	}
	if b.pool, err = b.newPool(); err != nil {
		return err
	}
	if b.links, err = pages.NewLinks(b.store, b.settings.PublicURL); err != nil {
		return err
	}
	b.conductor = b.newConductor(b.model.Client, b.scanner)
	decisions := approval.NewService(b.store, func(installation, repository int64) approval.Repository {
		return b.app.Installation(installation).ReadOnly(repository)
	}, b.log)
	b.poller = approval.NewPoller(decisions)
	b.router = intake.NewRouter(intake.Options{
		Store: b.store, Decisions: decisions, AllowedOwners: b.owners, Role: b.settings.operator().Role,
		Repository: func(installation, repository int64) intake.Repository {
			return b.app.Installation(installation).ReadOnly(repository)
		},
		SessionURL: b.sessionURL, Forget: b.app.Forget, Logger: b.log,
	})
	key, err := b.store.ServerKey(ctx, "outbox marker")
	if err != nil {
		return err
	}
	b.outbox = outbox.New(outbox.Options{
		Store: b.store, Publisher: b.conductor, Key: key, Redact: b.scanner.Redact, Logger: b.log,
		Repository: func(installation, repository int64) outbox.Repository {
			return b.app.Installation(installation).Writer(repository)
		},
	})
	b.web, err = webhook.New(webhook.Options{
		Secrets: b.settings.WebhookSecret, AppID: b.settings.AppID, Inbox: b.store, Ready: b.store.Ping, Logger: b.log,
	})
	if err != nil {
		return err
	}
	if err := b.addPages(ctx); err != nil {
		return err
	}
	b.sweeper = intake.NewSweeper(intake.SweeperOptions{
		Log: b.app, Marks: b.store, Matters: webhook.Matters, Every: b.around.sweepEvery, Logger: b.log,
		Deliver: func(ctx context.Context, missed intake.Missed) error {
			_, err := b.web.Deliver(ctx, webhook.Received{
				GUID: missed.GUID, Event: missed.Event, HookID: missed.HookID, Body: missed.Body, At: missed.At, Source: "sweeper",
			})
			return err
		},
	})
	return nil
}

// addPages adds what people see in a browser. Their streams end with ctx.
func (b *bot) addPages(ctx context.Context) error {
	shown, err := pages.New(pages.Options{
		Store: b.store, Links: b.links, GitHub: b.settings.URL, Checklist: session.Checklist,
		PullRequest: pullRequestOf, OpenOnLoopback: b.around.openPages, Stop: ctx.Done(), Logger: b.log,
	})
	if err != nil {
		return err
	}
	shown.Register(b.web.Group(""))
	return nil
}

// pullRequestOf is the address of a session's pull request, "" for none.
func pullRequestOf(s store.Session) string { return s.Variables[outbox.VariablePullRequestURL] }

// sessionURL is the address of a session's page, "" where people cannot reach
// this server.
func (b *bot) sessionURL(id string) string {
	if b.settings.PublicURL == "" {
		return ""
	}
	return b.links.Unsigned(id)
}

// patchLink returns the link to a session's file that is posted at its end.
func (b *bot) patchLink(ctx context.Context, id, name string) (session.Link, error) {
	if b.settings.PublicURL == "" {
		return session.Link{}, nil
	}
	link, err := b.links.Patch(ctx, id, name)
	return session.Link(link), err
}

func (b *bot) newConductor(model *llm.Client, scanner *secrets.Scanner) *session.Conductor {
	tools := findToolchain()
	options := session.Options{
		Store: b.store, Cache: b.cache, Sandbox: b.driver, Model: model, Scanner: scanner,
		Operator: b.settings.operator(), Workflows: b.settings.Workflows,
		Caps:    store.Caps{Global: b.settings.Sessions, PerInstallation: b.settings.PerOwner},
		DataDir: b.settings.DataDir, Host: b.host(), PublicURL: b.settings.PublicURL, PatchLink: b.patchLink,
		SetupDir: b.settings.SetupDir, ReadOnly: tools.mounts, Env: tools.env, OnEvent: b.around.watch, OnDoing: b.around.doing, Logger: b.log,
		Repository: func(installation, repository int64) session.Repository {
			return b.app.Installation(installation).ReadOnly(repository)
		},
		Pusher: func(installation, repository int64) session.Tokens {
			return b.app.Installation(installation).Writer(repository)
		},
		Signer: func(installation, repository int64) session.Signer {
			return b.app.Installation(installation).Committer(repository)
		},
		Granted: func(ctx context.Context, installation int64) (map[string]string, error) {
			info, err := b.app.Installation(installation).Info(ctx)
			return info.Permissions, err
		},
	}
	if b.pool != nil {
		options.Pool = b.pool
	}
	return session.New(options)
}

// newPool returns a pool of trees on the file system of the workspaces, nil when
// the settings want none.
func (b *bot) newPool() (*git.Pool, error) {
	if b.settings.ReadyTrees == 0 {
		return nil, nil
	}
	return b.cache.NewPool(git.PoolOptions{Dir: filepath.Join(b.settings.DataDir, "pool"), Repositories: b.settings.ReadyTrees})
}

// newDriver returns the sandbox driver and says in the log what it can do.
func (b *bot) newDriver(ctx context.Context) (sandbox.Driver, error) {
	options := sandbox.LocalOptions{StateDir: filepath.Join(b.settings.DataDir, "sandbox"), Logger: b.log}
	if b.settings.Sandbox == "none" {
		b.log.Warn("commands run without any isolation")
		return sandbox.NewUnisolated(options), nil
	}
	driver := sandbox.NewLocal(options)
	capabilities, err := driver.Probe(ctx)
	if err != nil {
		return nil, err
	}
	if reason := capabilities.Err(); reason != nil {
		b.log.Warn("agents cannot run commands on this machine", "reason", reason)
	} else {
		b.log.Info("sandbox ready", "driver", capabilities.String())
	}
	if swept, err := driver.Sweep(ctx, time.Minute); err != nil {
		b.log.Warn("what earlier sandboxes left behind could not be removed", "error", err)
	} else if swept > 0 {
		b.log.Info("removed what earlier sandboxes left behind", "count", swept)
	}
	return driver, nil
}

// host is the name under which repositories are cached.
func (b *bot) host() string {
	if parsed, err := url.Parse(b.settings.URL); err == nil && parsed.Hostname() != "" {
		return parsed.Hostname()
	}
	return "github.com"
}

// close gives back what newBot opened.
func (b *bot) close() {
	if b.model != nil {
		if err := b.model.close(); err != nil {
			b.log.Warn("the tape could not be closed", "error", err)
		}
	}
	if b.pool != nil {
		_ = b.pool.Close()
	}
	if b.cache != nil {
		_ = b.cache.Close()
	}
	if b.store != nil {
		if err := b.store.Close(); err != nil {
			b.log.Warn("the database could not be closed", "error", err)
		}
	}
	if b.dataLock != nil {
		_ = b.dataLock.Close()
	}
}
