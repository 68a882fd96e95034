package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Init turns the process into a sandbox if that is what it was started for, and
// does not return then. In any other process it does nothing. It must be the
// first statement of main in every program that uses [Local], and of TestMain
// in packages whose tests do.
func Init() {
	if len(os.Args) != 1 || !isLaunch() {
		return
	}
	switch os.Args[0] {
	case initName:
		runAsInit()
	case confineName:
		runConfined()
	}
}

// runAsInit is the life of the process that the parent started: pid 1 of a
// world of its own, or the supervisor of a confined process.
func runAsInit() {
	report := os.NewFile(statusFD, "status")
	l, err := readLaunch()
	if err == nil {
		err = forget(launchFD)
	}
	var st status
	switch {
	case err != nil:
		st.Failed = err.Error()
	case l.Tier.ownWorld():
		st = l.live()
	default:
		st = l.supervise()
	}
	exitWith(report, st)
}

// exitWith reports and ends. The code is seen by nobody but a person with a
// process list.
func exitWith(report io.Writer, st status) {
	if err := st.send(report); err != nil || st.Failed != "" {
		os.Exit(125)
	}
	os.Exit(0)
}

// live builds the world, runs the command and returns its end. What is left
// over dies with this process.
func (l *launch) live() status {
	ignoreSignals()
	go func() {
		awaitParentsEnd()
		os.Exit(125)
	}()
	if err := l.enterWorld(); err != nil {
		return status{Failed: err.Error()}
	}
	if l.SelfTest != nil {
		return status{Escaped: l.SelfTest.run(l.Tier)}
	}
	if err := l.setLimits(); err != nil {
		return status{Failed: err.Error()}
	}
	path, err := l.findProgram()
	if err != nil {
		return status{NotFound: err.Error()}
	}
	pid, err := syscall.ForkExec(path, l.Args, &syscall.ProcAttr{
		Env: l.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return status{NotFound: fmt.Sprintf("%s: %v", l.Args[0], err)}
	}
	st := reapUntil(pid)
	st.Unroutable = unroutablePackets()
	return st
}

// enterWorld does everything between the start and the command, in the only
// order that works: mounts need privileges, Landlock forbids mounts, the
// filter forbids most of what came before.
func (l *launch) enterWorld() error {
	if err := volunteer(); err != nil {
		return err
	}
	if err := l.buildRoot(l.become); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	if err := l.restrict(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	_, err := restrictSyscalls(filter{ownNetwork: true})
	return err
}

// runConfined is the life of the process between the supervisor and the
// command in the tiers without a world of their own: it confines itself and
// becomes the command.
func runConfined() {
	report := os.NewFile(statusFD, "status")
	l, err := readLaunch()
	if err == nil {
		err = forget(launchFD)
	}
	if err == nil {
		err = l.confine()
	}
	if err != nil {
		exitWith(report, status{Failed: err.Error()})
	}
	if l.SelfTest != nil {
		exitWith(report, status{Escaped: l.SelfTest.run(l.Tier)})
	}
	if err := l.setLimits(); err != nil {
		exitWith(report, status{Failed: err.Error()})
	}
	path, err := l.findProgram()
	if err == nil {
		err = fmt.Errorf("%s: %w", l.Args[0], unix.Exec(path, l.Args, l.Env))
	}
	exitWith(report, status{NotFound: err.Error()})
}

func (l *launch) confine() error {
	if err := volunteer(); err != nil {
		return err
	}
	// Counted while /proc can still be read.
	l.threadsBefore = l.countThreads()
	if l.Tier == None {
		return nil
	}
	if err := l.restrict(); err != nil {
		return err
	}
	if l.Identity.Switch {
		if err := switchTo(l.Identity.UID, l.Identity.GID); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	listener, err := restrictSyscalls(filter{brokered: l.brokered()})
	if err != nil || !l.brokered() {
		return err
	}
	return sendListener(listener)
}

// countThreads counts those of the user's that are not the sandbox's, since the
// kernel adds them all up.
func (l *launch) countThreads() int {
	if l.Identity.Switch {
		return 0
	}
	return threadsOf(os.Getuid())
}

// findProgram enters the working directory and looks the program up in the
// PATH of the command's environment.
func (l *launch) findProgram() (string, error) {
	if err := unix.Chdir(l.Dir); err != nil {
		return "", fmt.Errorf("the working directory %s: %w", l.Dir, err)
	}
	unix.Umask(0o022)
	for _, pair := range l.Env {
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			os.Setenv("PATH", path)
		}
	}
	path, err := exec.LookPath(l.Args[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: not found in the sandbox (PATH is %s)", l.Args[0], os.Getenv("PATH"))
	}
	return path, nil
}

// supervise starts the confined process, adopts what it leaves behind and kills
// it, and returns the command's end.
func (l *launch) supervise() status {
	runtime.LockOSThread() // the child's death signal watches this thread
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return status{Failed: "become a subreaper: " + err.Error()}
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return status{Failed: "make a socket pair: " + err.Error()}
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{confineName}, &syscall.ProcAttr{
		Env:   quickStart,
		Files: []uintptr{0, 1, 2, launchFD, controlFD, statusFD, uintptr(sockets[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return status{Failed: "start the confined process: " + err.Error()}
	}
	_ = unix.Close(sockets[1])
	go serveBroker(sockets[0], l.Writable)
	go func() {
		<-terminated
		killDescendants()
	}()
	go func() {
		awaitParentsEnd()
		killDescendants()
	}()
	st := reapUntil(pid)
	go killDescendants()
	reapAll()
	return st
}

// awaitParentsEnd returns when the parent has closed its end of the control
// pipe, by death or on purpose.
func awaitParentsEnd() {
	_, _ = io.Copy(io.Discard, os.NewFile(controlFD, "control"))
}

// ignoreSignals keeps pid 1 alive whatever its children send it. Signals are
// taken and dropped, not ignored: children would inherit that.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1))
}

// reapUntil collects dead children until the given one is among them.
func reapUntil(pid int) status {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return status{Failed: "wait: " + err.Error()}
		case got == pid:
			return endOf(ws)
		}
	}
}

func endOf(ws unix.WaitStatus) status {
	var usage unix.Rusage
	st := status{ExitCode: ws.ExitStatus()}
	if ws.Signaled() {
		st.Signal = unix.SignalName(ws.Signal())
		st.ExitCode = 128 + int(ws.Signal())
	}
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err == nil {
		st.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		st.MaxRSS = int64(usage.Maxrss) << 10
	}
	return st
}

// reapAll collects dead children until there is none left alive.
func reapAll() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// killDescendants ends everything below this process. A fork bomb makes
// processes faster than they can be killed one by one, and every one that dies
// makes room for another, so first none of them may multiply any more.
func killDescendants() {
	self := os.Getpid()
	for {
		pids := sterilise(self)
		if len(pids) == 0 {
			return
		}
		for pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// sterilise takes from all processes below root the right to start others,
// those included that are started meanwhile, and returns them. Stopping them
// alone would not do, because they could continue each other; a limit of no
// processes cannot be raised again.
func sterilise(root int) map[int]bool {
	done := map[int]bool{}
	for {
		before := len(done)
		for _, pid := range descendants(root) {
			if !done[pid] {
				done[pid] = true
				_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{}, nil)
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if len(done) == before {
			return done
		}
	}
}

// unroutablePackets reads how many packets the network namespace could not
// send anywhere.
func unroutablePackets() int64 {
	data, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		return 0
	}
	return snmpCounter(string(data), "Ip:", "OutNoRoutes")
}

func snmpCounter(table, protocol, counter string) int64 {
	var names []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == counter && i < len(fields) {
				var n int64
				if _, err := fmt.Sscan(fields[i], &n); err == nil {
					return n
				}
			}
		}
	}
	return 0
}
