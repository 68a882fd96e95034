package tape

import "handoff/agents"

// Transcribe returns the line of an answer whose request is not known, as a
// journal keeps answers. It makes no claim about requests, so it fits any of
// the same agent and turn. Every text goes through redact; nil means that there
// are no secrets.
func Transcribe(agent string, turn int, response agents.Response, redact func(string) string) *Line {
	recorder := NewRecorder(nil, redact)
	return &Line{Agent: agent, Turn: turn, Response: recorder.response(response), Usage: usageOf(response.Usage)}
}
