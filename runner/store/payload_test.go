package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoff/runner"
	"handoff/runner/store"
)

func TestPayloadsComeBackByteForByte(t *testing.T) {
	payloads := map[string]string{
		"escaped NUL":    `{"text":"a\u0000b"}`,
		"duplicate keys": `{"a":1,"a":2}`,
		"big integers":   `{"n":123456789012345678901234567890,"m":9007199254740993}`,
		"white space":    "{ \"a\" :\t1 }\n",
		"key order":      `{"z":1,"a":2}`,
		"number forms":   `[1.0,1e2,-0,0.10]`,
		"escapes":        `"é\/\\é"`,
		"lone surrogate": `"\ud800"`,
		"placeholders":   `"$1 ?1 @now :x %s"`,
		"quotes":         `"'; DROP TABLE run_items; --"`,
		"a mebibyte":     `"` + strings.Repeat("0123456789abcdef", 1<<16) + `"`,
		"astral":         `"👀𝔘"`,
	}
	inEachWorld(t, func(w *world) {
		id := w.session(1)
		lease := w.acquire(w.node("a"))
		for name, payload := range payloads {
			seq, err := lease.Append(w.Context(), runner.Batch{Records: []runner.Record{
				{RunID: "r", ParentRunID: "p", Version: 3, Kind: runner.RecordModelResponse, Payload: json.RawMessage(payload)}}})
			w.ok(err)
			records, err := w.store.Records(w.Context(), id, seq)
			w.ok(err)
			got := records[0]
			if string(got.Payload) != payload {
				w.Errorf("%s: changed", name)
			}
			w.equal(got.RunID+got.ParentRunID, "rp")
			w.equal(got.Version, 3)
			w.equal(got.Kind, runner.RecordModelResponse)
		}
	})
}

// The same text comes back from both engines, whatever its bytes are.
func TestBadTextIsAlikeOnBothEngines(t *testing.T) {
	texts := map[string]string{
		"a\x00b":         "a\uFFFDb",
		"a\xffb":         "a\uFFFDb",
		"\x00":           "\uFFFD",
		"a\xed\xa0\x80b": "a\uFFFDb",
		"fine":           "fine",
		"":               "",
	}
	inEachWorld(t, func(w *world) {
		for text, want := range texts {
			session := store.Session{InstallationID: 7, RepositoryID: 1, Task: text, IssueBody: text, RequesterLogin: text}
			w.ok(w.store.CreateSession(w.Context(), &session))
			got := w.load(session.ID)
			if got.Task != want || got.IssueBody != want || got.RequesterLogin != want {
				w.Errorf("%q came back as %q", text, got.Task)
			}
		}
	})
}

func TestAnyTextIsStoredAsValidText(t *testing.T) {
	inEachWorld(t, func(w *world) {
		rapid.Check(w.T, func(r *rapid.T) {
			text := string(rapid.SliceOf(rapid.Byte()).Draw(r, "text"))
			session := store.Session{InstallationID: 7, RepositoryID: 1, Task: text}
			if err := w.store.CreateSession(w.Context(), &session); err != nil {
				r.Fatal(err)
			}
			got, err := w.store.Session(w.Context(), session.ID)
			if err != nil {
				r.Fatal(err)
			}
			if !utf8.ValidString(got.Task) || strings.ContainsRune(got.Task, 0) {
				r.Fatalf("%q was stored as %q", text, got.Task)
			}
			if utf8.ValidString(text) && !strings.ContainsRune(text, 0) && got.Task != text {
				r.Fatalf("good text %q was changed to %q", text, got.Task)
			}
		})
	})
}
