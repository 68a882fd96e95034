// Command handoff is a GitHub App that turns a comment into an approved pull
// request. This package holds flags, configuration and wiring; what the
// program does is in the packages that it wires together.
//
// Every setting is a flag and an environment variable of the same name. One
// file per subcommand; settings.go holds the groups of settings that several
// of them share, bot.go the wiring of the running App that serve and demo have
// in common.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"handoff/sandbox"
)

// A commandLine is everything that can be said to the program.
type commandLine struct {
	Demo       demoCommand       `cmd:"" help:"Run the whole story on this machine: a fake GitHub, the real bot, real git, a real sandbox, a tape for a model."`
	Serve      serveCommand      `cmd:"" help:"Run the bot."`
	Run        runCommand        `cmd:"" help:"Let the crew work on a local repository; approvals are asked here, the result is a local branch."`
	Sessions   sessionsCommand   `cmd:"" help:"List, show, stop and export sessions; make links to their pages."`
	Models     modelsCommand     `cmd:"" help:"Show which model providers are configured, or test one."`
	Rules      rulesCommand      `cmd:"" help:"Bring a repository's index of rule files up to date, with a model's summary of each."`
	Plan       planCommand       `cmd:"" help:"Divide a specification into tasks, by the rules of a repository."`
	Seed       seedCommand       `cmd:"" help:"Write the shipped agents into the database."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the database's schema up to date."`
	Restored   restoredCommand   `cmd:"" help:"After a backup was restored, before the first start: void the approvals that were open in it."`
	Audit      auditCommand      `cmd:"" help:"Check the log of who decided and did what."`
	Fakegithub fakegithubCommand `cmd:"" help:"Serve a fake GitHub on loopback, to try things on."`
	ApplyPatch applyPatchCommand `cmd:"" name:"apply-patch" hidden:"" help:"Apply patches given as JSON lines, for evaluation."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

func main() {
	// The sandbox starts this program again; that process never comes back.
	sandbox.Init()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// A process is what a subcommand knows of the world around it.
type process struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// run parses the arguments, runs the subcommand and returns the exit code: 0,
// 1 for a failure, 2 for arguments that make no sense.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var cli commandLine
	exited := -1
	parser, err := kong.New(&cli,
		kong.Name("handoff"),
		kong.Description("A comment becomes an approved pull request."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "handoff:", err)
		return 1
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	forgetEmpty(parser.Model.Node)
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if parseError, ok := errors.AsType[*kong.ParseError](err); ok {
		return usage(parser, parseError.Context, err, stderr)
	}
	if err != nil {
		return usage(parser, nil, err, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = parsed.Run(&process{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr})
	if _, ok := errors.AsType[misuse](err); ok {
		return usage(parser, parsed, err, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "handoff:", err)
		return 1
	}
	return 0
}

// A misuse is an error about arguments that make no sense together.
type misuse string

// Error returns the sentence.
func (m misuse) Error() string { return string(m) }

// forgetEmpty unsets variables of ours that are set to nothing, as files of
// settings and containers like to have them: nothing is not a value.
func forgetEmpty(node *kong.Node) {
	for _, flag := range node.Flags {
		for _, name := range flag.Envs {
			if value, set := os.LookupEnv(name); set && value == "" {
				_ = os.Unsetenv(name) // it fails for names that no variable can have
			}
		}
	}
	for _, child := range node.Children {
		forgetEmpty(child)
	}
}

// usage says what is wrong with the arguments. Who named no subcommand that
// there is sees which there are; a fault in one setting is not buried in a page
// of all the others.
func usage(parser *kong.Kong, typed *kong.Context, err error, stderr io.Writer) int {
	if typed != nil && typed.Selected() != nil {
		fmt.Fprintf(stderr, "handoff: %v\nSee handoff %s --help.\n", err, typed.Selected().Path())
		return 2
	}
	if typed != nil {
		parser.Stdout = stderr
		_ = typed.PrintUsage(false)
	}
	fmt.Fprintln(stderr, "\nhandoff:", err)
	return 2
}
