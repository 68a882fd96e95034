//go:build linux && (amd64 || arm64)

package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// startSelf starts this test binary with one test to run.
func startSelf(t *testing.T, run string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^"+run, "-test.count=1", "-test.v")
	command.Env = append(os.Environ(), env...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command
}

const nobody = 65534

// theStory are the tests that are repeated under other circumstances.
func theStory() string {
	story := "^(TestFilesOfTheHost.*|TestMoveAndLink.*|TestModes.*|TestExitCodes.*|TestPaths.*|TestAttacksAreRefused|TestTheEnvironment.*|" +
		"TestADirectoryCanBeClosed.*|TestSetuid.*|TestNothingOutlives.*|TestCancel.*|TestTheHost.*|TestTheTierIsTheOneExpected"
	if os.Getenv("CI") == "true" {
		story += "|TestGoBuildsAndTests"
	}
	return story + ")$"
}

// A circumstance is another situation to be in than that of the tests.
type circumstance struct {
	ordinary  bool // not root
	container bool // no namespaces, and fewer capabilities
	want      Tier
}

func TestUnderOtherCircumstances(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "other circumstances, because only root can bring them about")
	}
	for name, c := range map[string]circumstance{
		"as an ordinary user":                        {ordinary: true, want: Full},
		"as root in a default container":             {container: true, want: Restricted},
		"as an ordinary user in a default container": {ordinary: true, container: true, want: Restricted},
	} {
		t.Run(name, func(t *testing.T) {
			newRoom(t, c.want) // or skip
			home := privateCopy(t, c.ordinary)
			command := exec.Command(filepath.Join(home, "handoff.test"), "-test.run="+theStory(), "-test.v")
			command.Dir = home
			command.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"),
				tierVariable + "=" + c.want.String(), cacheVariable + "=" + copyOfCache(t, home, c.ordinary)}
			if c.container {
				command.Env = append(command.Env, containerVariable+"=1")
			}
			if c.ordinary {
				command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			output, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, output)
			}
			for _, must := range []string{"TestAttacksAreRefused/" + c.want.String(), "TestTheTierIsTheOneExpected"} {
				if !strings.Contains(string(output), "--- PASS: "+must+" ") {
					t.Errorf("%s did not run:\n%s", must, output)
				}
			}
		})
	}
}

// privateCopy copies the test binary to where the other user can run it.
func privateCopy(t *testing.T, ordinary bool) string {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "handoff-copy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { RemoveTree(home) })
	if ordinary {
		if err := os.Chown(home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := os.OpenFile(filepath.Join(home, "handoff.test"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	return home
}

// copyOfCache copies a filled build cache, if Go builds are to be tested.
func copyOfCache(t *testing.T, home string, ordinary bool) string {
	t.Helper()
	dir := filepath.Join(home, "go-build")
	if os.Getenv("CI") == "true" {
		r := newRoom(t, None, withGo(t))
		r.write("go.mod", "module adder\n\ngo 1.21\n")
		r.write("adder_test.go", passingTest)
		if result := r.run(Command{Shell: "go test && go vet && go build fmt", Env: goEnv(t, r)}); !result.OK() {
			t.Fatalf("%+v", result)
		}
		if err := os.CopyFS(dir, os.DirFS(goCache())); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if ordinary {
		if _, err := claim([]string{dir}, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	tierVariable      = "HANDOFF_TEST_TIER"
	containerVariable = "HANDOFF_TEST_CONTAINER"
)

func TestTheTierIsTheOneExpected(t *testing.T) {
	want := os.Getenv(tierVariable)
	if want == "" {
		t.Skip("only meant for other circumstances")
	}
	driver := NewLocal(LocalOptions{StateDir: filepath.Join(t.TempDir(), "state")})
	found, err := driver.Probe(t.Context())
	if err != nil || found.Tier.String() != want {
		t.Errorf("tier %s, want %s: %v, %v", found.Tier, want, found.Findings, err)
	}
	if found.Tier < Full && len(found.Findings) == 0 {
		t.Error("nobody is told what keeps the machine from the full tier")
	}
}

// containerCapabilities are those that Docker leaves to a container's root
// (docs.docker.com/engine/containers/run, "Runtime privilege").
var containerCapabilities = []uintptr{
	unix.CAP_AUDIT_WRITE, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_MKNOD,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SETFCAP, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_CHROOT,
}

// becomeContainer imitates a default container: a filter like that of Docker's
// default profile where it matters here, and its capabilities. It starts the
// program again.
func becomeContainer() {
	runtime.LockOSThread()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(os.Unsetenv(containerVariable))
	if os.Getuid() != 0 {
		must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	must(containerFilter())
	for capability := uintptr(0); os.Getuid() == 0 && capability <= unix.CAP_LAST_CAP; capability++ {
		if !slices.Contains(containerCapabilities, capability) {
			must(unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0))
		}
	}
	must(unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func containerFilter() error {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: offsetNumber, Size: 4}}
	for _, number := range []uint32{unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_SETNS, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_BPF, unix.SYS_KEYCTL} {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.EPERM))
	}
	program = append(program, when(unix.SYS_CLONE3, refuse(unix.ENOSYS))...)
	program = append(program, when(unix.SYS_CLONE, refuseFlags(0, namespaceFlags)...)...)
	raw, err := bpf.Assemble(append(program, allow))
	if err != nil {
		return err
	}
	instructions := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		instructions[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	_, err = installFilter(&unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}, 0)
	return err
}
