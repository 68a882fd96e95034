//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// What a build needs must work. A sandbox that breaks builds is switched off.

func withGo(t *testing.T) func(*Spec) {
	toolchain, err := GoToolchain()
	if err != nil {
		lacks(t, "Go builds: %v", err)
	}
	cache := goCache()
	return func(s *Spec) {
		s.ReadOnly = append(s.ReadOnly, toolchain.Mounts...)
		s.Writable = append(s.Writable, Mount{Source: cache, Target: "/cache/go-build"})
	}
}

// goCache is one build cache for all tests: to fill it takes longer than they do.
var goCache = sync.OnceValue(func() string {
	if dir := os.Getenv(cacheVariable); dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp("", "handoff-go-build-")
	if err != nil {
		panic(err)
	}
	madeCache = dir
	return dir
})

// madeCache is what TestMain removes.
var madeCache string

const cacheVariable = "HANDOFF_TEST_GOCACHE"

func goEnv(t *testing.T, r *room) map[string]string {
	toolchain, err := GoToolchain()
	if err != nil {
		t.Fatal(err)
	}
	env := toolchain.Env(r.Path)
	env["GOCACHE"] = r.Path(r.spec.Writable[0].Source)
	return env
}

const passingTest = `package adder

import "testing"

func TestAdd(t *testing.T) {
	if 1+1 != 2 {
		t.Fatal("no")
	}
}
`

func TestGoBuildsAndTests(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.write("go.mod", "module adder\n\ngo 1.21\n")
		r.write("adder_test.go", passingTest)
		r.write("cmd/main.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built\") }\n")
		env := goEnv(t, r)
		for _, script := range []string{"go test ./...", "go build -o adder ./cmd && ./adder", "go vet ./..."} {
			result := r.run(Command{Shell: script, Env: env})
			if !result.OK() {
				t.Fatalf("%s: %+v", script, result)
			}
		}
		if _, err := os.Stat(filepath.Join(r.workspace, "adder")); err != nil {
			t.Error("the host does not see what was built:", err)
		}
	}, withGo(t))
}

func TestFilesOfTheHostCanBeChanged(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.write("before.txt", "host\n")
		r.works("echo sandbox >> before.txt && mkdir -p a/b && echo new > a/b/c && chmod +x a/b/c")
		// A tool of the host writes between two commands, with its own identity.
		r.write("a/b/later.txt", "host\n")
		r.works("echo sandbox >> a/b/later.txt && rm before.txt")
		data, err := os.ReadFile(filepath.Join(r.workspace, "a/b/later.txt"))
		if err != nil || string(data) != "host\nsandbox\n" {
			t.Errorf("got %q, %v", data, err)
		}
	})
}

func TestMoveAndLinkAcrossDirectories(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.works(`mkdir a b && echo 1 > a/x && mv a/x b/x && ln b/x a/y && ln -s ../b/x a/z && mv a c && cat c/y c/z && rm -r b c`)
		if r.tier != None {
			r.works(`cd "$TMPDIR" && mkdir a b && echo 1 > a/x && mv a/x b/x && ln b/x a/y`)
		}
	})
}

func TestModesAndTimesCanBeChanged(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.works(`set -e
			echo 'echo ran' > script; chmod 700 script; ./script
			touch -d 2001-02-03T04:05:06Z script; cp -p script copy; test "$(stat -c '%a %Y' copy)" = "700 981173106"
			ln -s script link; touch -h -d 2002-02-03T04:05:06Z link; test "$(stat -c %Y link)" = 1012709106; test "$(stat -c %Y script)" = 981173106
			chmod u=rw link; test "$(stat -c %a script)" = 600
			install -m 755 script installed; mkdir tree; cp -a script tree/; tar cf t.tar tree; rm -r tree; tar xpf t.tar; test "$(stat -c '%a %Y' tree/script)" = "600 981173106"
			chown "$(id -u):$(id -g)" script; touch script; mkdir -m 750 dir; chmod -R u+rwX,go-rwx .
			! chmod 600 missing 2>/dev/null`)
		if r.tier != None {
			r.works(`touch "$TMPDIR/x" && chmod 600 "$TMPDIR/x" && chmod 755 "$HOME"`)
		}
	})
}

func TestTheTemporaryDirectoryLasts(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.works(`echo kept > "$TMPDIR/cache" && echo home > ~/file`)
		if got := r.works(`cat "$TMPDIR/cache" ~/file`); got != "kept\nhome\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestMakeInParallel(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		lacks(t, "make -j: %v", err)
	}
	inEveryTier(t, func(t *testing.T, r *room) {
		var makefile strings.Builder
		makefile.WriteString("all: $(patsubst %,out/%,$(shell seq 1 40))\nout/%:\n\t@mkdir -p out && echo $* > $@\n")
		r.write("Makefile", makefile.String())
		r.works("make -j8 && test $(ls out | wc -l) = 40")
	})
}

func TestPythonMultiprocessing(t *testing.T) {
	python(t)
	inTiers(t, []Tier{Full, Namespaces, None}, func(t *testing.T, r *room) {
		r.write("pool.py", "import multiprocessing as m\ndef f(x): return x*x\nif __name__ == '__main__':\n  with m.Pool(4) as p: print(sum(p.map(f, range(100))))\n")
		if got := r.works("/usr/bin/python3 pool.py"); got != "328350\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestPythonSubprocessesWhereThereIsNoSharedMemory(t *testing.T) {
	python(t)
	inTiers(t, []Tier{Restricted}, func(t *testing.T, r *room) {
		r.write("run.py", "import subprocess\nprint(subprocess.run(['echo', 'ran'], capture_output=True, text=True).stdout)\n")
		r.works("/usr/bin/python3 run.py")
	})
}

func python(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		lacks(t, "Python: %v", err)
	}
}

func TestNodeServesOnLoopback(t *testing.T) {
	if _, err := os.Stat("/usr/bin/node"); err != nil {
		lacks(t, "node: %v", err)
	}
	inTiers(t, []Tier{Full, Namespaces}, func(t *testing.T, r *room) {
		r.write("serve.js", `const http = require('http');
const s = http.createServer((q, a) => a.end('hello')).listen(0, '127.0.0.1', async () => {
  const r = await fetch('http://localhost:' + s.address().port); console.log(await r.text()); process.exit(0); });`)
		if got := r.works("node serve.js"); got != "hello\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestNodeRunsWithoutSockets(t *testing.T) {
	if _, err := os.Stat("/usr/bin/node"); err != nil {
		lacks(t, "node: %v", err)
	}
	inTiers(t, []Tier{Restricted}, func(t *testing.T, r *room) {
		r.works(`node -e 'require("child_process").execSync("echo ok > out"); console.log(require("fs").readFileSync("out","utf8"))'`)
	})
}

func TestLongLegalOutput(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		result := r.shell("seq 1 900000") // 6.2 MB, under the limit of 8
		if !result.OK() || !result.Truncated {
			t.Fatalf("%+v", result)
		}
		if !strings.HasPrefix(result.Output, "1\n2\n") || !strings.HasSuffix(result.Output, "\n900000\n") {
			t.Errorf("output does not show both ends: %.40q … %q", result.Output, result.Output[len(result.Output)-40:])
		}
		log, err := os.ReadFile(result.LogPath)
		if err != nil || strings.Count(string(log), "\n") != 900000 {
			t.Errorf("the log holds %d lines, %v", strings.Count(string(log), "\n"), err)
		}
	})
}

func TestExitCodesAndInput(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		if result := r.shell("exit 3"); result.ExitCode != 3 || result.Reason != ReasonExited {
			t.Errorf("exit 3: %+v", result)
		}
		if result := r.shell("kill -TERM $$"); result.ExitCode != 143 || result.Signal != "SIGTERM" || result.Reason != ReasonExited {
			t.Errorf("kill: %+v", result)
		}
		if result := r.run(Command{Args: []string{"no-such-program"}}); result.ExitCode != 127 || !strings.Contains(result.Output, "no-such-program") {
			t.Errorf("missing program: %+v", result)
		}
		if result := r.run(Command{Args: []string{"cat"}, Dir: "nowhere"}); result.ExitCode != 127 {
			t.Errorf("missing directory: %+v", result)
		}
		input := strings.Repeat("0123456789abcdef", 20_000) // more than a pipe holds
		if result := r.run(Command{Args: []string{"wc", "-c"}, Stdin: []byte(input)}); strings.TrimSpace(result.Output) != "320000" {
			t.Errorf("input: %+v", result)
		}
		if result := r.run(Command{Args: []string{"cat"}}); !result.OK() || result.Output != "" {
			t.Errorf("no input: %+v", result)
		}
	})
}

func TestPathsAreTranslated(t *testing.T) {
	inEveryTier(t, func(t *testing.T, r *room) {
		r.write("sub/file", "")
		inside := r.Path(filepath.Join(r.workspace, "sub"))
		if got := r.works("cd " + inside + " && ls && pwd"); got != "file\n"+inside+"\n" {
			t.Errorf("got %q", got)
		}
		if got := r.Normalize(inside + "/x:1: bad"); got != "/workspace/sub/x:1: bad" {
			t.Errorf("normalised to %q", got)
		}
	})
}
