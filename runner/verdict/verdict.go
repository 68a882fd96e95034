// Package verdict says what runs of a repository's tests mean for a change.
//
// The host runs the configured test commands on a clean checkout of the sealed
// commit. If they fail it runs them once more on another, and on the commit
// that the change is based on. Each becomes a [Run]: how it ended, at which
// command, and which tests the output names as failed. [Judge] lays the runs
// side by side and gives the [Verdict]:
//
//	fails in every run here, not on the base      new
//	fails in every run here, and on the base      was there before
//	fails in one run and not in another           flaky
//
// Tests are told apart by name where the output names them. A [Log] reads the
// output as it comes, in the formats of the usual test runners, one file each.
// Where nothing is named, or too much, the exit code alone decides, and the
// verdict says so. Whether a run failed is always the exit code's word: names
// only say which tests it was, and they come from code that nobody trusts. A
// test can print another's name; it cannot make a failing run pass.
//
// Doubt counts against the change. A test that the base may not have reached,
// because its run stopped before, is called new, or it is said that nobody
// knows; it is never called old.
//
// The package is pure: it starts nothing, stores nothing, and its sentences
// hold no word of an output.
package verdict

// An Outcome is how a run of the tests ended.
type Outcome string

// The outcomes of a [Run]. The last is of a [Verdict] alone.
const (
	// Passed: every command ended with exit code 0.
	Passed Outcome = "passed"
	// Failed: a test command ended by itself with another exit code.
	Failed Outcome = "failed"
	// TimedOut: a test command took longer than the configured time.
	TimedOut Outcome = "timed_out"
	// Limited: a test command was ended by another limit of the sandbox.
	Limited Outcome = "limited"
	// SetupFailed: the setup failed on the commit, so that no test ran.
	SetupFailed Outcome = "setup_failed"
	// Broken: the sandbox came to an end; nothing is known of the tests.
	Broken Outcome = "broken"
	// Flaky: the tests failed, and passed when they were run again.
	Flaky Outcome = "flaky"
)

// A Run is what one run of the test commands, in order and up to the first that
// fails, came to.
type Run struct {
	Outcome Outcome `json:"outcome"`
	// Command is the index of the test command that the run ended with, and
	// ExitCode its exit code.
	Command  int `json:"command"`
	ExitCode int `json:"exit_code"`
	// Detail says in words of the host's own what ended a run that did not end
	// by itself, "" otherwise.
	Detail string `json:"detail,omitempty"`
	// Failures are the tests of that command that failed, in the order of the
	// output. Named says that they are all that there are: it is false where
	// the output names none, or more than a [Log] takes.
	Failures []string `json:"failures,omitempty"`
	Named    bool     `json:"named,omitempty"`
}

// Conclusive says whether the run ended by itself: the same commit would end
// the same way again, flaky tests aside. Only such a run is worth keeping.
func (r Run) Conclusive() bool { return r.Outcome == Passed || r.Outcome == Failed }

// A Base says what is known of the tests on the base.
type Base string

// What is known of the base.
const (
	// BaseUnknown: its tests were not run, or did not end by themselves.
	BaseUnknown Base = "unknown"
	// BasePasses, BaseFails and BaseFlaky: the command that fails here passes
	// there, fails, or does now this, now that.
	BasePasses Base = "passes"
	BaseFails  Base = "fails"
	BaseFlaky  Base = "flaky"
	// BaseStops: an earlier command fails there, so that the one that fails
	// here was never reached.
	BaseStops Base = "stops"
)

// A Verdict is what all runs come to.
type Verdict struct {
	Outcome Outcome
	// Command, ExitCode and Detail are those of the run that decides.
	Command  int
	ExitCode int
	Detail   string
	// Runs is how often the tests were run on the commit, 1 or 2.
	Runs int
	// ByName says that failures are told apart by the names in the output, and
	// not by exit codes alone.
	ByName bool
	Base   Base
	// New fail here in every run and not on the base; Old fail there as well;
	// Flaky fail in one run and not in another. If nothing is known of the
	// base, all that fail here in every run are in Unsure. No test is in two.
	New, Old, Flaky, Unsure []string
}
