package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch       = unix.AUDIT_ARCH_X86_64
	sysOpenTreeAttr = 467
)

// forbiddenHere are the calls that only this architecture has. Those of the
// x32 interface lie above newestSyscall, those of 32-bit programs have another
// audit architecture.
var forbiddenHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_MODIFY_LDT,
}

// brokeredHere are the calls for the broker that only this architecture has.
var brokeredHere = []brokered{
	{unix.SYS_CHMOD, atPath(0, 0), setMode(1)},
	{unix.SYS_CHOWN, atPath(0, 0), setOwner(1, 2)},
	{unix.SYS_LCHOWN, atPath(0, unix.AT_SYMLINK_NOFOLLOW), setOwner(1, 2)},
	{unix.SYS_UTIMES, atPath(0, 0), setTimes(1, microseconds)},
	{unix.SYS_FUTIMESAT, atDirectory(-1), setTimes(2, microseconds)},
}

// withoutBrokerHere has only whole seconds and is used by nobody any more.
var withoutBrokerHere = []uint32{unix.SYS_UTIME}
