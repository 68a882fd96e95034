package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"handoff/sandbox"
)

// A runFiles is where one local run keeps what it needs to go on after an
// interruption: its database, its workspace, and the patch that is left when it
// does not end in a branch. Runs share nothing but the caches of setups.
type runFiles struct {
	root  string
	name  string
	about aboutRun
	// old says that the run was there before.
	old bool
}

// An aboutRun is kept beside the database, so that going on needs no more than
// the run's name.
type aboutRun struct {
	Repository string `json:"repository"`
	Task       string `json:"task"`
}

// runName is what names of runs look like.
var runName = regexp.MustCompile(`^[a-z2-7]{10}$`)

// stateDir is where runs are kept, as the XDG base directory specification has
// it.
func stateDir(chosen string) (string, error) {
	if strings.Contains(chosen, "?") {
		return "", fmt.Errorf("--data-dir is %q, and no database can be opened in a directory with a question mark", chosen)
	}
	if chosen != "" {
		return chosen, nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "handoff"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("there is no place to keep the run; name one with --data-dir: %w", err)
	}
	return filepath.Join(home, ".local", "state", "handoff"), nil
}

// newRunFiles names a new run. Nothing is written before make.
func newRunFiles(root string, about aboutRun) *runFiles {
	return &runFiles{root: root, name: strings.ToLower(rand.Text()[:10]), about: about}
}

// openRunFiles finds an earlier run.
func openRunFiles(root, name string) (*runFiles, error) {
	f := &runFiles{root: root, name: name, old: true}
	content, err := os.ReadFile(f.path("run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no run %s in %s", name, root)
	}
	if err == nil {
		err = json.Unmarshal(content, &f.about)
	}
	if err != nil {
		return nil, fmt.Errorf("the run %s cannot be read: %w", name, err)
	}
	return f, nil
}

// make makes the directories, for their owner only.
func (f *runFiles) make() error {
	if err := os.MkdirAll(f.data(), 0o700); err != nil {
		return fmt.Errorf("the run has no place to work; name another with --data-dir: %w", err)
	}
	if f.old {
		return nil
	}
	content, err := json.Marshal(f.about)
	if err != nil {
		return err
	}
	return os.WriteFile(f.path("run.json"), content, 0o600)
}

func (f *runFiles) path(name string) string { return filepath.Join(f.root, "runs", f.name, name) }
func (f *runFiles) data() string            { return f.path("data") }
func (f *runFiles) sandbox() string         { return f.path("data/sandbox") }
func (f *runFiles) setups() string          { return filepath.Join(f.root, "setup") }
func (f *runFiles) database() string        { return "sqlite://" + f.path("handoff.db") }

// repositoryID tells the setups of different repositories apart.
func (f *runFiles) repositoryID() int64 {
	sum := sha256.Sum256([]byte(f.about.Repository))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 1)
}

// keepPatch writes the work that became no branch.
func (f *runFiles) keepPatch(diff string) (string, error) {
	name := f.path("work.patch")
	return name, os.WriteFile(name, []byte(diff), 0o600)
}

// clear removes the working copy of a run that is done. Its journal stays.
func (f *runFiles) clear() error { return sandbox.RemoveTree(f.data()) }
