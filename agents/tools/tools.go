// Package tools holds what agents can do: read and search files and their
// history, change files, run commands, keep a checklist, ask for a push.
//
// The idea is that a tool is enforced, not requested. What an agent may do
// follows from what its tools refuse: a path outside the repository, a file
// outside the agent's path scope, a file it has not read. The prompt repeats
// it only so that the agent wastes no turn. And a tool's output is written for
// a model to act on: it says what happened, what was not done, and what to try
// next.
//
// How the parts move:
//
//   - [Toolbox] is the tools of one session. It is made from a [Config], which
//     names what the tools work on; [Toolbox.Tools] are values for the runner.
//   - [Tree] is the session's files. Every access goes through os.Root and
//     stays inside the tree, whatever links the tree contains.
//   - [Commander] runs commands in the sandbox, [Guard] puts back what a
//     command of a limited agent changed elsewhere, [History] reads what was
//     committed before, [Publishing] seals and pushes. The session's conductor
//     supplies them.
//   - What the session has read is remembered ([readSet]) so that no file is
//     overwritten unseen. It lives in memory and is computed again after a
//     restart by [Toolbox.Restore] from the session's items, whose outputs name
//     file, lines and hash on their first line.
//
// There is one file per tool. A tool that changes files records the hashes
// before and after in its intent, so that after a crash the files themselves
// say whether the call was carried out.
//
// A Toolbox is safe for concurrent use as far as the runner needs it: tools
// that only read may run in parallel, tools that change run one at a time.
package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"handoff/agents"
)

// A Config says what the tools of a session work on.
type Config struct {
	// Tree is the session's files; required.
	Tree *Tree
	// Commander runs commands; without one run_command and run_tests answer
	// with WhyNoCommands.
	Commander Commander
	// WhyNoCommands is the sentence that says why there is no Commander.
	WhyNoCommands string
	// Guard is needed for commands of agents with a path scope; without one
	// such agents may run none.
	Guard Guard
	// TestCommand is the repository's configured test command; "" if there is
	// none.
	TestCommand string
	// CommandTimeout bounds one command; 0 means ten minutes.
	CommandTimeout time.Duration
	// Ignored says whether .gitignore leaves a path out of listings and
	// searches; nil leaves out nothing.
	Ignored func(path string, folder bool) bool
	// Untouchable gives the reason why a path must not be changed by anybody
	// (a submodule, a protected path), "" when it may; nil allows all.
	Untouchable func(path string) string
	// Agents are the slugs that may own a task of the checklist.
	Agents []string
	// History makes git_log and git_blame work; without it they are not offered.
	History History
	// Publishing makes git_push work; without it the tool is not offered.
	Publishing *Publishing
}

// A Toolbox is the tools of one session.
type Toolbox struct {
	config Config
	read   readSet
	failed failedPatches
	tools  []agents.Tool
}

// New makes the tools of a session.
func New(config Config) (*Toolbox, error) {
	if config.Tree == nil {
		return nil, errors.New("tools need the session's tree of files")
	}
	if config.CommandTimeout <= 0 {
		config.CommandTimeout = defaultCommandTimeout
	}
	box := &Toolbox{config: config}
	makers := []func(*Toolbox) (agents.Tool, error){
		readFileTool, listFilesTool, searchFilesTool,
		writeFileTool, applyPatchTool, editTool, deleteFileTool,
		runCommandTool, runTestsTool, planTaskTool,
	}
	if config.History != nil {
		makers = append(makers, gitLogTool, gitBlameTool)
	}
	if config.Publishing != nil {
		makers = append(makers, gitPushTool)
	}
	for _, maker := range makers {
		tool, err := maker(box)
		if err != nil {
			return nil, err
		}
		box.tools = append(box.tools, tool)
	}
	return box, nil
}

// Tools returns the session's tools.
func (b *Toolbox) Tools() []agents.Tool { return b.tools }

// Registry returns the session's tools by name.
func (b *Toolbox) Registry() (*agents.Registry, error) {
	return agents.NewRegistry(b.tools...)
}

// Restore computes again, from the items of a session that goes on after a
// restart, what the session has read and which patches have failed.
func (b *Toolbox) Restore(items []agents.Item) {
	for _, item := range items {
		if item.Kind != agents.KindToolCallOutput || item.Call == nil {
			continue
		}
		b.read.restore(item)
		b.failed.restore(item)
	}
}

// refused is the output of a call that was not carried out.
func refused(format string, args ...any) agents.Result {
	return agents.Result{Output: fmt.Sprintf(format, args...), IsError: true}
}

// refusal turns a failure into an output for the model: an *accessError and
// other expected failures are texts already, anything else is the host's.
func refusal(err error) (agents.Result, error) {
	if access, ok := errors.AsType[*accessError](err); ok {
		return agents.Result{Output: access.Error(), IsError: true}, nil
	}
	return agents.Result{}, err
}

// mayChange says whether the call's agent may change the file, as a refusal
// for the model, or "".
func (b *Toolbox) mayChange(call agents.Call, path string) string {
	if !agents.InScope(call.PathScope, path) {
		return fmt.Sprintf("%s may not change %s: this agent changes only files that match %s. Nothing was changed. Hand off to an agent who may, or choose another file.",
			call.Agent, path, strings.Join(call.PathScope, ", "))
	}
	if b.config.Untouchable != nil {
		if reason := b.config.Untouchable(path); reason != "" {
			return fmt.Sprintf("%s must not be changed: %s. Nothing was changed.", path, reason)
		}
	}
	return ""
}

// approvalIf suspends the session for every call that would do something; a
// call that the tool refuses anyway needs nobody's decision.
func approvalIf(wouldRun func(agents.Call) bool) func(context.Context, agents.Call) (bool, error) {
	return func(_ context.Context, call agents.Call) (bool, error) {
		return wouldRun(call), nil
	}
}
