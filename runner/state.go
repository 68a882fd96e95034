package runner

import (
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
	// Next is the last step that was recorded: what the run is to do.
	Next StepKind
	// Pending is the turn whose response is recorded and whose step is not.
	Pending *Turn
	// Ended says that the run is over, End how.
	Ended bool
	End   RunEnd
	// Paused is the reason of the last pause, "" once the run went on.
	Paused string

	first    int           // index in the thread of the run's first item
	asked    *modelRequest // a request without its response
	perByte  float64       // input tokens for each byte, as last reported
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
