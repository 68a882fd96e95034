package plan_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoff/agents"
	"handoff/agents/plan"
)

// planning is a model that uses the tools it is given and then answers.
type planning struct {
	answer string
	uses   []agents.ToolCall
	got    []string
	asked  agents.GenerateOptions
}

func (p *planning) GenerateText(ctx context.Context, _ []*agents.Message, options agents.GenerateOptions) (agents.Response, error) {
	p.asked = options
	for _, use := range p.uses {
		for _, tool := range options.Tools {
			if tool.Name != use.Name {
				continue
			}
			result, err := tool.Run(ctx, agents.Call{ToolCall: use, Args: json.RawMessage(use.Arguments)})
			if err != nil {
				result.Output = "error: " + err.Error()
			}
			p.got = append(p.got, result.Output)
		}
	}
	return agents.Response{Text: p.answer, Usage: agents.Usage{Requests: 1}}, nil
}

var someRules = []plan.Rule{{ID: "docs/rules/go.md", Description: "Wrap errors.", Tags: []string{"go"}}, {ID: "AGENTS.md", Description: "Be kind.", Tags: []string{"style"}}}

func openRepository(t *testing.T) *os.Root {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"main.go": "package main", ".git/config": "secret", "big.txt": strings.Repeat("x", 100<<10)} {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// task is a task's JSON with rules and dependencies.
func task(id, rules, dependencies string) string {
	return `{"id":"` + id + `","title":"Title of ` + id + `","instructions":"Do it.","rules":[` + rules + `],"dependencies":[` + dependencies + `]}`
}

func TestPlansAreCheckedBeforeTheyCount(t *testing.T) {
	const good = `"AGENTS.md"`
	for name, test := range map[string]struct{ answer, order string }{
		"plan":              {`{"tasks":[` + task("a", good, "") + `]}`, "a"},
		"fenced list":       {"```json\n[" + task("a", good, "") + "]\n```", "a"},
		"put in order":      {`{"tasks":[` + task("a", good, `"b"`) + "," + task("b", good, "") + "," + task("c", good, `"a"`) + `]}`, "b a c"},
		"no rules":          {`{"tasks":[` + task("a", "", "") + `]}`, ""},
		"unknown rule":      {`{"tasks":[` + task("a", `"made-up"`, "") + `]}`, ""},
		"id twice":          {`{"tasks":[` + task("a", good, "") + "," + task("a", good, "") + `]}`, ""},
		"circle":            {`{"tasks":[` + task("a", good, `"b"`) + "," + task("b", good, `"a"`) + `]}`, ""},
		"depends on itself": {`{"tasks":[` + task("a", good, `"a"`) + `]}`, ""},
		"depends on none":   {`{"tasks":[` + task("a", good, `"z"`) + `]}`, ""},
		"no tasks":          {`{"tasks":[]}`, ""},
		"words":             {"Sure! Here is the plan.", ""},
		"no title":          {`{"tasks":[{"id":"a","instructions":"x","rules":["AGENTS.md"]}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			model := &planning{answer: test.answer}
			got, _, err := plan.Divide(t.Context(), model, openRepository(t), "Build it.", someRules)
			if test.order == "" {
				if agents.CodeOf(err) != agents.CodeLLM {
					t.Errorf("got %+v and error %v, want LLM_ERROR", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, task := range got.Tasks {
				ids = append(ids, task.ID)
			}
			if order := strings.Join(ids, " "); order != test.order || *model.asked.Temperature != 0.3 {
				t.Errorf("the order is %q at temperature %v", order, *model.asked.Temperature)
			}
		})
	}
}

func TestThePlannerSeesRulesAndFilesOfTheRepositoryOnly(t *testing.T) {
	use := func(name, arguments string) agents.ToolCall {
		return agents.ToolCall{Name: name, Arguments: arguments}
	}
	model := &planning{answer: "{}", uses: []agents.ToolCall{
		use("lookupRules", `{"query":"GO errors"}`), use("lookupRules", `{}`), use("lookupRules", `{"query":"rust"}`),
		use("viewFile", `{"path":"main.go"}`), use("viewFile", `{"path":"../../etc/passwd"}`), use("viewFile", `{"path":".GIT/config"}`),
		use("viewFile", `{"path":"link"}`), use("viewFile", `{"path":"big.txt"}`), use("viewFile", `{"path":"."}`),
	}}
	if _, _, err := plan.Divide(t.Context(), model, openRepository(t), "Build it.", someRules); err == nil {
		t.Fatal("an empty plan was accepted")
	}
	for i, want := range []string{"docs/rules/go.md", "AGENTS.md", "None of the 2 rules", "package main", "error: there is no file", "error: .GIT", "error: there is no file link", "of 102400 bytes]", "error: there is no file"} {
		if !strings.Contains(model.got[i], want) {
			t.Errorf("%s %s gives %.200q, want %q in it", model.uses[i].Name, model.uses[i].Arguments, model.got[i], want)
		}
	}
}

func TestAPlanIsWrittenInOneStep(t *testing.T) {
	root := openRepository(t)
	for _, title := range []string{"first", "second"} {
		if err := (plan.Plan{Version: 1, Tasks: []plan.Assignment{{ID: "a", Title: title}}}).Write(root); err != nil {
			t.Fatal(err)
		}
	}
	data, err := root.ReadFile(plan.Path)
	if err != nil || !strings.Contains(string(data), "second") {
		t.Errorf("read back %s, %v", data, err)
	}
}
