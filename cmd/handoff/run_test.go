package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"handoff/runner/approval"
	"handoff/runner/verdict"
	"handoff/sandbox"
)

// TestRun plays every file of testdata/run: a repository on this machine, a
// tape for a model, what a person types, and what is in the repository at the
// end. The commands are described in testdata/run/README.md.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		lacking(t, "no git command on PATH: the crew's work on a local repository was not tried")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/run",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Values[drawerKey{}] = &drawer{remembered: map[string]map[string]string{}}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "sandbox" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			capabilities, err := sandbox.NewLocal(sandbox.LocalOptions{StateDir: t.TempDir()}).Probe(t.Context())
			if err == nil && capabilities.Err() != nil && os.Getenv("CI") == "true" {
				return false, capabilities.Err()
			}
			return capabilities.Err() == nil, err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repository": inDrawer((*drawer).repository),
			"remember":   inDrawer((*drawer).remember),
			"untouched":  inDrawer((*drawer).untouched),
			"branches":   inDrawer((*drawer).branches),
			"appears":    inDrawer((*drawer).appears),
			"nameofrun":  inDrawer((*drawer).nameOfRun),
		},
	})
}

type drawerKey struct{}

// A drawer holds what a script remembers.
type drawer struct {
	remembered map[string]map[string]string
	script     *testscript.TestScript
}

func inDrawer(do func(*drawer, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(script *testscript.TestScript, negated bool, args []string) {
		if negated {
			script.Fatalf("this command cannot be negated")
		}
		d := script.Value(drawerKey{}).(*drawer)
		d.script = script
		script.Check(do(d, args))
	}
}

// git runs git without anything that the repository or the machine configures.
func (d *drawer) git(dir string, args ...string) (string, error) {
	guards := []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}
	command := exec.Command("git", append(guards, args...)...)
	command.Dir = d.script.MkAbs(dir)
	command.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME=/no-home", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// repository DIR makes a git repository of a directory, with one commit.
func (d *drawer) repository(args []string) error {
	for _, command := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A", "-f"}, {"commit", "-q", "--no-verify", "-m", "base"},
	} {
		if _, err := d.git(args[0], command...); err != nil {
			return err
		}
	}
	return nil
}

// remember DIR notes every file of a directory: mode, time and content.
func (d *drawer) remember(args []string) (err error) {
	d.remembered[args[0]], err = inventory(d.script.MkAbs(args[0]))
	return err
}

// untouched DIR makes sure that nothing in a directory differs from what was
// remembered, but for new objects and new branches of the crew's.
func (d *drawer) untouched(args []string) error {
	now, err := inventory(d.script.MkAbs(args[0]))
	if err != nil {
		return err
	}
	before := d.remembered[args[0]]
	if len(before) == 0 {
		return errors.New("nothing was remembered of " + args[0])
	}
	var faults []error
	for name, was := range before {
		if now[name] != was {
			faults = append(faults, fmt.Errorf("%s was changed:\nbefore %.200q\nnow    %.200q", name, was, now[name]))
		}
	}
	added := regexp.MustCompile(`^(\.git/)?(objects/[0-9a-f]{2}(/[0-9a-f]{38})?|refs/heads/copilot(/[^/]+)?)$`)
	for name := range now {
		if _, known := before[name]; !known && !added.MatchString(name) {
			faults = append(faults, fmt.Errorf("%s was added", name))
		}
	}
	return errors.Join(faults...)
}

// inventory describes every file and directory below dir. Directories are
// described by their mode alone: a new object changes their time.
func inventory(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			files[name] = fmt.Sprintf("%s %s %s", info.Mode(), info.ModTime(), content)
			return err
		}
		return nil
	})
	return files, err
}

var branchID = regexp.MustCompile(`-[0-9a-f]{6}\b`)

// branches DIR prints the crew's branches: name, commit, and what it changes.
func (d *drawer) branches(args []string) error {
	if _, err := d.git(args[0], "fsck", "--strict"); err != nil {
		return err
	}
	names, err := d.git(args[0], "for-each-ref", "--format=%(refname:short)", "refs/heads/copilot")
	if err != nil {
		return err
	}
	if names == "" {
		fmt.Fprintln(d.script.Stdout(), "none")
	}
	for _, name := range strings.Fields(names) {
		shown, err := d.git(args[0], "show", "--no-textconv", "--no-ext-diff", "--format=%s, by %an on %P", "--abbrev=4", "--unified=0", name)
		if err != nil {
			return err
		}
		parent, err := d.git(args[0], "rev-parse", name+"^")
		if err != nil {
			return err
		}
		shown = strings.ReplaceAll(shown, strings.TrimSpace(parent), "BASE")
		fmt.Fprintf(d.script.Stdout(), "%s: %s", branchID.ReplaceAllString(name, "-ID"), shown)
	}
	return nil
}

// appears GLOB waits until there is a file of that name.
func (d *drawer) appears(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		found, err := filepath.Glob(d.script.MkAbs(args[0]))
		if err != nil || len(found) > 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s did not appear", args[0])
}

// nameofrun sets RUN to the name of the only run.
func (d *drawer) nameOfRun([]string) error {
	entries, err := os.ReadDir(d.script.MkAbs("state/handoff/runs"))
	if err != nil {
		return err
	}
	if len(entries) != 1 {
		return fmt.Errorf("there are %d runs", len(entries))
	}
	d.script.Setenv("RUN", entries[0].Name())
	return nil
}

func TestRepliesInTheTerminal(t *testing.T) {
	for line, want := range map[string]reply{
		"y": {yes: true}, " YES ": {yes: true}, "n": {}, "No": {}, "n, too much": {reason: "too much"}, "no: use a map": {reason: "use a map"},
	} {
		if got, ok := readReply(line); !ok || got != want {
			t.Errorf("%q is read as %v, %v; want %v", line, got, ok, want)
		}
	}
	// What could be meant otherwise is asked again.
	for _, line := range []string{"", "yes but not the readme", "yep", "ok", "1", "nope", "\x1b[A"} {
		if got, ok := readReply(line); ok {
			t.Errorf("%q is read as %v", line, got)
		}
	}
}

// Nothing that the crew writes can move the cursor, hide text or pass for a
// line of ours.
func TestAQuestionCannotForgeTheTerminal(t *testing.T) {
	// In a diff every line of a file stands behind a sign.
	line := "\x1b[2J\x1b]0;owned\a\u202eevil\u2066\r\x9b31m"
	hostile := "\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\r\n✔ Branch: main\x9b31m"
	for _, prompt := range []approval.Prompt{
		{
			TargetRef: "refs/heads/copilot/x", Title: hostile, Body: hostile, Diff: "+" + line + "\n-" + line + "\n",
			Verification: approval.Verification{Commands: []string{hostile}, Output: hostile, Verdict: verdict.Verdict{Outcome: verdict.TimedOut, Detail: hostile, New: []string{hostile}}},
			Risks:        []approval.Risk{{What: "a secret", Paths: []string{hostile}}},
		},
		{Path: hostile, Reason: hostile, Agent: "Tester"},
		{Verification: approval.Verification{Commands: []string{"x"}, NotRun: hostile}},
	} {
		var out strings.Builder
		newScreen(&out).ask(prompt)
		if strings.ContainsAny(out.String(), "\x1b\a\r\u009b\u202e\u2066") || !utf8.ValidString(out.String()) {
			t.Errorf("a control character came through:\n%q", out.String())
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "✔") {
				t.Errorf("a line is forged:\n%s", out.String())
			}
		}
	}
}

// A person reads in colours what is added and what is removed.
func TestADiffIsColoured(t *testing.T) {
	var out strings.Builder
	show := newScreen(&out)
	show.colour = true
	show.diff("diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new\n same\n")
	want := "\x1b[1mdiff --git a/x b/x\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n same\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// weak is a driver on a machine that can isolate nothing.
type weak struct{ sandbox.Driver }

func (weak) Probe(context.Context) (sandbox.Capabilities, error) {
	return sandbox.Capabilities{Driver: "local", Tier: sandbox.None}, nil
}

func TestWithoutASandboxNothingStarts(t *testing.T) {
	var out strings.Builder
	err := mustIsolate(t.Context(), weak{}, newScreen(&out))
	if err == nil || !strings.Contains(err.Error(), "--sandbox=none") {
		t.Errorf("the crew would start: %v", err)
	}
	if out.String() != "" {
		t.Errorf("it said %q", out.String())
	}
}
