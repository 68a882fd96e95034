package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"handoff/agents/llm"
	"handoff/runner/repoconfig"
)

// databaseSettings say where everything is kept.
type databaseSettings struct {
	DatabaseURL string `name:"database-url" env:"DATABASE_URL" default:"sqlite://handoff.db" help:"Database: sqlite://PATH or postgres://…" placeholder:"URL"`
}

// githubSettings say which App this is.
type githubSettings struct {
	AppID         int64    `name:"github-app-id" env:"GITHUB_APP_ID" help:"Id of the GitHub App." placeholder:"ID"`
	PrivateKey    string   `name:"github-private-key" env:"GITHUB_PRIVATE_KEY" help:"Private key of the App: PEM, PEM with \\n, base64 of PEM, or a path." placeholder:"KEY"`
	WebhookSecret []string `name:"github-webhook-secret" env:"GITHUB_WEBHOOK_SECRET" sep:"," help:"Webhook secret; two, separated by a comma, while rotating." placeholder:"SECRET"`
	URL           string   `name:"github-url" env:"GITHUB_URL" help:"Web address of a GitHub Enterprise Server; empty for github.com." placeholder:"URL"`
	Workflows     bool     `name:"github-workflows" env:"GITHUB_WORKFLOWS" help:"Let approved pushes change workflow files; the App needs the workflows permission."`
	Verified      bool     `name:"commit-verified" env:"COMMIT_VERIFIED" help:"Let GitHub make and sign every commit, in every repository."`
	AllowedOwners []string `name:"allowed-owners" env:"ALLOWED_OWNERS" sep:"," help:"Accounts whose repositories may spend; empty for the one that owns the App, * for all." placeholder:"OWNER"`
}

// modelSettings say which model the crew uses.
type modelSettings struct {
	Provider            string   `name:"provider" env:"PROVIDER" default:"openrouter" help:"Model provider: openrouter, zai, vertex, openai, compatible or tape."`
	Model               string   `name:"model" env:"MODEL" help:"Model; empty for the provider's default." placeholder:"ID"`
	AllowDataCollection bool     `name:"allow-data-collection" env:"ALLOW_DATA_COLLECTION" help:"Let openrouter choose upstreams that keep prompts."`
	Upstreams           []string `name:"upstreams" env:"UPSTREAMS" sep:"," help:"The only upstreams that openrouter may choose." placeholder:"NAME"`
}

// limitSettings are the operator's floor: repositories may only lower them.
type limitSettings struct {
	MaxTurns    int           `name:"max-turns" env:"MAX_TURNS" default:"40" help:"Model calls per session."`
	MaxHandoffs int           `name:"max-handoffs" env:"MAX_HANDOFFS" default:"12" help:"Handoffs per session."`
	MaxTokens   int64         `name:"max-tokens" env:"MAX_TOKENS" default:"2000000" help:"Tokens per session."`
	MaxCost     float64       `name:"max-cost" env:"MAX_COST" default:"5" help:"US dollars per session."`
	MaxTime     time.Duration `name:"max-time" env:"MAX_TIME" default:"60m" help:"Active time per session."`
	CommandTime time.Duration `name:"command-timeout" env:"COMMAND_TIMEOUT" default:"10m" help:"Time for one command in the sandbox."`
}

// faults says which limits would let no session work.
func (l limitSettings) faults() []error {
	var faults []error
	wrong := func(name string, wrong bool, value any) {
		if wrong {
			faults = append(faults, fmt.Errorf("%s is %v: give a value above zero", name, value))
		}
	}
	wrong("MAX_TURNS", l.MaxTurns <= 0, l.MaxTurns)
	wrong("MAX_HANDOFFS", l.MaxHandoffs <= 0, l.MaxHandoffs)
	wrong("MAX_TOKENS", l.MaxTokens <= 0, l.MaxTokens)
	wrong("MAX_TIME", l.MaxTime <= 0, l.MaxTime)
	wrong("COMMAND_TIMEOUT", l.CommandTime <= 0, l.CommandTime)
	if !(l.MaxCost > 0 && l.MaxCost <= maxDollars) { // so that NaN is refused as well
		faults = append(faults, fmt.Errorf("MAX_COST is %v: give US dollars above zero, a million at most", l.MaxCost))
	}
	return faults
}

// maxDollars keeps a cost, in millionths, far from the end of its type.
const maxDollars = 1_000_000

// operator returns the floor that the limits stand for, with the usual rules
// for approvals.
func (l limitSettings) operator() repoconfig.Operator {
	operator := repoconfig.DefaultOperator()
	operator.Limits = repoconfig.Limits{
		Turns: l.MaxTurns, Handoffs: l.MaxHandoffs, Tokens: l.MaxTokens,
		CostMicros: int64(l.MaxCost * 1e6), ActiveTime: l.MaxTime,
	}
	operator.Timeout = l.CommandTime
	return operator
}

// approvalSettings say who decides, and how long that may take.
type approvalSettings struct {
	Role    string        `name:"role" env:"ROLE" default:"write" enum:"write,maintain,admin" help:"Role that may command and approve: write, maintain or admin."`
	Expires time.Duration `name:"approval-expires" env:"APPROVAL_EXPIRES" default:"72h" help:"How long a push waits for an approval."`
}

// operator returns the floor that all of the settings stand for.
func (s serveCommand) operator() repoconfig.Operator {
	operator := s.limitSettings.operator()
	operator.Role, operator.Expires = repoconfig.Role(s.Role), s.Expires
	operator.Verified = s.Verified
	return operator
}

// serverSettings say where the bot listens and works.
type serverSettings struct {
	Listen        string        `name:"listen" env:"LISTEN" default:":8080" help:"Address to listen on for webhooks and pages."`
	PublicURL     string        `name:"public-url" env:"PUBLIC_URL" help:"Address under which people reach this server." placeholder:"URL"`
	DataDir       string        `name:"data-dir" env:"DATA_DIR" default:"data" help:"Directory for caches and workspaces."`
	SetupDir      string        `name:"setup-dir" env:"SETUP_DIR" help:"Directory for the caches of repositories' setups; empty for a folder of the data directory." placeholder:"DIR"`
	ReadyTrees    int           `name:"ready-trees" env:"READY_TREES" default:"4" help:"For how many repositories, those last used, a tree is kept ready for the next session; 0 for none."`
	Sandbox       string        `name:"sandbox" env:"SANDBOX" default:"local" enum:"local,none" help:"Sandbox driver: local, or none on a fake GitHub."`
	Record        string        `name:"record" env:"RECORD" help:"Write what the model says to this tape, without secrets; an existing file is replaced." placeholder:"FILE"`
	Sessions      int           `name:"max-sessions" env:"MAX_SESSIONS" default:"8" help:"Sessions that work at the same time, on all nodes."`
	PerOwner      int           `name:"max-sessions-per-installation" env:"MAX_SESSIONS_PER_INSTALLATION" default:"4" help:"Of those, sessions of one installation."`
	ShutdownGrace time.Duration `name:"shutdown-grace" env:"SHUTDOWN_GRACE" default:"20s" help:"How long a shutdown waits for turns that are under way."`
}

// logSettings say how much is told to the operator.
type logSettings struct {
	LogLevel  slog.Level `name:"log-level" env:"LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat string     `name:"log-format" env:"LOG_FORMAT" default:"text" enum:"text,json" help:"text or json."`
}

func (l logSettings) logger(p *process) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.LogLevel}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(p.stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}

// check returns one sentence for each fault that can be seen without asking
// anybody.
func (s serveCommand) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.AppID <= 0 {
		fault("GITHUB_APP_ID is missing: it is the number on the App's settings page")
	}
	if s.PrivateKey == "" {
		fault("GITHUB_PRIVATE_KEY is missing: generate a key on the App's settings page and give it as PEM, base64 or a path")
	}
	faults = append(faults, s.checkSecrets()...)
	faults = append(faults, s.limitSettings.faults()...)
	if s.Expires < time.Minute {
		fault("APPROVAL_EXPIRES is %s, in which nobody can decide: give a minute or more", s.Expires)
	}
	if s.Sessions <= 0 || s.PerOwner <= 0 {
		fault("MAX_SESSIONS is %d and MAX_SESSIONS_PER_INSTALLATION is %d: with less than 1 no session would ever begin", s.Sessions, s.PerOwner)
	}
	if s.ReadyTrees < 0 {
		fault("READY_TREES is %d: give 0 or more", s.ReadyTrees)
	}
	if s.ShutdownGrace < 0 {
		fault("SHUTDOWN_GRACE is %s: give 0s or more", s.ShutdownGrace)
	}
	if s.PublicURL != "" {
		if public, err := url.Parse(s.PublicURL); err != nil || public.Host == "" || !strings.HasPrefix(public.Scheme, "http") {
			fault("PUBLIC_URL is %q, which is no http or https address", s.PublicURL)
		}
	}
	loopback := isLoopback(s.URL)
	if strings.EqualFold(strings.TrimSpace(s.Provider), llm.ProviderTape) && !loopback {
		fault("PROVIDER is tape, which replays what was recorded: it is accepted only with GITHUB_URL on loopback")
	}
	if s.Sandbox == "none" && !loopback {
		fault("SANDBOX is none, which isolates nothing: it is accepted only with GITHUB_URL on loopback")
	}
	if _, err := filepath.Abs(s.DataDir); err != nil {
		fault("DATA_DIR is %q, which is no directory: %v", s.DataDir, err)
	}
	return errors.Join(faults...)
}

// minSecret is how long a webhook secret must be: shorter ones can be guessed
// offline from one signed delivery.
const minSecret = 16

func (s githubSettings) checkSecrets() []error {
	switch {
	case len(s.WebhookSecret) == 0:
		return []error{errors.New("GITHUB_WEBHOOK_SECRET is missing: without it anybody could pretend to be GitHub")}
	case len(s.WebhookSecret) > 2:
		return []error{errors.New("GITHUB_WEBHOOK_SECRET holds more than two secrets: the current one and, while rotating, the previous one")}
	}
	for _, secret := range s.WebhookSecret {
		if len(secret) < minSecret {
			return []error{fmt.Errorf("GITHUB_WEBHOOK_SECRET is shorter than %d characters: take a random one", minSecret)}
		}
	}
	return nil
}

// isLoopback says whether a URL's host is this machine.
func isLoopback(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	switch parsed.Hostname() {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}
