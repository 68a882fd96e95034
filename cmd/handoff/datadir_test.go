package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data directory has one server: a second is told so, in a sentence that
// names the setting, and may have it once the first has gone.
func TestADataDirectoryHasOneServer(t *testing.T) {
	dir, err := makeDataDir(filepath.Join(t.TempDir(), "deep", "data"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it is open to others: %v, %v", info, err)
	}
	first, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDataDir(dir)
	if err == nil || !strings.Contains(err.Error(), "DATA_DIR is "+dir+", which another handoff process on this machine uses") {
		t.Errorf("a second server got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}
