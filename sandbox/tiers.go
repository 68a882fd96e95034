package sandbox

import (
	"fmt"
	"strings"
)

// A Tier is an amount of isolation. Larger is more.
type Tier int

const (
	// None isolates nothing.
	None Tier = iota
	// Restricted confines by Landlock and seccomp alone. It gives up a
	// loopback, /proc and process numbers of its own: test suites that open
	// sockets fail there.
	Restricted
	// Namespaces has a world of its own, but no Landlock as a second fence
	// behind the mounts.
	Namespaces
	// Full has everything.
	Full
)

var tierNames = map[Tier]string{None: "none", Restricted: "restricted", Namespaces: "namespaces", Full: "full"}

// String returns the tier's name as the documentation has it.
func (t Tier) String() string {
	if name, ok := tierNames[t]; ok {
		return name
	}
	return fmt.Sprintf("tier(%d)", int(t))
}

// ownWorld reports whether commands see a file system, processes and a network
// of their own.
func (t Tier) ownWorld() bool { return t >= Namespaces }

// landlocked reports whether the tier uses Landlock.
func (t Tier) landlocked() bool { return t == Full || t == Restricted }

// GivesUp says in words what the tier lacks compared with Full; "" for Full.
func (t Tier) GivesUp() string {
	switch t {
	case Full:
		return ""
	case Namespaces:
		return "no Landlock as a second fence behind the mounts"
	case Restricted:
		return "no loopback, no /proc and no process numbers of its own: programs that open sockets or read /proc fail"
	default:
		return "no isolation at all: commands can do what the user who started handoff can do"
	}
}

// Capabilities is what a driver can do on this machine.
type Capabilities struct {
	// Driver names the driver: "local" or "unisolated".
	Driver string
	// Tier is the best tier that was tried and held.
	Tier Tier
	// Loopback says that commands can open sockets among themselves.
	Loopback bool
	// LandlockABI is the kernel's version of Landlock, 0 without it.
	LandlockABI int
	// Kernel is the kernel's release.
	Kernel string
	// Findings says what keeps this machine from a better tier.
	Findings []Finding
}

// A Finding is a layer that is missing and what a person can do about it.
type Finding struct {
	// Layer is what is missing: "user namespaces", "Landlock", "seccomp", …
	Layer string
	// Problem is what was found, Remedy what to do, one sentence each.
	Problem, Remedy string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s %s", f.Layer, f.Problem, f.Remedy)
}

// Err returns nil if commands can be isolated, and otherwise an error with
// [CodeUnavailable] that names each missing layer and its remedy.
func (c Capabilities) Err() error {
	if c.Tier > None {
		return nil
	}
	if len(c.Findings) == 0 {
		return fail(CodeUnavailable, nil, "The %s sandbox isolates nothing. Choose the local one, or a container.", c.Driver)
	}
	lines := make([]string, 0, len(c.Findings))
	for _, finding := range c.Findings {
		lines = append(lines, finding.String())
	}
	return fail(CodeUnavailable, nil, "This machine cannot isolate commands. %s", strings.Join(lines, " "))
}

// unisolated names the driver that isolates nothing.
const unisolated = "unisolated"

// Unisolated says that this is the driver that isolates nothing. Somebody has
// asked for it, so it runs commands although Err is not nil.
func (c Capabilities) Unisolated() bool { return c.Driver == unisolated }

// String returns a line for a log or a terminal.
func (c Capabilities) String() string {
	text := fmt.Sprintf("%s sandbox, tier %s", c.Driver, c.Tier)
	if loss := c.Tier.GivesUp(); loss != "" {
		text += " (" + loss + ")"
	}
	return text
}
