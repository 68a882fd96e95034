package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpecificationsAreChecked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Spec){
		"no id":                          func(s *Spec) { s.ID = "" },
		"id that is a path":              func(s *Spec) { s.ID = "../x" },
		"id with a newline":              func(s *Spec) { s.ID = "x\n" },
		"relative workspace":             func(s *Spec) { s.Workspace = "work" },
		"missing workspace":              func(s *Spec) { s.Workspace = "/nonexistent/x" },
		"file as workspace":              func(s *Spec) { s.Workspace = file },
		"root as workspace":              func(s *Spec) { s.Workspace = "/" },
		"root as mount":                  func(s *Spec) { s.ReadOnly = []Mount{{Source: "/", Target: "/host"}} },
		"mount over /proc":               func(s *Spec) { s.ReadOnly = []Mount{{Source: "/usr", Target: "/proc/x"}} },
		"mount into /tmp":                func(s *Spec) { s.Writable = []Mount{{Source: t.TempDir(), Target: "/tmp/x"}} },
		"mount into the workspace":       func(s *Spec) { s.ReadOnly = []Mount{{Source: "/usr", Target: "/workspace/x"}} },
		"mount over the root":            func(s *Spec) { s.ReadOnly = []Mount{{Source: "/usr", Target: "/"}} },
		"target with dots":               func(s *Spec) { s.ReadOnly = []Mount{{Source: "/usr", Target: "/a/../b"}} },
		"two mounts at one place":        func(s *Spec) { s.ReadOnly = []Mount{{Source: "/usr", Target: "/a"}, {Source: "/bin", Target: "/a/b"}} },
		"file as writable mount":         func(s *Spec) { s.Writable = []Mount{{Source: file, Target: "/a"}} },
		"read-only inside of writable":   func(s *Spec) { s.ReadOnly = []Mount{{Source: inner, Target: "/a"}} },
		"log directory in the workspace": func(s *Spec) { s.LogDir = inner },
		"environment with =":             func(s *Spec) { s.Env = map[string]string{"A=B": "c"} },
		"environment with NUL":           func(s *Spec) { s.Env = map[string]string{"A": "b\x00"} },
		"unknown network":                func(s *Spec) { s.Network = "open" },
		"negative limit":                 func(s *Spec) { s.Limits.Memory = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			spec := Spec{ID: "x", Workspace: dir}
			change(&spec)
			_, err := spec.resolve()
			if failure, ok := errors.AsType[*Error](err); !ok || failure.Code != CodeInvalidSpec || failure.Message == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCommandsAreChecked(t *testing.T) {
	for name, command := range map[string]Command{
		"nothing":             {},
		"both":                {Args: []string{"a"}, Shell: "b"},
		"empty program":       {Args: []string{""}},
		"NUL":                 {Args: []string{"a\x00b"}},
		"absolute directory":  {Shell: "a", Dir: "/etc"},
		"directory above":     {Shell: "a", Dir: "../x"},
		"negative limit":      {Shell: "a", Limits: Limits{Wall: -1}},
		"strange environment": {Shell: "a", Env: map[string]string{"": "x"}},
	} {
		if failure, ok := errors.AsType[*Error](command.check()); !ok || failure.Code != CodeInvalidCommand {
			t.Errorf("%s: got %v", name, failure)
		}
	}
}

func TestLimitsOnlyTighten(t *testing.T) {
	session := DefaultLimits()
	got := session.tighten(Limits{Memory: 1, Wall: 1000 * session.Wall})
	if got.Memory != 1 || got.Wall != session.Wall || got.Disk != session.Disk {
		t.Errorf("got %+v", got)
	}
}

func TestNormalizeRespectsNames(t *testing.T) {
	p := newPlaces(place{host: "/srv/ws", inside: "/srv/ws", fixed: "/workspace"}, place{host: "/srv/ws/tmp", inside: "/x", fixed: "/tmp"})
	in := "/srv/ws/a.go:1 /srv/ws2/b /srv/ws-old /srv/ws. /srv/ws/tmp/y (/srv/ws)"
	if got, want := p.normalize(in), "/workspace/a.go:1 /srv/ws2/b /srv/ws-old /workspace. /tmp/y (/workspace)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoTierNoCommands(t *testing.T) {
	found := Capabilities{Driver: "local", Findings: []Finding{
		{Layer: "user namespaces", Problem: "They are forbidden.", Remedy: "Allow them."},
		{Layer: "Landlock", Problem: "It is missing.", Remedy: "Use Linux 6.12 or later."},
	}}
	err := found.Err()
	if failure, ok := errors.AsType[*Error](err); !ok || failure.Code != CodeUnavailable {
		t.Fatalf("got %v", err)
	}
	for _, must := range []string{"user namespaces", "Allow them.", "Landlock", "Linux 6.12"} {
		if !strings.Contains(err.Error(), must) {
			t.Errorf("%q does not say %q", err, must)
		}
	}
	if err := (Capabilities{Tier: Restricted}).Err(); err != nil {
		t.Error(err)
	}
}
