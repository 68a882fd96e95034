package tape_test

import (
	"context"
	"fmt"
	"strings"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/agents/llm/tape"
)

// A tape is written by hand, played, and asked by the client that asks real
// providers.
func Example() {
	written, err := tape.Read(strings.NewReader(`
# The manager reads a file and is content.
{"agent":"copilot","response":{"tool_calls":[{"name":"read_file","arguments":{"path":"main.go"}}]}}
{"agent":"copilot","response":{"content":"Nothing to do."}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := tape.Serve(tape.NewPlayer(written, tape.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := llm.New(llm.Config{Provider: llm.ProviderTape, BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	for turn := 1; turn <= 2; turn++ {
		response, err := client.Respond(context.Background(), agents.Request{
			Session: "s1", Agent: "copilot", Turn: turn,
			Messages: []*agents.Message{{Role: agents.RoleUser, Content: "Tidy up."}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, call := range response.ToolCalls {
			fmt.Println(call.Name, call.Arguments)
		}
		fmt.Print(response.Text)
	}
	// Output:
	// read_file {"path":"main.go"}
	// Nothing to do.
}
