package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"handoff/agents"
	"handoff/runner"
)

// chapter is a session in which everything happens: effects, a handoff, an
// approval, an agent used as a tool, a second run.
func chapter(t *testing.T) *story {
	look := counting(agents.Tool{Name: "look"}, "seen")
	write := counting(agents.Tool{Name: "write", Effect: agents.EffectWorkspace}, "written")
	push := counting(agents.Tool{Name: "push", Effect: agents.EffectExternal, NeedsApproval: always}, "pushed")
	s := tell(t, []agents.Tool{look.Tool, write.Tool, push.Tool},
		calls("look", "{}", "write", "{}"),
		calls("helper", `{"input":"count"}`),
		says("three"),
		calls("handoff_to", handsTo("two", "go on")),
		calls("push", "{}", "look", "{}"),
		says("done"), says("more done"))
	s.request.AgentTools = map[string]runner.AgentTool{"helper": {Agent: "two"}}
	one := s.request.Crew["one"]
	one.Tools = append(one.Tools, "helper")
	s.request.Crew["one"] = one
	s.decide(s.run(), func(*runner.Decision) {})
	s.ends(s.run(), "done")
	s.request.Input = runner.Input{ID: "more", Text: "And more."}
	s.ends(s.run(), "more done")
	return s
}

func TestFoldingInPiecesIsFoldingAtOnce(t *testing.T) {
	s := chapter(t)
	whole, err := runner.Fold(s.session.records)
	if err != nil {
		t.Fatal(err)
	}
	for n := range s.session.records {
		state, err := runner.Fold(s.session.records[:n])
		if err != nil {
			t.Fatalf("the first %d records: %v", n, err)
		}
		for _, record := range s.session.records[n:] {
			if err := state.Apply(record); err != nil {
				t.Fatal(err)
			}
		}
		if difference := cmp.Diff(whole.Items(), state.Items()); difference != "" {
			t.Fatalf("folded in pieces of %d and the rest:\n%s", n, difference)
		}
		if difference := cmp.Diff(whole.Usage, state.Usage); difference != "" {
			t.Fatalf("usage folded in pieces of %d and the rest:\n%s", n, difference)
		}
	}
}

func TestEventsOfARecordAreTheSameLiveAndReplayed(t *testing.T) {
	s := chapter(t)
	for _, from := range []int64{1, 7, int64(len(s.session.records))} {
		replayed, err := runner.Replay(s.session.records, from)
		if err != nil {
			t.Fatal(err)
		}
		var live []runner.Event
		for _, event := range s.events {
			if event.Seq >= from {
				live = append(live, event)
			}
		}
		// The decision was recorded by somebody else and read with the journal.
		var ours []runner.Event
		for _, event := range replayed {
			if event.Kind != runner.EventDecision {
				ours = append(ours, event)
			}
		}
		for i := range live {
			live[i].Time = ours[i].Time // the journal's clock ticked a little later
		}
		if difference := cmp.Diff(ours, live); difference != "" {
			t.Errorf("from %d:\n%s", from, difference)
		}
	}
}

func TestAJournalThatCannotBeIsRefused(t *testing.T) {
	good := chapter(t).session.records
	for name, spoil := range map[string]func([]runner.Record) []runner.Record{
		"gap":     func(r []runner.Record) []runner.Record { return append(r[:3], r[4:]...) },
		"twice":   func(r []runner.Record) []runner.Record { return append(r[:4], r[3:]...) },
		"newer":   func(r []runner.Record) []runner.Record { r[2].Version = 99; return r },
		"kind":    func(r []runner.Record) []runner.Record { r[2].Kind = "tea.made"; return r },
		"payload": func(r []runner.Record) []runner.Record { r[2].Payload = []byte("{"); return r },
		"run":     func(r []runner.Record) []runner.Record { r[2].RunID = "nobody"; return r },
		"no run":  func(r []runner.Record) []runner.Record { r = r[1:2]; r[0].Seq = 1; return r },
		"after end": func(r []runner.Record) []runner.Record {
			last := r[len(r)-1]
			last.Seq++
			return append(r, last)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := runner.Fold(spoil(append([]runner.Record{}, good...))); err == nil {
				t.Error("the journal was accepted")
			}
		})
	}
}

// TestAnySessionSurvivesAnyCrash makes up sessions, kills the process at any
// appends, and looks at the invariants: what a model is asked is always
// well-formed, no call has two effects, each run ends once.
func TestAnySessionSurvivesAnyCrash(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		effects := map[string]int{}
		tools := []agents.Tool{
			{Name: "look"},
			{Name: "write", Effect: agents.EffectWorkspace},
			{Name: "send", Effect: agents.EffectExternal},
			{Name: "ask", Effect: agents.EffectExternal, NeedsApproval: always},
			{Name: "find", Effect: agents.EffectExternal, Reconcile: agents.ReconcileQuery},
		}
		for i := range tools {
			name, external := tools[i].Name, tools[i].Effect == agents.EffectExternal
			tools[i].Run = func(_ context.Context, call agents.Call) (agents.Result, error) {
				if external {
					effects[call.IdempotencyKey]++
				}
				return agents.Result{Output: name}, nil
			}
			tools[i].Query = func(_ context.Context, call agents.Call, _ agents.Intent) (agents.Result, bool, error) {
				return agents.Result{Output: name}, effects[call.IdempotencyKey] > 0, nil
			}
		}
		script := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"look", "write", "send", "ask", "find", "handoff_to", "ghost"}), 0, 4), 1, 5).Draw(r, "script")
		s := tell(t, tools)
		model := &statelessModel{script: script, fail: r.Fatalf}
		s.request.Model = model
		// Each kill is so many appends after the one before.
		kills := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 4).Draw(r, "kills")
		w := &world{dieAt: kills[0], dieBefore: rapid.Bool().Draw(r, "before"), seen: map[string]int{}}
		for range 30 {
			s.request.Journal = w.mortal(s.journal)
			outcome, err := runner.Run(t.Context(), s.request)
			switch {
			case errors.Is(err, errKilled):
				w.restart(false)
				s.restart()
				if kills = kills[1:]; len(kills) > 0 {
					w.dieAt = w.appends + kills[0]
				}
				continue
			case err != nil:
				r.Fatal(err)
			case outcome.Status == runner.StatusInterrupted:
				s.decide(outcome, func(*runner.Decision) {})
				continue
			}
			checkEnd(r, s, effects, outcome)
			return
		}
		r.Fatal("the session never ended")
	})
}

func checkEnd(r *rapid.T, s *story, effects map[string]int, outcome runner.Outcome) {
	if outcome.Status != runner.StatusFinal {
		r.Fatalf("the run is %s: %v", outcome.Status, outcome.Err)
	}
	for key, n := range effects {
		if n > 1 {
			r.Fatalf("call %s had %d effects", key, n)
		}
	}
	if s.count(runner.RecordRunEnded) != 1 {
		r.Fatalf("%d ends", s.count(runner.RecordRunEnded))
	}
	state, err := runner.Fold(s.session.records)
	if err != nil {
		r.Fatal(err)
	}
	if len(state.Items()) != len(outcome.State.Items()) {
		r.Fatalf("folding anew gives %d items, the run had %d", len(state.Items()), len(outcome.State.Items()))
	}
}

// A statelessModel answers by the turn alone, so that a question asked again
// gets the same answer. It checks that every history is well-formed.
type statelessModel struct {
	script [][]string
	fail   func(format string, args ...any)
}

func (m *statelessModel) Respond(ctx context.Context, request agents.Request) (agents.Response, error) {
	if fault := malformed(request.Messages); fault != "" {
		m.fail("turn %d: %s", request.Turn, fault)
	}
	if request.Turn > len(m.script) {
		return says("done")(ctx, request)
	}
	var named []string
	for i, name := range m.script[request.Turn-1] {
		arguments := fmt.Sprintf(`{"turn":%d,"i":%d}`, request.Turn, i)
		if name == runner.HandoffTool {
			arguments = handsTo(map[string]string{"one": "two", "two": "one"}[request.Agent], "x")
		}
		named = append(named, name, arguments)
	}
	if len(named) == 0 {
		return says("done")(ctx, request)
	}
	return calls(named...)(ctx, request)
}

// malformed says what is wrong with a history: every call is answered by
// exactly one tool message before anything else follows (rule R5).
func malformed(messages []*agents.Message) string {
	open, seen := map[string]bool{}, map[string]bool{}
	for i, message := range messages {
		if message.Role == agents.RoleTool {
			if !open[message.ToolCallID] {
				return fmt.Sprintf("message %d answers %q, which is not open", i, message.ToolCallID)
			}
			delete(open, message.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d (%s) follows open calls %v", i, message.Role, open)
		}
		for _, call := range message.ToolCalls {
			if call.ID == "" || seen[call.ID] {
				return fmt.Sprintf("message %d has the call id %q", i, call.ID)
			}
			open[call.ID], seen[call.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls %v stay open", open)
	}
	return ""
}

// FuzzFold gives Fold journals that nobody wrote. It may refuse them but not
// fall over.
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"run_id":"r1","version":1,"kind":"run.created","payload":{"agent":"one"}}
{"run_id":"r1","version":1,"kind":"input.added","payload":{"text":"x"}}
{"run_id":"r1","version":1,"kind":"model.request","payload":{"agent":"one","turn":1}}
{"run_id":"r1","version":1,"kind":"model.response","payload":{"agent":"one","turn":1,"calls":[{"id":"a","name":"p","arguments":"{}"},{"id":"","name":"handoff_to","arguments":"{}"}]}}
{"run_id":"r1","version":1,"kind":"approval.requested","payload":{"call":"r1/4/0","tool":"p","argument_hash":"h"}}
{"run_id":"r1","version":1,"kind":"approval.decided","payload":{"call":"r1/4/0","decision":"approved","argument_hash":"h"}}
{"run_id":"r1","version":1,"kind":"tool.intent","payload":{"call":"r1/4/0"}}
{"run_id":"r1/4/0","parent_run_id":"r1","version":1,"kind":"run.created","payload":{"agent":"two","thread":"x"}}
{"run_id":"r1","version":1,"kind":"tool.outcome","payload":{"call":"r1/4/0","output":"x","effect":"done"}}
{"run_id":"r1","version":1,"kind":"handoff.committed","payload":{"call":"r1/4/1","from":"one","to":"two","note":"n"}}
{"run_id":"r1","version":1,"kind":"step.committed","payload":{"step":"handoff","to":"two"}}
{"run_id":"r1","version":1,"kind":"compaction.added","payload":{"summary":"s","upto":3}}
{"run_id":"r1","version":1,"kind":"note.added","payload":{"kind":"budget","text":"t"}}
{"run_id":"r1","version":1,"kind":"run.paused","payload":{"reason":"stopped"}}
{"run_id":"r1","version":1,"kind":"lease.taken","payload":{}}
{"run_id":"r1","version":1,"kind":"run.ended","payload":{"output":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var records []runner.Record
		for line := range bytes.Lines(data) {
			var record runner.Record
			if json.Unmarshal(line, &record) != nil {
				continue
			}
			record.Seq = int64(len(records) + 1)
			records = append(records, record)
		}
		state, err := runner.Fold(records)
		_, replayErr := runner.Replay(records, 1)
		if (err == nil) != (replayErr == nil) {
			t.Errorf("Fold says %v, Replay %v", err, replayErr)
		}
		if err == nil && state.Root != "" {
			_ = state.Approvals(state.Root)
		}
	})
}

// FuzzCutOutput feeds tools' outputs of any kind through a run.
func FuzzCutOutput(f *testing.F) {
	f.Add("a\nb\n", 4)
	f.Add(strings.Repeat("ä", 100), 7)
	f.Add("\xff\xfe", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1<<16 {
			t.Skip()
		}
		probe := counting(agents.Tool{Name: "probe"}, text)
		s := tell(t, []agents.Tool{probe.Tool}, calls("probe", "{}"), says("done"))
		s.request.Config.OutputCap = limit
		s.ends(s.run(), "done")
		output := s.heard(2, agents.RoleTool)
		if len(output) > limit+len(text)/4+100 && len(text) > limit {
			t.Errorf("an output of %d bytes was cut to %d of %d", len(text), len(output), limit)
		}
		if output == "" {
			t.Error("the output is empty on the wire")
		}
	})
}
