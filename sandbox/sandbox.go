// Package sandbox runs commands that nobody trusts: a repository's own build
// and tests, and whatever a language model thinks of.
//
// The idea is that a command is started in an empty world into which only
// named things are put, and not in the machine's world from which dangerous
// things are taken away. The world of a session holds its workspace, a private
// temporary directory, the toolchains that were named, and what every program
// needs (/usr, the dynamic loader, a few files of /etc, /dev/null and its
// siblings). Everything else – keys, the database, the git directory, other
// sessions, the network – is not refused, it is not there.
//
// The parts:
//
//   - [Driver] makes sandboxes; [Local] is the one that needs nothing but a
//     Linux kernel. [Driver.Probe] finds out once what this machine allows
//     and proves it by trying to break out.
//   - [Spec] says what a session's world holds. [Sandbox] is that world;
//     [Sandbox.Exec] runs one [Command] in it and returns a [Result].
//   - [Tier] names how much isolation there is. No tier, no commands: a
//     driver that cannot isolate refuses, and its error says which layer is
//     missing and how to get it.
//   - [NewUnisolated] makes a driver that isolates nothing. It exists for the
//     demo, which runs its own shipped story, and for people who ask for it on
//     their own machine.
//
// How the local driver works. The program starts itself again (/proc/self/exe)
// in new user, mount, pid, network, ipc, uts and cgroup namespaces; [Init],
// called first in main, notices that and becomes pid 1 of the new world. It
// builds a root file system out of an empty tmpfs and an allow-list of mounts,
// changes into it, brings up a loopback of its own, gives up every capability,
// confines itself by one Landlock ruleset and one seccomp filter, sets
// resource limits and only then starts the command. The kernel takes the whole
// process tree down with pid 1, so nothing outlives a command. The parent keeps
// watch over what rlimits cannot bound: time, resident memory, processes, disk,
// files and output.
//
// Where there are no user namespaces (a default container, Ubuntu's AppArmor
// policy) the tier [Restricted] does without a world of its own: Landlock
// decides which files can be opened, seccomp refuses sockets, a supervisor
// adopts and kills stray processes. Paths are then the host's own, which is why
// callers translate with [Sandbox.Path] and never write an inside path by hand.
//
// What it does not do: it is no protection against a bug in the kernel, and it
// does not hide how busy the machine is.
package sandbox

import (
	"context"
	"time"
)

// A Driver makes sandboxes of one kind. Drivers are safe for concurrent use.
// Nothing of a local sandbox survives the process that made it but its
// workspace, which is the caller's, so there is no way to attach to one.
type Driver interface {
	// Probe reports what the driver can do on this machine. It tries rather
	// than guesses, keeps the answer, and may be called often. A machine that
	// offers nothing is not an error here: see [Capabilities.Err].
	Probe(ctx context.Context) (Capabilities, error)
	// Create prepares a sandbox. It fails with [CodeUnavailable] where the
	// driver cannot isolate and with [CodeInvalidSpec] where the
	// specification is wrong. The caller must call Close.
	Create(ctx context.Context, spec Spec) (Sandbox, error)
	// Sweep removes what sandboxes of dead processes have left behind, if it
	// is older than the given age, and returns how many it removed.
	Sweep(ctx context.Context, olderThan time.Duration) (int, error)
}

// A Sandbox is the world in which the commands of one session run. What a
// command leaves in the workspace, the temporary directory and the writable
// mounts is there for the next one; processes are not. Safe for concurrent
// use, though commands that run at the same time share the files.
type Sandbox interface {
	// Exec runs one command to its end. A command that fails, is killed by a
	// limit or is cancelled is a [Result]; an error means that it did not run.
	// When Exec returns, no process of the command is alive.
	Exec(ctx context.Context, command Command) (Result, error)
	// Path translates a host path into the path under which commands see it.
	// Paths outside of the workspace and the mounts are returned as they are;
	// commands do not see those.
	Path(host string) string
	// Normalize replaces host paths in a text by the fixed ones ("/workspace"),
	// so that outputs read the same in every tier.
	Normalize(text string) string
	// Close kills what still runs and removes the temporary directory. The
	// workspace and the mounts stay, and belong to the host as before.
	Close() error
}

// Fixed places inside of a sandbox that has a file system of its own.
const (
	WorkspacePath = "/workspace"
	TempPath      = "/tmp"
)

// A Spec says what a sandbox holds.
type Spec struct {
	// ID names the session: 1 to 64 letters, digits, '.', '_' or '-'.
	ID string
	// Workspace is the host directory that commands may change. Absolute. Give
	// a copy, not somebody's own directory: when the program runs as root,
	// everything in it and in the writable mounts gets another owner, which
	// is refused for a file with hard links.
	Workspace string
	// ReadOnly lists further directories or files that commands may read and
	// execute: toolchains outside of /usr, dependency caches.
	ReadOnly []Mount
	// Writable lists further directories that commands may change, such as
	// the session's build cache.
	Writable []Mount
	// Env is the whole environment of commands beside PATH, HOME, TMPDIR,
	// USER and LANG, which have defaults and may be set here. Nothing is
	// inherited. A secret put here is a secret given away.
	Env map[string]string
	// Limits bounds every command; zero fields take the value of
	// [DefaultLimits].
	Limits Limits
	// Network is what commands can reach. The zero value is NetworkNone.
	Network Network
	// LogDir is the host directory for the full output of commands, outside
	// of everything that commands can see. Empty: no logs are kept.
	LogDir string
}

// A Mount makes a host path visible inside.
type Mount struct {
	// Source is the absolute host path.
	Source string
	// Target is the absolute path inside; empty means the same as Source. In
	// tiers without a file system of their own it only serves Normalize.
	Target string
}

// Network says what commands can reach.
type Network string

const (
	// NetworkNone is no network. Where the tier has a network namespace,
	// commands have a loopback of their own, shared with nobody.
	NetworkNone Network = ""
)

// A Command is one thing to run. Exactly one of Args and Shell is set.
type Command struct {
	// Args is the program and its arguments; the program is looked up in the
	// PATH of the sandbox.
	Args []string
	// Shell is a script for /bin/sh -c.
	Shell string
	// Dir is the working directory, relative to the workspace.
	Dir string
	// Env adds to and overrides Spec.Env.
	Env map[string]string
	// Stdin is what the command reads; nil means end of file at once.
	Stdin []byte
	// Limits tightens Spec.Limits; a field that is zero or larger than the
	// session's changes nothing.
	Limits Limits
	// OnOutput, if set, is given output as it comes, escape sequences
	// removed. Calls come one after the other; the bytes are the callee's
	// only during the call. A slow callee slows the command down.
	OnOutput func([]byte)
}

// Reason says why a command ended.
type Reason string

const (
	ReasonExited   Reason = "exited"        // by itself, with an exit code or by a signal of its own
	ReasonTimeout  Reason = "timeout"       // wall clock or processor time
	ReasonMemory   Reason = "memory"        // resident memory of all processes
	ReasonDisk     Reason = "disk"          // bytes written, in all or in one file
	ReasonFiles    Reason = "files"         // number of files
	ReasonPids     Reason = "pids"          // number of processes
	ReasonOutput   Reason = "output"        // bytes of output
	ReasonCanceled Reason = "canceled"      // by the caller's context or by Close
	ReasonSandbox  Reason = "sandbox_error" // the sandbox itself came to an end, nobody knows how
)

// A Result is what became of a command.
type Result struct {
	// ExitCode is the command's own, 128 + signal if a signal ended it.
	ExitCode int
	// Signal names the signal that ended the command, such as "SIGKILL".
	Signal string
	// Reason says who ended it.
	Reason Reason
	// Detail is a sentence for a person where Reason is not ReasonExited.
	Detail string
	// Output is standard output and standard error in the order in which they
	// were written: the head and the tail of it if it is long, valid UTF-8,
	// without escape sequences, cut at line ends where there are any.
	Output string
	// Truncated says that Output is not all; OmittedBytes how much is missing.
	Truncated    bool
	OmittedBytes int64
	// LogPath is the host file with every byte of the output, or empty.
	LogPath string
	// Duration is the wall-clock time from start to the last process's end.
	Duration time.Duration
	Usage    Usage
	// Blocked lists what the sandbox is known to have refused, one sentence
	// each. Empty does not mean that nothing was refused.
	Blocked []string
}

// Usage is what a command consumed.
type Usage struct {
	// CPU is the user and system time of the processes that were waited for.
	CPU time.Duration
	// MaxRSS is the largest resident set of a single process, in bytes.
	MaxRSS int64
}

// OK reports whether the command ended by itself with exit code 0.
func (r Result) OK() bool { return r.Reason == ReasonExited && r.ExitCode == 0 }
