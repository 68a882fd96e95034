package patch

import "testing"

// What is open behind a line is guessed from its marks.
func TestWhatALineOpens(t *testing.T) {
	for text, want := range map[string]literal{
		"plain text":               noLiteral,
		"x := `raw":                "`",
		"x := `raw` + `more":       "`",
		"x := \"a ` in a string\"": noLiteral,
		"don't `open":              "`",
		"doc = \"\"\"text":         `"""`,
		"/* a comment":             "*/",
		"call() /* behind code":    noLiteral,
		"code // it's `open":       noLiteral,
		"see https://x.org `raw":   "`",
		"```go":                    noLiteral,
		"echo \\`date":             noLiteral,
		"echo \\\\`date":           "`",
	} {
		if got := noLiteral.after(text); got != want {
			t.Errorf("behind %q: %q, want %q", text, got, want)
		}
	}
	if got := literal("*/").after("end */ x := `raw"); got != "`" {
		t.Errorf("behind a comment's end: %q", got)
	}
}
