package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A selfTest is what a sandbox tries on itself before it is trusted: one
// attempt at each fence. It runs confined in place of a command.
type selfTest struct {
	// Canary is a host file that commands must not be able to read.
	Canary string
	// Parent is the process id of the bot.
	Parent int
}

// run returns what was possible and should not be.
func (t *selfTest) run(tier Tier) []string {
	var escaped []string
	expect := func(what string, refused bool) {
		if !refused {
			escaped = append(escaped, what)
		}
	}
	_, err := os.ReadFile(t.Canary)
	expect("a file of the host could be read", err != nil)
	expect("the mode of a host file could be changed", os.Chmod(t.Canary, 0o600) != nil)
	expect("a user namespace could be made", unix.Unshare(unix.CLONE_NEWUSER) == unix.EPERM)
	expect("a vsock socket could be made", socketRefused(unix.AF_VSOCK, unix.SOCK_STREAM))
	expect("a raw socket could be made", socketRefused(unix.AF_INET, unix.SOCK_RAW))
	expect("the kernel's key service answered", keyctlRefused())
	if tier.ownWorld() {
		expect("the process numbers are the host's", os.Getpid() == 1)
		_, err = os.Stat("/root")
		expect("the root file system is the host's", err != nil)
	} else {
		expect("the bot could be signalled", unix.Kill(t.Parent, 0) != nil)
		expect("an internet socket could be made", socketRefused(unix.AF_INET, unix.SOCK_STREAM))
	}
	if tier == Full {
		// It is there, but in no rule: only Landlock refuses it.
		_, err = os.ReadFile("/empty/file")
		expect("Landlock let a file through", err != nil)
	}
	return escaped
}

func socketRefused(family, kind int) bool {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err != nil
}

func keyctlRefused() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
	return err == unix.EPERM
}

// notHeld is the error for a tier that could be built but does not isolate.
func notHeld(escaped []string) error {
	return fmt.Errorf("it was built and did not hold: %v", escaped)
}
