package sandbox

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// What the tiers need of Landlock. Version 2 brought renames across
// directories, without which builds fail; version 6 brought the scopes that keep
// commands from signalling the bot where there is no pid namespace.
const (
	landlockForFull       = 2
	landlockForRestricted = 6
)

// landlockABI returns the kernel's version of Landlock, and the kernel's answer
// if it has none.
func landlockABI() (int, error) {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, err
	}
	return version, nil
}

// landlockPresets holds go-landlock's configurations by version, so that the
// one that this kernel understands is asked for exactly. BestEffort would do
// with less than the probe has promised.
var landlockPresets = []landlock.Config{
	2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6,
	7: landlock.V7, 8: landlock.V8, 9: landlock.V9, 10: landlock.V10, 11: landlock.V11,
}

// restrictPaths confines the process by ONE ruleset: two stacked ones make
// renames across directories fail with EXDEV.
func (l *launch) restrictPaths() error {
	abi, err := landlockABI()
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if abi < landlockForFull {
		return fmt.Errorf("landlock version %d is too old", abi)
	}
	config := landlockPresets[min(abi, len(landlockPresets)-1)]
	if l.Tier.ownWorld() {
		// The network namespace decides, and its loopback is free.
		config.HandledAccessNet = 0
	}
	if err := config.Restrict(l.landlockRules(config)...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

func (l *launch) landlockRules(config landlock.Config) []landlock.Rule {
	const (
		read  = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir)
		write = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
			ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
			ll.AccessFSMakeSym | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSResolveUnix)
		device = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSIoctlDev)
	)
	rules := []landlock.Rule{
		landlock.PathAccess((read|write)&config.HandledAccessFS, l.Writable...),
		landlock.PathAccess(device&config.HandledAccessFS, deviceNodes()...).IgnoreIfMissing(),
	}
	if l.Tier.ownWorld() {
		rules = append(rules, landlock.PathAccess(landlock.AccessFSSet(ll.AccessFSReadDir), "/"))
	}
	for _, path := range l.Readable {
		allowed := read
		if !isDirectory(path) {
			allowed &^= landlock.AccessFSSet(ll.AccessFSReadDir)
		}
		rules = append(rules, landlock.PathAccess(allowed, path).IgnoreIfMissing())
	}
	return rules
}
