package runner

// A StepKind names a [NextStep] in the journal.
type StepKind string

// The kinds of next steps.
const (
	StepRunAgain     StepKind = "run_again"
	StepHandoff      StepKind = "handoff"
	StepFinalOutput  StepKind = "final_output"
	StepInterruption StepKind = "interruption"
)

// A NextStep is what a turn leads to. It is one of [RunAgain], [Handoff],
// [FinalOutput] and [Interruption].
type NextStep interface {
	Kind() StepKind
}

// RunAgain asks the model again.
type RunAgain struct{}

// Handoff goes on with another agent.
type Handoff struct{ To string }

// FinalOutput ends the run with an answer.
type FinalOutput struct{ Value string }

// Interruption waits for decisions.
type Interruption struct{ Approvals []PendingApproval }

// Kind returns [StepRunAgain].
func (RunAgain) Kind() StepKind { return StepRunAgain }

// Kind returns [StepHandoff].
func (Handoff) Kind() StepKind { return StepHandoff }

// Kind returns [StepFinalOutput].
func (FinalOutput) Kind() StepKind { return StepFinalOutput }

// Kind returns [StepInterruption].
func (Interruption) Kind() StepKind { return StepInterruption }

// A PendingApproval is a call that waits for a maintainer. Its key and hash
// bind the decision (rule R93).
type PendingApproval struct {
	// Run and Agent made the call.
	Run   string
	Agent string
	// CallKey is the host's name of the call, CallID the wire's.
	CallKey      string
	CallID       string
	Tool         string
	Arguments    string
	ArgumentHash string
	// Conflict says why a half-done call needs a person, "" for the usual
	// question before a call runs.
	Conflict string
}
