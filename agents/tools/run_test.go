package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"handoff/agents"
)

// A commander answers with a prepared result and remembers what it was asked.
type commander struct {
	asked  []Command
	answer Completed
	err    error
	do     func()
}

func (c *commander) Run(_ context.Context, command Command) (Completed, error) {
	c.asked = append(c.asked, command)
	if c.do != nil {
		c.do()
	}
	return c.answer, c.err
}

// A guard puts back the files that a bench's commander changed.
type guard struct {
	changed  []string
	snapshot int
	reverted []string
	err      error
}

func (g *guard) Snapshot(context.Context) error {
	g.snapshot++
	return g.err
}

func (g *guard) RevertOutside(_ context.Context, inScope func(string) bool) ([]string, error) {
	for _, path := range g.changed {
		if !inScope(path) {
			g.reverted = append(g.reverted, path)
		}
	}
	return g.reverted, nil
}

func TestRunCommandReportsHowItEnded(t *testing.T) {
	cases := map[string]struct {
		answer   Completed
		contains []string
		summary  string
	}{
		"success":     {Completed{Output: "ok\n", Duration: 2340 * time.Millisecond}, []string{"exit code 0 after 2.3s\nOutput:\nok"}, "exit code 0 after 2.3s"},
		"failure":     {Completed{ExitCode: 2, Reason: "exited"}, []string{"exit code 2 after 0s\n(no output)"}, "exit code 2 after 0s"},
		"timeout":     {Completed{Reason: "timeout", Duration: time.Minute}, []string{"the time limit is 10m0s"}, "stopped after 1m0s: the time limit is 10m0s"},
		"killed":      {Completed{Signal: "SIGKILL"}, []string{"killed by SIGKILL"}, "killed by SIGKILL after 0s"},
		"memory":      {Completed{Reason: "memory"}, []string{"out of memory"}, "stopped after 0s: out of memory"},
		"long output": {Completed{Output: "head\ntail", OmittedBytes: 99}, []string{"Output (99 bytes left out):\nhead\ntail"}, "exit code 0 after 0s"},
		"network":     {Completed{ExitCode: 1, Blocked: []string{"network: proxy.example"}}, []string{"The sandbox refused: network: proxy.example. There is no network"}, "exit code 1 after 0s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, func(config *Config) { config.Commander = &commander{answer: c.answer} })
			result := b.use("run_command", arguments{"command": "make"})
			if result.IsError {
				t.Error("a command that ran is no error of the tool")
			}
			expectContains(t, result.Output, c.contains)
			if result.Summary != c.summary {
				t.Errorf("summary %q, want %q", result.Summary, c.summary)
			}
		})
	}
}

func TestRunCommandAsksForWhatWasMeant(t *testing.T) {
	c := &commander{}
	b := newBench(t, map[string]string{"sub/x": ""}, func(config *Config) { config.Commander, config.CommandTimeout = c, time.Minute })
	b.works("run_command", arguments{"command": "ls", "dir": "./sub/", "timeout_seconds": 5})
	b.works("run_command", arguments{"command": "ls", "timeout_seconds": 5000})
	want := []Command{{Shell: "ls", Dir: "sub", Timeout: 5 * time.Second}, {Shell: "ls", Dir: ".", Timeout: time.Minute}}
	if len(c.asked) != 2 || c.asked[0] != want[0] || c.asked[1] != want[1] {
		t.Errorf("asked %+v, want %+v", c.asked, want)
	}
	b.fails("run_command", arguments{"command": " "}, "empty")
	b.fails("run_command", arguments{"command": strings.Repeat("x", maxShell+1)}, "Write a script")
	if len(c.asked) != 2 {
		t.Error("a refused command was run")
	}
}

func TestRunTestsRunsTheRepositorysCommand(t *testing.T) {
	c := &commander{answer: Completed{ExitCode: 1, Output: "FAIL"}}
	b := newBench(t, nil, func(config *Config) { config.Commander, config.TestCommand = c, "go test ./..." })
	if result := b.use("run_tests", arguments{}); result.Summary != "tests failed, exit code 1" {
		t.Errorf("summary %q", result.Summary)
	}
	c.answer = Completed{}
	if result := b.use("run_tests", arguments{"command": "go test ./x"}); result.Summary != "tests passed" {
		t.Errorf("summary %q", result.Summary)
	}
	if c.asked[0].Shell != "go test ./..." || c.asked[1].Shell != "go test ./x" || !c.asked[0].Tests {
		t.Errorf("asked %+v", c.asked)
	}
	without := newBench(t, nil, func(config *Config) { config.Commander = c })
	without.fails("run_tests", arguments{}, "no test command configured")
}

func TestWithoutASandboxCommandsRefuse(t *testing.T) {
	b := newBench(t, nil, func(config *Config) {
		config.TestCommand, config.WhyNoCommands = "make", "user namespaces are switched off"
	})
	b.fails("run_command", arguments{"command": "ls"}, "user namespaces are switched off")
	b.fails("run_tests", arguments{}, "user namespaces are switched off")
}

// What a limited agent's command changed elsewhere is put back and said.
func TestCommandsOfALimitedAgentArePutBack(t *testing.T) {
	g := &guard{changed: []string{"main.go", "main_test.go"}}
	c := &commander{answer: Completed{Output: "done"}}
	b := newBench(t, nil, func(config *Config) { config.Commander, config.Guard = c, g })
	result := b.use("run_command", arguments{"command": "sed -i s/a/b/ *.go"}, scoped("**/*_test.go"))
	expectContains(t, result.Output, []string{"Put back, because this agent may not change them: main.go.\n"})
	if g.snapshot != 1 || len(g.reverted) != 1 {
		t.Errorf("%d snapshots, put back %v", g.snapshot, g.reverted)
	}
	b.works("run_command", arguments{"command": "ls"}) // an unlimited agent
	if g.snapshot != 1 {
		t.Error("the guard was asked for an agent without limits")
	}
}

// It is put back also when the command was cancelled or the sandbox failed,
// and nothing runs when there is nobody to put it back.
func TestALimitedAgentNeverEscapesTheGuard(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := &guard{changed: []string{"main.go"}}
	c := &commander{err: errors.New("the sandbox died"), do: cancel}
	b := newBench(t, nil, func(config *Config) { config.Commander, config.Guard = c, g })
	call := b.call("run_command", arguments{"command": "x"}, scoped("**/*_test.go"))
	if _, err := b.tools["run_command"].Run(ctx, call); err == nil || !strings.Contains(err.Error(), "the sandbox died") {
		t.Errorf("error %v", err)
	}
	if len(g.reverted) != 1 {
		t.Errorf("put back %v", g.reverted)
	}
	g.err = errors.New("disk full")
	if _, err := b.tools["run_command"].Run(t.Context(), call); err == nil || len(c.asked) != 1 {
		t.Errorf("ran %d commands without a snapshot, error %v", len(c.asked), err)
	}
	unguarded := newBench(t, nil, func(config *Config) { config.Commander = c })
	result := unguarded.use("run_command", arguments{"command": "x"}, scoped("**/*_test.go"))
	if !result.IsError || len(c.asked) != 1 {
		t.Errorf("ran unguarded: %s", result.Output)
	}
}

func TestCommandsAreRunAgainAfterACrash(t *testing.T) {
	b := newBench(t, nil, func(config *Config) { config.Commander = &commander{} })
	for _, name := range []string{"run_command", "run_tests"} {
		tool := b.tools[name]
		if tool.Effect != agents.EffectWorkspace || tool.Reconcile != agents.ReconcileNone || tool.Timeout <= b.box.config.CommandTimeout {
			t.Errorf("%s: effect %s, reconcile %s, timeout %v", name, tool.Effect, tool.Reconcile, tool.Timeout)
		}
		intent, err := tool.Prepare(t.Context(), b.call(name, arguments{"command": "secret-looking"}))
		if err != nil || intent.Detail == "" || strings.Contains(intent.Detail, "secret-looking") {
			t.Errorf("%s: intent %+v, %v", name, intent, err)
		}
	}
}
