package agents

import "testing"

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		" a\tb\r\nc ":           "a b c",
		"in\u200bvis\u202eible": "invisible",
		"bell\x07 \xff":         "bell",
		"\n":                    "",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", text, got, want)
		}
	}
}
