package runner

import (
	"strings"
	"testing"

	"handoff/agents"
)

func TestEveryPromptCanBeRendered(t *testing.T) {
	values := agents.Variables{}
	for _, name := range []string{"from", "to", "context", "boundary", "task", "used", "limit", "budget", "tool", "times", "fault", "summary", "transcript", "reason", "output"} {
		values[name] = "<" + name + ">"
	}
	files, err := promptFiles.ReadDir("prompts")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".txt")
		if text := prompt(name, values); text == "" || strings.Contains(text, "{{") {
			t.Errorf("the prompt %s renders to %q", name, text)
		}
	}
}

func TestValuesAreNotExpandedAgain(t *testing.T) {
	got, err := expand("{{.a}} {{ .b }}", agents.Variables{"a": "{{.b}}", "b": "x"})
	if err != nil || got != "{{.b}} x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := expand("{{.c}}", agents.Variables{"a": ""}); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("an unknown variable gives %v", err)
	}
}
