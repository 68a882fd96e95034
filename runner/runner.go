// Package runner is the agent loop: it asks the active agent's model, runs the
// tools that the model calls, and decides what comes next, until there is an
// answer, a limit is reached or a maintainer has to decide.
//
// The idea is that a session is its journal. Everything that happens is a
// [Record], appended before it is acted on, and everything that is known, who
// is active, what the history says, which calls are open, what was spent, is
// computed from the records by [Fold]. There is no other state: [Run] loads
// the journal, folds it and goes on from wherever that leads. The same code
// therefore starts a session, continues it after an approval and recovers it
// after a crash.
//
// One turn goes like this. Between turns the runner takes waiting messages,
// warns of budgets that run out, shortens a history that has grown too long,
// and checks the limits. It records model.request, asks the model and records
// model.response. Then it settles every call of the response: calls without
// effect run in parallel, those that touch the workspace or the world one at
// a time in call order, each after its tool.intent; calls that need approval
// wait; each end is a tool.outcome. When all are settled the turn leads to a
// [NextStep], in this order of precedence: an interruption, a handoff, what
// the agent's tool use behaviour says, a final output, another turn.
//
// What a crash leaves half done is settled by rule, never guessed: a response
// that was recorded is not asked for again; a call with an intent and no
// outcome is looked up where that is possible, run again where that is
// harmless, and reported to the model as unknown where neither holds.
//
// It promises: every call id that a model sent is answered by exactly one
// output before anything else follows; one terminal record per run; at most
// one effect per call key; the active agent and the handoff's note change in
// one append; nothing happens after the lease was lost ([ErrFenced]).
//
// The package imports no room but agents. What it needs of others it states
// as small interfaces: [Journal], [Effects], [Workspace]. An implementation
// of Journal proves itself with [TestJournal].
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"handoff/agents"
)

// Run takes a session as far as it goes. It folds the journal and continues an
// open run, or opens one with request.Input; without either it returns the
// last run's outcome.
//
// An error means that the run could not be worked on: the lease is lost
// ([ErrFenced], nothing may be done any more), ctx ended, the journal cannot
// be read or written, or (an error with code AGENT_ERROR) the agent to start
// with does not exist. The run itself is then as open as before and the next
// Run continues it. Everything that ends a run, limits and failing models
// included, is an [Outcome] without an error.
//
// When ctx ends with a cause whose code is CANCELLED, the run ends as well:
// calls in flight are closed as unknown. With any other cause it is left open.
//
// Run must not be called twice at the same time for one session.
func Run(ctx context.Context, request RunRequest) (Outcome, error) {
	l, err := load(ctx, request)
	if err != nil {
		return Outcome{}, err
	}
	defer l.late.Stop()
	run, err := l.open(ctx)
	if err != nil || run == nil {
		return Outcome{State: l.state}, err
	}
	if !run.Ended {
		work, watch := startWatch(ctx, run.Active, l.config.RunTimeout)
		defer watch.stop()
		l.watch = watch
		if err := l.drive(work, run); err != nil {
			return Outcome{State: l.state}, interrupted(work, err)
		}
	}
	return l.outcome(run), nil
}

// interrupted adds why the work's context ended, which says more than that it
// did.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("the work was interrupted: %w", context.Cause(ctx))
}

// A loop is one call of [Run]. Only the goroutine of Run touches it, except
// for events, which have a lock.
type loop struct {
	RunRequest
	config RunConfig
	state  *State
	// watch counts the root run's active time.
	watch *stopwatch
	// later holds records that nothing depends on until the next append, so
	// that a turn costs fewer of them.
	later  []draft
	views  map[string]*view
	offers map[string][]agents.ToolSpec
	// stopped says that a soft stop was carried out.
	stopped bool
	// appending is the context of all appends; late ends it when one of them
	// takes too long.
	appending context.Context
	late      *time.Timer

	events sync.Mutex
}

// A draft is a record before it has a number.
type draft struct {
	run     *RunState
	id      string // of the run, when it does not exist yet
	parent  string
	kind    RecordKind
	payload any
}

func load(ctx context.Context, request RunRequest) (*loop, error) {
	records, err := request.Journal.Load(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("load the journal: %w", err)
	}
	state, err := Fold(records)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	// What has happened is recorded also when the work was cancelled meanwhile.
	appending, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	late := time.AfterFunc(appendTimeout, func() { cancel(errLate) })
	late.Stop()
	return &loop{
		RunRequest: request, config: request.Config.withDefaults(), state: state,
		views: map[string]*view{}, offers: map[string][]agents.ToolSpec{},
		appending: appending, late: late,
	}, nil
}

// open returns the run to work on: the open one, a new one for a new input, or
// the last one. It returns nil when the session has none.
func (l *loop) open(ctx context.Context) (*RunState, error) {
	last := l.state.Runs[l.state.Root]
	known := l.Input.ID != "" && l.state.Has(l.Input.ID)
	fresh := l.Input.Text != "" && !known
	switch {
	case last != nil && !last.Ended:
		if fresh && l.Input.ID != "" {
			return last, l.addInputs(ctx, last, []Input{l.Input})
		}
		return last, nil
	case fresh:
		return l.create(ctx)
	}
	return last, nil
}

// create opens a root run with the request's input.
func (l *loop) create(ctx context.Context) (*RunState, error) {
	agent := cmp.Or(l.Start, l.state.ActiveAgent)
	if _, ok := l.Crew[agent]; !ok {
		return nil, noAgent(agent)
	}
	created := runCreated{Agent: agent, Task: l.redact(cmp.Or(l.Input.Task, l.Input.Text)), Variables: l.Variables}
	if l.state.Boundary == "" {
		created.Boundary = newBoundary()
	}
	id := "r" + strconv.Itoa(l.state.roots+1)
	batch := Batch{ActiveAgent: agent, Variables: l.Variables, TakeMessages: messageIDs([]Input{l.Input})}
	err := l.append(ctx, batch,
		draft{id: id, kind: RecordRunCreated, payload: created},
		draft{id: id, kind: RecordInputAdded, payload: l.inputRecord(l.Input)})
	return l.state.Runs[id], err
}

// newBoundary draws a mark that nobody can guess. It always has letters and
// digits, so that those who compare texts of two sessions can tell it from a
// word.
func newBoundary() string { return "B0" + rand.Text() }

func (l *loop) inputRecord(input Input) inputAdded {
	return inputAdded{ID: input.id(), Author: input.Author, Text: l.redact(input.Text)}
}

func (l *loop) addInputs(ctx context.Context, run *RunState, inputs []Input) error {
	drafts := make([]draft, 0, len(inputs))
	for _, input := range inputs {
		drafts = append(drafts, draft{run: run, kind: RecordInputAdded, payload: l.inputRecord(input)})
	}
	return l.append(ctx, Batch{TakeMessages: messageIDs(inputs)}, drafts...)
}

func messageIDs(inputs []Input) []string {
	var ids []string
	for _, input := range inputs {
		if input.Message != "" {
			ids = append(ids, input.Message)
		}
	}
	return ids
}

// appendTimeout bounds one append. It is the time to live of a lease: whoever
// waits longer has lost it, and appends nothing more.
const appendTimeout = 15 * time.Second

var errLate = fmt.Errorf("it took longer than %s, which is how long a lease holds", appendTimeout)

// append writes the drafts, after those that waited, in one transaction, and
// applies them. When others have written in between (a decision, an outcome of
// the outbox) their records are read and applied first.
func (l *loop) append(ctx context.Context, batch Batch, drafts ...draft) error {
	drafts = append(l.later, drafts...)
	l.later = nil
	if len(drafts) == 0 {
		return nil
	}
	batch.Records = make([]Record, 0, len(drafts))
	for _, d := range drafts {
		id, parent := d.id, d.parent
		if d.run != nil {
			id, parent = d.run.ID, d.run.Parent
		}
		record, err := newRecord(id, parent, d.kind, d.payload)
		if err != nil {
			return err
		}
		batch.Records = append(batch.Records, record)
	}
	if errors.Is(context.Cause(ctx), ErrFenced) {
		return context.Cause(ctx)
	}
	l.late.Reset(appendTimeout)
	defer l.late.Stop()
	first, err := l.Journal.Append(l.appending, batch)
	if err != nil {
		return l.overdue(fmt.Errorf("append to the journal: %w", err))
	}
	if first != l.state.Seq+1 {
		return l.overdue(l.reload(l.appending))
	}
	now := time.Now()
	for i, record := range batch.Records {
		record.Seq, record.Time = first+int64(i), now
		if err := l.applied(record, drafts[i].payload); err != nil {
			return err
		}
	}
	return nil
}

// overdue adds to the error of an append that it took too long. A lost lease
// must still be seen in it.
func (l *loop) overdue(err error) error {
	if err == nil || l.appending.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, context.Cause(l.appending))
}

// reload applies what others have appended.
func (l *loop) reload(ctx context.Context) error {
	records, err := l.Journal.Load(ctx, l.state.Seq+1)
	if err != nil {
		return fmt.Errorf("load the journal: %w", err)
	}
	for _, record := range records {
		payload, err := decodePayload(record)
		if err != nil {
			return err
		}
		if err := l.applied(record, payload); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) applied(record Record, payload any) error {
	if err := l.state.apply(record, payload); err != nil {
		return fmt.Errorf("apply to the journal's state: %w", err)
	}
	if l.Hooks.OnEvent == nil {
		return nil
	}
	for _, event := range eventsOf(l.state, record, payload) {
		l.emit(event)
	}
	return nil
}

func (l *loop) outcome(run *RunState) Outcome {
	outcome := Outcome{
		Run: run.ID, Agent: run.Agent, Usage: run.Usage, Turns: run.Turn, Active: run.Active, State: l.state,
	}
	switch {
	case run.Ended && run.End.Err != nil:
		outcome.Status, outcome.Err = StatusEnded, run.End.Err
	case run.Ended:
		outcome.Status, outcome.Output = StatusFinal, run.End.Output
	case l.stopped:
		outcome.Status = StatusStopped
	default:
		outcome.Status, outcome.Approvals = StatusInterrupted, l.state.Approvals(run.ID)
	}
	return outcome
}

// errTime is the cause of a context whose run is out of time.
var errTime = &agents.Error{Code: agents.CodeLimitTime, Message: "The session's time is used up."}

// active is the root run's active time up to now, in milliseconds.
func (l *loop) active() int64 { return l.watch.active().Milliseconds() }

// stopping returns why the run must end when ctx has ended for a reason of the
// run's own: its time is used up, or a person cancelled it. It returns nil
// when ctx has not ended, or for reasons of the process.
func stopping(ctx context.Context) *agents.Error {
	if ctx.Err() == nil {
		return nil
	}
	cause, ok := errors.AsType[*agents.Error](context.Cause(ctx))
	if ok && (cause.Code == agents.CodeLimitTime || cause.Code == agents.CodeCancelled) {
		return cause
	}
	return nil
}
