//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lower makes limits small enough to be reached at once.
func lower(change func(*Limits)) func(*Spec) {
	return func(s *Spec) { change(&s.Limits) }
}

func TestLimitsEndCommands(t *testing.T) {
	python(t)
	cases := []struct {
		name   string
		limits func(*Limits)
		script string
		want   Reason
	}{
		{"sleep too long", func(l *Limits) { l.Wall = 300 * time.Millisecond }, "sleep 60", ReasonTimeout},
		{"spin too long", func(l *Limits) { l.CPU = time.Second }, "while :; do :; done", ReasonTimeout},
		{"ignore every signal", func(l *Limits) { l.Wall = 300 * time.Millisecond }, "trap '' TERM INT HUP; sleep 60 & wait; sleep 60", ReasonTimeout},
		{"print without end", func(l *Limits) { l.Output = 1 << 20 }, "yes", ReasonOutput},
		{"many processes", func(l *Limits) { l.Processes = 20 }, "for i in $(seq 100); do sleep 60 & done; wait", ReasonPids},
		{"fork bomb", func(l *Limits) { l.Processes = 30 }, "/usr/bin/python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'", ReasonPids},
		{"memory of one process", func(l *Limits) { l.Memory = 64 << 20 }, "/usr/bin/python3 -c 'import mmap,time\nm = mmap.mmap(-1, 128 << 20)\nfor i in range(0, 128 << 20, 4096): m[i] = 1\ntime.sleep(60)'", ReasonMemory},
		{"memory of many processes", func(l *Limits) { l.Memory = 64 << 20 },
			"for i in 1 2 3 4; do /usr/bin/python3 -c 'import time; x = b\"1\" * (24 << 20); time.sleep(60)' & done; wait", ReasonMemory},
		{"memory file", func(l *Limits) { l.Memory = 64 << 20 },
			"/usr/bin/python3 -c 'import os,time\nf = os.memfd_create(\"x\")\nfor i in range(100): os.write(f, b\"1\" * (1 << 20))\ntime.sleep(60)'", ReasonMemory},
		{"fill the disk", func(l *Limits) { l.Disk = 32 << 20 },
			"for i in $(seq 100); do dd if=/dev/zero of=f$i bs=1M count=1 2>/dev/null; done; sleep 60", ReasonDisk},
		{"fill the disk with a deleted file", func(l *Limits) { l.Disk = 32 << 20 },
			"exec 5> gone; rm gone; dd if=/dev/zero bs=1M count=64 >&5 2>/dev/null; sleep 60", ReasonDisk},
		{"fill the disk and leave", func(l *Limits) { l.Disk = 32 << 20 }, "dd if=/dev/zero of=f bs=1M count=64 2>/dev/null", ReasonDisk},
		{"many files", func(l *Limits) { l.Files = 500 }, "mkdir d; cd d; seq 2000 | xargs touch; sleep 60", ReasonFiles},
		{"deep directories", func(l *Limits) {},
			"/usr/bin/python3 -c 'import os,time\nfor i in range(600): os.mkdir(\"d\"); os.chdir(\"d\")\ntime.sleep(60)'", ReasonFiles},
		{"one large file", func(l *Limits) { l.FileSize = 1 << 20 }, "exec dd if=/dev/zero of=f bs=1M count=2", ReasonDisk},
		{"a sparse terabyte", func(l *Limits) {}, "exec truncate -s 1T f", ReasonDisk},
	}
	for _, tier := range append(isolating, None) {
		for _, c := range cases {
			t.Run(tier.String()+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				if os.Getenv("CI") != "true" && tier != Full && tier != Restricted {
					t.Skip("not tested without CI=true: limits in tiers that share their code with others")
				}
				if tier == None && os.Getuid() == 0 && strings.Contains(c.name, "bomb") {
					t.Skip("not tested: the kernel does not bound root's processes, and the bomb would be a real one")
				}
				r := newRoom(t, tier, lower(c.limits))
				result := r.shell(c.script)
				if result.Reason != c.want {
					t.Errorf("ended with %s (%s), want %s: %+v", result.Reason, result.Detail, c.want, result)
				}
				if result.Detail == "" {
					t.Error("nobody is told why")
				}
			})
		}
	}
}

// What happens to the disk elsewhere must not matter, so a file beside the
// workspace is there before and goes away meanwhile.
func TestADirectoryCanBeClosedButNotFilled(t *testing.T) {
	inTiers(t, []Tier{Full, Restricted}, func(t *testing.T, r *room) {
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		if err := os.WriteFile(elsewhere, make([]byte, 128<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { os.Remove(elsewhere) })
		result := r.shell("mkdir -p closed/inner; cd closed/inner; chmod 0 ..; for i in $(seq 64); do dd if=/dev/zero of=f$i bs=1M count=1 2>/dev/null; done; sync; sleep 60")
		if result.Reason != ReasonDisk {
			t.Errorf("%+v", result)
		}
	}, lower(func(l *Limits) { l.Disk = 32 << 20 }))
}

// A session whose disk is full must still be able to clear up.
func TestACommandMayClearUp(t *testing.T) {
	r := newRoom(t, Full, lower(func(l *Limits) { l.Disk = 8 << 20 }))
	if result := r.shell("dd if=/dev/zero of=f bs=1M count=16 2>/dev/null"); result.Reason != ReasonDisk {
		t.Fatalf("%+v", result)
	}
	r.works("sleep 1.5; rm f; sleep 1.5")
}

// The mark makes processes of one test findable on the host.
func mark(t *testing.T) string { return strconv.FormatInt(time.Now().UnixNano()%1e9+1e9, 10) }

// alive lists the host's processes whose arguments hold the mark.
func alive(mark string) []string {
	var found []string
	for pid := range allProcesses() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, ok := statOf(pid)
		if err == nil && ok && !stat.zombie && strings.Contains(string(data), mark) {
			found = append(found, fmt.Sprintf("%d %q", pid, data))
		}
	}
	return found
}

func TestNothingOutlivesACommand(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		mark := mark(t)
		daemons := "setsid sleep " + mark + " >/dev/null 2>&1 & (setsid setsid sleep " + mark + " &) ; nohup sleep " + mark + " >/dev/null 2>&1 & sleep 0.1; echo left"
		if got := r.works(daemons); got != "left\n" {
			t.Errorf("got %q", got)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("alive after the end: %v", left)
		}
	})
}

func TestCancelTakesTheTreeDown(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		mark := mark(t)
		ctx, cancel := context.WithCancel(t.Context())
		command := Command{
			Shell:    "setsid sleep " + mark + " & sleep 0.1; echo started; sleep " + mark,
			OnOutput: func(p []byte) { cancel() },
		}
		result, err := r.Exec(ctx, command)
		if err != nil || result.Reason != ReasonCanceled {
			t.Errorf("%+v, %v", result, err)
		}
		if left := alive(mark); len(left) > 0 {
			t.Errorf("alive after the end: %v", left)
		}
	})
}

func TestCloseEndsWhatRuns(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		started := make(chan struct{})
		ended := make(chan Result)
		go func() {
			result, _ := r.Exec(t.Context(), Command{Shell: "echo started; sleep 60", OnOutput: func([]byte) { close(started) }})
			ended <- result
		}()
		<-started
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if result := <-ended; result.Reason != ReasonCanceled {
			t.Errorf("%+v", result)
		}
		if _, err := r.Exec(t.Context(), Command{Shell: "true"}); err == nil {
			t.Error("a closed sandbox ran a command")
		}
	})
}

func TestSweepRemovesOnlyTheDead(t *testing.T) {
	driver := newLocal("local", LocalOptions{StateDir: filepath.Join(t.TempDir(), "state")}, None, false)
	living, err := driver.Create(t.Context(), Spec{ID: "living", Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	dead := filepath.Join(driver.stateDir, "dead-1")
	if err := os.MkdirAll(filepath.Join(dead, "tmp/closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, err := driver.Sweep(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("swept %d young ones, %v", n, err)
	}
	if n, err := driver.Sweep(t.Context(), 0); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if result, err := living.Exec(t.Context(), Command{Shell: "touch $TMPDIR/x"}); err != nil || !result.OK() {
		t.Errorf("the living sandbox was swept: %+v, %v", result, err)
	}
}

// TestDriverDeath kills a program that uses the driver in the middle of a
// command. The helper is this test binary.
func TestDriverDeath(t *testing.T) {
	if os.Getenv("HANDOFF_TEST_DRIVER") != "" {
		driveUntilKilled(t)
	}
	for _, tier := range append(isolating, None) {
		t.Run(tier.String(), func(t *testing.T) {
			newRoom(t, tier) // or skip
			mark := mark(t)
			helper := startSelf(t, "TestDriverDeath$", "HANDOFF_TEST_DRIVER="+tier.String(), "HANDOFF_TEST_MARK="+mark)
			waitFor(t, func() bool { return len(alive("sleep\x00"+mark)) >= 2 })
			if err := helper.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = helper.Wait()
			waitFor(t, func() bool { return len(alive("sleep\x00"+mark)) == 0 })
		})
	}
}

func driveUntilKilled(t *testing.T) {
	mark := os.Getenv("HANDOFF_TEST_MARK")
	for tier, name := range tierNames {
		if name == os.Getenv("HANDOFF_TEST_DRIVER") {
			newRoom(t, tier).shell("setsid sleep " + mark + " & sleep " + mark)
		}
	}
}

// waitFor returns when the condition holds. It fails only after so long that
// the cause is no slow machine.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for range 3000 {
		if condition() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it never happened")
}
