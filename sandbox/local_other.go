//go:build !linux

package sandbox

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"time"
)

// Init does nothing here: only Linux can turn a process into a sandbox.
func Init() {}

// LocalOptions configures [NewLocal].
type LocalOptions struct {
	StateDir string
	Logger   *slog.Logger
}

// Local is the driver that builds on the Linux kernel. On this system it refuses
// everything; commands can only run in a container, under a container driver.
type Local struct{ driver string }

// NewLocal returns the local driver.
func NewLocal(LocalOptions) *Local { return &Local{driver: "local"} }

// NewUnisolated returns the driver that isolates nothing. It relies on Linux,
// too, to leave no process behind.
func NewUnisolated(LocalOptions) *Local { return &Local{driver: unisolated} }

// Probe reports that nothing can be had here.
func (d *Local) Probe(context.Context) (Capabilities, error) {
	return Capabilities{Driver: d.driver, Findings: []Finding{{
		Layer:   "Linux",
		Problem: "The " + d.driver + " sandbox needs the Linux kernel, and this is " + runtime.GOOS + ".",
		Remedy:  "Run handoff in a Linux virtual machine or container, or choose a container driver.",
	}}}, nil
}

// Create refuses.
func (d *Local) Create(ctx context.Context, _ Spec) (Sandbox, error) {
	found, err := d.Probe(ctx)
	if err != nil {
		return nil, err
	}
	return nil, found.Err()
}

// Sweep has nothing to remove.
func (d *Local) Sweep(context.Context, time.Duration) (int, error) { return 0, nil }

// RemoveTree removes a directory and everything in it.
func RemoveTree(path string) error { return os.RemoveAll(path) }
