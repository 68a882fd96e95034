package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	cases := map[string]struct {
		src, old, new string
		expect        int
		all           bool
		want          string
	}{
		"one word":              {"a b c\n", "b", "x", 1, false, "a x c\n"},
		"whole lines":           {poem, "\tbeta()\n", "\tbest()\n\tworst()\n", 0, false, strings.Replace(poem, "\tbeta()\n", "\tbest()\n\tworst()\n", 1)},
		"deletion":              {poem, "\tbeta()\n", "", 1, false, strings.Replace(poem, "\tbeta()\n", "", 1)},
		"several expected":      {"a a a\n", "a", "b", 3, false, "b b b\n"},
		"all of them":           {"a a a\n", "a", "b", 1, true, "b b b\n"},
		"CRLF file, LF text":    {"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", 1, false, "1\r\n2\r\nthree\r\n"},
		"trailing white space":  {"one  \ntwo\n", "one\ntwo", "1\n2", 1, false, "1\n2\n"},
		"other indentation":     {"if x {\n\t\ta()\n\t\tb()\n}\n", "a()\nb()", "c()", 1, false, "if x {\n\t\tc()\n}\n"},
		"typographic quotes":    {"say(\"hello\", 'x')\n", "say(“hello”, ‘x’)", "say(1)", 1, false, "say(1)\n"},
		"end without a newline": {"one\ntwo", "two", "2", 1, false, "one\n2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := Edit([]byte(c.src), c.old, c.new, c.expect, c.all)
			if err != nil {
				t.Fatal(err)
			}
			if string(result.Text) != c.want {
				t.Errorf("got %q, want %q", result.Text, c.want)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	cases := map[string]struct {
		src      []byte
		old, new string
		code     Code
		says     string
	}{
		"not there":   {[]byte(poem), "\tbetta()\n", "x", NoMatch, "\tbeta()"},
		"too often":   {[]byte("a\nb\na\n"), "a", "x", Ambiguous, "     3\ta"},
		"no old text": {[]byte(poem), "", "x", NoMatch, "old"},
		"same":        {[]byte(poem), "beta", "beta", NoChange, "same"},
		"no file":     {nil, "a", "b", Missing, "does not exist"},
		"binary":      {[]byte("a\x00"), "a", "b", Binary, "binary"},
		"done before": {[]byte(poemWant), "\tbeta()\n", "\tbetter()\n\tbest()\n", AlreadyApplied, "already"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Edit(c.src, c.old, c.new, 1, false)
			failure, ok := errors.AsType[*Error](err)
			if !ok || failure.Code != c.code || !strings.Contains(failure.Text, c.says) {
				t.Errorf("got %v, want %s with %q", err, c.code, c.says)
			}
		})
	}
}

func TestServeJSONL(t *testing.T) {
	in := strings.Join([]string{
		`{"id":"a","path":"x","source":"one\ntwo\n","diff":"@@\n-two\n+2\n"}`,
		``,
		`{"id":2,"path":"x","source":null,"diff":"@@\n+new\n"}`,
		`{"id":3,"path":"x","source":"one\n","diff":"--- a/x\n+++ /dev/null\n@@\n-one\n"}`,
		`{"id":4,"path":"x","source":"one\n","diff":"diff --git a/x b/y\nrename from x\nrename to y\n"}`,
		`{"id":5,"path":"x","source":"one\n","diff":"@@\n-three\n+3\n"}`,
		`{"id":6,"path":"y","source":"one\n","diff":"--- a/x\n+++ b/x\n@@\n-1\n+2\n--- a/y\n+++ b/y\n@@\n-one\n+1\n"}`,
		`not a request`,
	}, "\n")
	var out bytes.Buffer
	if err := ServeJSONL(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":"a","ok":true,"result":"one\n2\n"}`,
		`{"id":2,"ok":true,"result":"new\n"}`,
		`{"id":3,"ok":true,"deleted":true}`,
		`{"id":4,"ok":true,"result":"one\n","new_path":"y"}`,
		`{"id":5,"ok":false,"code":"no_match","error":"Nothing was changed. `,
		`{"id":6,"ok":true,"result":"1\n"}`,
		`{"id":null,"ok":false,"error":"the line is no request`,
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers:\n%s", len(got), out.String())
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) || !json.Valid([]byte(got[i])) {
			t.Errorf("answer %d is %s, want %s", i, got[i], want[i])
		}
	}
}
