package agents_test

import (
	"testing"

	"handoff/agents"
)

func TestUnfence(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                        "{}",
		" {} \n":                    "{}",
		"```json\n{}\n```":          "{}",
		"```\n{\n}\n```\n":          "{\n}",
		"```{}```":                  "{}",
		"```json\n{":                "```json\n{",
		"text ```json\n{}\n```":     "text ```json\n{}\n```",
		"```":                       "```",
		"``````":                    "",
		"```json\n{\"a\":\"`\"}```": "{\"a\":\"`\"}",
	} {
		if got := agents.Unfence(text); got != want {
			t.Errorf("Unfence(%q) = %q, want %q", text, got, want)
		}
	}
}
