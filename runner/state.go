package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"handoff/agents"
)

// A State is what the records of a journal add up to. It is always computed
// from them and never stored: see [Fold]. The zero value is the state of an
// empty journal. A State is not safe for concurrent use.
type State struct {
	// Seq is the last record's.
	Seq int64
	// ActiveAgent is where the next input goes (rule R57).
	ActiveAgent string
	// Boundary is the random mark around agents' words.
	Boundary  string
	Variables agents.Variables
	// Usage is what the session cost, lost attempts included.
	Usage agents.Usage
	// Tree is the workspace's git tree after the last workspace call, "" for
	// the base.
	Tree string
	// Root is the id of the latest run that answers the user, "" for none.
	Root string
	Runs map[string]*RunState

	threads map[string]*Thread
	calls   map[string]*CallState
	inputs  map[string]string
	roots   int
}

// A RunState is one run: from an input to its end.
type RunState struct {
	ID     string
	Parent string
	// Call is the key of the call that a nested run answers.
	Call   string
	Agent  string
	Thread string
	Task   string
	// Turn is the number of model calls so far, pauses included.
	Turn     int
	Handoffs int
	// Usage is the run's own and its nested runs'.
	Usage agents.Usage
	// Active is the time spent working, waiting not counted.
	Active time.Duration
	// Steps are the kinds of next steps so far.
	Steps []StepKind
	// Pending is the turn whose response is recorded and whose step is not.
	Pending *Turn
	// Ended says that the run is over, End how.
	Ended bool
	End   RunEnd
	// Paused is the reason of the last pause, "" once the run went on.
	Paused string

	first    int           // index in the thread of the run's first item
	asked    *modelRequest // a request without its response
	entered  bool          // the active agent came by a handoff in this run
	toolUsed map[string]bool
	warned   map[string]bool
	repairs  int
	repeated string
	repeats  int
	loopTold bool
}

// A RunEnd is how a run ended.
type RunEnd struct {
	Output string
	// Err is nil for a final output.
	Err *agents.Error
}

// A Turn is one response and what became of its calls.
type Turn struct {
	Seq      int64
	Agent    string
	Calls    []*CallState
	response modelResponse
	released int // calls whose outputs are items
	note     *handoffCommitted
	noteSeq  int64
	noteTime time.Time
}

// A CallState is one call of a turn.
type CallState struct {
	agents.ToolCall
	Run   string
	Agent string
	// Intent is set once the call was about to run.
	Intent *agents.Intent
	// Outbox says that the outbox performs it.
	Outbox bool
	// Asked is set once a maintainer was asked, Decision once one answered.
	Asked    *PendingApproval
	Decision *Decision
	// Outcome is set once the call is settled.
	Outcome *ToolOutcome

	outcomeSeq  int64
	outcomeTime time.Time
}

// A Thread is one conversation: the user's, that of two agents, or the
// isolated one of an agent used as a tool.
type Thread struct {
	// Owner is "" for the user's thread, "a->b" for two agents', a call key
	// for an isolated one.
	Owner string
	Items []agents.Item

	marks     []mark
	ids       map[string]bool
	responses map[int64]*responseInfo
}

// A mark is a place in a thread where the model's view of it changes.
type mark struct {
	kind markKind
	at   int // index of the item that the mark stands before
	from string
	to   string
	upto int64
}

type markKind int

const (
	markNest markKind = iota
	markFilter
	markCompaction
)

// responseInfo is what is needed to replay a response as it came.
type responseInfo struct {
	provider string
	raw      json.RawMessage
	items    int
}

// Fold computes the state of a journal from its records, which must be all of
// them, in order. It fails on a gap, on a kind or version it does not know and
// on records that contradict each other.
func Fold(records []Record) (*State, error) {
	state := &State{}
	for _, record := range records {
		if err := state.Apply(record); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// Apply adds the next record to the state. After an error the state must not
// be used.
func (s *State) Apply(record Record) error {
	payload, err := decodePayload(record)
	if err != nil {
		return err
	}
	return s.apply(record, payload)
}

// Items returns the items of the user's thread. They must not be changed.
func (s *State) Items() []agents.Item { return s.thread("").Items }

// Thread returns a conversation by its owner, nil when there is none.
func (s *State) Thread(owner string) *Thread { return s.threads[owner] }

// Call returns a call by its key, nil when there is none.
func (s *State) Call(key string) *CallState { return s.calls[key] }

// Approvals returns the calls of a run and the runs nested in it that wait for
// a decision, in call order.
func (s *State) Approvals(run string) []PendingApproval {
	state := s.Runs[run]
	if state == nil || state.Pending == nil {
		return nil
	}
	var pending []PendingApproval
	for _, call := range state.Pending.Calls {
		switch {
		case call.Outcome != nil:
		case call.Asked != nil && call.Decision == nil:
			pending = append(pending, *call.Asked)
		default:
			pending = append(pending, s.Approvals(call.Key)...)
		}
	}
	return pending
}

// Has says whether an input with this id was taken already.
func (s *State) Has(inputID string) bool {
	_, ok := s.inputs[inputID]
	return ok
}

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
		run.Steps = append(run.Steps, p.Step)
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
	maps.Copy(s.Variables, p.Variables)
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
	info := &responseInfo{provider: p.Provider, items: len(thread.Items) - before}
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
	maps.Copy(s.Variables, p.Variables)
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

// charge adds usage to the run, to every run that it is nested in and to the
// session.
func (s *State) charge(run *RunState, usage agents.Usage) {
	s.Usage.Add(usage)
	for run != nil {
		run.Usage.Add(usage)
		run = s.Runs[run.Parent]
	}
}

// lost is what a request whose answer was never recorded is charged: its
// estimated input (rule R71).
func (run *RunState) lost() agents.Usage {
	if run.asked == nil {
		return agents.Usage{}
	}
	estimate := run.asked.Estimate
	return agents.Usage{
		Requests: 1, Input: estimate, Total: estimate,
		Entries: []agents.UsageEntry{{
			Attempt: 1, Agent: run.asked.Agent, Model: run.asked.Model, Input: estimate, Total: estimate, Estimated: true,
		}},
	}
}

// costsNothing says that the end brings no usage of its own: an answer that
// was being waited for is then charged by its estimate.
func (p runEnded) costsNothing() bool {
	return p.Usage.Requests == 0 && len(p.Usage.Entries) == 0
}

func (s *State) chargeLost(run *RunState) {
	s.charge(run, run.lost())
	run.asked = nil
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

// uniqueCalls gives every call a key and an id of its own (rule R28). It
// reports whether the calls can be replayed as the model sent them, new ids
// apart.
func (t *Thread) uniqueCalls(run string, seq int64, wire []agents.ToolCall) (calls []agents.ToolCall, asSent bool) {
	asSent = true
	type identity struct{ id, name, arguments string }
	seen := map[identity]bool{}
	for index, call := range wire {
		if call.ID != "" && seen[identity{call.ID, call.Name, call.Arguments}] {
			asSent = false
			continue
		}
		seen[identity{call.ID, call.Name, call.Arguments}] = true
		call.Key = callKey(run, seq, index)
		minted := "call_" + strconv.FormatInt(seq, 10) + "_" + strconv.Itoa(index)
		for call.ID == "" || t.ids[call.ID] {
			call.ID, minted = minted, minted+"_"
		}
		t.ids[call.ID] = true
		if !isObject(call.Arguments) {
			asSent = false
		}
		calls = append(calls, call)
	}
	return calls, asSent
}

// isObject says whether arguments are a JSON object, as providers demand of
// what is replayed to them.
func isObject(arguments string) bool {
	return strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") && json.Valid([]byte(arguments))
}
