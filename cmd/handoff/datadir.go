package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// makeDataDir makes the data directory, for its owner only, and returns its
// absolute path.
func makeDataDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("DATA_DIR cannot be made; name a directory that this user may write: %w", err)
	}
	return dir, nil
}

// dataDirLock is the file of the data directory that its server has locked.
const dataDirLock = ".lock"

// lockDataDir makes this process the only server of a data directory: two
// would sweep away each other's workspaces. The kernel ends the lock with the
// process, however that ends. Close the file to end it before.
func lockDataDir(dir string) (*os.File, error) {
	name := filepath.Join(dir, dataDirLock)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("DATA_DIR cannot be used; name a directory that this user may write: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("DATA_DIR is %s, which another handoff process on this machine uses: stop it first, or give each a directory of its own", dir)
	}
	return nil, fmt.Errorf("DATA_DIR is %s, which cannot be locked: put it on a local file system (%w)", dir, err)
}
