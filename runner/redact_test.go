package runner

import (
	"encoding/json"
	"strings"
	"testing"
)

// The host's own secrets are taken out of what a model calls, wherever they
// hide, and the rest stays what it was.
func TestCallsCarryNoSecrets(t *testing.T) {
	redact := func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	for arguments, want := range map[string]string{
		`{"path":"a.txt",  "content":"x"}`:                         `{"path":"a.txt",  "content":"x"}`,
		`{"content":"a hunter2 b"}`:                                `{"content":"a [redacted] b"}`,
		`{"content":"\u0068unter2"}`:                               `{"content":"[redacted]"}`,
		`{"list":[{"deep":["hunter2"]}],"n":12345678901234567890}`: `{"list":[{"deep":["[redacted]"]}],"n":12345678901234567890}`,
		`{"hunter2":true}`:                                         `{"[redacted]":true}`,
		`{"content":"hunter2","content":"harmless"}`:               `{"content":"harmless"}`,
		`not json hunter2`:                                         `not json [redacted]`,
		`{"a":1} {"b":"hunter2"}`:                                  `{"a":1} {"b":"[redacted]"}`,
		`"<b>hunter2</b>"`:                                         `"<b>[redacted]</b>"`,
		``:                                                         ``,
	} {
		if got := redactJSON(arguments, redact); got != want {
			t.Errorf("%s became %s, want %s", arguments, got, want)
		}
	}
}

// Whatever a model sends, what was JSON stays JSON.
func FuzzRedactedCallsStayJSON(f *testing.F) {
	f.Add(`{"a":"secret","b":["x",null,1e9]}`)
	f.Add(`{"secret":"\"secret\\"}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		got := redactJSON(arguments, func(text string) string { return strings.ReplaceAll(text, "secret", `"`) })
		if json.Valid([]byte(arguments)) && !json.Valid([]byte(got)) {
			t.Errorf("%q became %q", arguments, got)
		}
	})
}
