package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// LocalOptions configures [NewLocal]. The zero value is good.
type LocalOptions struct {
	// StateDir holds the temporary directories of sandboxes. The default is
	// a directory for the present user below the system's temporary one.
	StateDir string
	// Logger is told what a person running the bot should know.
	Logger *slog.Logger
}

// Local is the driver that needs nothing but a Linux kernel.
type Local struct {
	driver   string
	stateDir string
	log      *slog.Logger
	// ceiling is the best tier that is tried. Tests lower it.
	ceiling Tier
	// isolate is false for the driver that isolates nothing.
	isolate bool

	mu     sync.Mutex
	probed *Capabilities
}

var _ Driver = (*Local)(nil)

// NewLocal returns the local driver. It does nothing yet: see [Local.Probe].
func NewLocal(options LocalOptions) *Local {
	return newLocal("local", options, Full, true)
}

// NewUnisolated returns a driver that isolates nothing: a command can do
// whatever the user can who started the program. It bounds time, memory,
// processes, disk and output, and leaves no process behind, as [Local] does. It
// exists for commands that are trusted; a server must refuse it.
func NewUnisolated(options LocalOptions) *Local {
	return newLocal(unisolated, options, None, false)
}

func newLocal(driver string, options LocalOptions, ceiling Tier, isolate bool) *Local {
	if options.StateDir == "" {
		options.StateDir = filepath.Join(os.TempDir(), fmt.Sprintf("handoff-sandbox-%d", os.Getuid()))
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Local{driver: driver, stateDir: options.StateDir, log: options.Logger, ceiling: ceiling, isolate: isolate}
}

// Probe tries the tiers from the best one down, each by building a sandbox and
// attempting to break out of it, and keeps the first that holds. It takes some
// tens of milliseconds once, and nothing afterwards.
func (d *Local) Probe(ctx context.Context) (Capabilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return *d.probed, nil
	}
	found, err := d.probe(ctx)
	if err != nil {
		return Capabilities{}, err
	}
	d.probed = &found
	d.log.Info("sandbox probed", "driver", d.driver, "tier", found.Tier.String(), "findings", len(found.Findings))
	return found, nil
}

// Create prepares a sandbox: a temporary directory, and, if the program runs
// as root, an identity that is not root and to which the workspace is given.
func (d *Local) Create(ctx context.Context, spec Spec) (Sandbox, error) {
	found, err := d.Probe(ctx)
	if err != nil {
		return nil, err
	}
	if d.isolate {
		if err := found.Err(); err != nil {
			return nil, err
		}
	}
	return d.create(spec, found.Tier)
}

func (d *Local) create(spec Spec, tier Tier) (*localSandbox, error) {
	spec, err := spec.resolve()
	if err != nil {
		return nil, err
	}
	s := &localSandbox{spec: spec, tier: tier, log: d.log, running: map[*execution]bool{}}
	s.identity = identity{UID: os.Geteuid(), GID: os.Getegid()}
	if tier != None {
		if s.identity, err = chooseIdentity(spec.ID); err != nil {
			return nil, fail(CodeUnavailable, err, "Commands would run as root")
		}
	}
	if err := s.makeState(d.stateDir); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// A localSandbox is a sandbox of the local driver.
type localSandbox struct {
	spec     Spec
	tier     Tier
	identity identity
	log      *slog.Logger
	state    string   // directory on the host, locked while the sandbox exists
	lock     *os.File // of the state directory
	temp     string   // what commands see as /tmp
	places   places
	base     extent
	passages []passage

	mu      sync.Mutex
	runs    int
	running map[*execution]bool
	closed  bool
	idle    sync.WaitGroup
}

// settle hands the writable trees over and takes their measure.
func (s *localSandbox) settle() error {
	s.places = s.makePlaces()
	if !s.identity.Switch {
		s.base = measure(s.trees(), nil).extent
		return nil
	}
	if !s.tier.ownWorld() {
		var err error
		if s.passages, err = openPassages(s.visible(), s.identity.UID); err != nil {
			return fail(CodeSetup, err, "Commands cannot get to the workspace")
		}
	}
	found, err := claim(s.trees(), s.identity.UID, s.identity.GID)
	if err != nil {
		return fail(CodeSetup, err, "The workspace cannot be given to the sandbox's user")
	}
	s.base = found.extent
	return nil
}

// trees are the host directories that commands can change.
func (s *localSandbox) trees() []string {
	trees := []string{s.spec.Workspace, s.temp}
	for _, mount := range s.spec.Writable {
		trees = append(trees, mount.Source)
	}
	return trees
}

func (s *localSandbox) makePlaces() places {
	list := []place{{s.spec.Workspace, WorkspacePath, WorkspacePath}, {s.temp, TempPath, TempPath}}
	for _, mount := range append(append([]Mount{}, s.spec.ReadOnly...), s.spec.Writable...) {
		list = append(list, place{mount.Source, mount.Target, mount.Target})
	}
	if !s.tier.ownWorld() {
		for i := range list {
			list[i].inside = list[i].host
		}
	}
	return newPlaces(list...)
}

// visible are the host paths that commands have to get to.
func (s *localSandbox) visible() []string {
	paths := s.trees()
	for _, mount := range s.spec.ReadOnly {
		paths = append(paths, mount.Source)
	}
	return paths
}

// Path translates a host path; see [Sandbox].
func (s *localSandbox) Path(host string) string {
	if resolved, err := filepath.EvalSymlinks(host); err == nil {
		host = resolved
	}
	return s.places.toInside(filepath.Clean(host))
}

// Normalize replaces host paths in a text; see [Sandbox].
func (s *localSandbox) Normalize(text string) string { return s.places.normalize(text) }

// defaultEnv is what every command has.
func (s *localSandbox) defaultEnv() map[string]string {
	temp := s.places.toInside(s.temp)
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
		"HOME": filepath.Join(temp, "home"), "TMPDIR": temp, "USER": "sandbox", "LANG": "C.UTF-8",
	}
	maps.Copy(env, s.spec.Env)
	return env
}

// Close ends what runs and removes the temporary directory; see [Sandbox].
func (s *localSandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for run := range s.running {
		run.end(ReasonCanceled, "The sandbox was closed.")
	}
	s.mu.Unlock()
	s.idle.Wait()
	return errors.Join(closePassages(s.passages), RemoveTree(s.state), s.lock.Close())
}

const lockName = ".lock"

// makeState makes the sandbox's directory on the host. The lock in it lasts as
// long as this process, so that Sweep can tell the living from the dead.
func (s *localSandbox) makeState(parent string) error {
	problem := func(err error) error {
		return fail(CodeSetup, err, "The directory for sandboxes, %s, cannot be used", parent)
	}
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return problem(err)
	}
	if err := checkOwned(parent); err != nil {
		return problem(err)
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return problem(err)
	}
	if s.state, err = os.MkdirTemp(parent, s.spec.ID+"-"); err != nil {
		return problem(err)
	}
	if err := os.Chmod(s.state, 0o711); err != nil {
		return problem(err)
	}
	if s.lock, err = lockState(s.state); err != nil {
		return problem(err)
	}
	s.temp = filepath.Join(s.state, "tmp")
	if err := os.MkdirAll(filepath.Join(s.temp, "home"), 0o700); err != nil {
		return problem(err)
	}
	return nil
}

// checkOwned refuses a directory in a shared place that somebody else has made.
func checkOwned(dir string) error {
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR || int(info.Uid) != os.Geteuid() || info.Mode&0o022 != 0 {
		return errors.New("it is not a directory that only this user can write to")
	}
	return nil
}

func lockState(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Sweep removes the directories of sandboxes whose process is dead.
func (d *Local) Sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	entries, err := os.ReadDir(d.stateDir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fail(CodeSetup, err, "The directory for sandboxes, %s, cannot be read", d.stateDir)
	}
	removed := 0
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		dir := filepath.Join(d.stateDir, entry.Name())
		info, err := entry.Info()
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < olderThan {
			continue
		}
		lock, err := lockState(dir)
		if err != nil {
			continue // alive
		}
		if err := errors.Join(RemoveTree(dir), lock.Close()); err != nil {
			return removed, fail(CodeSetup, err, "The dead sandbox %s cannot be removed", dir)
		}
		removed++
	}
	return removed, nil
}
