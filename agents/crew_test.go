package agents

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The crew is what DESIGN.md promises: five agents, the manager first, each
// with exactly its tools.
func TestCrewHasItsFiveAgentsAndTheirTools(t *testing.T) {
	want := map[string][]string{
		"copilot":       {"plan_task", "list_files", "search_files", "read_file", "git_log", "git_blame", "git_push"},
		"architect":     {"read_file", "list_files", "search_files", "git_log", "git_blame", "write_file"},
		"implementer":   {"read_file", "list_files", "search_files", "git_log", "git_blame", "write_file", "apply_patch", "edit", "delete_file", "run_command"},
		"tester":        {"run_tests", "run_command", "read_file", "list_files", "search_files", "git_log", "git_blame", "write_file", "apply_patch"},
		"documentation": {"read_file", "list_files", "search_files", "write_file"},
	}
	got := map[string][]string{}
	for _, agent := range Crew() {
		got[agent.ID] = agent.Tools
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools of the crew (-want +got):\n%s", diff)
	}
	if Crew()[0].ID != "copilot" {
		t.Errorf("the first agent is %q, want the manager", Crew()[0].ID)
	}
}

func TestCrewFilesAreNamedForTheirSlug(t *testing.T) {
	sources := CrewSources()
	if got := slices.Sorted(maps.Keys(sources)); !slices.Equal(got, slices.Sorted(slices.Values(crewOrder))) {
		t.Fatalf("files %v, order %v", got, crewOrder)
	}
	for name, source := range sources {
		agent, err := ParseAgent(source)
		if err != nil {
			t.Errorf("%s.md: %v", name, err)
			continue
		}
		if agent.ID != name {
			t.Errorf("%s.md holds agent %q", name, agent.ID)
		}
	}
}

func TestCrewHandsOverOnlyToItsOwnMembers(t *testing.T) {
	for _, agent := range Crew() {
		if len(agent.Handoffs) == 0 {
			t.Errorf("%s can hand over to nobody", agent.ID)
		}
		for _, handoff := range agent.Handoffs {
			if !slices.Contains(crewOrder, handoff.Target) {
				t.Errorf("%s hands over to %q, who is not in the crew", agent.ID, handoff.Target)
			}
		}
		back := slices.ContainsFunc(agent.Handoffs, func(h Handoff) bool { return h.Target == "copilot" })
		if agent.ID != "copilot" && !back {
			t.Errorf("%s cannot hand back to the manager", agent.ID)
		}
	}
}

// Instructions use only variables that every session has.
func TestCrewUsesKnownVariablesOnly(t *testing.T) {
	known := []string{"repository", "issue", "issue_title", "base_branch", "test_command", "setup_command"}
	for _, agent := range Crew() {
		for _, match := range variable.FindAllStringSubmatch(agent.Instructions, -1) {
			if !slices.Contains(known, match[1]) {
				t.Errorf("%s uses {{.%s}}, which no session has", agent.ID, match[1])
			}
		}
	}
}

// What each agent may change is part of the product's promise.
func TestCrewPathScopes(t *testing.T) {
	scopes := map[string][]string{}
	for _, agent := range Crew() {
		scopes[agent.ID] = agent.PathScope
	}
	if len(scopes["implementer"]) != 0 {
		t.Errorf("the implementer is limited to %v", scopes["implementer"])
	}
	documents := []string{"README.md", "docs/guide/start.md", "architecture/LOGIN_DESIGN.md", "NOTES.txt", "docs/flow.svg"}
	code := []string{"main.go", "docs/conf.py", "docs/site/index.html", "CMakeLists.txt", "lib/CMakeLists.txt", "requirements.txt",
		"requirements-dev.txt", "AGENTS.md", "sub/CLAUDE.md", ".github/copilot-instructions.md", ".github/workflows/ci.yml", "Makefile"}
	tests := []string{"login_test.go", "internal/login/login_test.go", "test/run.sh", "a/tests/unit.py", "pkg/testdata/in.json",
		"src/app.test.ts", "src/app.spec.js", "test_app.py", "src/test/java/AppTest.java"}
	for _, writer := range []string{"architect", "documentation"} {
		expectScope(t, writer, scopes[writer], documents, slices.Concat(code, []string{"login_test.go"}))
	}
	expectScope(t, "tester", scopes["tester"], tests, []string{"main.go", "login.go", "README.md", "contest/main.go", "latest.go", "testing.go", "Makefile"})
}

func expectScope(t *testing.T, agent string, scope, inside, outside []string) {
	t.Helper()
	for _, name := range inside {
		if !InScope(scope, name) {
			t.Errorf("%s may not change %s", agent, name)
		}
	}
	for _, name := range outside {
		if InScope(scope, name) {
			t.Errorf("%s may change %s", agent, name)
		}
	}
}

func TestMarkdownRoundTrip(t *testing.T) {
	temperature, parallel := 0.2, false
	custom := Agent{
		ID: "reviewer", Name: "Reviewer", Role: "Critic", Instructions: "Look at {{.repository}}.\n\n---\n\nTwice.",
		Model:           ModelRef{Provider: "openai", ID: "gpt-4o"},
		Settings:        ModelSettings{Temperature: &temperature, ParallelToolCalls: &parallel, ToolChoice: "auto"},
		Tools:           []string{"read_file"},
		Handoffs:        []Handoff{{Target: "copilot", Nest: true}, {Target: "tester"}},
		PathScope:       []string{"**/*.md", "!AGENTS.md"},
		ToolUseBehavior: ToolUseBehavior{Kind: "stop_at_tool_names", Names: []string{"read_file"}},
		KeepToolChoice:  true,
		Output:          &OutputSchema{Name: "verdict", Schema: []byte(`{"type":"object"}`)},
	}
	for _, agent := range append(Crew(), custom) {
		markdown, err := agent.Markdown()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseAgent(markdown)
		if err != nil {
			t.Fatalf("%s: %v\n%s", agent.ID, err, markdown)
		}
		if diff := cmp.Diff(agent, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s after a round trip (-want +got):\n%s", agent.ID, diff)
		}
	}
}

func TestParseAgentNamesLineAndReason(t *testing.T) {
	const head = "---\nname: N\nslug: n\n"
	cases := map[string]struct {
		markdown string
		line     int
		reason   string
	}{
		"nothing at all":     {"", 1, "starts with a line ---"},
		"no front matter":    {"# Hello\n", 1, "starts with a line ---"},
		"not closed":         {"---\nname: N\n", 1, "not closed"},
		"empty head":         {"---\n---\nbody\n", 2, "front matter is empty"},
		"misspelt key":       {head + "path_scop: [a]\n---\nbody\n", 4, "path_scop"},
		"wrong type":         {head + "tools: 7\n---\nbody\n", 4, "cannot unmarshal"},
		"broken YAML":        {head + "role: \"a\n---\nbody\n", 4, "unexpected end of stream"},
		"no name":            {"---\nslug: n\n---\nbody\n", 1, "name is missing"},
		"bad slug":           {"---\nname: N\nslug: Big One\n---\nbody\n", 3, "slug"},
		"tool twice":         {head + "tools: [a, a]\n---\nbody\n", 4, "twice"},
		"impossible tool":    {head + "tools: ['a b']\n---\nbody\n", 4, "cannot name a tool"},
		"hands to itself":    {head + "handoffs: [n]\n---\nbody\n", 4, "itself"},
		"absolute glob":      {head + "path_scope: [/etc/**]\n---\nbody\n", 4, "relative"},
		"climbing glob":      {head + "path_scope: [../**]\n---\nbody\n", 4, ".."},
		"no instructions":    {head + "---\n\n", 5, "instructions are missing"},
		"a pipeline":         {head + "---\nHello\n{{ .x | printf }}\n", 6, "{{.name}}"},
		"an unclosed braces": {head + "---\n{{.x\n", 5, "{{.name}}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAgent([]byte(c.markdown))
			fault, ok := errors.AsType[*MarkdownError](err)
			if !ok {
				t.Fatalf("error %v is no MarkdownError", err)
			}
			if fault.Line != c.line || !strings.Contains(fault.Reason, c.reason) {
				t.Errorf("line %d: %s\nwant line %d and %q", fault.Line, fault.Reason, c.line, c.reason)
			}
		})
	}
}

func FuzzParseAgent(f *testing.F) {
	for _, source := range CrewSources() {
		f.Add(source)
	}
	f.Add([]byte("---\nname: &a [*a]\n---\nx"))
	f.Fuzz(func(t *testing.T, markdown []byte) {
		agent, err := ParseAgent(markdown)
		if err != nil {
			return
		}
		if agent.ID == "" || agent.Name == "" || agent.Instructions == "" {
			t.Errorf("accepted an agent without identity: %+v", agent)
		}
	})
}
