//go:build linux && !amd64 && !arm64

package sandbox

import (
	"errors"
	"runtime"
)

// seccompSupported says that there is a table for this architecture.
const seccompSupported = false

func restrictSyscalls(bool) error {
	return errors.New("seccomp: no table of system calls for " + runtime.GOARCH)
}
