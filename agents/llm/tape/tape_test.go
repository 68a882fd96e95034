package tape

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	const text = `# A remark.
{"agent":"a","response":{"content":"fine"}}
{"agent":"a","answer":"x"}
{"agent":"a","turn":1,"response":{}}
not json
{"response":{"content":"x"}}
{"agent":"b"}

{"agent":"c","error":{"status":200}}
{"agent":"c","error":{"status":500,"times":1}}
{"agent":"d","response":{"tool_calls":[{"arguments":{}}]},"latency_ms":-1}
{"agent":"e","response":{}} {"agent":"e","response":{}}
{"agent":"f","response":{},"request":{"same":3}}
`
	// The last line is right where the others are not known.
	var got []string
	for _, fault := range Validate(strings.NewReader(text)) {
		got = append(got, fault.Error())
	}
	want := []string{
		`line 3: unknown field "answer"`,
		"line 4: answers agent a, turn 1 again, as line 2 does",
		"line 5: invalid character 'o' in literal null (expecting 'u')",
		"line 6: agent is missing",
		"line 7: response is missing",
		"line 9: error.status must be between 400 and 599",
		"line 10: error.times needs a response for the attempts that follow",
		"line 11: session, turn and latency_ms must not be negative",
		"line 11: response.tool_calls[0].name is missing",
		"line 12: more than one JSON object on the line",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	alone := Validate(strings.NewReader(`{"agent":"f","response":{},"request":{"same":3}}`))
	if len(alone) != 1 || alone[0].Error() != "line 1: request.same counts more messages than the line before it has; update the tape" {
		t.Errorf("a line that refers to what is not there: %v", alone)
	}
	if faults := Validate(strings.NewReader("\n# nothing\n")); faults != nil {
		t.Errorf("an empty tape has faults: %v", faults)
	}
}

func TestTurnsAreCounted(t *testing.T) {
	read, err := Read(strings.NewReader(`
{"agent":"a","response":{}}
{"agent":"b","response":{}}
{"session":1,"agent":"a","response":{}}
{"agent":"a","turn":7,"response":{}}
{"agent":"b","response":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	var turns []int
	for _, line := range read.Lines() {
		turns = append(turns, line.Turn)
	}
	if want := []int{1, 2, 1, 7, 8}; !cmp.Equal(turns, want) {
		t.Errorf("turns %v, want %v", turns, want)
	}
}

func TestPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"pushed copilot/17-add-a-login-3aeb2b, not copilot/README": "pushed copilot/17-add-a-login-<id>, not copilot/README",
		"at 2026-01-02T15:04:05.123Z and 2026/01/02 15:04:05":      "at <time> and <time>",
		"Date: Fri, 02 Jan 2026 15:04:05 GMT":                      "Date: <time>",
		"15:04:05.000 started":                                     "<time> started",
		"ok  \tpkg\t0.123s":                                        "ok  \tpkg\t<duration>",
		"ok  \tpkg\t(cached)":                                      "ok  \tpkg\t<duration>",
		"took 1m2.5s, or 350ms, or 3 seconds":                      "took <duration>, or <duration>, or <duration>",
		"commit 0123456789abcdef0123456789abcdef01234567":          "commit <hash>",
		"at d15063d":                                        "at <hash>",
		"the decade, the facade, 1234567":                   "the decade, the facade, 1234567",
		"/tmp/handoff-123/internal/server.go:12: oops":      "<tmp>/internal/server.go:12: oops",
		`open "/private/var/folders/ab/cd1/T/x9/y": no`:     `open "<tmp>/y": no`,
		"http://127.0.0.1:43211/x and localhost:80":         "http://<loopback>/x and <loopback>",
		"0b54cc35-1f0f-4f20-9b4a-2a8a34f4f1a9":              "<uuid>",
		"--- BEGIN 7QX3ZP9M2K4T8RVA ---":                    "--- BEGIN <random> ---",
		"AuthenticationServiceFactory":                      "AuthenticationServiceFactory",
		"func handleLogin(w http.ResponseWriter) error { }": "func handleLogin(w http.ResponseWriter) error { }",
	} {
		if got := placeholders(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if once := placeholders(text); placeholders(once) != once {
			t.Errorf("%q changes again: %q", text, placeholders(once))
		}
	}
}

func TestNormalisedRequestsForgetTheProvider(t *testing.T) {
	bodies := []string{
		`{"model":"a","temperature":0,"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},
		  {"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"id":"x9","type":"function","function":{"name":"f","arguments":"{\"b\": 1, \"a\": 2}"}}]},
		  {"role":"tool","tool_call_id":"x9","content":"(no output)"},{"role":"system","content":"[System] note"}]}`,
		`{"model":"b","stream":true,"provider":{},"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"u"}]},
		  {"role":"assistant","content":"","tool_calls":[{"id":"call_1","extra_content":{},"function":{"name":"f","arguments":"{\"a\":2,\"b\":1}"}}]},
		  {"role":"tool","tool_call_id":"call_1","content":"(no output)"},{"role":"user","content":"[System] note"}]}`,
	}
	var hashes []string
	for _, body := range bodies {
		request, err := normalise([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, request.hash())
	}
	if hashes[0] != hashes[1] {
		t.Error("the same request at two providers has two hashes")
	}
	other, err := normalise([]byte(strings.Replace(bodies[0], `"u"`, `"v"`, 1)))
	if err != nil || other.hash() == hashes[0] {
		t.Errorf("another request has the same hash: %v", err)
	}
}

// FuzzRead: a tape that can be read can be written, and says the same then.
func FuzzRead(f *testing.F) {
	f.Add(`{"agent":"a","response":{"tool_calls":[{"name":"n","arguments":{"x":1.0}}]}}`)
	f.Add("# r\n{\"agent\":\"a\",\"request\":{\"system\":\"s\",\"messages\":[{\"role\":\"user\"}]},\"response\":{}}\n{\"agent\":\"a\",\"request\":{\"same\":1},\"response\":{}}")
	f.Add(`{"agent":"a","response":{"tool_calls":[{"name":"n","arguments":"{"}],"raw":[1]},"usage":{"input":-1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		tape, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if _, err := tape.WriteTo(&first); err != nil {
			t.Fatal(err)
		}
		again, err := Read(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, first.String())
		}
		if _, err := again.WriteTo(&second); err != nil || first.String() != second.String() {
			t.Errorf("%v\n%s\n%s", err, first.String(), second.String())
		}
	})
}

// FuzzNormalise: whatever is asked, it can be read, hashed and compared.
func FuzzNormalise(f *testing.F) {
	f.Add(`{"messages":[{"role":"tool","content":{"a":1}},{"role":"assistant","tool_calls":[{"function":{"arguments":"{"}}]}],"tools":[{}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		request, err := normalise([]byte(body))
		if err != nil {
			return
		}
		if request.hash() == "" || difference(request, request) == "" {
			t.Error("no hash or no words")
		}
	})
}
