package report

import (
	"regexp"
	"strings"
)

// DescribeCall is a tool call in a few words for people: what was done and,
// where the call's summary does not tell, about what. The arguments are in the
// short form of runner events.
func DescribeCall(tool, arguments string) string {
	what := strings.ReplaceAll(tool, "_", " ")
	for _, name := range []string{"command=", "pattern="} {
		if _, about, found := strings.Cut(arguments, name); found {
			return what + " " + about
		}
	}
	return what
}

// badEnd is how the summaries of commands tell that one did not succeed.
var badEnd = regexp.MustCompile(`exit code [1-9]|failed|killed|timeout`)

// CallFailed says whether people should see a call as failed: a command that
// ran well and ended badly is no error for the crew, but it is for them.
func CallFailed(tool, summary string, isError bool) bool {
	return isError || strings.HasPrefix(tool, "run_") && badEnd.MatchString(summary)
}
