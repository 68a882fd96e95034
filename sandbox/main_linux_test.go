//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	Init()
	if os.Getenv("HANDOFF_TEST_NAME") != "" {
		fmt.Println("an ordinary program")
		os.Exit(0)
	}
	if os.Getenv(containerVariable) != "" {
		becomeContainer()
	}
	if len(os.Args) > 1 && os.Args[1] == "attack" {
		os.Exit(attackMain(os.Args[2:]))
	}
	code := m.Run()
	if madeCache != "" {
		_ = RemoveTree(madeCache)
	}
	os.Exit(code)
}

// lacks says what a machine cannot test, and fails where everything must be.
func lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("not tested: "+format, args...)
	}
	t.Skipf("not tested: "+format, args...)
}

// A room is a sandbox under test with what belongs to it.
type room struct {
	Sandbox
	t         testing.TB
	tier      Tier
	workspace string
	spec      Spec
}

// newRoom makes a sandbox of exactly one tier.
func newRoom(t testing.TB, tier Tier, adjust ...func(*Spec)) *room {
	t.Helper()
	driver := newLocal("local", LocalOptions{StateDir: filepath.Join(t.TempDir(), "state")}, tier, tier != None)
	found, err := driver.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.Tier != tier {
		lacks(t, "tier %s, because this machine offers %s: %v", tier, found.Tier, found.Findings)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, tier: tier, workspace: t.TempDir()}
	r.spec = Spec{ID: "room", Workspace: r.workspace, LogDir: t.TempDir(), ReadOnly: []Mount{{Source: self, Target: "/opt/attack"}}}
	for _, change := range adjust {
		change(&r.spec)
	}
	r.Sandbox, err = driver.Create(t.Context(), r.spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := RemoveTree(r.workspace); err != nil {
			t.Errorf("the host cannot remove the workspace: %v", err)
		}
	})
	return r
}

// run executes a command that must be able to start.
func (r *room) run(command Command) Result {
	r.t.Helper()
	result, err := r.Exec(r.t.Context(), command)
	if err != nil {
		r.t.Fatalf("%v: %v", command.argv(), err)
	}
	return result
}

func (r *room) shell(script string) Result {
	r.t.Helper()
	return r.run(Command{Shell: script})
}

// works runs a script that must succeed, and returns its output.
func (r *room) works(script string) string {
	r.t.Helper()
	result := r.shell(script)
	if !result.OK() {
		r.t.Fatalf("%s\nended with %s, exit code %d %s %s\n%s", script, result.Reason, result.ExitCode, result.Signal, result.Detail, result.Output)
	}
	return result.Output
}

// write puts a file into the workspace, as the host's tools do.
func (r *room) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.workspace, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// isolating are the tiers that isolate.
var isolating = []Tier{Full, Namespaces, Restricted}

func inTiers(t *testing.T, tiers []Tier, test func(t *testing.T, r *room), adjust ...func(*Spec)) {
	for _, tier := range tiers {
		t.Run(tier.String(), func(t *testing.T) { test(t, newRoom(t, tier, adjust...)) })
	}
}

func inEveryTier(t *testing.T, test func(t *testing.T, r *room), adjust ...func(*Spec)) {
	inTiers(t, append(isolating, None), test, adjust...)
}
