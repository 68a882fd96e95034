package runner

import (
	"fmt"
	"maps"
	"time"

	"handoff/agents"
)

// apply adds a record whose payload was decoded.
func (s *State) apply(record Record, payload any) error {
	if record.Seq != s.Seq+1 {
		return fmt.Errorf("journal has a gap: record %d follows %d", record.Seq, s.Seq)
	}
	if record.Version > recordVersion {
		return fmt.Errorf("record %d was written by a newer version (%d) of this program; upgrade this node", record.Seq, record.Version)
	}
	if s.Runs == nil {
		s.Runs = map[string]*RunState{}
		s.threads = map[string]*Thread{}
		s.calls = map[string]*CallState{}
		s.inputs = map[string]string{}
		s.Variables = agents.Variables{}
	}
	s.Seq = record.Seq
	switch p := payload.(type) {
	case leaseTaken:
		return nil
	case runCreated:
		return s.applyRunCreated(record, p)
	case Decision:
		s.applyDecision(p)
		return nil
	case ToolOutcome:
		s.applyOutcome(record, p)
		return nil
	}
	run := s.Runs[record.RunID]
	if run == nil {
		return fmt.Errorf("record %d (%s) belongs to no run: %q", record.Seq, record.Kind, record.RunID)
	}
	if run.Ended {
		return fmt.Errorf("record %d (%s) follows the end of run %q", record.Seq, record.Kind, run.ID)
	}
	return s.applyToRun(record, run, payload)
}

func (s *State) applyToRun(record Record, run *RunState, payload any) error {
	switch p := payload.(type) {
	case inputAdded:
		if p.ID != "" {
			s.inputs[p.ID] = run.ID
		}
		s.addItem(run, agents.Item{Seq: record.Seq, Kind: agents.KindUserMessage, Agent: p.Author, Time: record.Time, Text: p.Text})
	case modelRequest:
		s.chargeLost(run)
		run.Paused = ""
		run.asked = &p
	case modelResponse:
		return s.applyResponse(record, run, p)
	case approvalRequested:
		return s.applyApprovalRequested(record, run, p)
	case toolIntent:
		call, err := run.call(record, p.Call)
		if err != nil {
			return err
		}
		call.Intent, call.Outbox = &p.Intent, p.Outbox
		run.Paused = ""
	case handoffCommitted:
		return s.applyHandoff(record, run, p)
	case stepCommitted:
		run.Next = p.Step
		if p.Step != StepInterruption {
			run.Pending = nil
		}
	case compactionAdded:
		run.asked = nil
		s.charge(run, p.Usage)
		thread := s.thread(run.Thread)
		thread.marks = append(thread.marks, mark{kind: markCompaction, at: len(thread.Items), upto: p.Upto})
		s.addItem(run, agents.Item{Seq: record.Seq, Kind: agents.KindCompaction, Agent: run.Agent, Time: record.Time, Text: p.Summary})
	case noteAdded:
		run.noted(p)
		s.addItem(run, agents.Item{Seq: record.Seq, Kind: agents.KindSystemNote, Agent: run.Agent, Time: record.Time, Text: p.Text})
	case runPaused:
		run.Paused = p.Reason
		run.active(p.Active)
	case runEnded:
		s.applyEnded(record, run, p)
	default:
		return fmt.Errorf("record %d has no rule for %T", record.Seq, payload)
	}
	return nil
}

func (s *State) applyRunCreated(record Record, p runCreated) error {
	switch {
	case record.RunID == "":
		return fmt.Errorf("record %d creates a run without an id", record.Seq)
	case s.Runs[record.RunID] != nil:
		return fmt.Errorf("record %d creates run %q again", record.Seq, record.RunID)
	case record.ParentRunID != "" && s.Runs[record.ParentRunID] == nil:
		return fmt.Errorf("record %d creates run %q inside the run %q, which is none", record.Seq, record.RunID, record.ParentRunID)
	}
	if p.Boundary != "" && s.Boundary == "" {
		s.Boundary = p.Boundary
	}
	s.setVariables(p.Variables)
	run := &RunState{
		ID: record.RunID, Parent: record.ParentRunID, Call: p.Call, Agent: p.Agent, Thread: p.Thread, Task: p.Task,
		first: len(s.thread(p.Thread).Items), toolUsed: map[string]bool{}, warned: map[string]bool{},
	}
	s.Runs[run.ID] = run
	if run.Parent == "" {
		if root := s.Runs[s.Root]; root != nil && !root.Ended {
			return fmt.Errorf("record %d creates run %q while run %q is open", record.Seq, run.ID, root.ID)
		}
		s.Root = run.ID
		s.ActiveAgent = p.Agent
		s.roots++
	}
	return nil
}

// applyResponse turns a response into items and calls with unique ids.
func (s *State) applyResponse(record Record, run *RunState, p modelResponse) error {
	if run.Pending != nil {
		return fmt.Errorf("record %d is a response to run %q, whose last turn is not settled", record.Seq, run.ID)
	}
	run.calibrate(p.Usage)
	run.asked = nil
	run.Turn = p.Turn
	run.active(p.Active)
	s.charge(run, p.Usage)
	thread := s.thread(run.Thread)
	before := len(thread.Items)
	item := agents.Item{Seq: record.Seq, Agent: p.Agent, Time: record.Time}
	if p.Reasoning != "" {
		item.Kind, item.Text = agents.KindReasoning, p.Reasoning
		s.addItem(run, item)
		before++
	}
	if p.Text != "" {
		item.Kind, item.Text = agents.KindMessageOutput, p.Text
		s.addItem(run, item)
	}
	calls, asSent := thread.uniqueCalls(run.ID, record.Seq, p.Calls)
	turn := &Turn{Seq: record.Seq, Agent: p.Agent, response: p}
	for _, wire := range calls {
		call := &CallState{ToolCall: wire, Run: run.ID, Agent: p.Agent}
		s.calls[call.Key] = call
		turn.Calls = append(turn.Calls, call)
		run.repeat(call)
		item.Kind, item.Text, item.Call = agents.KindToolCall, "", &call.ToolCall
		if call.Name == HandoffTool {
			item.Kind = agents.KindHandoffCall
		}
		s.addItem(run, item)
	}
	info := &responseInfo{provider: p.Provider, asked: p.Asked, items: len(thread.Items) - before}
	if asSent {
		info.raw = p.Raw
	}
	thread.responses[record.Seq] = info
	run.Pending = turn
	return nil
}

func (s *State) applyApprovalRequested(record Record, run *RunState, p approvalRequested) error {
	call, err := run.call(record, p.Call)
	if err != nil {
		return err
	}
	call.Decision = nil
	call.Asked = &PendingApproval{
		Run: run.ID, Agent: call.Agent, CallKey: call.Key, CallID: call.ID,
		Tool: call.Name, Arguments: call.Arguments, ArgumentHash: p.Hash, Conflict: p.Conflict,
	}
	s.addItem(run, agents.Item{Seq: record.Seq, Kind: agents.KindToolApproval, Agent: call.Agent, Time: record.Time, Text: p.Conflict, Call: &call.ToolCall})
	return nil
}

// applyDecision settles an approval once; whatever does not fit changes nothing.
func (s *State) applyDecision(p Decision) {
	call := s.calls[p.CallKey]
	if call == nil || call.Asked == nil || call.Decision != nil || call.Asked.ArgumentHash != p.ArgumentHash {
		return
	}
	call.Decision = &p
}

// applyOutcome settles a call once and releases outputs in call order.
func (s *State) applyOutcome(record Record, p ToolOutcome) {
	call := s.calls[p.CallKey]
	if call == nil || call.Outcome != nil {
		return
	}
	run := s.Runs[call.Run]
	if run == nil || run.Ended {
		return
	}
	call.Outcome, call.outcomeSeq, call.outcomeTime = &p, record.Seq, record.Time
	if p.Tree != "" {
		s.Tree = p.Tree
	}
	s.setVariables(p.Variables)
	if p.Effect != EffectNotRun {
		run.toolUsed[call.Agent] = true
	}
	run.Paused = ""
	s.release(run)
}

func (s *State) applyHandoff(record Record, run *RunState, p handoffCommitted) error {
	call, err := run.call(record, p.Call)
	if err != nil {
		return err
	}
	call.Outcome, call.outcomeSeq, call.outcomeTime = &ToolOutcome{CallKey: p.Call, Output: p.Output, Effect: EffectDone}, record.Seq, record.Time
	run.Pending.note, run.Pending.noteSeq, run.Pending.noteTime = &p, record.Seq, record.Time
	run.toolUsed[call.Agent] = true
	run.toolUsed[p.To] = false
	run.Agent = p.To
	run.Handoffs++
	run.entered = true
	if run.Parent == "" {
		s.ActiveAgent = p.To
	}
	s.release(run)
	return nil
}

func (s *State) applyEnded(record Record, run *RunState, p runEnded) {
	if p.costsNothing() {
		s.chargeLost(run)
	}
	s.charge(run, p.Usage)
	run.asked, run.Pending, run.Ended, run.Paused = nil, nil, true, ""
	run.active(p.Active)
	run.End = RunEnd{Output: p.Output}
	if p.Code != "" {
		run.End.Err = &agents.Error{Code: p.Code, Kind: p.Kind, Message: p.Message}
		return
	}
	if p.Fallback != "" {
		s.addItem(run, agents.Item{Seq: record.Seq, Kind: agents.KindMessageOutput, Agent: run.Agent, Time: record.Time, Text: p.Output})
	}
}

// release adds the outputs of the pending turn that are next in call order,
// and the note of a handoff once all of them are there (rules R5 and R21).
func (s *State) release(run *RunState) {
	turn := run.Pending
	if turn == nil {
		return
	}
	for turn.released < len(turn.Calls) && turn.Calls[turn.released].Outcome != nil {
		call := turn.Calls[turn.released]
		turn.released++
		item := agents.Item{
			Seq: call.outcomeSeq, Kind: agents.KindToolCallOutput, Agent: turn.Agent, Time: call.outcomeTime,
			Text: call.Outcome.Output, Call: &call.ToolCall, IsError: call.Outcome.IsError, EffectState: call.Outcome.Effect,
		}
		if call.Name == HandoffTool {
			item.Kind = agents.KindHandoffOutput
			if turn.note != nil && turn.note.Call == call.Key {
				item.From, item.To = turn.note.From, turn.note.To
			}
		}
		s.addItem(run, item)
	}
	if turn.released == len(turn.Calls) && turn.note != nil {
		s.addNote(run, turn)
	}
}

func (s *State) addNote(run *RunState, turn *Turn) {
	note := turn.note
	thread := s.thread(run.Thread)
	if note.Filter {
		thread.marks = append(thread.marks, mark{kind: markFilter, at: len(thread.Items), from: note.From, to: note.To})
	}
	if note.Nest {
		thread.marks = append(thread.marks, mark{kind: markNest, at: len(thread.Items), from: note.From, to: note.To})
	}
	s.addItem(run, agents.Item{
		Seq: turn.noteSeq, Kind: agents.KindSystemNote, Agent: note.From, Time: turn.noteTime, Text: note.Note, From: note.From, To: note.To,
	})
	turn.note = nil
}

// setVariables merges into a new map: tools may be reading the old one.
func (s *State) setVariables(variables agents.Variables) {
	if len(variables) == 0 {
		return
	}
	merged := maps.Clone(s.Variables)
	maps.Copy(merged, variables)
	s.Variables = merged
}

func (s *State) addItem(run *RunState, item agents.Item) {
	thread := s.thread(run.Thread)
	thread.Items = append(thread.Items, item)
}

func (s *State) thread(owner string) *Thread {
	if t := s.threads[owner]; t != nil {
		return t
	}
	t := &Thread{Owner: owner, ids: map[string]bool{}, responses: map[int64]*responseInfo{}}
	if s.threads != nil {
		s.threads[owner] = t
	}
	return t
}

func (run *RunState) active(millis int64) {
	run.Active = max(run.Active, time.Duration(millis)*time.Millisecond)
}

// repeat counts how often the same call was made in a row (rule R78).
func (run *RunState) repeat(call *CallState) {
	key := call.Name + "\x00" + call.Arguments
	if run.repeated != key {
		run.repeated, run.repeats = key, 0
	}
	run.repeats++
}

func (run *RunState) noted(p noteAdded) {
	switch p.Kind {
	case noteBudget:
		run.warned[p.Budget] = true
	case noteLoop:
		run.loopTold = true
	case noteRepair:
		run.repairs++
	}
}

// call returns a call of the run's pending turn.
func (run *RunState) call(record Record, key string) (*CallState, error) {
	if run.Pending != nil {
		for _, call := range run.Pending.Calls {
			if call.Key == key {
				return call, nil
			}
		}
	}
	return nil, fmt.Errorf("record %d (%s) names the call %q, which is not pending", record.Seq, record.Kind, key)
}
