package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A launch is everything that the process which becomes a sandbox is told. It
// travels in a sealed memory file: not in the environment or in arguments,
// which others can read, and not in a file, which others can write.
type launch struct {
	Tier     Tier
	Mounts   []bind
	Links    map[string]string // symbolic links in the root, path to target
	Files    map[string]string // files in the root, path to content
	Identity identity
	// Readable and Writable are what Landlock allows, as inside paths.
	Readable, Writable []string
	Dir                string
	Args, Env          []string
	Limits             Limits
	// SelfTest replaces the command by an attempt to break out.
	SelfTest *selfTest
	// threadsBefore is found out on the way; see countThreads.
	threadsBefore int
}

// A bind makes a host path visible at a path of the new root.
type bind struct {
	Source, Target string
	Writable       bool
	Device         bool
	// Optional says that a machine may do without Source.
	Optional bool
}

// An identity is who commands run as.
type identity struct {
	// UID and GID are host ids.
	UID, GID int
	// Switch says that the parent is somebody else: root, who takes on an
	// ordinary identity, because limits on processes do not bind root.
	Switch bool
}

// brokered reports whether calls that change a file by name need a broker: where
// commands are the user whose other files are within reach of a name.
func (l *launch) brokered() bool { return l.Tier == Restricted && !l.Identity.Switch }

// insideID is the user and group id that commands see in a user namespace.
const insideID = 1000

// The descriptors that a launched process is given beside 0, 1 and 2.
const (
	launchFD = 3 + iota
	controlFD
	statusFD
	brokerFD // of a confined process: where it sends its listener
)

// The names under which the program recognises that it was started as a
// sandbox. A name alone means nothing: the launch must be a sealed memory file
// with the same name on descriptor 3, which only a parent can arrange.
const (
	initName    = "handoff-sandbox-init"
	confineName = "handoff-sandbox-confine"
)

const launchSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// file writes the launch to a sealed memory file.
func (l *launch) file() (*os.File, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate(initName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), initName)
	if _, err := file.Write(data); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, launchSeals); err != nil {
		return nil, errors.Join(fmt.Errorf("seal: %w", err), file.Close())
	}
	return file, nil
}

// isLaunch reports whether descriptor 3 is a launch.
func isLaunch() bool {
	seals, err := unix.FcntlInt(launchFD, unix.F_GET_SEALS, 0)
	if err != nil || seals&launchSeals != launchSeals {
		return false
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", launchFD))
	return err == nil && strings.HasPrefix(name, "/memfd:"+initName)
}

// readLaunch reads the launch from descriptor 3, which stays open.
func readLaunch() (*launch, error) {
	file := os.NewFile(launchFD, initName)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var l launch
	return &l, json.NewDecoder(io.NewSectionReader(file, 0, info.Size())).Decode(&l)
}

// A status is what the sandbox reports to its parent before it ends: one
// JSON value on descriptor 5.
type status struct {
	// Failed says at which step the sandbox could not be built.
	Failed string `json:",omitempty"`
	// NotFound says that the program does not exist in the sandbox.
	NotFound string `json:",omitempty"`
	ExitCode int
	Signal   string
	CPU      time.Duration
	MaxRSS   int64
	// Unroutable counts packets to addresses outside of the sandbox.
	Unroutable int64
	// Escaped lists what the self test could do and should not.
	Escaped []string `json:",omitempty"`
}

func (s *status) send(w io.Writer) error { return json.NewEncoder(w).Encode(s) }
