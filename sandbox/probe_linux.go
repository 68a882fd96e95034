package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probe tries the tiers from the ceiling down. An error means that it could not
// try at all; a machine that offers nothing is an answer.
func (d *Local) probe(ctx context.Context) (Capabilities, error) {
	found := Capabilities{Driver: d.driver, Kernel: kernelRelease()}
	abi, landlockErr := landlockABI()
	found.LandlockABI = abi
	if !d.isolate {
		found.Loopback = true
		return found, nil
	}
	if !seccompSupported {
		found.Findings = append(found.Findings, seccompFinding())
		return found, nil
	}
	if abi < landlockForFull || d.ceiling < Full {
		found.Findings = append(found.Findings, landlockFinding(abi, landlockErr))
	}
	for _, tier := range []Tier{Full, Namespaces, Restricted} {
		if !d.worthTrying(tier, abi) {
			continue
		}
		err := d.try(ctx, tier)
		if ctx.Err() != nil {
			return Capabilities{}, ctx.Err()
		}
		if err == nil {
			found.Tier = tier
			break
		}
		if finding := findingOf(tier, err); !alreadyFound(found.Findings, finding) {
			found.Findings = append(found.Findings, finding)
		}
	}
	found.Loopback = found.Tier.ownWorld()
	return found, nil
}

func (d *Local) worthTrying(tier Tier, abi int) bool {
	switch {
	case tier > d.ceiling:
		return false
	case tier == Full:
		return abi >= landlockForFull
	case tier == Namespaces:
		// Without namespaces this fails as Full did; with them and Landlock,
		// Full failed for a reason that somebody should see.
		return abi < landlockForFull || d.ceiling < Full
	default:
		return abi >= landlockForRestricted
	}
}

// try builds a sandbox of one tier in which nothing but the self test runs.
func (d *Local) try(ctx context.Context, tier Tier) error {
	dir, err := os.MkdirTemp("", "handoff-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte(rand.Text()), 0o644); err != nil {
		return err
	}
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		return err
	}
	s, err := d.create(Spec{ID: "probe", Workspace: workspace}, tier)
	if err != nil {
		return err
	}
	return errors.Join(s.testSelf(ctx, canary), s.Close())
}

// testSelf runs the self test in place of a command.
func (s *localSandbox) testSelf(ctx context.Context, canary string) error {
	run := s.newExecution(Command{Args: []string{"self-test"}})
	run.launch.SelfTest = &selfTest{Canary: canary, Parent: os.Getpid()}
	if err := s.begin(run); err != nil {
		return err
	}
	defer s.finish(run)
	start, err := run.handOver()
	if err != nil {
		return err
	}
	st, err := run.process(ctx, nil, newCollector(io.Discard, nil, "", 1), start)
	switch reason, detail := run.disarm(); {
	case err != nil:
		return err
	case st.Failed != "":
		return errors.New(st.Failed)
	case len(st.Escaped) > 0:
		return notHeld(st.Escaped)
	case reason != "":
		return errors.New(detail)
	}
	return nil
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
