package runner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"handoff/agents"
	"handoff/runner"
)

var casesFile = flag.String("cases", "testdata/runner-cases.json", "file of conformance cases for TestConformance")

// TestConformance runs the cases of a file through the real runner and the
// real model client, once for each kind of store, and prints how many passed.
// A case passes when it passes on all of them.
func TestConformance(t *testing.T) { summary = playCases(t, *casesFile) }

// TestOwnCases runs the cases that the published ones leave open.
func TestOwnCases(t *testing.T) { t.Log(playCases(t, "testdata/own-cases.json")) }

// summary is the line that TestMain prints last.
var summary string

func playCases(t *testing.T, file string) string {
	cases := readCases(t, file)
	failed := map[string]bool{}
	for _, store := range stores() {
		t.Run(store.name, func(t *testing.T) {
			stage := &stage{open: store.connect(t), sample: store.sample, durable: store.durable}
			for _, c := range cases {
				t.Run(c.ID, func(t *testing.T) {
					if faults := stage.check(t, c); len(faults) > 0 {
						failed[c.ID] = true
						t.Errorf("%s (rules %s)\n  %s", c.Given, strings.Join(c.Rules, ", "), strings.Join(faults, "\n  "))
					}
				})
			}
		})
	}
	return fmt.Sprintf("%d passed, %d failed", len(cases)-len(failed), len(failed))
}

// A stage is where cases are played.
type stage struct {
	open func(t *testing.T) (take func() runner.Journal, done func())
	// sample and durable are the store's.
	sample  int
	durable bool
}

// check plays a case and returns what is wrong. A case that only took too long
// is tried again, since the machine may have been busy. Databases are not held
// to a time: their appends take what the disk takes.
func (s *stage) check(t *testing.T, c testCase) []string {
	if strings.HasPrefix(c.Given, "unreadable: ") {
		return []string{c.Given}
	}
	var faults []string
	for range 5 {
		p := s.play(t, c, nil)
		faults = p.faults(c)
		if len(faults) > 0 || c.Expect.WallMSMax == 0 || s.durable || p.took <= time.Duration(c.Expect.WallMSMax)*time.Millisecond {
			break
		}
		faults = []string{fmt.Sprintf("took %v, at most %d ms expected", p.took, c.Expect.WallMSMax)}
	}
	if len(faults) > 0 || !sweeps(c) {
		return faults
	}
	return s.sweep(t, c)
}

func sweeps(c testCase) bool {
	return c.Expect.Sweep || slices.ContainsFunc(c.Crash, func(crash caseCrash) bool { return crash.Point == "sweep" })
}

// A played case is what the checks look at.
type played struct {
	world    *world
	outcomes []runner.Outcome
	records  []runner.Record
	err      error
	// zombie is what the paused node's run ended with.
	zombie error
	took   time.Duration
	files  []string
}

func (p *played) last() runner.Outcome {
	if len(p.outcomes) == 0 {
		return runner.Outcome{}
	}
	return p.outcomes[len(p.outcomes)-1]
}

// play runs a case from its first input to its last. Kill, when set, arranges
// for the process to die.
func (s *stage) play(t *testing.T, c testCase, kill func(*world)) *played {
	p := &played{world: newWorld(t, c)}
	p.world.crashes = slices.DeleteFunc(p.world.crashes, func(crash caseCrash) bool { return crash.Point == "sweep" })
	if kill != nil {
		kill(p.world)
	}
	start := time.Now()
	defer func() { p.took = time.Since(start) }()
	if c.Helper != "" {
		p.playHelper(t, c)
		return p
	}
	request, err := c.request(p.world)
	if err != nil {
		p.err = err
		return p
	}
	request.Model, err = p.world.model(c)
	if err != nil {
		p.err = err
		return p
	}
	take, done := s.open(t)
	session := &playedSession{played: p, c: c, request: request, rewind: kill != nil}
	var latest runner.Journal
	session.take = func() runner.Journal {
		latest = take()
		return latest
	}
	p.err = session.playAll(t.Context())
	records, err := latest.Load(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p.records = records
	done()
	return p
}

// A playedSession is a case under way.
type playedSession struct {
	*played
	c       testCase
	take    func() runner.Journal
	request runner.RunRequest
	rewind  bool
	decided map[string]int
}

func (s *playedSession) playAll(ctx context.Context) error {
	s.decided = map[string]int{}
	journal := s.take()
	if s.c.Zombie != nil {
		return s.playZombie(ctx, journal)
	}
	inputs := []runner.Input{{ID: "input-1", Text: s.c.Input}}
	starts := []string{s.request.Start}
	for i, then := range s.c.Then {
		inputs = append(inputs, runner.Input{ID: fmt.Sprint("input-", i+2), Text: then.Input})
		starts = append(starts, then.StartAgent)
	}
	for i, input := range inputs {
		s.request.Input, s.request.Start = input, starts[i]
		outcome, err := s.playInput(ctx, &journal)
		if err != nil {
			return err
		}
		s.outcomes = append(s.outcomes, outcome)
	}
	return nil
}

// playInput runs until the input is answered or nothing more can be done:
// after a kill on a new node, after an interruption with the case's decisions.
func (s *playedSession) playInput(ctx context.Context, journal *runner.Journal) (runner.Outcome, error) {
	for {
		s.request.Journal = s.world.mortal(*journal)
		outcome, err := runner.Run(ctx, s.request)
		switch {
		case errors.Is(err, errKilled):
			s.world.restart(s.rewind)
			*journal = s.take()
			continue
		case err != nil:
			return outcome, err
		case outcome.Status != runner.StatusInterrupted:
			return outcome, nil
		}
		decisions := s.decisions(outcome.Approvals)
		if len(decisions) == 0 {
			return outcome, nil
		}
		if slices.ContainsFunc(s.c.Approvals, func(c caseApproval) bool { return c.After == "restart" }) {
			*journal = s.take()
		}
		for _, decision := range decisions {
			record, err := decision.Record()
			if err != nil {
				return outcome, err
			}
			if _, err := (*journal).Append(ctx, runner.Batch{Records: []runner.Record{record}}); err != nil {
				return outcome, err
			}
		}
	}
}

// decisions are the case's answers to what waits. Several for one call are all
// given; only the first may count.
func (s *playedSession) decisions(pending []runner.PendingApproval) []runner.Decision {
	kinds := map[string]runner.DecisionKind{
		"approve": runner.DecisionApproved, "approved": runner.DecisionApproved,
		"reject": runner.DecisionRejected, "rejected": runner.DecisionRejected,
		"expire": runner.DecisionExpired, "expired": runner.DecisionExpired,
	}
	var decisions []runner.Decision
	for _, approval := range pending {
		if s.decided[approval.CallKey] > 1 {
			continue // asked again and again
		}
		s.decided[approval.CallKey]++
		for _, c := range s.c.Approvals {
			if c.CallID == approval.CallID {
				decisions = append(decisions, runner.Decision{
					CallKey: approval.CallKey, ArgumentHash: approval.ArgumentHash,
					Kind: kinds[c.Decision], Reason: c.Reason, By: "maintainer",
				})
			}
		}
	}
	return decisions
}

// playZombie stops one node at a record, lets another finish the session, and
// wakes the first.
func (s *playedSession) playZombie(ctx context.Context, journal runner.Journal) error {
	s.request.Input = runner.Input{ID: "input-1", Text: s.c.Input}
	paused := &pausedJournal{Journal: journal, stopAt: *s.c.Zombie, stopped: make(chan struct{}), wake: make(chan struct{})}
	zombie := s.request
	zombie.Journal = paused
	ended := make(chan error, 1)
	go func() {
		_, err := runner.Run(ctx, zombie)
		ended <- err
	}()
	select {
	case <-paused.stopped:
	case err := <-ended:
		return fmt.Errorf("the first node ended (%v) before it was to be stopped", err)
	}
	current := s.take()
	outcome, err := s.playInput(ctx, &current)
	s.outcomes = append(s.outcomes, outcome)
	close(paused.wake)
	s.zombie = <-ended
	return err
}

// A pausedJournal stands still after a record, as a stopped process does.
type pausedJournal struct {
	runner.Journal
	stopAt  caseCrash
	seen    int
	stopped chan struct{}
	wake    chan struct{}
}

func (j *pausedJournal) Append(ctx context.Context, batch runner.Batch) (int64, error) {
	first, err := j.Journal.Append(ctx, batch)
	for _, record := range batch.Records {
		if string(record.Kind) != j.stopAt.Record {
			continue
		}
		if j.seen++; j.seen == max(j.stopAt.Nth, 1) {
			close(j.stopped)
			<-j.wake
		}
	}
	return first, err
}

// sweep plays the case again and again, killing the process once at every
// boundary of the journal, after the append and before it. The folded items
// must be those of the undisturbed run, but for what the case allows, and no
// call may have more than one effect outside.
func (s *stage) sweep(t *testing.T, c testCase) []string {
	clean := s.play(t, c, func(w *world) { w.crashes = nil })
	if clean.err != nil {
		return []string{"undisturbed: " + clean.err.Error()}
	}
	want := projection(clean, c.Expect.FoldEqualExcept)
	var faults []string
	for n := 1; n <= clean.world.appends; n += s.step() {
		for _, before := range []bool{false, true} {
			p := s.play(t, c, func(w *world) { w.crashes, w.dieAt, w.dieBefore = nil, n, before })
			where := fmt.Sprintf("killed after append %d: ", n)
			if before {
				where = fmt.Sprintf("killed before append %d: ", n)
			}
			if p.err != nil {
				faults = append(faults, where+p.err.Error())
				continue
			}
			if difference := compare(want, projection(p, c.Expect.FoldEqualExcept), c.Expect.FoldEqualExcept); difference != "" {
				faults = append(faults, where+difference)
			}
			faults = append(faults, atMost(p, c.Expect, where)...)
			for key, times := range p.world.byKey {
				if p.world.external[key] && times > 1 {
					faults = append(faults, fmt.Sprintf("%scall %s had %d effects", where, key, times))
				}
			}
		}
	}
	return faults
}

// atMost checks the bounds of a case that hold however often it was killed.
func atMost(p *played, e expectation, where string) []string {
	f := &faultList{}
	for tool, most := range e.EffectsMax {
		if p.world.effects[tool] > most {
			f.add("%s%d effects of %s, want at most %d", where, p.world.effects[tool], tool, most)
		}
	}
	if e.RequestsMax != nil && len(p.world.requests) > *e.RequestsMax {
		f.add("%s%d requests, want at most %d", where, len(p.world.requests), *e.RequestsMax)
	}
	if e.FinalOutput != nil && p.last().Output != *e.FinalOutput {
		f.add("%sfinal output %q, want %q", where, p.last().Output, *e.FinalOutput)
	}
	return f.list
}

// step is the sample's, or 1 where there is time.
func (s *stage) step() int {
	if os.Getenv("CI") == "true" {
		return 1
	}
	return s.sample
}

// projection is what must not depend on crashes.
func projection(p *played, except []string) []agents.Item {
	var items []agents.Item
	for _, item := range p.last().State.Items() {
		if slices.Contains(except, string(item.Kind)) {
			continue
		}
		shown := agents.Item{Kind: item.Kind, Agent: item.Agent, Text: item.Text, EffectState: item.EffectState}
		if item.Call != nil {
			shown.Call = &agents.ToolCall{Name: item.Call.Name, Arguments: item.Call.Arguments}
		}
		items = append(items, shown)
	}
	return items
}

func compare(want, got []agents.Item, except []string) string {
	unknownAllowed := len(except) == 0 || slices.ContainsFunc(except, func(kind string) bool { return strings.Contains(kind, "unknown") })
	if len(want) != len(got) {
		return fmt.Sprintf("%d items, %d undisturbed", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		if w.Kind != g.Kind || w.Agent != g.Agent || (w.Call != nil && (g.Call == nil || *w.Call != *g.Call)) {
			return fmt.Sprintf("item %d is %s of %s, undisturbed %s of %s", i, g.Kind, g.Agent, w.Kind, w.Agent)
		}
		if unknownAllowed && g.EffectState == runner.EffectUnknown {
			continue
		}
		if w.Kind == agents.KindSystemNote { // the boundary differs
			continue
		}
		if w.Text != g.Text {
			return fmt.Sprintf("item %d says %q, undisturbed %q", i, g.Text, w.Text)
		}
	}
	return ""
}
