package sandbox

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// become takes on the identity of the sandbox inside of its user namespace.
// Capabilities survive this: the namespace has no user 0 to lose them from.
func (l *launch) become() error {
	if !l.Identity.Switch {
		return nil
	}
	return switchTo(insideID, insideID)
}

// switchTo gives up the present user and groups for good, on every thread.
func switchTo(uid, gid int) error {
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := unix.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := unix.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// loopbackUp brings up the one interface of the network namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// forget marks every inherited descriptor from the given one on to be closed
// before the command starts. Go marks its own; others of the parent's, such as
// those of the shell that started it, may not be marked.
func forget(first uint) error {
	if err := unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	return nil
}

// initNeeds is how much memory the limit of a single process allows in any case,
// in bytes, because it binds the init process, too: a thread of a program with
// cgo has a stack of eight megabytes, and the race detector reserves hundreds.
// The watchdog enforces the exact limit, for all processes together.
const initNeeds = 1 << 30

// setLimits sets what the kernel bounds by itself. They are inherited, so the
// process sets them for itself just before it starts the command.
func (l *launch) setLimits() error {
	limits := []struct {
		name  string
		which int
		value uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		// Not RLIMIT_AS: node and Go reserve far more address space than they use.
		{"data", unix.RLIMIT_DATA, uint64(max(l.Limits.Memory, initNeeds))},
		{"fsize", unix.RLIMIT_FSIZE, uint64(l.Limits.FileSize)},
		{"memlock", unix.RLIMIT_MEMLOCK, 1 << 20},
		{"nofile", unix.RLIMIT_NOFILE, 8192},
		{"nproc", unix.RLIMIT_NPROC, uint64(l.threadsBefore + l.Limits.Processes*threadsPerProcess)},
	}
	for _, limit := range limits {
		if err := setLimit(limit.which, limit.value); err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
	}
	// At the soft limit a process is told by SIGXCPU, at the hard one killed
	// without a word.
	seconds := uint64(math.Ceil(l.Limits.CPU.Seconds()))
	if err := setLimit(unix.RLIMIT_CPU, seconds+cpuGrace); err != nil {
		return fmt.Errorf("limit cpu: %w", err)
	}
	return lowerSoftLimit(unix.RLIMIT_CPU, seconds)
}

// cpuGrace is how many seconds of processor time a process has to end itself.
const cpuGrace = 2

func lowerSoftLimit(which int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return err
	}
	now.Cur = min(now.Cur, value)
	return unix.Setrlimit(which, &now)
}

// volunteer makes the process and its children the kernel's first choice when
// memory runs out for the whole machine.
func volunteer() error {
	return os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// setLimit lowers a limit for good; a stricter one that is already in force
// stays.
func setLimit(which int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value})
}

// restrict makes setuid programs ordinary ones and, where the tier has it,
// confines by Landlock, which brings the former with it.
func (l *launch) restrict() error {
	if l.Tier.landlocked() {
		return l.restrictPaths()
	}
	if err := ll.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}

// dropCapabilities gives up every capability on every thread, the ambient ones
// with the others, and hides the
// process's memory, environment and descriptors from its children.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := [2]unix.CapUserData{}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the process: %w", err)
	}
	return nil
}
