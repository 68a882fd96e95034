package runner_test

import (
	"testing"

	"handoff/runner"
)

// stores are the kinds of stores that the cases run on.
func stores(*testing.T) []sessionStore {
	return []sessionStore{{
		name: "memory",
		open: func(*testing.T) func() runner.Journal {
			session := &memorySession{}
			return session.take
		},
	}}
}

// playHelper runs a case of a helper instead of a crew.
func (p *played) playHelper(t *testing.T, c testCase) {
	t.Skip("helpers are not there yet")
}
