package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"handoff/agents"
)

// A Commander runs commands in the session's sandbox. The session's conductor
// implements it over package sandbox.
//
// Contract: Run returns when the command and everything it started are gone,
// also after a timeout or when ctx is cancelled. A command that fails, is
// killed or runs out of something is a Completed, not an error; an error means
// that the sandbox itself could not do its work, in a sentence for a person.
// Output is already cut, on line borders, to what a model should see, and
// contains neither escape sequences nor secrets.
type Commander interface {
	Run(ctx context.Context, command Command) (Completed, error)
}

// A Command is a shell command in the workspace.
type Command struct {
	// Shell is what sh -c is given.
	Shell string
	// Dir is the folder to start in, a clean path relative to the tree, "." for
	// its root.
	Dir string
	// Timeout is the longest it may take, always positive.
	Timeout time.Duration
	// Tests says that it is meant as a test run, for whoever shows it.
	Tests bool
}

// Completed says how a command ended.
type Completed struct {
	// ExitCode is the command's; meaningful when Reason is "exited" or "".
	ExitCode int
	// Reason is how it ended: exited, timeout, memory, disk, files, pids,
	// output, canceled, sandbox_error.
	Reason string
	// Signal names the signal that killed it, "" for none.
	Signal string
	// Output is standard output and error as they came.
	Output string
	// OmittedBytes were cut out of Output.
	OmittedBytes int64
	Duration     time.Duration
	// Blocked lists what the sandbox refused, such as "network: example.org".
	Blocked []string
}

// A Guard keeps a limited agent's commands within its path scope.
//
// Contract: Snapshot remembers the tree as it is; RevertOutside puts back every
// file that differs from the last snapshot and for which inScope is false,
// new files removed and deleted ones made again, and returns their paths in
// order. Both are called around one command by one goroutine.
type Guard interface {
	Snapshot(ctx context.Context) error
	RevertOutside(ctx context.Context, inScope func(path string) bool) ([]string, error)
}

const (
	defaultCommandTimeout = 10 * time.Minute
	// graceTimeout is what a tool may take beyond its command: the sandbox's
	// start and end, and the guard.
	graceTimeout = time.Minute
	maxShell     = 32 << 10
)

type runCommandArgs struct {
	Command string `json:"command" jsonschema:"shell command (sh); it starts in the repository's root"`
	Dir     string `json:"dir,omitempty" jsonschema:"folder to start in instead"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"stop it after this many seconds"`
}

type runTestsArgs struct {
	Command string `json:"command,omitempty" jsonschema:"another test command, such as one package or one test; the repository's own if left out"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"stop it after this many seconds"`
}

func positiveSeconds(schema *jsonschema.Schema) {
	schema.Properties["timeout_seconds"].Minimum = jsonschema.Ptr(1.0)
}

func runCommandTool(b *Toolbox) (agents.Tool, error) {
	tool, err := agents.MakeTool("run_command",
		"Runs a shell command in the sandbox: no network, no credentials, no git directory. Each command is a new shell. Returns exit code and output, the middle of long output left out.",
		func(ctx context.Context, call agents.Call, args runCommandArgs) (agents.Result, error) {
			return b.run(ctx, call, Command{Shell: args.Command, Dir: args.Dir, Timeout: time.Duration(args.Seconds) * time.Second})
		}, positiveSeconds)
	return b.asCommand(tool), err
}

func runTestsTool(b *Toolbox) (agents.Tool, error) {
	description := "Runs the repository's test command in the sandbox, or another one, and returns exit code and output."
	if b.config.TestCommand != "" {
		description += " The repository's own is: " + b.config.TestCommand
	}
	tool, err := agents.MakeTool("run_tests", description,
		func(ctx context.Context, call agents.Call, args runTestsArgs) (agents.Result, error) {
			command := Command{Shell: args.Command, Timeout: time.Duration(args.Seconds) * time.Second, Tests: true}
			if strings.TrimSpace(command.Shell) == "" {
				command.Shell = b.config.TestCommand
			}
			if command.Shell == "" {
				return refused("The repository has no test command configured. Find out how its tests are run and give the command."), nil
			}
			return b.run(ctx, call, command)
		}, positiveSeconds)
	return b.asCommand(tool), err
}

// asCommand sets what all tools share that run commands: after a crash the
// files are reset and the command is run again, since nothing left the sandbox.
func (b *Toolbox) asCommand(tool agents.Tool) agents.Tool {
	tool.Effect = agents.EffectWorkspace
	tool.Reconcile = agents.ReconcileNone
	tool.Timeout = b.config.CommandTimeout + graceTimeout
	tool.Prepare = func(_ context.Context, call agents.Call) (agents.Intent, error) {
		return agents.Intent{Detail: "arguments " + hashOf([]byte(call.Arguments))}, nil
	}
	return tool
}

// run runs a command for an agent, between the guard's two looks if the agent
// is limited.
func (b *Toolbox) run(ctx context.Context, call agents.Call, command Command) (agents.Result, error) {
	command, reason := b.checkCommand(call, command)
	if reason != "" {
		return refused("%s", reason), nil
	}
	limited := len(call.PathScope) > 0
	if limited {
		if err := b.config.Guard.Snapshot(ctx); err != nil {
			return agents.Result{}, fmt.Errorf("the files could not be recorded before the command, so it was not run: %w", err)
		}
	}
	completed, runErr := b.config.Commander.Run(ctx, command)
	var reverted []string
	if limited {
		var err error
		if reverted, err = b.revert(ctx, call); err != nil {
			return agents.Result{}, err
		}
	}
	if runErr != nil {
		return agents.Result{}, fmt.Errorf("the command could not be run: %w", runErr)
	}
	return render(command, completed, reverted), nil
}

// revert puts files back even when the call was cancelled meanwhile.
func (b *Toolbox) revert(ctx context.Context, call agents.Call) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTimeout)
	defer cancel()
	reverted, err := b.config.Guard.RevertOutside(ctx, func(path string) bool {
		return agents.InScope(call.PathScope, path)
	})
	if err != nil {
		return nil, fmt.Errorf("what the command changed outside the agent's files could not be put back: %w", err)
	}
	return reverted, nil
}

// checkCommand completes a command, or says why it is not run.
func (b *Toolbox) checkCommand(call agents.Call, command Command) (Command, string) {
	switch {
	case b.config.Commander == nil:
		reason := b.config.WhyNoCommands
		if reason == "" {
			reason = "this machine offers no sandbox"
		}
		return command, "Commands cannot be run here: " + reason + ". Work with the file tools, and say in your handoff that nothing was run."
	case len(call.PathScope) > 0 && b.config.Guard == nil:
		return command, "This agent may change only some files, and nothing here can put back what a command changes elsewhere; so it runs none."
	case strings.TrimSpace(command.Shell) == "":
		return command, "The command is empty."
	case len(command.Shell) > maxShell:
		return command, fmt.Sprintf("The command has %d bytes; at most %d. Write a script into a file and run that.", len(command.Shell), maxShell)
	case strings.ContainsRune(command.Shell, 0):
		return command, "The command contains a NUL byte."
	}
	dir, err := CleanPath(command.Dir)
	if err != nil {
		return command, err.Error()
	}
	command.Dir = dir
	if command.Timeout <= 0 || command.Timeout > b.config.CommandTimeout {
		command.Timeout = b.config.CommandTimeout
	}
	return command, ""
}

// ending says in words how a command ended.
func ending(command Command, c Completed) string {
	took := c.Duration.Round(100 * time.Millisecond)
	switch c.Reason {
	case "", "exited":
		if c.Signal != "" {
			return fmt.Sprintf("killed by %s after %s", c.Signal, took)
		}
		return fmt.Sprintf("exit code %d after %s", c.ExitCode, took)
	case "timeout":
		return fmt.Sprintf("stopped after %s: the time limit is %s", took, command.Timeout)
	case "memory":
		return fmt.Sprintf("stopped after %s: out of memory", took)
	case "disk":
		return fmt.Sprintf("stopped after %s: it wrote more than the disk limit", took)
	case "files":
		return fmt.Sprintf("stopped after %s: it made too many files", took)
	case "pids":
		return fmt.Sprintf("stopped after %s: it started too many processes", took)
	case "output":
		return fmt.Sprintf("stopped after %s: it printed too much", took)
	case "canceled":
		return fmt.Sprintf("cancelled after %s", took)
	default:
		return fmt.Sprintf("ended after %s: %s", took, strings.ReplaceAll(c.Reason, "_", " "))
	}
}

// render writes the output of a command for the model. A command that fails is
// an answer, not an error of the tool.
func render(command Command, c Completed, reverted []string) agents.Result {
	var b strings.Builder
	end := ending(command, c)
	fmt.Fprintf(&b, "%s\n", end)
	if len(c.Blocked) > 0 {
		fmt.Fprintf(&b, "The sandbox refused: %s. There is no network; work with what is here.\n", strings.Join(c.Blocked, ", "))
	}
	if len(reverted) > 0 {
		fmt.Fprintf(&b, "Put back, because this agent may not change them: %s.\n", listed(reverted))
	}
	switch {
	case strings.TrimSpace(c.Output) == "":
		b.WriteString("(no output)")
	case c.OmittedBytes > 0:
		fmt.Fprintf(&b, "Output (%d bytes left out):\n%s", c.OmittedBytes, strings.TrimRight(c.Output, "\n"))
	default:
		fmt.Fprintf(&b, "Output:\n%s", strings.TrimRight(c.Output, "\n"))
	}
	return agents.Result{Output: b.String(), Omitted: c.OmittedBytes, Summary: summary(command, c, end)}
}

func summary(command Command, c Completed, end string) string {
	if !command.Tests || c.Signal != "" || c.Reason != "" && c.Reason != "exited" {
		return end
	}
	if c.ExitCode == 0 {
		return "tests passed"
	}
	return fmt.Sprintf("tests failed, exit code %d", c.ExitCode)
}

// maxNamed is how many put-back files are named; a clean-up command can touch
// thousands.
const maxNamed = 20

func listed(paths []string) string {
	if len(paths) <= maxNamed {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:maxNamed], ", "), len(paths)-maxNamed)
}
