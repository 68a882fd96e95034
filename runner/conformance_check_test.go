package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"handoff/agents"
	"handoff/runner"
)

// faults compares what happened with what the case expects.
func (p *played) faults(c testCase) []string {
	f := &faultList{}
	e := c.Expect
	p.checkEnd(f, e)
	p.checkItems(f, e)
	p.checkJournal(f, c)
	p.checkEffects(f, e)
	p.checkUsage(f, e)
	p.checkEvents(f, e)
	for _, assert := range e.RequestAsserts {
		p.checkRequest(f, assert)
	}
	if e.Requests != nil && len(p.world.requests) != *e.Requests {
		f.add("%d requests, want %d", len(p.world.requests), *e.Requests)
	}
	f.list = append(f.list, atMost(p, e, "")...)
	if p.took < time.Duration(e.WallMSMin)*time.Millisecond {
		f.add("took %v, want at least %d ms", p.took, e.WallMSMin)
	}
	if e.FilesWritten != nil && !slices.Equal(p.files, *e.FilesWritten) {
		f.add("files written are %q, want %q", p.files, *e.FilesWritten)
	}
	return f.list
}

type faultList struct{ list []string }

func (f *faultList) add(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *faultList) equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		f.add("%s: got %v, want %v", what, got, want)
	}
}

func (p *played) checkEnd(f *faultList, e expectation) {
	failure, _ := errors.AsType[*agents.Error](p.err)
	if failure == nil {
		failure = p.last().Err
	}
	switch {
	case e.Error != "" && failure == nil:
		f.add("no error (%v), want %s", p.err, e.Error)
	case e.Error != "" && string(failure.Code) != e.Error:
		f.add("error %v, want %s", failure, e.Error)
	case e.Error == "" && failure != nil:
		f.add("error %v", failure)
	case e.Error == "" && p.err != nil:
		f.add("error %v", p.err)
	}
	if e.ErrorContains != "" && (failure == nil || !strings.Contains(failure.Error(), e.ErrorContains)) {
		f.add("error %v, want one that contains %q", failure, e.ErrorContains)
	}
	if e.FinalOutput != nil && (p.last().Status != runner.StatusFinal || p.last().Output != *e.FinalOutput) {
		f.add("%s output %q, want final %q", p.last().Status, p.last().Output, *e.FinalOutput)
	}
	if e.FinalOutputJSON != nil && !sameJSON([]byte(p.last().Output), e.FinalOutputJSON) {
		f.add("final output %s, want %s", p.last().Output, e.FinalOutputJSON)
	}
	if e.NextSteps != nil {
		f.equal("next steps", p.steps(), e.NextSteps)
	}
}

// steps are the steps of the user's runs; those of nested runs are their own.
func (p *played) steps() []string {
	steps := []string{}
	for _, record := range p.records {
		var step struct{ Step string }
		if record.Kind == runner.RecordStepCommitted && record.ParentRunID == "" && json.Unmarshal(record.Payload, &step) == nil {
			steps = append(steps, step.Step)
		}
	}
	return steps
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func (p *played) state() *runner.State {
	if state := p.last().State; state != nil {
		return state
	}
	return &runner.State{}
}

func (p *played) checkItems(f *faultList, e expectation) {
	all := p.state().Items()
	if e.Items != nil {
		p.checkItemList(f, e.Items)
	}
	if e.ItemsLast != nil && (len(all) == 0 || !e.ItemsLast.fits(all[len(all)-1])) {
		f.add("the last item does not fit %+v", *e.ItemsLast)
	}
	notes, order := 0, []string{}
	for _, item := range all {
		switch item.Kind {
		case agents.KindSystemNote:
			notes++
		case agents.KindToolCallOutput:
			order = append(order, item.Call.ID)
		}
		for _, text := range e.Session.ItemsExcludeText {
			if strings.Contains(item.Text, text) {
				f.add("an item contains %q", text)
			}
		}
	}
	if e.NoteCount != nil {
		f.equal("system notes", notes, *e.NoteCount)
	}
	if e.ToolOutputOrder != nil {
		f.equal("order of outputs", order, e.ToolOutputOrder)
	}
	if e.LastAgent != "" {
		f.equal("last agent", p.state().ActiveAgent, e.LastAgent)
	}
	if e.Session.ActiveAgent != "" {
		f.equal("active agent", p.state().ActiveAgent, e.Session.ActiveAgent)
	}
	for owner, texts := range e.Threads {
		f.equal("thread "+owner, threadTexts(p.state().Thread(owner)), texts)
	}
}

// checkItemList compares the items; those of the user are compared where the
// case lists any.
func (p *played) checkItemList(f *faultList, want []expectedItem) {
	withInput := slices.ContainsFunc(want, func(item expectedItem) bool { return item.Kind == string(agents.KindUserMessage) })
	var got []agents.Item
	for _, item := range p.state().Items() {
		if withInput || item.Kind != agents.KindUserMessage {
			got = append(got, item)
		}
	}
	if len(got) != len(want) {
		f.add("%d items (%v), want %d", len(got), kindsOf(got), len(want))
		return
	}
	for i, item := range want {
		if !item.fits(got[i]) {
			f.add("item %d is %+v, want %+v", i, got[i], item)
		}
	}
}

func kindsOf(items []agents.Item) []agents.ItemKind {
	var kinds []agents.ItemKind
	for _, item := range items {
		kinds = append(kinds, item.Kind)
	}
	return kinds
}

func (e expectedItem) fits(item agents.Item) bool {
	return e.Kind == string(item.Kind) &&
		(e.Agent == "" || e.Agent == item.Agent) &&
		(e.CallID == "" || item.Call != nil && e.CallID == item.Call.ID) &&
		(e.Output == nil || *e.Output == item.Text) &&
		strings.Contains(item.Text, e.ContentContains)
}

func threadTexts(thread *runner.Thread) []string {
	texts := []string{}
	if thread == nil {
		return texts
	}
	for _, item := range thread.Items {
		if item.Kind == agents.KindUserMessage || item.Kind == agents.KindMessageOutput {
			texts = append(texts, item.Text)
		}
	}
	return texts
}

func (p *played) checkJournal(f *faultList, c testCase) {
	e := c.Expect
	items := map[string]bool{}
	for _, item := range p.state().Items() {
		if item.Call != nil {
			items[string(item.Kind)+":"+item.Call.ID] = true
		}
		items[string(item.Kind)] = true
	}
	for _, want := range e.JournalItemsContain {
		if !items[want] {
			f.add("the journal has no item %s", want)
		}
	}
	outcomes := p.effectStates()
	for call, want := range e.JournalOutcome {
		f.equal("outcome of "+call, outcomes[call], want)
	}
	for _, call := range e.JournalClosedCalls {
		if outcomes[call] == "" {
			f.add("call %s has no outcome", call)
		}
	}
	p.checkSequence(f, e)
	if c.Zombie != nil && !errors.Is(p.zombie, runner.ErrFenced) {
		f.add("the stopped node ended with %v, want ErrFenced", p.zombie)
	}
}

// effectStates are the outcomes by the wire ids of their calls.
func (p *played) effectStates() map[string]string {
	states := map[string]string{}
	for _, record := range p.records {
		var named struct{ Call string }
		if json.Unmarshal(record.Payload, &named) != nil {
			continue
		}
		if call := p.state().Call(named.Call); call != nil && call.Outcome != nil {
			states[call.ID] = call.Outcome.Effect
		}
	}
	return states
}

// checkSequence holds for every case: no gaps, one end for each run, and with
// journal_single_writer no epoch after a higher one.
func (p *played) checkSequence(f *faultList, e expectation) {
	ends := map[string]int{}
	var epoch int64
	for i, record := range p.records {
		if record.Seq != int64(i+1) {
			f.add("record %d has the number %d", i+1, record.Seq)
		}
		if record.Kind == runner.RecordRunEnded {
			ends[record.RunID]++
		}
		if record.Epoch < epoch && e.JournalSingleWriter {
			f.add("record %d has epoch %d after %d", record.Seq, record.Epoch, epoch)
		}
		epoch = max(epoch, record.Epoch)
	}
	for run, n := range ends {
		if n != 1 {
			f.add("run %s ended %d times", run, n)
		}
	}
	state, err := runner.Fold(p.records)
	if err != nil {
		f.add("the journal cannot be folded: %v", err)
	} else if p.last().State != nil && len(state.Items()) != len(p.state().Items()) {
		f.add("folding anew gives %d items, the run had %d", len(state.Items()), len(p.state().Items()))
	}
}

func (p *played) checkEffects(f *faultList, e expectation) {
	for tool, want := range e.Effects {
		f.equal("effects of "+tool, p.world.effects[tool], want)
	}
	for call, want := range e.EffectsByCall {
		f.equal("effects of call "+call, p.world.byCall[call], want)
	}
	for tool, want := range e.EffectsArgs {
		got := p.world.args[tool]
		if len(got) != len(want) {
			f.add("%s ran %d times, want %d", tool, len(got), len(want))
			continue
		}
		for i := range want {
			if !sameJSON(got[i], want[i]) {
				f.add("arguments of %s: %s, want %s", tool, got[i], want[i])
			}
		}
	}
	if e.MaxParallelSeen != nil {
		f.equal("calls at once", p.world.parallel, *e.MaxParallelSeen)
	}
}

// checkUsage compares what the providers reported. Estimates are charged to
// budgets as well (rule R80), but no case can know them.
func (p *played) checkUsage(f *faultList, e expectation) {
	usage := p.state().Usage
	for _, entry := range usage.Entries {
		if entry.Estimated {
			usage.Input, usage.Output, usage.Total = usage.Input-entry.Input, usage.Output-entry.Output, usage.Total-entry.Total
		}
	}
	values := map[string]int64{
		"requests": int64(usage.Requests), "input_tokens": usage.Input, "output_tokens": usage.Output, "total_tokens": usage.Total,
		"cached_tokens": usage.Cached, "reasoning_tokens": usage.Reasoning, "entries": int64(len(usage.Entries)), "cost": usage.CostMicros,
	}
	for name, want := range e.Usage {
		got, known := values[name]
		if !known {
			f.add("the driver knows no usage %q", name)
		}
		f.equal("usage "+name, got, want)
	}
	if e.UsageHasEstimatedEntry != nil {
		estimated := slices.ContainsFunc(usage.Entries, func(entry agents.UsageEntry) bool { return entry.Estimated })
		f.equal("usage has an estimated entry", estimated, *e.UsageHasEstimatedEntry)
	}
}

// checkEvents compares the events that agent frameworks know; those of usage,
// input and ends are handoff's own.
func (p *played) checkEvents(f *faultList, e expectation) {
	common := []runner.EventKind{
		runner.EventAgentUpdated, runner.EventToolCalled, runner.EventToolOutput, runner.EventMessageOutput,
		runner.EventHandoffRequested, runner.EventHandoffOccurred,
	}
	kinds := []string{}
	for _, event := range p.world.events {
		if e.EventsHaveSeq && event.Seq <= 0 {
			f.add("event %s has no seq", event.Kind)
		}
		if slices.Contains(common, event.Kind) {
			kinds = append(kinds, string(event.Kind))
		}
	}
	if e.Events != nil {
		f.equal("events", kinds, e.Events)
	}
	p.checkReplay(f)
}

// checkReplay holds for every case: reading the journal gives the events that
// were told live.
func (p *played) checkReplay(f *faultList) {
	if len(p.records) == 0 || p.zombie != nil {
		return
	}
	type key struct {
		seq   int64
		index int
		kind  runner.EventKind
	}
	replayed, err := runner.Replay(p.records, 1)
	if err != nil {
		f.add("replay: %v", err)
		return
	}
	known := map[key]bool{}
	for _, event := range replayed {
		known[key{event.Seq, event.Index, event.Kind}] = true
	}
	for _, event := range p.world.events {
		if event.Kind != runner.EventDelta && event.Kind != runner.EventDeltaRestart && !known[key{event.Seq, event.Index, event.Kind}] {
			f.add("event %d.%d %s was told live and is not in the journal", event.Seq, event.Index, event.Kind)
		}
	}
}
