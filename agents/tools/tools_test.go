package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoff/agents"
)

// A bench is a toolbox over a fresh tree, used the way the runner does.
type bench struct {
	t     testing.TB
	dir   string
	box   *Toolbox
	tools map[string]agents.Tool
	// items are the outputs so far, as a journal would keep them.
	items []agents.Item
}

// newBench makes a tree of the files and the tools of a session on it.
func newBench(t testing.TB, files map[string]string, configure ...func(*Config)) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, dir: dir}
	for name, content := range files {
		b.put(name, content)
	}
	config := Config{Tree: NewTree(dir), Agents: []string{"implementer", "tester"}}
	for _, f := range configure {
		f(&config)
	}
	b.open(config)
	return b
}

// open makes the toolbox, again if there was one.
func (b *bench) open(config Config) {
	b.t.Helper()
	box, err := New(config)
	if err != nil {
		b.t.Fatal(err)
	}
	b.box, b.tools = box, map[string]agents.Tool{}
	for _, tool := range box.Tools() {
		b.tools[tool.Name] = tool
	}
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	full := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// get returns a file's content, "(none)" if it does not exist.
func (b *bench) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		return "(none)"
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

type arguments map[string]any

func (b *bench) call(tool string, args arguments, options ...func(*agents.Call)) agents.Call {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	call := agents.Call{ToolCall: agents.ToolCall{Name: tool, Arguments: string(raw)}, Args: raw, Agent: "implementer"}
	for _, f := range options {
		f(&call)
	}
	return call
}

func scoped(patterns ...string) func(*agents.Call) {
	return func(call *agents.Call) { call.Agent, call.PathScope = "tester", patterns }
}

func approved(call *agents.Call) { call.Approval = "approval-1" }

// use validates and runs a call as the runner does.
func (b *bench) use(tool string, args arguments, options ...func(*agents.Call)) agents.Result {
	b.t.Helper()
	call := b.call(tool, args, options...)
	if err := agents.Validate(b.tools[tool].Schema, call.Args); err != nil {
		b.t.Fatalf("%s: %v", tool, err)
	}
	result, err := b.tools[tool].Run(context.Background(), call)
	if err != nil {
		b.t.Fatalf("%s: %v", tool, err)
	}
	b.items = append(b.items, agents.Item{Kind: agents.KindToolCallOutput, Text: result.Output, IsError: result.IsError, Call: &call.ToolCall})
	return result
}

// works expects a success whose output contains the texts.
func (b *bench) works(tool string, args arguments, contains ...string) string {
	b.t.Helper()
	result := b.use(tool, args)
	if result.IsError {
		b.t.Fatalf("%s failed: %s", tool, result.Output)
	}
	expectContains(b.t, result.Output, contains)
	return result.Output
}

// fails expects a refusal whose output contains the texts.
func (b *bench) fails(tool string, args arguments, contains ...string) string {
	b.t.Helper()
	result := b.use(tool, args)
	if !result.IsError {
		b.t.Fatalf("%s succeeded: %s", tool, result.Output)
	}
	expectContains(b.t, result.Output, contains)
	return result.Output
}

func expectContains(t testing.TB, output string, texts []string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("the output lacks %q:\n%s", text, output)
		}
	}
}

// An agent reads a file, patches it, edits it and looks at the result.
func TestAnAgentChangesAFile(t *testing.T) {
	b := newBench(t, map[string]string{"main.go": "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n"})
	b.works("list_files", arguments{}, "1 file", "main.go")
	b.works("search_files", arguments{"pattern": "println"}, "main.go", "4:", "hello")
	b.works("read_file", arguments{"path": "main.go"}, "main.go: lines 1-5 of 5", "     4\t\tprintln(\"hello\")")
	b.works("apply_patch", arguments{"path": "main.go", "diff": "@@\n func main() {\n-\tprintln(\"hello\")\n+\tprintln(\"hello\", \"world\")\n }\n"},
		"main.go: changed, 5 lines", "     4\t\tprintln(\"hello\", \"world\")")
	b.works("edit", arguments{"path": "main.go", "old": "\"world\"", "new": "\"moon\""}, "     4\t\tprintln(\"hello\", \"moon\")")
	if want := "package main\n\nfunc main() {\n\tprintln(\"hello\", \"moon\")\n}\n"; b.get("main.go") != want {
		t.Errorf("the file is\n%s", b.get("main.go"))
	}
}

func TestWriteFileOverwritesNothingUnseen(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n"})
	b.works("write_file", arguments{"path": "new/b.txt", "content": "b\n"}, "new/b.txt: written, 1 line")
	b.works("write_file", arguments{"path": "new/b.txt", "content": "c\n"}) // its own file
	b.fails("write_file", arguments{"path": "a.txt", "content": "x\n"}, "was not read in this session")
	b.works("read_file", arguments{"path": "a.txt", "from": 1, "to": 2})
	b.fails("write_file", arguments{"path": "a.txt", "content": "x\n"}, "only a part")
	b.works("read_file", arguments{"path": "a.txt", "from": 3})
	b.put("a.txt", "one\ntwo\nthree\nfour\n")
	b.fails("write_file", arguments{"path": "a.txt", "content": "x\n"}, "changed since")
	b.works("read_file", arguments{"path": "a.txt"})
	b.works("write_file", arguments{"path": "a.txt", "content": "x\n"})
	if b.get("a.txt") != "x\n" {
		t.Errorf("a.txt is %q", b.get("a.txt"))
	}
}
