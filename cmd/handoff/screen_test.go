package main

import (
	"strings"
	"testing"

	"handoff/runner"
)

// TestTheScreenSaysWhatTheCrewNoLongerSees: a cut output, a summary in place
// of the history, a budget that is nearly used up.
func TestTheScreenSaysWhatTheCrewNoLongerSees(t *testing.T) {
	var out strings.Builder
	show := newScreen(&out)
	for _, event := range []runner.Event{
		{Kind: runner.EventToolCalled, Agent: "tester", Tool: "run_tests", CallKey: "1"},
		{Kind: runner.EventToolOutput, Agent: "tester", Tool: "run_tests", CallKey: "1", Text: "tests passed", CutFrom: 300 << 10},
		{Kind: runner.EventCompaction, Agent: "implementer", Text: "what happened so far", Replaced: 12},
		{Kind: runner.EventNote, Agent: "implementer", Text: "[System] Wrap up.", Budget: "turns"},
		{Kind: runner.EventNote, Agent: "implementer", Text: "[System] Say it in JSON."},
	} {
		show.event(event)
	}
	want := `tester         ✔ run tests  tests passed  (the output has 300 KB; the crew reads its beginning and its end)
implementer    … goes on with a summary in place of 12 earlier entries, because the history became too long for its model
implementer    … is told to wrap up: 80 % of the session's turns are used
`
	if out.String() != want {
		t.Errorf("the screen shows\n%swant\n%s", out.String(), want)
	}
}

// TestTheScreenFitsANarrowTerminal: every line fits, continued ones stand
// below their beginning, and addresses stay whole, to be clicked.
func TestTheScreenFitsANarrowTerminal(t *testing.T) {
	var out strings.Builder
	show := newScreen(&out)
	show.width = func() int { return 50 }
	show.said("ada", `opens issue #1, "Add a login endpoint": http://127.0.0.1:39321/acme/shelf/issues/1`)
	show.told(told{who: "host", what: "running the setup: go build ./... && go vet ./..."})
	for _, event := range []runner.Event{
		{Kind: runner.EventMessageOutput, Agent: "tester", Text: "The test is right: the design asks for one answer."},
		{Kind: runner.EventHandoffOccurred, From: "tester", To: "documentation", Text: "POST /login works as designed."},
	} {
		show.event(event)
	}
	want := `ada            opens issue #1, "Add a login
               endpoint":
               http://127.0.0.1:39321/acme/shelf/issues/1
host           running the setup: go build ./...
               && go vet ./...
tester         The test is right: the design asks…
tester         → documentation  POST /login works…
`
	if out.String() != want {
		t.Errorf("the screen shows\n%swant\n%s", out.String(), want)
	}
}
