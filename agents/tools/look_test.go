package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"handoff/agents"
)

func TestReadFileShowsRanges(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	b := newBench(t, map[string]string{"a": text.String(), "empty": "", "bin": "a\x00b", "dir/only.txt": "x\n"})
	b.works("read_file", arguments{"path": "a"}, "a: lines 1-600 of 1000", "     1\tline 1\n", "(more: call read_file with from=601)")
	output := b.works("read_file", arguments{"path": "a", "from": 990, "to": 2000}, "a: lines 990-1000 of 1000", "  1000\tline 1000\n")
	if strings.Contains(output, "more:") {
		t.Errorf("there is nothing more:\n%s", output)
	}
	b.fails("read_file", arguments{"path": "a", "from": 1001}, "has 1000 lines")
	b.works("read_file", arguments{"path": "empty"}, "the file is empty")
	b.fails("read_file", arguments{"path": "bin"}, "binary file of 3 bytes")
	b.fails("read_file", arguments{"path": "only.txt"}, "There is no file only.txt", "dir/only.txt")
	b.fails("read_file", arguments{"path": "nowhere.txt"}, "list_files")
}

// What deceives a reader or a terminal is made visible, in every output.
func TestInvisibleCharactersAreShown(t *testing.T) {
	b := newBench(t, map[string]string{"a": "if admin\u202e {\x1b[2J \U000e0041 tab\there ünï 👩\u200d💻\n"})
	for _, output := range []string{
		b.works("read_file", arguments{"path": "a"}),
		b.works("search_files", arguments{"pattern": "admin"}),
	} {
		if !strings.Contains(output, "if admin<U+202E> {<U+001B>[2J <U+E0041> tab\there ünï 👩\u200d💻") {
			t.Errorf("shown as %q", output)
		}
	}
}

func TestLongLinesAreCutAndNotTakenAsRead(t *testing.T) {
	b := newBench(t, map[string]string{"min.js": strings.Repeat("ü", 5000) + "\n"})
	b.works("read_file", arguments{"path": "min.js"}, "(some cut)", "8000 more bytes in this line")
	b.fails("write_file", arguments{"path": "min.js", "content": "x"}, "was not read")
}

func TestListFiles(t *testing.T) {
	files := map[string]string{"a.go": "", "b/c.go": "", "b/d.md": "", ".git/config": "", "out/x.bin": "", "nested/.git/HEAD": ""}
	b := newBench(t, files, func(c *Config) {
		c.Ignored = func(path string, folder bool) bool { return folder && path == "out" }
	})
	if got, want := b.works("list_files", arguments{}), "3 files:\na.go\nb/c.go\nb/d.md"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := b.works("list_files", arguments{"path": "b", "glob": "*.md"}), "1 file:\nb/d.md"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.works("list_files", arguments{"glob": "*.rs"}, "No files match")
	b.fails("list_files", arguments{"path": "nope"}, "no such folder")
	b.fails("list_files", arguments{"glob": "[a"}, "malformed")
}

func TestLargeListingsShowFoldersWithCounts(t *testing.T) {
	files := map[string]string{"README.md": ""}
	for i := range 200 {
		files[fmt.Sprintf("src/deep/f%03d.go", i)] = ""
		files[fmt.Sprintf("src/other/g%03d.go", i)] = ""
	}
	b := newBench(t, files)
	if got, want := b.works("list_files", arguments{}), "401 files:\nREADME.md\nsrc/deep/ (200 files)\nsrc/other/ (200 files)"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.works("list_files", arguments{"path": "src/deep"}, "200 files", "src/deep/f199.go")
}

func TestSearchFiles(t *testing.T) {
	b := newBench(t, map[string]string{
		"a.go":     "one\ntwo(x)\nthree\nfour\nfive\nsix\ntwo(y)\n",
		"b/c.txt":  "TWO\n",
		"bin":      "two(\x00",
		".git/two": "two(",
	})
	cases := map[string]struct {
		args arguments
		want string
	}{
		"regular expression": {arguments{"pattern": `two\(.\)`}, "2 matches in 1 file:\na.go\n     2:\ttwo(x)\n     7:\ttwo(y)\n"},
		"literal":            {arguments{"pattern": "two(", "literal": true, "limit": 1}, "1 match in 1 file:\na.go\n     2:\ttwo(x)\n(there are more; narrow the pattern, the folder or the glob)\n"},
		"any case, a glob":   {arguments{"pattern": "two", "ignore_case": true, "glob": "b/**"}, "1 match in 1 file:\nb/c.txt\n     1:\tTWO\n"},
		"with context":       {arguments{"pattern": "two", "context": 1}, "2 matches in 1 file:\na.go\n     1-\tone\n     2:\ttwo(x)\n     3-\tthree\n   ...\n     6-\tsix\n     7:\ttwo(y)\n"},
		"anchored":           {arguments{"pattern": "^four$"}, "1 match in 1 file:\na.go\n     4:\tfour\n"},
		"one file":           {arguments{"pattern": "six", "path": "a.go"}, "1 match in 1 file:\na.go\n     6:\tsix\n"},
		"nothing":            {arguments{"pattern": "zero"}, "Nothing matches. Try a shorter pattern, ignore_case, or another folder."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := b.works("search_files", c.args); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	b.fails("search_files", arguments{"pattern": "two("}, "no valid regular expression", "literal")
}

func TestSearchStopsWhenCancelled(t *testing.T) {
	b := newBench(t, map[string]string{"a": "x\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.tools["search_files"].Run(ctx, b.call("search_files", arguments{"pattern": "x"}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The crew is offered nothing that does not exist, and every tool's schema and
// description can be sent to a model.
func TestTheCrewsToolsExist(t *testing.T) {
	b := newBench(t, nil, func(c *Config) { c.Publishing, c.History = &Publishing{}, &chronicle{} })
	registry, err := b.box.Registry()
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents.Crew() {
		tools, err := registry.Pick(agent.Tools...)
		if err != nil {
			t.Errorf("%s: %v", agent.ID, err)
		}
		for _, tool := range tools {
			if tool.Description == "" || len(tool.Description) > 600 {
				t.Errorf("%s: a description of %d characters", tool.Name, len(tool.Description))
			}
		}
	}
	without := newBench(t, nil)
	if _, offered := without.tools["git_push"]; offered {
		t.Error("git_push is offered where nothing can be pushed")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("tools without files")
	}
}

func TestGitPushPassesCleanArguments(t *testing.T) {
	var seen []PushArgs
	b := newBench(t, nil, func(c *Config) {
		c.Publishing = &Publishing{
			Effects: func(_ context.Context, _ agents.Call, args PushArgs) ([]agents.EffectRequest, error) {
				seen = append(seen, args)
				return []agents.EffectRequest{{Key: "push"}}, nil
			},
			Prepare: func(_ context.Context, _ agents.Call, args PushArgs) (agents.Intent, error) {
				seen = append(seen, args)
				return agents.Intent{After: "commit"}, nil
			},
			Query: func(context.Context, agents.Call, agents.Intent) (agents.Result, bool, error) {
				return agents.Result{Output: "pushed"}, true, nil
			},
		}
	})
	tool := b.tools["git_push"]
	call := b.call("git_push", arguments{"title": " Add\na   login ", "body": "\nWhy.\n"})
	if needs, err := tool.NeedsApproval(t.Context(), call); !needs || err != nil {
		t.Errorf("needs approval: %v, %v", needs, err)
	}
	if _, err := tool.Prepare(t.Context(), call); err != nil {
		t.Error(err)
	}
	if effects, err := tool.Effects(t.Context(), call); err != nil || len(effects) != 1 {
		t.Errorf("effects %v, %v", effects, err)
	}
	for _, args := range seen {
		if args != (PushArgs{Title: "Add a login", Body: "Why."}) {
			t.Errorf("arguments %+v", args)
		}
	}
	if _, err := tool.Run(t.Context(), call); err == nil {
		t.Error("Run works beside the outbox")
	}
	if tool.Effect != agents.EffectExternal || tool.Reconcile != agents.ReconcileQuery {
		t.Errorf("effect %s, reconcile %s", tool.Effect, tool.Reconcile)
	}
	for _, bad := range []arguments{{"title": " ", "body": "x"}, {"title": "x", "body": ""}, {"title": "x"}, {"title": strings.Repeat("x", 300), "body": "x"}, {"title": "x", "body": "x", "branch": "main"}} {
		if err := agents.Validate(tool.Schema, b.call("git_push", bad).Args); agents.CodeOf(err) != agents.CodeInvalidArgs {
			t.Errorf("%v was accepted", bad)
		}
	}
}
