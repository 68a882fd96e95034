//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os/exec"
	"testing"
)

// The cost of one command that does nothing: go test -bench Exec ./sandbox

func BenchmarkExec(b *testing.B) {
	for _, tier := range append(isolating, None) {
		b.Run(tier.String(), func(b *testing.B) {
			r := newRoom(b, tier, func(s *Spec) { s.LogDir = "" })
			for b.Loop() {
				if result, err := r.Exec(b.Context(), Command{Args: []string{"/bin/true"}}); err != nil || !result.OK() {
					b.Fatalf("%+v, %v", result, err)
				}
			}
		})
	}
	// The peer, as agent projects call it.
	b.Run("bubblewrap", func(b *testing.B) {
		if _, err := exec.LookPath("bwrap"); err != nil {
			lacks(b, "bubblewrap: %v", err)
		}
		workspace := b.TempDir()
		for b.Loop() {
			err := exec.CommandContext(b.Context(), "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
				"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
				"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", workspace, "/workspace", "--chdir", "/workspace", "/bin/true").Run()
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
