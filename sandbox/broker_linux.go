//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock decides who opens, makes, moves and removes files, but not who
// changes the mode, the owner or the times of one by its name. Where commands
// run as the very user who owns the bot's key and database, they could make
// those readable for everybody, or for nobody. So in the restricted tier such
// calls stop in the kernel, and the supervisor carries them out instead: it
// opens the file without following any trick, looks where it really is, and
// changes it only in the workspace and the other writable directories.
//
// The supervisor acts on what it has opened itself and never lets the stopped
// call go on, so it does not matter what a second thread does to the
// arguments meanwhile.

// A broker answers the calls that a filter has stopped.
type broker struct {
	listener int
	trees    []string // the writable directories, without symbolic links
}

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  struct {
		number             int32
		arch               uint32
		instructionPointer uint64
		args               [6]uint64
	}
}

type response struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

// serve answers until the listener ends, with the last process of the filter's.
func (b *broker) serve() {
	for {
		var n notification
		err := ioctlPointer(b.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
			continue // the caller was killed before we got to it
		}
		if err != nil {
			return
		}
		r := response{id: n.id}
		if err := b.answer(&n); err != nil {
			errno, ok := errors.AsType[syscall.Errno](err)
			if !ok {
				errno = unix.EPERM
			}
			r.error = -int32(errno)
		}
		// It fails if the caller has been killed meanwhile, which is no loss.
		_ = ioctlPointer(b.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

func ioctlPointer(fd int, request uint, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}

// A brokered call names a file and says how it is to be changed.
type brokered struct {
	number uint32
	// file returns the directory descriptor, the address of the path, and the
	// flags of the *at calls. A path of address 0 means the descriptor itself.
	file func(args [6]uint64) (dir int, path uint64, flags int)
	// change changes what is open as fd.
	change func(c *caller, fd int, args [6]uint64) error
}

func atPath(path int, flags int) func([6]uint64) (int, uint64, int) {
	return func(args [6]uint64) (int, uint64, int) { return unix.AT_FDCWD, args[path], flags }
}

func atDescriptor(args [6]uint64) (int, uint64, int) {
	return int(int32(args[0])), 0, unix.AT_EMPTY_PATH
}

// atDirectory takes flags from an argument, or none if there is no such one.
func atDirectory(flags int) func([6]uint64) (int, uint64, int) {
	return func(args [6]uint64) (int, uint64, int) {
		if flags < 0 {
			return int(int32(args[0])), args[1], 0
		}
		return int(int32(args[0])), args[1], int(int32(args[flags]))
	}
}

func setMode(arg int) func(*caller, int, [6]uint64) error {
	return func(_ *caller, fd int, args [6]uint64) error {
		return unix.Fchmodat(unix.AT_FDCWD, descriptorPath(fd), uint32(args[arg]), 0)
	}
}

func setOwner(user, group int) func(*caller, int, [6]uint64) error {
	return func(_ *caller, fd int, args [6]uint64) error {
		return unix.Fchownat(fd, "", int(int32(args[user])), int(int32(args[group])), unix.AT_EMPTY_PATH)
	}
}

// setTimes reads two times of the given unit, in nanoseconds, from the caller.
func setTimes(arg int, unit int64) func(*caller, int, [6]uint64) error {
	return func(c *caller, fd int, args [6]uint64) error {
		if args[arg] == 0 {
			return unix.UtimesNanoAt(fd, "", nil, unix.AT_EMPTY_PATH)
		}
		var raw [4]int64
		if err := c.read(args[arg], unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw))); err != nil {
			return err
		}
		times := []unix.Timespec{{Sec: raw[0], Nsec: raw[1] * unit}, {Sec: raw[2], Nsec: raw[3] * unit}}
		return unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
	}
}

const (
	nanoseconds  = 1
	microseconds = 1000
)

// brokeredCalls are those that both architectures have; brokeredHere are their
// elders.
var brokeredCalls = []brokered{
	{unix.SYS_FCHMOD, atDescriptor, setMode(1)},
	{unix.SYS_FCHMODAT, atDirectory(-1), setMode(2)},
	{unix.SYS_FCHMODAT2, atDirectory(3), setMode(2)},
	{unix.SYS_FCHOWN, atDescriptor, setOwner(1, 2)},
	{unix.SYS_FCHOWNAT, atDirectory(4), setOwner(2, 3)},
	{unix.SYS_UTIMENSAT, atDirectory(3), setTimes(2, nanoseconds)},
}

// withoutBroker are calls of the same kind that are refused: programs that copy
// extended attributes do without where they must.
var withoutBroker = []uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

func (b *broker) answer(n *notification) error {
	all := append(brokeredCalls, brokeredHere...)
	at := slices.IndexFunc(all, func(c brokered) bool { return int32(c.number) == n.data.number })
	if at < 0 {
		return unix.ENOSYS
	}
	c := &caller{thread: n.pid}
	fd, err := c.open(all[at].file(n.data.args))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !b.mayChange(fd) {
		return unix.EACCES
	}
	// The number of a thread can be given to another one. If the call still
	// waits, everything that was read was the caller's.
	if err := ioctlPointer(b.listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); err != nil {
		return err
	}
	return all[at].change(c, fd, n.data.args)
}

// mayChange reports whether an open file lies in a writable directory.
func (b *broker) mayChange(fd int) bool {
	path, err := os.Readlink(descriptorPath(fd))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(b.trees, func(tree string) bool {
		_, inside := below(tree, path)
		return inside
	})
}

func descriptorPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// A caller is a thread that waits for an answer.
type caller struct{ thread uint32 }

// open opens the file that a call means, as the caller would find it, without
// the means to read or write it.
func (c *caller) open(dir int, address uint64, flags int) (int, error) {
	path, err := c.path(address)
	if err != nil {
		return -1, err
	}
	if path == "" {
		if address != 0 && flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
		return c.base(dir)
	}
	if fd, ok := ownDescriptor(path); ok {
		return c.base(fd)
	}
	base, err := c.base(dir)
	if err != nil {
		return -1, err
	}
	defer unix.Close(base)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	return unix.Openat2(base, path, &how)
}

// ownDescriptor recognises the name by which C libraries change a file that
// they hold open (fchmodat without following links). "self" would mean the
// supervisor to the kernel.
func ownDescriptor(path string) (int, bool) {
	name, ok := strings.CutPrefix(path, "/proc/self/fd/")
	if !ok {
		return 0, false
	}
	fd, err := strconv.ParseUint(name, 10, 31)
	return int(fd), err == nil
}

// base opens a descriptor of the caller's, or its working directory.
func (c *caller) base(dir int) (int, error) {
	path := fmt.Sprintf("/proc/%d/cwd", c.thread)
	if dir != unix.AT_FDCWD {
		path = fmt.Sprintf("/proc/%d/fd/%d", c.thread, dir)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		err = unix.EBADF
	}
	return fd, err
}

// path reads a path from the caller's memory.
func (c *caller) path(address uint64) (string, error) {
	if address == 0 {
		return "", nil
	}
	var path []byte
	for len(path) < unix.PathMax {
		// Up to the end of the page: the next one may not be there.
		piece := make([]byte, 4096-(address+uint64(len(path)))%4096)
		if err := c.read(address+uint64(len(path)), piece); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(piece, 0); end >= 0 {
			return string(append(path, piece[:end]...)), nil
		}
		path = append(path, piece...)
	}
	return "", unix.ENAMETOOLONG
}

// read reads the caller's memory. The supervisor is its ancestor and has its
// user id, which is what the kernel asks for.
func (c *caller) read(address uint64, into []byte) error {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", c.thread))
	if err != nil {
		return unix.EPERM
	}
	defer memory.Close()
	if n, err := memory.ReadAt(into, int64(address)); n < len(into) || err != nil {
		return unix.EFAULT
	}
	return nil
}

// sendListener gives the filter's listener to the supervisor.
func sendListener(listener int) error {
	defer unix.Close(listener)
	if err := unix.Sendmsg(brokerFD, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	return unix.Close(brokerFD)
}

// receiveListener waits for it. An error means that the process ended before.
func receiveListener(socket int) (int, error) {
	defer unix.Close(socket)
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.New("no listener came")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.New("no listener came")
	}
	return fds[0], nil
}

// serveBroker answers for the process at the other end of the socket.
func serveBroker(socket int, trees []string) {
	listener, err := receiveListener(socket)
	if err != nil {
		return
	}
	(&broker{listener: listener, trees: trees}).serve()
}
