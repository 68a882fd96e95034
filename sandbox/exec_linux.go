package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exec runs one command; see [Sandbox].
func (s *localSandbox) Exec(ctx context.Context, command Command) (Result, error) {
	if err := command.check(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{Reason: ReasonCanceled, ExitCode: -1, Detail: "The command was canceled before it was started."}, nil
	}
	run := s.newExecution(command)
	if err := s.begin(run); err != nil {
		return Result{}, err
	}
	defer s.finish(run)
	return run.run(ctx, command)
}

func (s *localSandbox) newExecution(command Command) *execution {
	limits := s.spec.Limits.tighten(command.Limits)
	return &execution{sandbox: s, limits: limits, launch: s.launchOf(command, limits), done: make(chan struct{})}
}

func (s *localSandbox) launchOf(command Command, limits Limits) *launch {
	var l *launch
	if s.tier.ownWorld() {
		l = s.ownWorldLaunch()
	} else {
		l = s.sharedWorldLaunch()
	}
	l.Tier, l.Identity, l.Limits = s.tier, s.identity, limits
	l.Args = command.argv()
	l.Env = environ(s.defaultEnv(), command.Env)
	l.Dir = filepath.Join(s.places.toInside(s.spec.Workspace), command.Dir)
	return l
}

// begin enters a run into the list of those that Close ends.
func (s *localSandbox) begin(run *execution) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fail(CodeClosed, nil, "The sandbox is closed.")
	}
	s.runs++
	run.number = s.runs
	s.running[run] = true
	s.idle.Add(1)
	return nil
}

func (s *localSandbox) finish(run *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, run)
	s.idle.Done()
}

// An execution is one run of one command, seen from the parent.
type execution struct {
	sandbox *localSandbox
	launch  *launch
	limits  Limits
	number  int
	free    int64         // bytes on the disk before the start
	done    chan struct{} // closed when the init process is dead

	mu     sync.Mutex
	reason Reason // why the parent ended it; the first one counts
	detail string
	kill   func() // set while there is something to kill
}

// end kills the command for a reason, once. It may be called at any time and
// from any goroutine.
func (e *execution) end(reason Reason, detail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason != "" {
		return
	}
	e.reason, e.detail = reason, detail
	if e.kill != nil {
		e.kill()
	}
}

// armed makes end effective, also if it has been called before.
func (e *execution) armed(kill func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kill = kill
	if e.reason != "" {
		kill()
	}
}

func (e *execution) disarm() (Reason, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kill = nil
	return e.reason, e.detail
}

// run prepares, starts, watches and reports.
func (e *execution) run(ctx context.Context, command Command) (Result, error) {
	start, err := e.handOver()
	if err != nil {
		return Result{}, err
	}
	log, err := e.openLog()
	if err != nil {
		return Result{}, err
	}
	output := newCollector(log.writer(), command.OnOutput, log.label(e.number), e.limits.Shown)
	began := time.Now()
	st, err := e.process(ctx, command.Stdin, output, start)
	if err := errors.Join(err, log.close()); err != nil {
		return Result{}, fail(CodeSetup, err, "The command could not be started in the sandbox")
	}
	reason, detail := e.disarm()
	if st.Failed != "" && reason == "" {
		return Result{}, fail(CodeSetup, errors.New(st.Failed), "The sandbox could not be built")
	}
	result := resultOf(st, reason, detail)
	result.Duration, result.LogPath = time.Since(began), log.path()
	result.Output, result.OmittedBytes = output.result()
	result.Truncated = result.OmittedBytes > 0
	if st.NotFound != "" {
		result.Output += "sandbox: " + st.NotFound + "\n"
	}
	return result, nil
}

// handOver gives what the host has written to the sandbox's user and measures
// the trees. Both are one walk, and needless where there is one user.
func (e *execution) handOver() (extent, error) {
	s := e.sandbox
	e.free = freeSpace(s.spec.Workspace)
	if !s.identity.Switch {
		return measure(s.trees(), nil).extent, nil
	}
	found, err := claim(s.trees(), s.identity.UID, s.identity.GID)
	if err != nil {
		return extent{}, fail(CodeSetup, err, "The workspace cannot be given to the sandbox's user")
	}
	return found.extent, nil
}

// A runLog is the file for the full output of a command, or none.
type runLog struct{ file *os.File }

func (e *execution) openLog() (runLog, error) {
	dir := e.sandbox.spec.LogDir
	if dir == "" {
		return runLog{}, nil
	}
	file, err := os.CreateTemp(dir, fmt.Sprintf("run-%d-*.log", e.number))
	if err != nil {
		return runLog{}, fail(CodeSetup, err, "The log of the command cannot be written")
	}
	return runLog{file}, nil
}

func (l runLog) writer() io.Writer {
	if l.file == nil {
		return io.Discard
	}
	return l.file
}

func (l runLog) path() string {
	if l.file == nil {
		return ""
	}
	return l.file.Name()
}

// label is how the line about omitted output names the log.
func (l runLog) label(number int) string {
	if l.file == nil {
		return ""
	}
	return fmt.Sprintf(", full log: run-%d", number)
}

func (l runLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// pipes are the descriptors between the parent and the init process.
type pipes struct {
	stdin, output, control, status pipe
	launch                         *os.File
}

type pipe struct{ r, w *os.File }

func (p *pipe) open() (err error) {
	p.r, p.w, err = os.Pipe()
	return err
}

func (p *pipes) open(l *launch) (err error) {
	for _, pipe := range []*pipe{&p.stdin, &p.output, &p.control, &p.status} {
		if err := pipe.open(); err != nil {
			p.close()
			return err
		}
	}
	if p.launch, err = l.file(); err != nil {
		p.close()
	}
	return err
}

// theirs are the ends that the init process gets, in the order of their
// numbers there.
func (p *pipes) theirs() []*os.File {
	return []*os.File{p.stdin.r, p.output.w, p.output.w, p.launch, p.control.r, p.status.w}
}

func (p *pipes) closeTheirs() {
	for _, file := range []*os.File{p.stdin.r, p.output.w, p.launch, p.control.r, p.status.w} {
		_ = file.Close()
	}
}

// close closes what is still open; files may be closed twice.
func (p *pipes) close() {
	for _, file := range []*os.File{p.stdin.r, p.stdin.w, p.output.r, p.output.w, p.control.r, p.control.w, p.status.r, p.status.w, p.launch} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// process starts the init process and returns what it reported.
func (e *execution) process(ctx context.Context, stdin []byte, output *collector, start extent) (status, error) {
	var p pipes
	if err := p.open(e.launch); err != nil {
		return status{}, err
	}
	defer p.close()
	dead, child, err := e.start(&p)
	if err != nil {
		return status{}, err
	}
	e.armed(func() { e.killTree(child, p.control.w) })

	var side sync.WaitGroup
	side.Go(func() { feed(p.stdin.w, stdin) })
	side.Go(func() { e.watchTime(ctx) })
	side.Go(func() { e.watchdog(child.Pid, start).watch(e.done) })
	pumped := make(chan error, 1)
	go func() { pumped <- e.pump(p.output.r, output) }()
	var st status
	reportErr := json.NewDecoder(p.status.r).Decode(&st)

	<-dead
	close(e.done)
	_ = p.stdin.w.Close()
	err = awaitPump(pumped, p.output.r)
	side.Wait()
	e.watchdog(0, start).lookAtDisk(nil)
	if reportErr != nil {
		st = status{Signal: "SIGKILL", ExitCode: 128 + int(unix.SIGKILL)}
		e.end(ReasonSandbox, "The sandbox's first process was killed, by the kernel for want of memory or by a person.")
	}
	return st, err
}

// quickStart is the environment of the processes that become sandboxes. They
// live for one command: a second thread or a collection would only cost time,
// and so would the second for which the race detector, where it is built in,
// waits at the end.
var quickStart = []string{"GOMAXPROCS=1", "GOGC=off", "GORACE=atexit_sleep_ms=0"}

// start starts the program again as a sandbox. The thread that does it lives
// until the process is dead, because the death signal watches the thread.
func (e *execution) start(p *pipes) (dead <-chan struct{}, child *os.Process, err error) {
	type outcome struct {
		child *os.Process
		err   error
	}
	started, ended := make(chan outcome), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		child, err := os.StartProcess("/proc/self/exe", []string{initName}, &os.ProcAttr{
			Dir: "/", Env: quickStart, Files: p.theirs(), Sys: e.attributes(),
		})
		p.closeTheirs()
		started <- outcome{child, err}
		if err == nil {
			_, _ = child.Wait()
			close(ended)
		}
	}()
	got := <-started
	return ended, got.child, got.err
}

// attributes say in what the init process differs from its parent.
func (e *execution) attributes() *syscall.SysProcAttr {
	if !e.launch.Tier.ownWorld() {
		return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	}
	id := e.launch.Identity
	return &syscall.SysProcAttr{
		Setsid:    true,
		Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: insideID, HostID: id.UID, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: insideID, HostID: id.GID, Size: 1}},
		GidMappingsEnableSetgroups: id.Switch,
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID},
	}
}

// killTree takes all processes of a command down. In a pid namespace the kernel
// does that with the first one; elsewhere the supervisor does, when its
// parent lets go of the control pipe.
func (e *execution) killTree(child *os.Process, control *os.File) {
	_ = control.Close()
	if e.launch.Tier.ownWorld() {
		_ = child.Kill()
	}
}

func (e *execution) watchdog(pid int, start extent) *watchdog {
	return &watchdog{pid: pid, limits: e.limits, trees: e.sandbox.trees(), base: e.sandbox.base, start: start, free: e.free, end: e.end}
}

// watchTime ends the command when its time is up or its caller gives up.
func (e *execution) watchTime(ctx context.Context) {
	timer := time.NewTimer(e.limits.Wall)
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
		e.end(ReasonTimeout, fmt.Sprintf("The command ran for longer than %s.", e.limits.Wall))
	case <-ctx.Done():
		e.end(ReasonCanceled, "The command was canceled.")
	}
}

// feed writes the command's standard input, as far as it is read.
func feed(w *os.File, data []byte) {
	if len(data) > 0 {
		_, _ = w.Write(data)
	}
	_ = w.Close()
}

// pump reads the output until nobody can write any more, and ends the command
// when there is too much of it.
func (e *execution) pump(r io.Reader, output *collector) error {
	var failed error
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		room := e.limits.Output - output.raw
		if int64(n) > room {
			n = int(max(room, 0))
			e.end(ReasonOutput, fmt.Sprintf("The command printed more than %s.", size(e.limits.Output)))
		}
		if n > 0 {
			if _, err := output.Write(buffer[:n]); err != nil && failed == nil {
				failed = fmt.Errorf("write the log: %w", err)
			}
		}
		if err != nil {
			return failed
		}
	}
}

// stragglers is how long output may come after the last process is dead. It
// never does, unless a process of the host has got hold of the pipe.
const stragglers = 5 * time.Second

func awaitPump(pumped <-chan error, r *os.File) error {
	_ = r.SetReadDeadline(time.Now().Add(stragglers))
	return <-pumped
}

// resultOf puts together what the sandbox reports and what the parent did.
func resultOf(st status, reason Reason, detail string) Result {
	result := Result{
		ExitCode: st.ExitCode, Signal: st.Signal, Reason: reason, Detail: detail,
		Usage: Usage{CPU: st.CPU, MaxRSS: st.MaxRSS},
	}
	switch {
	case reason != "":
	case st.NotFound != "":
		result.ExitCode, result.Reason = 127, ReasonExited
	case st.Signal == "SIGXCPU":
		result.Reason, result.Detail = ReasonTimeout, "A process used more processor time than allowed."
	case st.Signal == "SIGXFSZ":
		result.Reason, result.Detail = ReasonDisk, "A process wrote a larger file than allowed."
	default:
		result.Reason = ReasonExited
	}
	if st.Unroutable > 0 {
		result.Blocked = append(result.Blocked, fmt.Sprintf("%d packets to addresses outside of the sandbox, which has no network", st.Unroutable))
	}
	return result
}
