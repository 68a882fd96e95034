//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPassageLetsOnePersonPass(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "passages, because only root makes them")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	target := filepath.Join(closed, "target")
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	opened, err := openPassages([]string{target}, nobody)
	if errors.Is(err, unix.EOPNOTSUPP) {
		lacks(t, "passages, because the file system has no access control lists")
	}
	if err != nil {
		t.Fatal(err)
	}
	tries := func(uid uint32, command ...string) bool {
		c := exec.Command(command[0], command[1:]...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return c.Run() == nil
	}
	if !tries(nobody, "/bin/ls", target) {
		t.Error("the user cannot pass")
	}
	if tries(nobody, "/bin/ls", closed) {
		t.Error("the user can list the directory")
	}
	if tries(nobody-1, "/bin/ls", target) {
		t.Error("another user can pass")
	}
	if err := closePassages(opened); err != nil {
		t.Fatal(err)
	}
	if tries(nobody, "/bin/ls", target) {
		t.Error("the passage is still open")
	}
	info, err := os.Stat(closed)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory's mode is %v now", info.Mode())
	}
}
