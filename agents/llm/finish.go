package llm

import "strings"

// Ends of an answer that are failures of the attempt.
const (
	finishError  = "error"
	finishWindow = "model_context_window_exceeded"
)

// finishes are the words with which providers end an answer where they do not
// use those of chat completions: zai's (docs.z.ai, chat completion), Google's
// own, which Vertex AI lets through, and those of gateways.
var finishes = map[string]string{
	"sensitive":     "content_filter",
	"network_error": finishError,

	"max_tokens":              "length",
	"max_output_tokens":       "length",
	"safety":                  "content_filter",
	"prohibited_content":      "content_filter",
	"blocklist":               "content_filter",
	"recitation":              "content_filter",
	"spii":                    "content_filter",
	"function_call_filter":    finishError,
	"malformed_function_call": finishError,
	"unexpected_tool_call":    finishError,
	"function_call":           "tool_calls",
	"tool_use":                "tool_calls",
	"end_turn":                "stop",
}

// finishOf returns a finish reason in the words of chat completions. Details
// after a colon are left out, as in "content_filter: PROHIBITED_CONTENT"; an
// unknown word stays as it is.
func finishOf(said string) string {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(said)), ":")
	if known, ok := finishes[word]; ok {
		return known
	}
	return word
}
