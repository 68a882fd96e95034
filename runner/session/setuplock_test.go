package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSetupsWaitForOtherProcesses(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "1", "2", "key")
	unlock, err := lockSetup(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	unlock()

	// Another process is another open file to the kernel.
	other, err := os.OpenFile(shared+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lockSetup(ctx, shared); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the lock of another process was not waited for: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	unlock, err = lockSetup(t.Context(), shared)
	if err != nil {
		t.Fatalf("the lock was not taken when the other process was gone: %v", err)
	}
	unlock()
}
