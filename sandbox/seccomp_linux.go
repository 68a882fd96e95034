//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter refuses what a build never needs and a kernel exploit, an escape
// or a neighbour would: other namespaces, mounts, tracing, keys, kernel
// modules, clocks, exotic sockets. What is newer than this table does not exist
// ("function not implemented"), so that a kernel upgrade adds nothing silently.

// seccompSupported says that there is a table for this architecture.
const seccompSupported = true

// newestSyscall is the last number that was looked at when the tables were
// written (file_setattr, Linux 6.17). Numbers from 424 on are the same on
// all architectures.
const newestSyscall = 469

// forbidden calls fail with "operation not permitted".
var forbidden = []uint32{
	// Mounts and roots.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	sysOpenTreeAttr, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_SETNS, sysFileSetattr,
	// Files by handle reach beyond mounts; the others watch or account.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_LOOKUP_DCOOKIE,
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	// The kernel itself.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
}

// missing calls fail with "function not implemented": programs have a second
// way for each, and it is the one that can be looked into.
var missing = []uint32{
	unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_SECRET,
}

// namespaceFlags are the flags of clone and unshare that make namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// fsSetAttributes is FS_IOC_FSSETXATTR of linux/fs.h. Like FS_IOC_SETFLAGS it
// changes a file that is only open for reading.
const fsSetAttributes = 0x401c5820

// sysFileSetattr does the same by name (Linux 6.17).
const sysFileSetattr = 469

// Offsets in struct seccomp_data. Arguments are 64 bits wide; both
// architectures are little-endian.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

func argument(n uint32) uint32 { return offsetArgs + 8*n }

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

// A filter says which variant of the filter a tier needs.
type filter struct {
	// ownNetwork says that sockets end in a network namespace of the
	// sandbox's own.
	ownNetwork bool
	// brokered says that a supervisor answers the calls of brokeredCalls.
	brokered bool
}

// program returns the filter's instructions.
func (f filter) program() []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: newestSyscall, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for _, number := range append(forbidden, forbiddenHere...) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.EPERM))
	}
	for _, number := range missing {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.ENOSYS))
	}
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(program, when(number, refuseFlags(0, namespaceFlags)...)...)
	}
	program = append(program, when(unix.SYS_IOCTL, refuseValues(1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.FS_IOC_SETFLAGS, fsSetAttributes)...)...)
	// Limits of other processes, pid 1 among them.
	program = append(program, when(unix.SYS_PRLIMIT64, onlyValues(0, unix.EPERM, 0)...)...)
	program = append(program, when(unix.SYS_SOCKET, socketRules(f.ownNetwork)...)...)
	program = append(program, when(unix.SYS_SOCKETPAIR, onlyValues(0, unix.EAFNOSUPPORT, unix.AF_UNIX)...)...)
	if !f.ownNetwork {
		// Without an ipc namespace they are those of the user.
		for _, number := range []uint32{unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN} {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.EPERM))
		}
	}
	// System V memory and semaphores belong to no process, so no watchdog sees
	// them. PostgreSQL needs a little.
	program = append(program, when(unix.SYS_SHMGET, atMost(1, largestSegment)...)...)
	program = append(program, when(unix.SYS_SEMGET, atMost(1, largestSet)...)...)
	if f.brokered {
		program = append(program, brokerRules()...)
	}
	return append(program, allow)
}

// brokerRules stop the calls that a supervisor answers.
func brokerRules() []bpf.Instruction {
	var rules []bpf.Instruction
	for _, call := range append(brokeredCalls, brokeredHere...) {
		rules = append(rules, when(call.number, bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF})...)
	}
	for _, number := range append(withoutBroker, withoutBrokerHere...) {
		rules = append(rules, when(number, refuse(unix.EOPNOTSUPP))...)
	}
	return rules
}

// when runs body, which must return, for one call. The number is in the
// accumulator before and after.
func when(number uint32, body ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(body))},
	}, body...)
}

// refuseFlags refuses a call whose argument has any of the flags.
func refuseFlags(arg uint32, flags uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: argument(arg), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: flags, SkipFalse: 1},
		refuse(unix.EPERM),
		allow,
	}
}

// refuseValues refuses a call whose argument is one of the values. The kernel
// looks at the lower half of these arguments only, and so does the filter.
func refuseValues(arg uint32, values ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: argument(arg), Size: 4}}
	for _, value := range values {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: 1}, refuse(unix.EPERM))
	}
	return append(body, allow)
}

// onlyValues refuses a call whose argument is none of the values.
func onlyValues(arg uint32, errno unix.Errno, values ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{bpf.LoadAbsolute{Off: argument(arg), Size: 4}}
	for _, value := range values {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: 1}, allow)
	}
	return append(body, refuse(errno))
}

// The kernel allows 4096 segments and 32000 sets in a namespace, so these bound
// their memory at about 256 and 512 megabytes.
const (
	largestSegment = 64 << 10 // bytes
	largestSet     = 250      // semaphores
)

// atMost refuses a call whose argument, all 64 bits of it, is larger.
func atMost(arg uint32, largest uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: argument(arg) + 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
		bpf.LoadAbsolute{Off: argument(arg), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: largest, SkipTrue: 1},
		refuse(unix.ENOMEM),
		allow,
	}
}

// socketTypeMask takes SOCK_NONBLOCK and SOCK_CLOEXEC away.
const socketTypeMask = 0xf

// socketRules let a program talk to itself: local and internet sockets of the
// ordinary kinds, and the question about network interfaces that libraries
// ask. Without a network namespace nothing is left, for a socket file or an
// address of the host would be reachable.
func socketRules(ownNetwork bool) []bpf.Instruction {
	if !ownNetwork {
		return []bpf.Instruction{refuse(unix.EPERM)}
	}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: argument(0), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 2},
		bpf.LoadAbsolute{Off: argument(2), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 6},
		refuse(unix.EAFNOSUPPORT),
		bpf.LoadAbsolute{Off: argument(1), Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketTypeMask},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_RAW, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOCK_PACKET, SkipTrue: 1},
		refuse(unix.EPERM),
		allow,
	}
}

// restrictSyscalls installs the filter on every thread of the process.
// no_new_privs must be set. For a brokered filter it returns the descriptor on
// which the broker hears of calls, otherwise -1.
func restrictSyscalls(f filter) (listener int, err error) {
	raw, err := bpf.Assemble(f.program())
	if err != nil {
		return -1, fmt.Errorf("seccomp: %w", err)
	}
	instructions := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		instructions[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	program := &unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	if !f.brokered {
		thread, err := installFilter(program, unix.SECCOMP_FILTER_FLAG_TSYNC)
		if err == nil && thread != 0 {
			err = fmt.Errorf("seccomp: thread %d has a filter of its own", thread)
		}
		return -1, err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// Without the last flag, which came with Linux 5.19, a signal to the
	// caller starts a call over again.
	listener, err = installFilter(program, flags|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		listener, err = installFilter(program, flags)
	}
	return listener, err
}

func installFilter(program *unix.SockFprog, flags uintptr) (int, error) {
	result, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(result), nil
}
