package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// The fuzz targets hold what the package promises for every input whatsoever:
// no panic, the same answer twice, the source untouched, an error with a code
// and no result, and nothing but the hunks' lines gone or new.

// outcome is what a call gave, for comparison.
type outcome struct {
	result Result
	err    error
}

func outcomeOf(result Result, err error) outcome { return outcome{result, err} }

// checkOutcome holds for every call on a source. It returns whether the call
// succeeded.
func checkOutcome(t *testing.T, call func() (Result, error)) (Result, bool) {
	t.Helper()
	first, second := outcomeOf(call()), outcomeOf(call())
	if !reflect.DeepEqual(first, second) {
		t.Fatalf("two calls differ:\n%+v\n%+v", first, second)
	}
	if first.err == nil {
		if !first.result.Deleted && first.result.Text == nil {
			t.Error("no error and no text")
		}
		return first.result, true
	}
	if !reflect.DeepEqual(first.result, Result{}) {
		t.Errorf("an error came with a result: %+v", first.result)
	}
	failure, ok := errors.AsType[*Error](first.err)
	if !ok {
		t.Fatalf("an error without a code: %v", first.err)
	}
	if failure.Code == "" || !strings.HasPrefix(failure.Text, nothingChanged) {
		t.Errorf("code %q: %s", failure.Code, failure.Text)
	}
	if n := strings.Count(failure.Text, "\n") + 1; n > maxErrorLines {
		t.Errorf("the text has %d lines", n)
	}
	return Result{}, false
}

// checkFidelity says that a result keeps the source's lines but for those that
// its hunks removed, and adds no more than they added (rule 2). The last line
// may gain or lose its line ending.
func checkFidelity(t *testing.T, src []byte, result Result) {
	t.Helper()
	added, removed := 0, 0
	for i, h := range result.Hunks {
		added, removed = added+h.Added, removed+h.Removed
		if h.Level < 0 || h.Level > 3 || h.Line < 0 || h.Line > len(newSource(result.Text).lines)+1 {
			t.Errorf("hunk %d: %+v", i+1, h)
		}
	}
	old, new := newSource(src).lines, newSource(result.Text).lines
	if len(new)-len(old) > added || len(old)-len(new) > removed {
		t.Errorf("%d lines became %d, with %d added and %d removed", len(old), len(new), added, removed)
	}
	if len(old)*len(new) > 1<<20 {
		return // too long to compare
	}
	if common := commonLines(rawLines(string(src)), rawLines(string(result.Text))); common < len(old)-removed-1 {
		t.Errorf("only %d of %d kept lines are still there", common, len(old)-removed)
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(poem), poemDiff)
	f.Add([]byte(poem), "*** Begin Patch\n*** Update File: x\n@@ func two\n-\tdelta()\n+\td()\n*** End Patch\n")
	f.Add([]byte(""), "@@\n+x\n@@\n+y\n")
	f.Add([]byte("a\r\nb\r\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n")
	f.Add([]byte("a\nb\nc\nd\n"), "@@\n a\n ...\n d\n+e\n")
	f.Add([]byte("x"), "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -99999999999999999999,5 +1 @@\n-x\n+y\n")
	f.Add([]byte(poem), strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(poemDiff))
	f.Add([]byte("if a < b {\n}\n"), "@@\n-if a &lt; b {\n+if a &gt; b {\n }\n")
	f.Fuzz(func(t *testing.T, src []byte, diff string) {
		before := bytes.Clone(src)
		result, ok := checkOutcome(t, func() (Result, error) { return Apply(src, diff) })
		if !bytes.Equal(src, before) {
			t.Error("the source was changed in place")
		}
		if ok && !result.Deleted {
			checkFidelity(t, src, result)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n")
	f.Add("*** Begin Patch\n*** Add File: n\n+a\n*** Delete File: d\n*** Update File: u\n*** Move to: v\n@@\n-a\n+b\n*** End of File\n*** End Patch")
	f.Add("cat <<'EOF' | patch\n--- \"a/\\303\\274\"\t2020\n+++ b/x\n@@@ -1 -1 +1 @@@\nEOF\n")
	f.Fuzz(func(t *testing.T, diff string) {
		files, err := Split(diff)
		if (err == nil) == (len(files) == 0) {
			t.Fatalf("%d files and error %v", len(files), err)
		}
		paths := map[string]bool{}
		for _, file := range files {
			if paths[file.Path()] {
				t.Errorf("%q is two files", file.Path())
			}
			paths[file.Path()] = true
			for _, source := range [][]byte{nil, {}, []byte(poem)} {
				checkOutcome(t, func() (Result, error) { return file.Apply(source) })
			}
		}
		if strings.Contains(diff, "\r") || len(diff) > MaxDiff/2 {
			return
		}
		// The line ending of the diff's dress makes no difference.
		again, err := Split(strings.ReplaceAll(diff, "\n", "\r\n"))
		if (err == nil) != (len(files) > 0) || !reflect.DeepEqual(files, again) {
			t.Errorf("with CRLF it is\n%+v\ninstead of\n%+v", again, files)
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(poem), "\tbeta()\n", "\tbest()\n", 1, false)
	f.Add([]byte("a a a"), "a", "b", 2, true)
	f.Add([]byte("a\r\nb"), "a\nb", "c", 0, false)
	f.Fuzz(func(t *testing.T, src []byte, old, new string, expect int, all bool) {
		before := bytes.Clone(src)
		result, ok := checkOutcome(t, func() (Result, error) { return Edit(src, old, new, expect, all) })
		if !bytes.Equal(src, before) {
			t.Error("the source was changed in place")
		}
		if ok && bytes.Equal(result.Text, src) {
			t.Error("no error and no change")
		}
		plain := !bytes.Contains(src, []byte{'\r'}) && bytes.IndexByte(src, 0) < 0 && !strings.ContainsRune(old+new, 0) && src != nil
		if !plain || old == "" || old == new {
			return
		}
		// Where the text stands as it is, the edit is what the library does.
		switch n := bytes.Count(src, []byte(old)); {
		case n == 0:
			if ok {
				checkFidelity(t, src, result)
			}
		case ok != (all || n == max(expect, 1)):
			t.Errorf("done: %v, with %d occurrences and %d expected", ok, n, expect)
		case ok && string(result.Text) != strings.ReplaceAll(string(src), old, new):
			t.Errorf("got %q", result.Text)
		}
	})
}

func FuzzServeJSONL(f *testing.F) {
	f.Add(`{"id":1,"path":"x","source":"a\n","diff":"@@\n-a\n+b\n"}`)
	f.Add("{}\n[]\nnull\n{\"id\":")
	f.Fuzz(func(t *testing.T, input string) {
		var out, again bytes.Buffer
		err := ServeJSONL(strings.NewReader(input), &out)
		_ = ServeJSONL(strings.NewReader(input), &again)
		if out.String() != again.String() {
			t.Error("two runs differ")
		}
		if err != nil {
			return
		}
		asked := 0
		for line := range strings.Lines(input) {
			if strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") != "" {
				asked++
			}
		}
		for line := range strings.Lines(out.String()) {
			asked--
			var reply struct {
				ID     json.RawMessage
				OK     bool
				Result *string
				Error  string
				Code   Code
				// Deleted goes without a result.
				Deleted bool
			}
			if err := json.Unmarshal([]byte(line), &reply); err != nil || len(reply.ID) == 0 {
				t.Fatalf("answer %q: %v", line, err)
			}
			if reply.OK != (reply.Result != nil || reply.Deleted) || reply.OK == (reply.Error != "") {
				t.Errorf("answer %q is neither yes nor no", line)
			}
		}
		if asked != 0 {
			t.Errorf("%d requests were left without an answer", asked)
		}
	})
}
