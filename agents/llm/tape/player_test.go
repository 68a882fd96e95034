package tape_test

import (
	"strings"
	"testing"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/agents/llm/tape"
)

// play starts a player and a client that asks it.
func play(t *testing.T, text string, options tape.Options) (*tape.Player, *llm.Client) {
	t.Helper()
	read, err := tape.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	player := tape.NewPlayer(read, options)
	server, err := tape.Serve(player)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := llm.New(llm.Config{Provider: llm.ProviderTape, BaseURL: server.URL, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return player, client
}

func ask(session, agent string, turn int, text string) agents.Request {
	return agents.Request{
		Session: session, Agent: agent, Turn: turn,
		Messages: []*agents.Message{{Role: agents.RoleSystem, Content: "You work."}, {Role: agents.RoleUser, Content: text}},
	}
}

func TestHandWrittenTape(t *testing.T) {
	_, client := play(t, `
# A person wrote this.
{"agent":"copilot","response":{"tool_calls":[{"name":"read_file","arguments":{"path":"main.go"}}]}}
{"agent":"copilot","response":{"content":"Done."}}
`, tape.Options{Strict: true})
	first, err := client.Respond(t.Context(), ask("s", "copilot", 1, "Do it."))
	if err != nil {
		t.Fatal(err)
	}
	if len(first.ToolCalls) != 1 || first.ToolCalls[0].Arguments != `{"path":"main.go"}` || first.FinishReason != "tool_calls" {
		t.Errorf("first answer %+v", first)
	}
	second, err := client.Respond(t.Context(), ask("s", "copilot", 2, "Do it."))
	if err != nil {
		t.Fatal(err)
	}
	if second.Text != "Done." || second.FinishReason != "stop" || second.Usage.CostMicros != 0 || second.Usage.CostUnknown {
		t.Errorf("second answer %+v", second)
	}
	again, err := client.Respond(t.Context(), ask("s", "copilot", 1, "Do it."))
	if err != nil || again.ToolCalls[0] != first.ToolCalls[0] {
		t.Errorf("asked again: %+v, %v", again, err)
	}
}
