package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"handoff/agents/llm/tape"
	"handoff/cmd/handoff/demo"
	"handoff/gitops/fakegithub"
	"handoff/runner"
	"handoff/runner/report"
	"handoff/runner/store"
	"handoff/sandbox"
)

type demoCommand struct {
	Yes         bool     `short:"y" help:"Let a maintainer approve at once, and exit at the end."`
	Speed       *float64 `help:"How fast the crew thinks: 1 as people can read along, 0 without pauses; 1, or 0 with --yes, when it is left out." placeholder:"FACTOR"`
	Listen      string   `default:"127.0.0.1:0" help:"Loopback address of the fake GitHub."`
	Git         string   `default:"auto" enum:"auto,cgi,native" help:"What serves git: auto, cgi (git's own http-backend) or native (go-git)."`
	DatabaseURL string   `name:"database-url" env:"DEMO_DATABASE_URL" help:"Database; empty for SQLite in a temporary directory." placeholder:"URL"`
	LogLevel    string   `name:"log-level" default:"warn" enum:"debug,info,warn,error" help:"What the bot logs to standard error."`
}

// Run plays the story. Any failure is an error.
func (d *demoCommand) Run(p *process) (err error) {
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	show := newScreen(p.stdout)
	dir, err := os.MkdirTemp("", "handoff-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sandbox.RemoveTree(dir)) }()
	answers, err := demo.Tape()
	if err != nil {
		return err
	}
	play := &play{
		demoCommand: d, show: show, keys: newKeyboard(p.stdin), events: make(chan told, 1024), began: time.Now(),
		player: tape.NewPlayer(answers, tape.Options{Speed: d.speed()}),
	}
	if play.stage, err = d.raise(ctx, p, dir, play); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, play.stage.close()) }()
	if err := play.story(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before the end of the story")
		}
		return err
	}
	if !d.Yes {
		show.line("")
		show.line("Everything keeps running for a look. Ctrl-C ends it.")
		<-ctx.Done()
	}
	return nil
}

// speed is how fast the tape is played: at the pace of somebody who reads along,
// unless nobody does.
func (d *demoCommand) speed() float64 {
	switch {
	case d.Speed != nil:
		return *d.Speed
	case d.Yes:
		return 0
	}
	return 1
}

// raise builds the stage that the story is played on.
func (d *demoCommand) raise(ctx context.Context, p *process, dir string, play *play) (*stage, error) {
	files, err := demo.Files()
	if err != nil {
		return nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(d.LogLevel)); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
	backends := map[string]fakegithub.GitBackend{"auto": fakegithub.GitAuto, "cgi": fakegithub.GitCGI, "native": fakegithub.GitNative}
	driver, tier, err := play.chooseSandbox(ctx, dir)
	if err != nil {
		return nil, err
	}
	return newStage(ctx, stageSpec{
		dir: dir, repository: demo.Repository, files: files, listen: d.Listen, git: backends[d.Git],
		player: play.player, database: d.DatabaseURL, sandbox: driver,
		around: surroundings{watch: play.watch, doing: play.doing, openPages: true}, setupDir: setupCache(dir, tier), log: log,
	})
}

// setupCache is where the build cache of the story's setup is kept between
// demos, so that the second one need not compile the standard library again.
//
// Each tier has its own: commands run under another user in each of them, who
// may not read what the other wrote.
func setupCache(dir string, tier sandbox.Tier) string {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "handoff", "demo-setup", tier.String())
		if err = os.MkdirAll(cache, 0o700); err == nil {
			return cache
		}
	}
	return filepath.Join(dir, "setup")
}

// A told is one event of a session, or what the host does for it.
type told struct {
	event     runner.Event
	who, what string
}

// A play is one performance of the story.
type play struct {
	*demoCommand
	player *tape.Player
	stage  *stage
	show   *screen
	keys   *keyboard
	events chan told
	began  time.Time
}

// watch takes the bot's events; it must not block, and a full channel only
// loses lines on the screen.
func (p *play) watch(_ string, event runner.Event) { p.tell(told{event: event}) }

// doing takes what the host does, under the same rules.
func (p *play) doing(_, who, what string) { p.tell(told{who: who, what: what}) }

func (p *play) tell(what told) {
	select {
	case p.events <- what:
	default:
	}
}

// chooseSandbox takes the local sandbox where this machine allows it. What the
// demo runs is its own shipped story, so it goes on without one, and says so.
func (p *play) chooseSandbox(ctx context.Context, dir string) (string, sandbox.Tier, error) {
	driver := sandbox.NewLocal(sandbox.LocalOptions{StateDir: filepath.Join(dir, "probe")})
	capabilities, err := driver.Probe(ctx)
	if err != nil {
		return "", sandbox.None, err
	}
	if reason := capabilities.Err(); reason != nil {
		p.show.warn("No sandbox is possible here, so the story's own commands run without isolation. " + reason.Error())
		return "none", sandbox.None, nil
	}
	p.show.fact("sandbox", capabilities.String())
	return "local", capabilities.Tier, nil
}

// story plays it from the issue to the pull request.
func (p *play) story(ctx context.Context) error {
	issue, err := demo.TheIssue()
	if err != nil {
		return err
	}
	if _, err := sandbox.GoToolchain(); err != nil {
		return errors.New("the story builds and tests a Go service, and no go command is on PATH; install Go and try again")
	}
	p.show.fact("fake GitHub", p.stage.github.URL()+"/"+stageOwner+"/"+demo.Repository)
	p.show.fact("sessions", p.stage.bot.settings.PublicURL+"/")
	ada := newVisitor(p.stage.github, stageMaintainer)
	opened, err := ada.openIssue(ctx, demo.Repository, issue.Title, issue.Body)
	if err != nil {
		return err
	}
	p.show.line("")
	p.show.said(stageMaintainer, fmt.Sprintf("opens issue #%d, %q: %s", opened.Number, issue.Title, opened.URL))
	if err := ada.comment(ctx, demo.Repository, opened.Number, issue.Command); err != nil {
		return err
	}
	p.show.said(stageMaintainer, issue.Command)
	p.show.line("")
	session, err := p.follow(ctx, ada, opened.Number)
	if err != nil {
		return err
	}
	return p.summary(ctx, ada, session)
}

// follow shows what happens until the session has ended.
func (p *play) follow(ctx context.Context, ada *visitor, issue int) (store.Session, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	asked := map[int64]bool{}
	for {
		select {
		case <-ctx.Done():
			return store.Session{}, ctx.Err()
		case told := <-p.events:
			p.show.told(told)
			continue
		case <-tick.C:
		}
		if err := p.stage.health(); err != nil {
			return store.Session{}, err
		}
		session, found, err := p.session(ctx, issue)
		switch {
		case err != nil:
			return session, err
		case !found:
			continue
		case session.State == store.StateAwaitingApproval:
			if err := p.decide(ctx, ada, issue, asked); err != nil {
				return session, err
			}
		case session.State == store.StateCompleted:
			p.drain()
			return session, nil
		case session.State.Ended():
			p.drain()
			return session, fmt.Errorf("the session ended as %s: %s", session.State, session.Reason)
		}
	}
}

// drain shows the events that are still waiting.
func (p *play) drain() {
	for {
		select {
		case told := <-p.events:
			p.show.told(told)
		default:
			return
		}
	}
}

func (p *play) session(ctx context.Context, issue int) (store.Session, bool, error) {
	sessions, err := p.stage.bot.store.Sessions(ctx, store.SessionFilter{Issue: issue}, 1)
	if err != nil || len(sessions) == 0 {
		return store.Session{}, false, err
	}
	return sessions[0], true, nil
}

// decide answers a prompt: at once with --yes, otherwise by what a person says
// here or does on the page.
func (p *play) decide(ctx context.Context, ada *visitor, issue int, asked map[int64]bool) error {
	prompt, found, err := ada.prompt(ctx, demo.Repository, issue)
	if err != nil || !found || asked[prompt.ID] {
		return err
	}
	asked[prompt.ID] = true
	p.drain()
	p.show.line("")
	p.show.question("A maintainer must approve the exact diff: " + prompt.URL)
	if p.Yes {
		p.show.said(stageMaintainer, "reacts with 👍")
		return ada.react(ctx, demo.Repository, prompt.ID, "+1")
	}
	p.show.line("React or click there, or answer here: push it? [y/n]")
	p.keys.forget()
	go p.askHere(ctx, ada, prompt)
	return nil
}

// askHere turns a y or n in the terminal into the maintainer's reaction.
func (p *play) askHere(ctx context.Context, ada *visitor, prompt remark) {
	for line := range p.keys.lines {
		content := ""
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			content = "+1"
		case "n", "no":
			content = "-1"
		default:
			p.show.line("y or n, please.")
			continue
		}
		if err := ada.react(ctx, demo.Repository, prompt.ID, content); err != nil {
			p.show.warn("The answer could not be given: " + err.Error())
		}
		return
	}
}

// summary shows what came of it.
func (p *play) summary(ctx context.Context, ada *visitor, session store.Session) error {
	p.show.line("")
	if session.Variables["pull_request"] == "" && !p.Yes {
		p.show.warn("The push was rejected, so nothing was pushed and there is no pull request.")
		p.show.line("  The crew's last words are a recording of a session where the answer was yes.")
	} else if err := p.pullRequest(ctx, ada, session); err != nil {
		return err
	}
	p.show.fact("tokens", fmt.Sprintf("%s in %d model calls", report.Tokens(session.Usage.Total), session.Usage.Requests))
	p.show.cost(session.Usage)
	p.show.fact("time", report.Duration(time.Since(p.began)))
	return nil
}

// pullRequest shows the pull request and how to get its branch.
func (p *play) pullRequest(ctx context.Context, ada *visitor, session store.Session) error {
	pull, err := ada.pull(ctx, demo.Repository, session.Variables["pull_request"])
	if err != nil {
		return fmt.Errorf("the session is done, but its pull request cannot be seen: %w", err)
	}
	p.show.done("Pull request: " + pull.URL)
	for _, file := range pull.Files {
		p.show.line(fmt.Sprintf("    %-8s %-34s +%d −%d", file.Status, file.Filename, file.Additions, file.Deletions))
	}
	p.show.fact("branch", fmt.Sprintf("git clone --branch %s %s", pull.Branch, pull.CloneURL))
	return nil
}
