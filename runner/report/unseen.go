package report

import (
	"fmt"

	"handoff/runner"
)

// Unseen says in a few words what an event takes from the crew's sight or from
// its budgets, "" for nothing: an output of which the crew reads a part only, a
// history that became a summary, a budget that is nearly used up. People are
// told, because a crew that acts strangely afterwards has a reason.
func Unseen(event runner.Event) string {
	switch {
	case event.Kind == runner.EventToolOutput && event.CutFrom > 0:
		return fmt.Sprintf("the output has %s; the crew reads its beginning and its end", bytesOf(event.CutFrom))
	case event.Kind == runner.EventCompaction && event.Replaced > 0:
		return fmt.Sprintf("goes on with a summary in place of %d earlier entries, because the history became too long for its model", event.Replaced)
	case event.Kind == runner.EventCompaction:
		return "goes on with a summary of what was before, because the history became too long for its model"
	case event.Kind == runner.EventNote && event.Budget != "":
		return "is told to wrap up: 80 % of the session's " + event.Budget + " are used"
	}
	return ""
}

func bytesOf(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
