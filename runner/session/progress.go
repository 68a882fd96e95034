package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"handoff/agents"
	"handoff/agents/plan"
	"handoff/runner"
	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
)

// editInterval is the shortest time between two edits of a progress comment,
// so that a busy installation stays within GitHub's limits.
const editInterval = 5 * time.Second

// A progress keeps a session's one progress comment up to date. The comment is
// computed from the journal; what is remembered here is only what nobody
// records: what is being done this moment.
type progress struct {
	h *hold

	mu      sync.Mutex
	agent   string // who does something now
	action  string // what they do
	dirty   chan struct{}
	started time.Time

	// writing is held from reading the journal to writing the comment, so that
	// no older text comes after a newer one; last is set by the text that the
	// comment keeps when this hold ends.
	writing sync.Mutex
	last    bool
}

func newProgress(h *hold) *progress {
	return &progress{h: h, dirty: make(chan struct{}, 1), started: time.Now()}
}

func progressKey(sessionID string) string { return "session:" + sessionID + ":progress" }

// begin puts the progress comment into the outbox, once per session.
func (p *progress) begin(ctx context.Context) error {
	body := p.h.report(history{})
	body.Headline = "The crew is getting ready"
	payload, err := json.Marshal(outbox.CommentCreate{Issue: p.h.session.Issue, Body: body.Markdown()})
	if err != nil {
		return err
	}
	if _, err := p.h.Store.EffectByKey(ctx, progressKey(p.h.session.ID)); err == nil {
		return nil
	}
	return p.h.lease.PutEffects(ctx, []store.Effect{{
		Key: progressKey(p.h.session.ID), Kind: outbox.KindCommentCreate, Priority: outbox.PriorityResult, Payload: payload,
	}})
}

// doing says what happens now, beside what the journal tells.
func (p *progress) doing(agent, action string) {
	p.mu.Lock()
	p.agent, p.action = agent, action
	p.mu.Unlock()
	p.touch()
}

// hostDoes says what the host itself does for the session.
func (p *progress) hostDoes(action string) {
	p.doing("host", action)
	if p.h.OnDoing != nil {
		p.h.OnDoing(p.h.session.ID, "host", action)
	}
}

// note takes what the loop tells.
func (p *progress) note(event runner.Event) {
	if event.Nested {
		return
	}
	switch event.Kind {
	case runner.EventToolCalled:
		p.doing(event.Agent, report.DescribeCall(event.Tool, event.Arguments))
	case runner.EventToolOutput, runner.EventHandoffOccurred, runner.EventMessageOutput, runner.EventCompaction:
		p.doing(event.Agent, "")
	}
}

func (p *progress) touch() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// keep edits the comment while the crew works. The returned function ends that
// and waits for the last edit.
func (p *progress) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.dirty:
			}
			if err := runner.Contain(func() error { return p.edit(ctx, "", nil) }); err != nil && ctx.Err() == nil {
				p.h.log.Warn("the progress comment could not be updated", "error", err)
			}
			// Gather what happens meanwhile.
			select {
			case <-ctx.Done():
				return
			case <-time.After(editInterval):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// waiting shows that the session waits for a decision.
func (p *progress) waiting(ctx context.Context) error {
	p.doing("", "")
	return p.edit(ctx, string(store.StateAwaitingApproval), func(r *report.Progress) {
		r.Headline = "The crew waits for a maintainer"
	})
}

// edit writes the comment's newest text into the outbox. With a state it is the
// text that stays when the session is let go, and no later one replaces it.
func (p *progress) edit(ctx context.Context, state string, adjust func(*report.Progress)) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.last && state == "" {
		return nil
	}
	effect, err := p.effect(ctx, state, adjust)
	if err != nil {
		return err
	}
	if state != "" {
		p.last, effect.Priority = true, outbox.PriorityResult
	}
	return p.h.lease.PutLatest(ctx, effect)
}

// effect is the edit as a row. Rows of one key replace each other while they
// wait.
func (p *progress) effect(ctx context.Context, state string, adjust func(*report.Progress)) (store.Effect, error) {
	past, err := p.h.history(ctx)
	if err != nil {
		return store.Effect{}, err
	}
	shown := p.h.report(past)
	if state != "" {
		shown.State = state
	}
	if adjust != nil {
		adjust(&shown)
	}
	payload, err := json.Marshal(outbox.CommentUpdate{EffectKey: progressKey(p.h.session.ID), Body: shown.Markdown()})
	return store.Effect{
		Key: progressKey(p.h.session.ID) + ":text", Kind: outbox.KindCommentUpdate, After: progressKey(p.h.session.ID),
		Priority: outbox.PriorityProgress, Payload: payload,
	}, err
}

// A history is what the journal tells so far.
type history struct {
	events []runner.Event
	items  []agents.Item
	// variables are the session's as the journal has them.
	variables agents.Variables
}

func (h *hold) history(ctx context.Context) (history, error) {
	records, err := h.lease.Load(ctx, 1)
	if err != nil {
		return history{}, err
	}
	state, err := runner.Fold(records)
	if err != nil {
		return history{}, err
	}
	events, err := runner.Replay(records, 1)
	return history{events: events, items: state.Items(), variables: state.Variables}, err
}

// report is the progress comment's content.
func (h *hold) report(past history) report.Progress {
	session := h.lease.Session()
	shown := report.Progress{
		State: string(session.State), Headline: headlines[session.State], Task: session.Task, Requester: session.RequesterLogin,
		Plan: Checklist(past.items), Notices: h.notices, Usage: session.Usage, Steps: h.steps(past.events),
		Active:     time.Duration(session.ActiveMillis)*time.Millisecond + time.Since(h.progress.started),
		SessionURL: h.sessionURL(), PullRequestURL: session.Variables[outbox.VariablePullRequestURL],
	}
	shown.NotPushed, shown.ServerSaid = declined(past.items)
	h.progress.mu.Lock()
	defer h.progress.mu.Unlock()
	shown.Agent, shown.Doing = h.agentName(h.progress.agent), h.progress.action
	return shown
}

var headlines = map[store.SessionState]string{
	store.StateQueued:           "The task is queued",
	store.StatePreparing:        "The crew is getting ready",
	store.StateRunning:          "The crew is at work",
	store.StateAwaitingApproval: "The crew waits for a maintainer",
	store.StatePublishing:       "The approved commit is being pushed",
	store.StateSuspended:        "The session waits",
	store.StateCompleted:        "Done",
	store.StateFailed:           "The session ended early",
	store.StateCancelled:        "The session was stopped",
	store.StateExpired:          "Nobody decided in time",
}

func (h *hold) agentName(slug string) string {
	if agent, ok := h.crew[slug]; ok {
		return agent.Name
	}
	return slug
}

// steps are the events that a reader of the issue wants to see.
func (h *hold) steps(events []runner.Event) []report.Step {
	called := map[string]runner.Event{}
	var steps []report.Step
	for _, event := range events {
		step := report.Step{Agent: h.agentName(event.Agent)}
		switch event.Kind {
		case runner.EventToolCalled:
			called[event.CallKey] = event
			continue
		case runner.EventToolOutput:
			call := called[event.CallKey]
			step.Text, step.Failed = report.DescribeCall(call.Tool, call.Arguments), report.CallFailed(call.Tool, event.Text, event.IsError)
			if event.Text != "" {
				step.Text += " – " + event.Text
			}
			if unseen := report.Unseen(event); unseen != "" {
				step.Text += " (" + unseen + ")"
			}
		case runner.EventCompaction, runner.EventNote:
			if step.Text = report.Unseen(event); step.Text == "" {
				continue
			}
		case runner.EventHandoffOccurred:
			step.Agent, step.Handoff = h.agentName(event.From), true
			step.Text = "hands over to " + h.agentName(event.To)
		case runner.EventApproval:
			step.Text = "asks a maintainer about " + strings.ReplaceAll(event.Tool, "_", " ")
		case runner.EventDecision:
			step.Agent, step.Text = event.From, event.Text
		case runner.EventUserMessage:
			if len(steps) == 0 {
				continue
			}
			step.Text = "wrote to the crew"
		default:
			continue
		}
		if !event.Nested {
			steps = append(steps, step)
		}
	}
	return steps
}

// Checklist is the plan as it stands after these items.
func Checklist(items []agents.Item) []report.Task {
	tasks := plan.Fold(items)
	shown := make([]report.Task, len(tasks))
	for i, task := range tasks {
		shown[i] = report.Task{Title: task.Title, Done: task.Done, Owner: task.Owner}
	}
	return shown
}

// sessionURL is where people can see the session, "" without a public address.
func (h *hold) sessionURL() string {
	if h.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/sessions/%s", strings.TrimRight(h.PublicURL, "/"), h.session.ID)
}
