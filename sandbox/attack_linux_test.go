//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An arena is what an attacker is told about the host. A real one would have
// to guess.
type arena struct {
	Canary     string // a file that belongs to the bot
	Other      string // a file in another session's workspace
	Parent     int    // the bot's process id
	Workspace  string // as commands see it
	Attack     string // this program, as commands see it
	TCP        string // where the host listens
	SocketFile string
	Abstract   string
	LeakedFile [2]uint64 // device and inode of a file that the bot has open
}

// An attack is one attempt to get out. It returns nil if it succeeded.
type attack struct {
	name string
	try  func(a arena) error
	// world is how it must fail in a world of the sandbox's own, shared how
	// it must fail in the restricted tier; any of them is right.
	world, shared []syscall.Errno
}

type errnos = []syscall.Errno

var (
	hidden     = errnos{unix.ENOENT}
	denied     = errnos{unix.EACCES}
	noSockets  = errnos{unix.EPERM}
	notAllowed = errnos{unix.EPERM}
	absent     = errnos{unix.ENOSYS}
	readOnly   = errnos{unix.EROFS}
	metadata   = errnos{unix.EACCES, unix.EPERM}
)

// attacks is the table of what is tried. The test and the attacking program
// are the same binary, so the table is both sides'.
var attacks = []attack{
	// What must not be seen.
	{"read a file of the bot", readFile(func(a arena) string { return a.Canary }), hidden, denied},
	{"read another session's file", readFile(func(a arena) string { return a.Other }), hidden, denied},
	{"list the directory of the bot", func(a arena) error { _, err := os.ReadDir(filepath.Dir(a.Canary)); return err }, hidden, denied},
	{"read /etc/shadow", readPath("/etc/shadow"), hidden, denied},
	{"read root's home", func(arena) error { _, err := os.ReadDir("/root"); return err }, hidden, denied},
	{"read the environment of pid 1", readPath("/proc/1/environ"), denied, denied},
	{"read the memory of pid 1", readPath("/proc/1/mem"), denied, denied},
	{"list the descriptors of pid 1", func(arena) error { _, err := os.ReadDir("/proc/1/fd"); return err }, denied, denied},
	{"read the bot's environment", readFile(func(a arena) string { return fmt.Sprintf("/proc/%d/environ", a.Parent) }), hidden, denied},
	{"through /proc/self/root", readFile(func(a arena) string { return "/proc/self/root" + a.Canary }), hidden, denied},
	{"through /proc/1/root", readFile(func(a arena) string { return "/proc/1/root" + a.Canary }), denied, denied},
	{"through /proc/1/cwd", readFile(func(a arena) string { return "/proc/1/cwd" + a.Canary }), denied, denied},
	{"through the working directory", readFile(func(a arena) string { return "../../../../../../../../.." + a.Canary }), hidden, denied},
	{"through a symbolic link", linked(func(link string) error { _, err := os.ReadFile(link); return err }), hidden, denied},
	{"read the kernel's keys", func(arena) error { return nonEmpty("/proc/keys") }, errnos{unix.ENODATA}, denied},
	{"read the kernel's symbols", func(arena) error { return nonEmpty("/proc/kallsyms") }, errnos{unix.ENODATA}, denied},
	{"use an inherited descriptor", inheritedDescriptor, errnos{unix.EBADF}, errnos{unix.EBADF}},

	// What must not be changed.
	{"write to /usr", writePath("/usr/bin/planted"), readOnly, errnos{unix.EACCES}},
	{"write to the root", writePath("/planted"), readOnly, errnos{unix.EACCES}},
	{"write to /etc", writePath("/etc/planted"), readOnly, errnos{unix.EACCES}},
	{"change a mode in /usr", func(arena) error { return os.Chmod("/usr/bin/env", 0o777) }, readOnly, metadata},
	{"change a mode of the bot's", func(a arena) error { return os.Chmod(a.Canary, 0o666) }, hidden, metadata},
	{"change a mode through a symbolic link", linked(func(link string) error { return os.Chmod(link, 0o666) }), hidden, metadata},
	{"change a mode through a descriptor", func(a arena) error { return os.Chmod("/proc/self/root"+a.Canary, 0o666) }, hidden, errnos{unix.EACCES, unix.EPERM, unix.ELOOP}},
	{"change a mode from the working directory", func(a arena) error { return unix.Fchmodat(unix.AT_FDCWD, "../../../../../../../.."+a.Canary, 0o666, 0) }, hidden, metadata},
	{"change an owner of the bot's", func(a arena) error { return os.Chown(a.Canary, os.Getuid(), os.Getgid()) }, hidden, metadata},
	{"change times of the bot's", func(a arena) error { return os.Chtimes(a.Canary, time.Unix(0, 0), time.Unix(0, 0)) }, hidden, metadata},
	{"change times through a symbolic link", linked(func(link string) error { return unix.UtimesNano(link, make([]unix.Timespec, 2)) }), hidden, metadata},
	{"change attributes of the bot's", func(a arena) error { return unix.Setxattr(a.Canary, "user.x", []byte("x"), 0) }, hidden, errnos{unix.EACCES, unix.EPERM, unix.EOPNOTSUPP}},
	{"change a mode of a file that is held", func(a arena) error {
		fd, err := unix.Open(a.Canary, unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), 0o666, 0)
	}, hidden, metadata},
	{"change a mode of a file that is open for reading", func(arena) error { return chmodOpen("/usr/bin/env") }, readOnly, errnos{unix.EPERM, unix.EACCES}},
	{"change a mode by the name of a descriptor", func(arena) error { return chmodByName("/usr/bin/env") }, readOnly, metadata},
	{"poison a read-only mount", func(a arena) error { return openFor(a.Attack, unix.O_WRONLY) }, errnos{unix.EROFS, unix.ETXTBSY, unix.EACCES}, errnos{unix.EACCES, unix.ETXTBSY}},
	{"link a system file into the workspace", linkSystemFile, errnos{unix.EXDEV}, errnos{unix.EXDEV, unix.EPERM, unix.EACCES}},
	{"move the workspace away", func(a arena) error { return os.Rename(a.Workspace, a.Workspace+"2") }, errnos{unix.EBUSY, unix.EROFS}, errnos{unix.EACCES, unix.EXDEV, unix.EPERM}},
	{"make a device", func(a arena) error { return unix.Mknod(filepath.Join(a.Workspace, "sda"), unix.S_IFBLK|0o600, 0x800) }, errnos{unix.EPERM, unix.EACCES}, errnos{unix.EPERM, unix.EACCES}},
	{"lower the chance to be killed", func(arena) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) }, errnos{unix.EROFS, unix.EACCES}, denied},
	{"write a kernel setting", writePath("/proc/sys/kernel/core_pattern"), errnos{unix.EROFS, unix.EACCES}, denied},

	// The network.
	{"connect to a port of the host", dial("tcp", func(a arena) string { return a.TCP }), errnos{unix.ECONNREFUSED}, noSockets},
	{"ask the cloud's metadata", dialTo("tcp", "169.254.169.254:80"), errnos{unix.ENETUNREACH}, noSockets},
	{"connect to the internet", dialTo("tcp", "192.0.2.1:443"), errnos{unix.ENETUNREACH}, noSockets},
	{"connect by IPv6", dialTo("tcp", "[2001:db8::1]:443"), errnos{unix.ENETUNREACH, unix.EADDRNOTAVAIL}, noSockets},
	{"send DNS by UDP", dialTo("udp", "192.0.2.53:53"), errnos{unix.ENETUNREACH}, noSockets},
	{"connect to a socket file of the host", dial("unix", func(a arena) string { return a.SocketFile }), hidden, noSockets},
	{"connect to an abstract socket of the host", dial("unix", func(a arena) string { return a.Abstract }), errnos{unix.ECONNREFUSED}, noSockets},
	{"open a vsock", openSocket(unix.AF_VSOCK, unix.SOCK_STREAM), errnos{unix.EAFNOSUPPORT}, noSockets},
	{"open a raw socket", openSocket(unix.AF_INET, unix.SOCK_RAW), notAllowed, noSockets},
	{"open a packet socket", openSocket(unix.AF_PACKET, unix.SOCK_RAW), errnos{unix.EAFNOSUPPORT}, noSockets},
	{"open a crypto socket", openSocket(unix.AF_ALG, unix.SOCK_SEQPACKET), errnos{unix.EAFNOSUPPORT}, noSockets},
	{"open a bluetooth socket", openSocket(unix.AF_BLUETOOTH, unix.SOCK_RAW), errnos{unix.EAFNOSUPPORT}, noSockets},
	{"configure the network", openNetlink(unix.NETLINK_NETFILTER), errnos{unix.EAFNOSUPPORT}, noSockets},

	// Other processes.
	{"trace the bot", call(unix.SYS_PTRACE, func(a arena) []uintptr { return []uintptr{unix.PTRACE_ATTACH, uintptr(a.Parent)} }), notAllowed, notAllowed},
	{"trace pid 1", call(unix.SYS_PTRACE, values(unix.PTRACE_ATTACH, 1)), notAllowed, notAllowed},
	{"read the bot's memory", call(unix.SYS_PROCESS_VM_READV, func(a arena) []uintptr { return []uintptr{uintptr(a.Parent)} }), notAllowed, notAllowed},
	{"take a descriptor of the bot's", call(unix.SYS_PIDFD_GETFD, values(0, 0, 0)), notAllowed, notAllowed},
	{"signal the bot", func(a arena) error { return unix.Kill(a.Parent, 0) }, errnos{unix.ESRCH}, notAllowed},
	{"stop the supervisor", func(arena) error { return stopSupervisor() }, errnos{unix.ESRCH}, notAllowed},
	{"change the limits of pid 1", call(unix.SYS_PRLIMIT64, values(1, unix.RLIMIT_NOFILE, 0, 0)), notAllowed, notAllowed},
	{"raise a limit", func(arena) error { return raiseLimit() }, notAllowed, notAllowed},

	// The kernel.
	{"make a user namespace", call(unix.SYS_UNSHARE, values(unix.CLONE_NEWUSER)), notAllowed, notAllowed},
	{"clone into a user namespace", call(unix.SYS_CLONE, values(unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0)), notAllowed, notAllowed},
	{"clone by clone3", call(unix.SYS_CLONE3, values(0, 0)), absent, absent},
	{"enter a namespace", call(unix.SYS_SETNS, values(0, 0)), notAllowed, notAllowed},
	{"mount", func(a arena) error { return unix.Mount("tmpfs", a.Workspace, "tmpfs", 0, "") }, notAllowed, notAllowed},
	{"unmount", func(arena) error { return unix.Unmount("/proc/keys", unix.MNT_DETACH) }, notAllowed, notAllowed},
	{"remount read-write", func(arena) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") }, notAllowed, notAllowed},
	{"copy a mount", call(unix.SYS_OPEN_TREE, values(0, 0, 0)), notAllowed, notAllowed},
	{"open a file system", call(unix.SYS_FSOPEN, values(0, 0)), notAllowed, notAllowed},
	{"change the root", func(a arena) error { return unix.Chroot(a.Workspace) }, notAllowed, notAllowed},
	{"pivot the root", func(arena) error { return unix.PivotRoot(".", ".") }, notAllowed, notAllowed},
	{"open a file by handle", call(unix.SYS_OPEN_BY_HANDLE_AT, values(0, 0, 0)), notAllowed, notAllowed},
	{"use io_uring", call(unix.SYS_IO_URING_SETUP, values(1, 0)), absent, absent},
	{"load a BPF program", call(unix.SYS_BPF, values(0, 0, 0)), notAllowed, notAllowed},
	{"measure the kernel", call(unix.SYS_PERF_EVENT_OPEN, values(0, 0, 0)), notAllowed, notAllowed},
	{"handle page faults", call(unix.SYS_USERFAULTFD, values(0)), notAllowed, notAllowed},
	{"read a keyring", call(unix.SYS_KEYCTL, values(unix.KEYCTL_READ, 0)), notAllowed, notAllowed},
	{"add a key", call(unix.SYS_ADD_KEY, values(0, 0)), notAllowed, notAllowed},
	{"request a key", call(unix.SYS_REQUEST_KEY, values(0, 0)), notAllowed, notAllowed},
	{"read the kernel's log", call(unix.SYS_SYSLOG, values(3, 0, 0)), notAllowed, notAllowed},
	{"set the clock", call(unix.SYS_SETTIMEOFDAY, values(0, 0)), notAllowed, notAllowed},
	{"load a module", call(unix.SYS_INIT_MODULE, values(0, 0, 0)), notAllowed, notAllowed},
	{"restart the machine", call(unix.SYS_REBOOT, values(0, 0, 0)), notAllowed, notAllowed},
	{"swap", call(unix.SYS_SWAPON, values(0, 0)), notAllowed, notAllowed},
	{"watch all files", call(unix.SYS_FANOTIFY_INIT, values(0, 0)), notAllowed, notAllowed},
	{"type into the terminal", func(arena) error { return ioctl(0, unix.TIOCSTI) }, notAllowed, notAllowed},
	{"type into the terminal, high bits set", func(arena) error { return ioctl(0, 0x1_0000_0000|unix.TIOCSTI) }, notAllowed, notAllowed},
	{"call a number from the future", call(newestSyscall+1, values()), absent, absent},
	{"call by the x32 numbers", call(0x4000_0000+39, values()), absent, absent},
	{"fill memory with segments", call(unix.SYS_SHMGET, values(0, 1<<30, 0o1600)), errnos{unix.ENOMEM}, notAllowed},
	{"fill memory with segments, high bits set", call(unix.SYS_SHMGET, values(0, 1<<32|1, 0o1600)), errnos{unix.ENOMEM}, notAllowed},
	{"use shared memory of the user", call(unix.SYS_SHMGET, values(0x1234, 4096, 0o1600)), nil, notAllowed},
}

func readFile(path func(arena) string) func(arena) error {
	return func(a arena) error { _, err := os.ReadFile(path(a)); return err }
}

func readPath(path string) func(arena) error { return readFile(func(arena) string { return path }) }

func writePath(path string) func(arena) error {
	return func(arena) error { return openFor(path, unix.O_WRONLY|unix.O_CREAT) }
}

func openFor(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func nonEmpty(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && len(data) == 0 {
		return unix.ENODATA
	}
	return err
}

// linked tries something on a symbolic link to the bot's file.
func linked(try func(link string) error) func(arena) error {
	return func(a arena) error {
		link := filepath.Join(a.Workspace, "link")
		if err := os.Symlink(a.Canary, link); err != nil {
			return nil
		}
		defer os.Remove(link)
		return try(link)
	}
}

func chmodOpen(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Chmod(0o777)
}

func chmodByName(path string) error {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), 0o777, 0)
}

func linkSystemFile(a arena) error {
	return os.Link("/usr/bin/env", filepath.Join(a.Workspace, "env"))
}

// inheritedDescriptor looks for the file among the open descriptors.
func inheritedDescriptor(a arena) error {
	for fd := range 1024 {
		var info unix.Stat_t
		if unix.Fstat(fd, &info) == nil && uint64(info.Dev) == a.LeakedFile[0] && info.Ino == a.LeakedFile[1] {
			return nil
		}
	}
	return unix.EBADF
}

func dial(network string, address func(arena) string) func(arena) error {
	return func(a arena) error {
		conn, err := net.DialTimeout(network, address(a), 3*time.Second)
		if err == nil {
			defer conn.Close()
			_, err = conn.Write([]byte("x"))
		}
		return err
	}
}

func dialTo(network, address string) func(arena) error {
	return dial(network, func(arena) string { return address })
}

func openSocket(family, kind int) func(arena) error {
	return func(arena) error {
		fd, err := unix.Socket(family, kind, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func openNetlink(protocol int) func(arena) error {
	return func(arena) error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func values(list ...uintptr) func(arena) []uintptr {
	return func(arena) []uintptr { return list }
}

func call(number uintptr, args func(arena) []uintptr) func(arena) error {
	return func(a arena) error {
		var six [6]uintptr
		copy(six[:], args(a))
		_, _, errno := unix.RawSyscall6(number, six[0], six[1], six[2], six[3], six[4], six[5])
		if errno == 0 {
			return nil
		}
		return errno
	}
}

// stopSupervisor aims at the process that adopts orphans: in a world of its own
// that is pid 1, which the kernel protects silently, so a number that does not
// exist stands for it there.
func stopSupervisor() error {
	parent := os.Getppid()
	if parent == 1 {
		return unix.ESRCH
	}
	return unix.Kill(parent, unix.SIGSTOP)
}

func raiseLimit() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Max++
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
}

func ioctl(fd, request uintptr) error {
	var char byte = 'x'
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(&char)))
	if errno == 0 {
		return nil
	}
	return errno
}

// attackMain is what the test binary does inside of the sandbox: it tries every
// attack and prints, for each, the number of the error.
func attackMain(args []string) int {
	var a arena
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &a) != nil {
		return 2
	}
	results := map[string]int{}
	for _, attack := range attacks {
		err := attack.try(a)
		errno, ok := errors.AsType[syscall.Errno](err)
		if err != nil && !ok {
			fmt.Fprintln(os.Stderr, attack.name, err)
			return 3
		}
		results[attack.name] = int(errno)
	}
	if json.NewEncoder(os.Stdout).Encode(results) != nil {
		return 4
	}
	return 0
}
