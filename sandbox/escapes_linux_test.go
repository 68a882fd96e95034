//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAttacksAreRefused(t *testing.T) {
	for _, tier := range isolating {
		t.Run(tier.String(), func(t *testing.T) {
			r := newRoom(t, tier)
			a := newArena(t, r)
			encoded, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			result := r.run(Command{Args: []string{a.Attack, "attack", string(encoded)}})
			var got map[string]syscall.Errno
			if err := json.Unmarshal([]byte(result.Output), &got); err != nil {
				t.Fatalf("%+v", result)
			}
			if info, err := os.Stat(a.Canary); err != nil || info.Mode().Perm() != 0o644 || time.Since(info.ModTime()) > time.Hour {
				t.Errorf("the bot's file was changed: %v, %v", info, err)
			}
			// A world of its own sees what went nowhere; where sockets are
			// refused there is nothing to count.
			if told := strings.Contains(strings.Join(result.Blocked, "\n"), "packets to addresses outside of the sandbox"); told != tier.ownWorld() {
				t.Errorf("what was refused of the network is told as %q", result.Blocked)
			}
			for _, attack := range attacks {
				want := attack.shared
				if tier.ownWorld() {
					want = attack.world
				}
				if want != nil && !slices.Contains(want, got[attack.name]) {
					t.Errorf("%s: got %v, want %v", attack.name, got[attack.name], want)
				}
			}
		})
	}
}

// newArena puts up what an attacker would be after.
func newArena(t *testing.T, r *room) arena {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	secrets := t.TempDir()
	// The worst case: the host's permissions let everybody in.
	if err := os.Chmod(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	a := arena{Parent: os.Getpid(), Workspace: r.Path(r.workspace), Attack: r.Path(self)}
	a.Canary = filepath.Join(secrets, "app-key.pem")
	a.Other = filepath.Join(t.TempDir(), "file")
	for _, path := range []string{a.Canary, a.Other} {
		if err := os.WriteFile(path, []byte("canary"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.TCP = listen(t, "tcp", "127.0.0.1:0")
	a.SocketFile = listen(t, "unix", filepath.Join(secrets, "engine.sock"))
	a.Abstract = listen(t, "unix", "@handoff-test-"+filepath.Base(secrets))
	a.LeakedFile = leak(t, a.Canary)
	return a
}

func listen(t *testing.T, network, address string) string {
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// leak opens a file as careless code would: open for every child, too.
func leak(t *testing.T, path string) [2]uint64 {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		t.Fatal(err)
	}
	return [2]uint64{uint64(info.Dev), info.Ino}
}

// TestTheAttacksWork runs the attacks outside of any sandbox: an attack that
// fails there, too, proves nothing about the sandbox.
func TestTheAttacksWork(t *testing.T) {
	r := newRoom(t, None)
	a := newArena(t, r)
	for _, name := range []string{
		"read a file of the bot", "read another session's file", "through /proc/self/root", "through a symbolic link",
		"connect to a port of the host", "connect to a socket file of the host", "connect to an abstract socket of the host",
		"read the bot's environment", "signal the bot", "use an inherited descriptor",
	} {
		at := slices.IndexFunc(attacks, func(x attack) bool { return x.name == name })
		if err := attacks[at].try(a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("HANDOFF_TEST_SECRET", "canary-value")
	inEveryTier(t, func(t *testing.T, r *room) {
		result := r.run(Command{Shell: "env; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/$PPID/environ", Env: map[string]string{"GIVEN": "yes"}})
		if strings.Contains(result.Output, "canary-value") || !strings.Contains(result.Output, "GIVEN=yes\n") {
			t.Errorf("environment: %s", result.Output)
		}
	})
}

func TestPidOneCannotBeKilled(t *testing.T) {
	inTiers(t, []Tier{Full, Namespaces}, func(t *testing.T, r *room) {
		script := "for s in HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STOP TSTP SYS; do kill -$s 1 2>/dev/null; done; sleep 0.1; echo alive"
		if got := r.works(script); got != "alive\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestEverybodyCanBeSignalledButNobodyElse(t *testing.T) {
	inTiers(t, isolating, func(t *testing.T, r *room) {
		// This test's own process is the witness.
		r.shell("kill -KILL -1; kill -TERM -1")
		if result := r.shell("echo still here"); !result.OK() {
			t.Errorf("%+v", result)
		}
	})
}

func TestSetuidFilesAreOrdinary(t *testing.T) {
	inTiers(t, isolating, func(t *testing.T, r *room) {
		got := r.works("cp /usr/bin/id . && chmod 6755 id && ./id -u && /usr/bin/id -u")
		first, second, _ := strings.Cut(strings.TrimSpace(got), "\n")
		if first != second || first == "0" && os.Getuid() == 0 {
			t.Errorf("got %q", got)
		}
		info, err := os.Stat(filepath.Join(r.workspace, "id"))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
			t.Error("the sandbox left a setuid file of root's on the host")
		}
	})
}

func TestTheHostIsNotHarmedByFilesLeftBehind(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.works(`mkfifo pipe && mkdir -p closed/inner && touch closed/inner/file "$(printf 'a\nb\377')" -- -rf && ln -s / root && ln -s loop loop && chmod 0 closed/inner closed`)
		r.works("echo next command starts")
	})
}

func TestHardLinksToFilesElsewhereAreNotGivenAway(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "change of ownership, because this is not root")
	}
	r := newRoom(t, Full)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, filepath.Join(r.workspace, "inside")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Exec(t.Context(), Command{Shell: "cat inside"}); err == nil {
		t.Error("a file with a second name was given to the sandbox")
	}
	info, err := os.Stat(outside)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Error("the file outside has a new owner")
	}
}

// A machine that offers nothing must get a refusal, not a command that runs
// without isolation.
func TestNoTierNoSandbox(t *testing.T) {
	driver := newLocal("local", LocalOptions{StateDir: t.TempDir()}, None, true)
	_, err := driver.Create(t.Context(), Spec{ID: "x", Workspace: t.TempDir()})
	if failure, ok := errors.AsType[*Error](err); !ok || failure.Code != CodeUnavailable {
		t.Errorf("got %v", err)
	}
}

// Nobody becomes a sandbox by accident: the name alone does nothing.
func TestTheNameAloneDoesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{initName, confineName} {
		file, err := os.CreateTemp(t.TempDir(), initName)
		if err != nil {
			t.Fatal(err)
		}
		// Without arguments the test binary runs all tests, so one is named in
		// the environment, and the file on descriptor 3 is no sealed launch.
		command := &exec.Cmd{Path: self, Args: []string{name}, Env: []string{"HANDOFF_TEST_NAME=1"}, ExtraFiles: []*os.File{file}}
		if output, err := command.CombinedOutput(); err != nil || string(output) != "an ordinary program\n" {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}

// `go run` and upgrades delete a program while it runs.
func TestADeletedProgramCanStillIsolate(t *testing.T) {
	if os.Getenv("HANDOFF_TEST_DELETED") == "" {
		command := exec.Command(filepath.Join(privateCopy(t, false), "handoff.test"), "-test.run=^TestADeletedProgram")
		command.Env = append(os.Environ(), "HANDOFF_TEST_DELETED=1")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(self); err != nil {
		t.Fatal(err)
	}
	for _, tier := range append(isolating, None) {
		driver := newLocal("local", LocalOptions{StateDir: filepath.Join(t.TempDir(), "state")}, tier, tier != None)
		if found, err := driver.Probe(t.Context()); err != nil || found.Tier != tier {
			lacks(t, "tier %s after the program was deleted: %v, %v", tier, found.Findings, err)
		}
		sandbox, err := driver.Create(t.Context(), Spec{ID: "deleted", Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if result, err := sandbox.Exec(t.Context(), Command{Shell: "echo ran"}); err != nil || result.Output != "ran\n" {
			t.Errorf("tier %s: %+v, %v", tier, result, err)
		}
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	}
}
