package session

import (
	"strings"

	"handoff/agents"
	"handoff/runner"
)

// declined returns why the crew's last push did not arrive, in the host's words,
// and what the server said about it. Both are "" when it arrived, when there was
// none, and when people rejected it, who know why.
func declined(items []agents.Item) (reason, server string) {
	for _, item := range items {
		if item.Kind != agents.KindToolCallOutput || item.Call == nil || item.Call.Name != toolGitPush {
			continue
		}
		if reason = ""; item.IsError && !strings.HasPrefix(item.Text, runner.NotApproved) {
			reason = item.Text
		}
	}
	if why, refused := runner.WhyRefused(reason); refused {
		return "Nothing was pushed: " + why, ""
	}
	reason, server, quoted := strings.Cut(reason, serverSaid)
	if !quoted {
		return reason, ""
	}
	return reason + ".", strings.TrimSuffix(server, ")")
}

// serverSaid is how the git layer introduces the server's own words.
const serverSaid = " (the server said: "
