package verdict

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// readIn returns what a log makes of an output that comes in pieces.
func readIn(output []byte, size int) ([]string, bool) {
	log := NewLog()
	for piece := range slices.Chunk(output, size) {
		if n, err := log.Write(piece); n != len(piece) || err != nil {
			panic(fmt.Sprint(n, err))
		}
	}
	return log.Failures()
}

// Each file of testdata is the output of a test runner and the tests that it
// names as failed.
func TestFailedTestsAreNamedInManyFormats(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			output := archive.Files[0].Data
			var want []string
			for name := range strings.Lines(string(archive.Files[1].Data)) {
				want = append(want, strings.TrimSpace(name))
			}
			want = slices.DeleteFunc(want, func(name string) bool { return name == "" })
			for _, size := range []int{len(output), 1, 7} {
				got, complete := readIn(output, size)
				if !slices.Equal(got, want) || !complete {
					t.Errorf("in pieces of %d, complete %v:\n%s", size, complete, cmp.Diff(want, got))
				}
			}
			windows := bytes.ReplaceAll(output, []byte("\n"), []byte("\r\n"))
			if got, _ := readIn(windows, 100); !slices.Equal(got, want) {
				t.Errorf("with carriage returns: %q", got)
			}
		})
	}
}

func TestALineThatWasWrittenOverCounts(t *testing.T) {
	if got, _ := readIn([]byte("running 3/9\rFAIL: cart\n"), 100); !slices.Equal(got, []string{"cart"}) {
		t.Errorf("%q", got)
	}
}

func TestAHostileOutputIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for what, test := range map[string]struct {
		output   string
		names    int
		complete bool
	}{
		"an endless line":          {"not ok 1 - " + long, 0, true},
		"a line after it":          {long + "\nnot ok 1 - a\n", 1, true},
		"too many tests":           {numbered("not ok 1 - test %d\n", 2*maxNames), maxNames, false},
		"too many of one package":  {numbered("--- FAIL: Test%d (0s)\n", 2*maxNames) + "FAIL\tshop\t0.1s\n", maxNames, false},
		"the same one again":       {strings.Repeat("not ok 1 - a\n", 10_000), 1, true},
		"long names":               {"not ok 1 - " + long[:5000] + "a\nnot ok 2 - " + long[:5000] + "b\n", 2, true},
		"bytes that are no text":   {"not ok 1 - \xff\xfe\n", 1, true},
		"a name of nothing":        {"not ok 1 -  \nFAIL: \n", 0, true},
		"deep JSON":                {strings.Repeat(`{"a":`, 10_000) + "\n", 0, true},
		"events of no such action": {`{"Action":"fail","Package":"p","Test":["a"]}` + "\n", 0, true},
	} {
		names, complete := readIn([]byte(test.output), 4096)
		if len(names) != test.names || complete != test.complete {
			t.Errorf("%s: %d names, complete %v; want %d, %v", what, len(names), complete, test.names, test.complete)
		}
		for _, name := range names {
			if len(name) > maxName+20 || !utf8.ValidString(name) {
				t.Errorf("%s: a name of %d bytes", what, len(name))
			}
		}
	}
}

func numbered(line string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

func FuzzLog(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		whole, complete := readIn(output, max(len(output), 1))
		pieces, again := readIn(output, 3)
		if complete != again || !slices.Equal(whole, pieces) {
			t.Fatalf("whole %q, in pieces %q", whole, pieces)
		}
		if len(whole) > maxNames {
			t.Fatalf("%d names", len(whole))
		}
		for i, name := range whole {
			if name == "" || len(name) > maxName+20 || !utf8.ValidString(name) || strings.Contains(name, "\n") || slices.Contains(whole[:i], name) {
				t.Fatalf("the name %q", name)
			}
		}
	})
}
