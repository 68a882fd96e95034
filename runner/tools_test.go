package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"handoff/agents"
	"handoff/runner"
)

func TestALongOutputKeepsHeadAndTailAndItsWhole(t *testing.T) {
	long := "first line\n" + strings.Repeat("zwölf Boxkämpfer jagen Viktor\n", 4000) + "last line"
	probe := counting(agents.Tool{Name: "probe"}, long)
	s := tell(t, []agents.Tool{probe.Tool}, calls("probe", "{}"), says("done"))
	s.ends(s.run(), "done")
	output := s.heard(2, agents.RoleTool)
	if len(output) > 17<<10 || !strings.HasPrefix(output, "first line\n") || !strings.HasSuffix(output, "\nlast line") {
		t.Errorf("the output has %d bytes: %.80q … %q", len(output), output, output[len(output)-40:])
	}
	s.holds(output, "bytes left out")
	if !utf8.ValidString(output) {
		t.Error("the output was cut inside a character")
	}
	var full string
	for _, event := range s.session.records {
		if event.Kind == runner.RecordToolOutcome {
			full += string(event.Payload)
		}
	}
	if len(full) < len(long) {
		t.Error("the whole text is not in the journal")
	}
	shown := s.happened(runner.EventToolOutput)
	if len(shown) != 1 || shown[0].CutFrom != int64(len(long)) {
		t.Errorf("people are not told that %d bytes were cut: %+v", len(long), shown)
	}
}

func TestAToolThatPanicsIsAnErrorForTheModel(t *testing.T) {
	bad := agents.Tool{Name: "bad", Run: func(context.Context, agents.Call) (agents.Result, error) { panic("index out of range") }}
	s := tell(t, []agents.Tool{bad}, calls("bad", "{}"), says("done"))
	s.ends(s.run(), "done")
	s.holds(s.heard(2, agents.RoleTool), "the tool failed inside")
}

func TestAToolThatDoesNotStopIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		defer close(released)
		deaf := agents.Tool{Name: "deaf", Timeout: time.Minute, Run: func(context.Context, agents.Call) (agents.Result, error) {
			<-released
			return agents.Result{Output: "at last"}, nil
		}}
		s := tell(t, []agents.Tool{deaf}, calls("deaf", "{}"), says("done"))
		s.ends(s.run(), "done")
		s.holds(s.heard(2, agents.RoleTool), "timed out after 1m0s")
	})
}

// A fault of the loop's own in one of several calls is an error of the run, in
// whichever goroutine it happened.
func TestAFaultOfTheProgramIsAnErrorOfItsRun(t *testing.T) {
	probe := agents.Tool{Name: "probe", Run: func(context.Context, agents.Call) (agents.Result, error) {
		return agents.Result{Output: "x"}, nil
	}}
	s := tell(t, []agents.Tool{probe}, calls("probe", "{}", "probe", "{}"), says("done"))
	s.request.Hooks.Redact = func(text string) string {
		if text == "x" {
			panic("index out of range")
		}
		return text
	}
	_, err := s.tryRun(t.Context())
	if broken, ok := errors.AsType[*runner.Panic](err); !ok || broken.Cause != "index out of range" || len(broken.Stack) == 0 {
		t.Errorf("got %v", err)
	}
}

func TestHostileCallsAreAnsweredInWords(t *testing.T) {
	probe := counting(agents.Tool{Name: "probe"}, "x")
	s := tell(t, []agents.Tool{probe.Tool},
		calls(strings.Repeat("n", 1<<20), "{}", "probe\xff", "{}", "", "{}", "functions.probe", "{}", "probe", `{"a":`, "probe", `[]`, "probe", `{"a":1}{"b":2}`, "handoff_to", `{"target_agent":5}`, "handoff_to", handsTo(strings.Repeat("x", 1<<20), "")),
		says("done"))
	s.ends(s.run(), "done")
	if probe.ran != 0 {
		t.Errorf("the tool ran %d times", probe.ran)
	}
	if answers := s.heard(2, agents.RoleTool); len(answers) > 10<<10 {
		t.Errorf("the answers have %d bytes", len(answers))
	}
	for _, message := range s.model.requests[1].Messages {
		for _, call := range message.ToolCalls {
			if !agents.ValidToolName(call.Name) {
				t.Errorf("the name %.80q is replayed, which providers refuse", call.Name)
			}
			if call.Name != runner.HandoffTool && call.Arguments != "{}" && call.Arguments[0] != '{' {
				t.Errorf("arguments %q are replayed, which providers refuse", call.Arguments)
			}
		}
	}
}

// files is a workspace that records what was asked of it.
type files struct {
	tree   string
	resets []string
}

func (f *files) Snapshot(context.Context) (*runner.Checkpoint, error) {
	return &runner.Checkpoint{Base: "b", Tree: f.tree}, nil
}

func (f *files) Reset(_ context.Context, tree string) error {
	f.resets = append(f.resets, tree)
	f.tree = tree
	return nil
}

func TestEachWorkspaceCallLeavesACheckpoint(t *testing.T) {
	workspace := &files{}
	write := agents.Tool{Name: "write", Effect: agents.EffectWorkspace, Run: func(_ context.Context, call agents.Call) (agents.Result, error) {
		workspace.tree += "+"
		return agents.Result{Output: "ok"}, nil
	}}
	s := tell(t, []agents.Tool{write}, calls("write", `{"n":1}`, "write", `{"n":2}`), says("done"))
	s.request.Hooks.Workspace = workspace
	outcome := s.run()
	s.ends(outcome, "done")
	if outcome.State.Tree != "++" {
		t.Errorf("the last tree is %q", outcome.State.Tree)
	}
	batch := s.batch(runner.RecordToolOutcome)
	if batch.Checkpoint == nil || batch.Checkpoint.Tree != "+" {
		t.Errorf("the first outcome carries %+v", batch.Checkpoint)
	}
}

// full is a workspace that keeps trees of two changes at most.
type full struct{ files }

func (f *full) Snapshot(ctx context.Context) (*runner.Checkpoint, error) {
	if len(f.tree) > 2 {
		f.tree = "++"
		return nil, &runner.Unkept{Reason: "there are three changes"}
	}
	return f.files.Snapshot(ctx)
}

func TestACallWhoseFilesCannotBeKeptFailsInWords(t *testing.T) {
	workspace := &full{}
	write := agents.Tool{Name: "write", Effect: agents.EffectWorkspace, Run: func(context.Context, agents.Call) (agents.Result, error) {
		workspace.tree += "+"
		return agents.Result{Output: "written"}, nil
	}}
	s := tell(t, []agents.Tool{write}, calls("write", `{"n":1}`, "write", `{"n":2}`, "write", `{"n":3}`), says("done"))
	s.request.Hooks.Workspace = workspace
	outcome := s.run()
	s.ends(outcome, "done")
	if outcome.State.Tree != "++" {
		t.Errorf("the last tree is %q", outcome.State.Tree)
	}
	for _, want := range []string{"cannot be kept: there are three changes. All files were put back", "written"} {
		if answers := s.heard(2, agents.RoleTool); !strings.Contains(answers, want) {
			t.Errorf("the model heard %q, not %q", answers, want)
		}
	}
}

func TestAHalfDoneWorkspaceCallRunsAgainOnTheLastTree(t *testing.T) {
	workspace := &files{}
	ran := 0
	var s *story
	write := agents.Tool{Name: "write", Effect: agents.EffectWorkspace, Run: func(context.Context, agents.Call) (agents.Result, error) {
		ran++
		workspace.tree += "+"
		if ran == 2 {
			s.session.take() // the process is cut off from its session
		}
		return agents.Result{Output: "ok"}, nil
	}}
	s = tell(t, []agents.Tool{write}, calls("write", `{"n":1}`, "write", `{"n":2}`), says("done"))
	s.request.Hooks.Workspace = workspace
	if _, err := s.tryRun(t.Context()); !errors.Is(err, runner.ErrFenced) {
		t.Fatal(err)
	}
	s.restart()
	outcome := s.run()
	s.ends(outcome, "done")
	if len(workspace.resets) != 1 || workspace.resets[0] != "+" || workspace.tree != "++" {
		t.Errorf("reset to %q, the tree is %q", workspace.resets, workspace.tree)
	}
}

// outbox what it is told, at the moment that Await is called.
type outbox struct {
	session *memorySession
	records bool // whether it records outcomes itself
	awaited []string
}

func (o *outbox) Await(ctx context.Context, key string) (agents.Result, string, error) {
	o.awaited = append(o.awaited, key)
	result := agents.Result{Output: "pushed as 1234"}
	if !o.records {
		return result, runner.EffectDone, nil
	}
	record, err := runner.ToolOutcome{CallKey: key, Output: result.Output, Effect: runner.EffectDone, Variables: agents.Variables{"pull_request": "7"}}.Record()
	if err != nil {
		return result, "", err
	}
	journal := &memoryJournal{session: o.session, epoch: o.session.epoch}
	_, err = journal.Append(ctx, runner.Batch{Records: []runner.Record{record}})
	return result, runner.EffectDone, err
}

func pushTool() agents.Tool {
	return agents.Tool{Name: "git_push", Effect: agents.EffectExternal, NeedsApproval: always,
		Effects: func(_ context.Context, call agents.Call) ([]agents.EffectRequest, error) {
			return []agents.EffectRequest{{Key: call.IdempotencyKey, Kind: "push", Payload: []byte(`{"approval":"` + call.Approval + `"}`)}}, nil
		}}
}

func TestAnEffectGoesToTheOutboxWithItsIntent(t *testing.T) {
	for _, records := range []bool{true, false} {
		s := tell(t, []agents.Tool{pushTool()}, calls("git_push", "{}"), says("done"))
		box := &outbox{session: s.session, records: records}
		s.request.Hooks.Effects = box
		outcome := s.run()
		s.decide(outcome, func(*runner.Decision) {})
		s.restart()
		outcome = s.run()
		s.ends(outcome, "done")
		batch := s.batch(runner.RecordToolIntent)
		if len(batch.Effects) != 1 || string(batch.Effects[0].Payload) != `{"approval":"a1"}` || !strings.HasPrefix(batch.Effects[0].Key, "s1/") {
			t.Errorf("the intent's effects are %+v", batch.Effects)
		}
		if len(box.awaited) != 1 || s.count(runner.RecordToolOutcome) != 1 {
			t.Errorf("awaited %v, %d outcomes recorded", box.awaited, s.count(runner.RecordToolOutcome))
		}
		s.holds(s.heard(2, agents.RoleTool), "pushed as 1234")
		if records && outcome.State.Variables["pull_request"] != "7" {
			t.Error("the variables of the outbox's outcome were not read")
		}
	}
}

func TestAfterACrashTheOutboxIsAskedAgain(t *testing.T) {
	s := tell(t, []agents.Tool{pushTool()}, calls("git_push", "{}"), says("done"))
	box := &outbox{session: s.session, records: true}
	s.request.Hooks.Effects = cutOff{s.session}
	s.decide(s.run(), func(*runner.Decision) {})
	if _, err := s.tryRun(t.Context()); err == nil {
		t.Fatal("the first process was to fail")
	}
	s.restart()
	s.request.Hooks.Effects = box
	s.ends(s.run(), "done")
	if s.count(runner.RecordToolIntent) != 1 || len(box.awaited) != 1 {
		t.Errorf("%d intents, awaited %v", s.count(runner.RecordToolIntent), box.awaited)
	}
}

// slowly is an outbox that takes longer than the run may be active.
type slowly struct{ inner runner.Effects }

func (s slowly) Await(ctx context.Context, key string) (agents.Result, string, error) {
	select {
	case <-time.After(1200 * time.Millisecond):
		return s.inner.Await(ctx, key)
	case <-ctx.Done():
		return agents.Result{}, "", ctx.Err()
	}
}

func TestWaitingForTheOutboxIsNotActiveTime(t *testing.T) {
	s := tell(t, []agents.Tool{pushTool()}, calls("git_push", "{}"), says("done"))
	s.request.Config.RunTimeout = time.Second
	s.request.Hooks.Effects = slowly{&outbox{session: s.session, records: true}}
	s.decide(s.run(), func(*runner.Decision) {})
	s.ends(s.run(), "done")
}

// cutOff is an outbox whose process dies.
type cutOff struct{ session *memorySession }

func (c cutOff) Await(context.Context, string) (agents.Result, string, error) {
	c.session.take()
	return agents.Result{}, "", errors.New("the connection to the database was lost")
}

func TestAConflictAfterACrashIsDecidedByAPerson(t *testing.T) {
	for _, test := range []struct {
		kind   runner.DecisionKind
		ran    int
		effect string
	}{{runner.DecisionApproved, 2, runner.EffectDone}, {runner.DecisionRejected, 1, runner.EffectUnknown}} {
		ran := 0
		var s *story
		push := agents.Tool{Name: "push", Effect: agents.EffectExternal, Reconcile: agents.ReconcileQuery,
			Run: func(context.Context, agents.Call) (agents.Result, error) {
				if ran++; ran == 1 {
					s.session.take()
				}
				return agents.Result{Output: "pushed"}, nil
			},
			Query: func(context.Context, agents.Call, agents.Intent) (agents.Result, bool, error) {
				return agents.Result{}, false, errors.New("the branch points elsewhere")
			}}
		s = tell(t, []agents.Tool{push}, calls("push", "{}"), says("done"))
		if _, err := s.tryRun(t.Context()); !errors.Is(err, runner.ErrFenced) {
			t.Fatal(err)
		}
		s.restart()
		outcome := s.run()
		if outcome.Status != runner.StatusInterrupted || !strings.Contains(outcome.Approvals[0].Conflict, "points elsewhere") {
			t.Fatalf("the run is %s, %+v", outcome.Status, outcome.Approvals)
		}
		s.decide(outcome, func(d *runner.Decision) { d.Kind = test.kind })
		s.restart()
		outcome = s.run()
		s.ends(outcome, "done")
		items := outcome.State.Items()
		if got := items[len(items)-2]; ran != test.ran || got.EffectState != test.effect {
			t.Errorf("%s: ran %d times, the effect is %s", test.kind, ran, got.EffectState)
		}
	}
}

func TestADecisionForOtherArgumentsCountsForNothing(t *testing.T) {
	gated := counting(agents.Tool{Name: "gated", NeedsApproval: always}, "x")
	s := tell(t, []agents.Tool{gated.Tool}, calls("gated", `{"path":"a"}`))
	outcome := s.run()
	s.decide(outcome, func(d *runner.Decision) { d.ArgumentHash = runner.ArgumentHash("gated", `{"path":"b"}`) })
	if outcome = s.run(); outcome.Status != runner.StatusInterrupted || gated.ran != 0 {
		t.Errorf("the run is %s and the tool ran %d times", outcome.Status, gated.ran)
	}
}

func TestARefusalByTheHostSaysWhy(t *testing.T) {
	gated := counting(agents.Tool{Name: "gated", NeedsApproval: always}, "x")
	s := tell(t, []agents.Tool{gated.Tool}, calls("gated", "{}"), says("done"))
	s.decide(s.run(), func(d *runner.Decision) {
		d.Kind, d.By, d.Reason = runner.DecisionRejected, runner.ByHost, "two tests fail"
	})
	s.ends(s.run(), "done")
	s.holds(s.heard(2, agents.RoleTool), "Refused by the host's rules: two tests fail")
}

func TestAgentsThatAskEachOtherInCirclesAreStopped(t *testing.T) {
	s := tell(t, nil)
	s.request.Chart = map[string][]string{"one": {"two"}, "two": {"one"}}
	for _, id := range []string{"one", "two"} {
		agent := s.request.Crew[id]
		agent.Tools = []string{runner.SendMessageTool}
		s.request.Crew[id] = agent
	}
	s.model.lines = []line{
		calls("send_message", `{"recipient_agent":"two","message":"x"}`),
		calls("send_message", `{"recipient_agent":"one","message":"y"}`),
		calls("send_message", `{"recipient_agent":"two","message":"z"}`),
		says("inner one"), says("inner two"), says("done"),
	}
	s.ends(s.run(), "done")
	s.holds(s.recorded(), "answer first")
}

func TestNothingRunsOnAfterTheRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	slow := agents.Tool{Name: "slow", Run: func(ctx context.Context, _ agents.Call) (agents.Result, error) {
		<-ctx.Done()
		return agents.Result{}, ctx.Err()
	}}
	bad := agents.Tool{Name: "bad", RaiseErrors: true, Run: func(context.Context, agents.Call) (agents.Result, error) {
		return agents.Result{}, errors.New("kaputt")
	}}
	s := tell(t, []agents.Tool{slow, bad}, calls("slow", "{}", "slow", `{"n":2}`, "bad", "{}", "slow", `{"n":3}`, "slow", `{"n":4}`))
	s.endsWith(s.run(), agents.CodeToolError)
	if n := s.count(runner.RecordToolOutcome); n != 5 {
		t.Errorf("%d of 5 calls have an outcome", n)
	}
}
