package report

import (
	"testing"

	"handoff/runner"
)

func TestUnseen(t *testing.T) {
	for _, test := range []struct {
		event runner.Event
		want  string
	}{
		{runner.Event{Kind: runner.EventToolOutput, Text: "fine"}, ""},
		{runner.Event{Kind: runner.EventToolOutput, CutFrom: 217_000}, "the output has 211 KB; the crew reads its beginning and its end"},
		{runner.Event{Kind: runner.EventToolOutput, CutFrom: 3 << 20}, "the output has 3.0 MB; the crew reads its beginning and its end"},
		{runner.Event{Kind: runner.EventCompaction, Text: "a summary", Replaced: 34},
			"goes on with a summary in place of 34 earlier entries, because the history became too long for its model"},
		// Of a journal that was written before the entries were counted.
		{runner.Event{Kind: runner.EventCompaction}, "goes on with a summary of what was before, because the history became too long for its model"},
		{runner.Event{Kind: runner.EventNote, Budget: "tokens"}, "is told to wrap up: 80 % of the session's tokens are used"},
		{runner.Event{Kind: runner.EventNote, Text: "the answer does not fit"}, ""},
	} {
		if got := Unseen(test.event); got != test.want {
			t.Errorf("%+v: %q, want %q", test.event, got, test.want)
		}
	}
}
