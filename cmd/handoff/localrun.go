package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"handoff/agents"
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
)

// A localRun is one session that works for the person at this terminal. It is
// conducted as every session is; only GitHub is replaced by a [desk], the push
// by a local branch, and the comments by what this terminal shows.
type localRun struct {
	*runCommand
	files   *runFiles
	base    localBase
	show    *screen
	log     *slog.Logger
	scanner *secrets.Scanner
	model   *modelClient
	driver  sandbox.Driver

	store     *store.Store
	person    git.Identity
	keys      *keyboard
	events    chan told
	questions chan openQuestion
	began     time.Time
}

// The ids that a session needs, where there is one of each.
const (
	localInstallation = 1
	localPerson       = 1
	localBot          = 2
)

// run works on the session until it ends or ctx does.
func (l *localRun) run(ctx context.Context) (err error) {
	l.began, l.person = time.Now(), l.base.person()
	if err := l.files.make(); err != nil {
		return err
	}
	if l.store, err = openStore(ctx, l.files.database(), store.Options{Unpaced: true, Logger: l.log}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.store.Close()) }()
	if err := l.hireCrew(ctx); err != nil {
		return err
	}
	id, err := l.session(ctx)
	if err != nil {
		return err
	}
	l.show.fact("repository", oneLine(l.files.about.Repository))
	l.show.fact("base", l.base.String())
	l.show.fact("model", l.modelName())
	l.show.line("")
	followed := l.work(ctx, id)
	l.drain()
	return l.finish(context.WithoutCancel(ctx), id, followed)
}

// work lets the crew work and follows it to the end. A machine that slept for
// so long that its node expired begins a new one, as a server does.
func (l *localRun) work(ctx context.Context, id string) error {
	for {
		lost, stop, err := l.start(ctx)
		if err != nil {
			return err
		}
		err = l.follow(ctx, id, lost)
		stop()
		if !errors.Is(err, errLost) {
			return err
		}
	}
}

// errLost ends what a node does whose lease has run out.
var errLost = errors.New("this process stood still and lost its session")

func (l *localRun) modelName() string {
	if l.Tape != "" {
		return "tape " + l.Tape
	}
	name := l.model.Provider()
	if info, err := l.model.Model(agents.ModelRef{}); err == nil {
		name += " " + info.ID
	}
	if !l.model.Priced(agents.ModelRef{}) {
		name += "; its price is not known, so --max-cost cannot hold"
	}
	return name
}

// hireCrew puts the agents into the run's own database: those of the database
// that was named, or the shipped ones.
func (l *localRun) hireCrew(ctx context.Context) error {
	if l.DatabaseURL == "" {
		return seedAgents(ctx, l.store, false, l.log)
	}
	from, err := store.Open(ctx, l.DatabaseURL, store.Options{Mode: store.ModeRead, Logger: l.log})
	if err != nil {
		return err
	}
	defer from.Close()
	rows, err := from.Agents(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := l.store.PutAgent(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// session returns the session to work on: a new one, the one that was
// interrupted, or one that inherits the work of one that ended early.
func (l *localRun) session(ctx context.Context) (string, error) {
	wanted := &store.Session{
		InstallationID: localInstallation, RepositoryID: l.files.repositoryID(),
		Owner: "local", Repository: filepath.Base(l.files.about.Repository),
		RequesterID: localPerson, RequesterLogin: login(), Task: l.files.about.Task,
	}
	past, err := l.store.Sessions(ctx, store.SessionFilter{}, 1)
	if err != nil {
		return "", err
	}
	if len(past) > 0 {
		last := past[0]
		if last.State == store.StateCompleted {
			return "", fmt.Errorf("the run %s is done; start a new one", l.files.name)
		}
		l.base.pin(last.Variables)
		if !last.State.Ended() {
			return last.ID, l.askAgain(ctx, last.ID)
		}
		wanted.Variables = map[string]string{intake.VariableRetryOf: last.ID}
	}
	err = l.store.CreateSession(ctx, wanted)
	return wanted.ID, err
}

// askAgain voids questions that an interrupted run left open: the crew puts
// them again, with the tests run again.
func (l *localRun) askAgain(ctx context.Context, id string) error {
	if _, err := l.store.SupersedeApprovals(ctx, id, "the run was interrupted"); err != nil {
		return err
	}
	return l.store.Wake(ctx, id)
}

// start sets the conductor and the outbox to work. The returned function stops
// them and waits for them; lost is closed when they have stopped by themselves.
func (l *localRun) start(ctx context.Context) (lost <-chan struct{}, stop func(), err error) {
	node, err := l.store.Register(ctx, "terminal")
	if err != nil {
		return nil, nil, err
	}
	here := l.desk()
	conductor := l.conductor(here)
	effects := outbox.New(outbox.Options{
		Store: l.store, Publisher: conductor, Key: []byte(rand.Text()), Logger: l.log,
		Repository: func(int64, int64) outbox.Repository { return here },
	})
	// What is under way ends in an orderly way also when ctx is done.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	beat, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	var working, beating sync.WaitGroup
	beating.Go(func() {
		if err := node.Keep(beat); err != nil {
			l.log.Warn("this process stood still and takes its session up again", "error", err)
		}
	})
	working.Go(func() { conductor.Run(work, node) })
	working.Go(func() { effects.Run(work, node) })
	return node.Lost(), func() {
		conductor.StopSoftly()
		cancel()
		working.Wait()
		stopBeating()
		beating.Wait()
		leave, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := node.Leave(leave); err != nil && !errors.Is(err, store.ErrNodeExpired) {
			l.log.Warn("the run could not sign off", "error", err)
		}
	}, nil
}

func (l *localRun) desk() *desk {
	return &desk{
		path: l.files.about.Repository, person: github.User{ID: localPerson, Login: login(), Type: "User"},
		repository: github.Repository{
			ID: l.files.repositoryID(), Owner: "local", Name: filepath.Base(l.files.about.Repository), DefaultBranch: l.base.branch,
		},
	}
}

func (l *localRun) conductor(here *desk) *session.Conductor {
	tools := findToolchain()
	return session.New(session.Options{
		Store: l.store, Cache: l.base.localSource, Deliver: l.base.deliver, BranchOnly: true, Workflows: true,
		Repository: func(int64, int64) session.Repository { return here },
		Pusher:     func(int64, int64) session.Tokens { return here },
		Sandbox:    l.driver, Model: l.model, Scanner: l.scanner, Operator: l.operator(), Caps: store.Caps{Global: 1},
		Identity: l.identity, Host: "localhost",
		DataDir: l.files.data(), KeepWorkspaces: true, SetupDir: l.files.setups(), ReadOnly: tools.mounts, Env: tools.env, Logger: l.log,
		OnEvent:    func(_ string, event runner.Event) { l.tell(told{event: event}) },
		OnDoing:    func(_, who, what string) { l.tell(told{who: who, what: what}) },
		OnQuestion: func(row store.Approval, prompt approval.Prompt) { l.questions <- openQuestion{row.ID, prompt} },
	})
}

// identity is who commits name: the person at the terminal, or the crew.
func (l *localRun) identity(login string, id int64) git.Identity {
	if id == localPerson {
		return l.person
	}
	return git.Identity{Name: login, Email: login + "@localhost"}
}

// tell passes on what happens; a full channel only loses lines on the screen.
func (l *localRun) tell(what told) {
	select {
	case l.events <- what:
	default:
	}
}

// drain shows what is still waiting.
func (l *localRun) drain() {
	for {
		select {
		case told := <-l.events:
			l.show.told(told)
		default:
			return
		}
	}
}

// follow shows what happens and puts the questions, until the session has
// ended.
func (l *localRun) follow(ctx context.Context, id string, lost <-chan struct{}) error {
	changed, stop := l.store.Notify(store.TopicSessions)
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-lost:
			return errLost
		case told := <-l.events:
			l.show.told(told)
			continue
		case question := <-l.questions:
			if err := l.decide(ctx, question); err != nil {
				return err
			}
		case <-changed:
		case <-tick.C:
		}
		now, err := l.store.Session(ctx, id)
		if err != nil || now.State.Ended() {
			return err
		}
		if _, err := l.store.ExpireApprovals(ctx, 10); err != nil {
			return err
		}
	}
}

// errInterrupted ends a run before the crew is done. It can go on.
var errInterrupted = errors.New("the run was interrupted")

// errNobody ends a run that nobody can answer.
var errNobody = errors.New("the crew asks, and standard input has ended, so nobody can answer; answer there, or approve everything with --yes")

// decide puts one question and records the answer.
func (l *localRun) decide(ctx context.Context, question openQuestion) error {
	l.drain()
	l.show.ask(question.prompt)
	answer := reply{yes: true}
	if l.Yes {
		l.show.said(login(), "yes (--yes)")
	} else {
		var err error
		if answer, err = l.readAnswer(ctx); err != nil {
			return err
		}
	}
	decision := store.Decision{State: store.ApprovalRejected, By: login(), ByID: localPerson, Via: store.ViaTerminal, Reason: answer.reason}
	if answer.yes {
		decision.State = store.ApprovalApproved
	}
	for {
		_, err := l.store.Decide(ctx, question.id, decision)
		switch {
		case errors.Is(err, store.ErrApprovalExpired), errors.Is(err, store.ErrAlreadyDecided):
			l.show.warn("The answer came too late: the question is no longer open.")
			return nil
		case !errors.Is(err, store.ErrTooEarly):
			return err
		}
		// The outbox has not yet noted that the question was put.
		sleep(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
}

// readAnswer waits for a line that says yes or no.
func (l *localRun) readAnswer(ctx context.Context) (reply, error) {
	l.keys.forget()
	for {
		l.show.line("y, or n and a reason for the crew:")
		select {
		case <-ctx.Done():
			return reply{}, errInterrupted
		case line, more := <-l.keys.lines:
			if !more {
				return reply{}, errNobody
			}
			if answer, ok := readReply(line); ok {
				return answer, nil
			}
		}
	}
}
