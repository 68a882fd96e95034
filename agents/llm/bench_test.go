package llm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"handoff/agents"
)

// instant is an endpoint that answers at once with a call of a tool.
func instant(b *testing.B) *httptest.Server {
	answer := strings.Join(data(
		`{"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010}}`,
	), "\n\n") + "\n\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	}))
	b.Cleanup(server.Close)
	return server
}

// turnText is the output of one tool: half a kilobyte, as a short file or test
// run has.
var turnText = strings.Repeat("ok  handoff/agents/llm  0.021s\n", 16)

func toolSpecs() []agents.ToolSpec {
	var specs []agents.ToolSpec
	for i := range 10 {
		specs = append(specs, agents.ToolSpec{
			Name: fmt.Sprint("tool_", i), Description: strings.Repeat("It does something. ", 8),
			Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","description":"A path."},"text":{"type":"string"}},"required":["path"]}`),
		})
	}
	return specs
}

var historyLengths = []int{50, 200, 400}

// BenchmarkRespond is one call at a history of so many turns, the last of
// which is new, beside go-openai's client doing the same. Client and server
// share the processor, so the server's part is in both numbers.
func BenchmarkRespond(b *testing.B) {
	for _, turns := range historyLengths {
		b.Run(fmt.Sprintf("handoff/turns=%d", turns), func(b *testing.B) { benchmarkRespond(b, turns) })
		b.Run(fmt.Sprintf("go-openai/turns=%d", turns), func(b *testing.B) { benchmarkPeer(b, turns) })
	}
}

func benchmarkRespond(b *testing.B, turns int) {
	server := instant(b)
	client, err := New(Config{Provider: ProviderOpenAI, BaseURL: server.URL, Getenv: environment(map[string]string{"OPENAI_API_KEY": canary})})
	if err != nil {
		b.Fatal(err)
	}
	request := agents.Request{Tools: toolSpecs()}
	for i := range turns - 1 {
		request.Messages = append(request.Messages, turn(i)...)
	}
	// The history but its last turn was encoded by the calls before.
	if _, err := client.Respond(b.Context(), request); err != nil {
		b.Fatal(err)
	}
	old := request.Messages
	b.ReportAllocs()
	for b.Loop() {
		request.Messages = append(old[:len(old):len(old)], turn(turns)...)
		if _, err := client.Respond(context.Background(), request); err != nil {
			b.Fatal(err)
		}
	}
}

func turn(i int) []*agents.Message {
	id := fmt.Sprint("call_", i)
	return []*agents.Message{
		{Role: agents.RoleAssistant, ToolCalls: []agents.ToolCall{{ID: id, Name: "tool_1", Arguments: `{"path":"main.go"}`}}},
		{Role: agents.RoleTool, ToolCallID: id, Content: turnText},
	}
}

func benchmarkPeer(b *testing.B, turns int) {
	server := instant(b)
	config := openai.DefaultConfig(canary)
	config.BaseURL = server.URL
	client := openai.NewClientWithConfig(config)
	request := openai.ChatCompletionRequest{Model: "gpt-4o", Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
	for _, spec := range toolSpecs() {
		request.Tools = append(request.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: spec.Name, Description: spec.Description, Parameters: spec.Schema,
		}})
	}
	for i := range turns {
		id := fmt.Sprint("call_", i)
		request.Messages = append(request.Messages,
			openai.ChatCompletionMessage{Role: "assistant", ToolCalls: []openai.ToolCall{{ID: id, Type: "function", Function: openai.FunctionCall{Name: "tool_1", Arguments: `{"path":"main.go"}`}}}},
			openai.ChatCompletionMessage{Role: "tool", ToolCallID: id, Content: turnText})
	}
	b.ReportAllocs()
	for b.Loop() {
		stream, err := client.CreateChatCompletionStream(context.Background(), request)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		_ = stream.Close()
	}
}

// BenchmarkEncode is the part of a call that grows with the history.
func BenchmarkEncode(b *testing.B) {
	for _, turns := range historyLengths {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			client, err := New(Config{Provider: ProviderOpenAI, Getenv: environment(map[string]string{"OPENAI_API_KEY": canary})})
			if err != nil {
				b.Fatal(err)
			}
			request := agents.Request{Tools: toolSpecs()}
			for i := range turns {
				request.Messages = append(request.Messages, turn(i)...)
			}
			info := client.main.model("gpt-4o")
			b.ReportAllocs()
			for b.Loop() {
				body, err := encodeRequest(client.main, info, request)
				if err != nil {
					b.Fatal(err)
				}
				body.release()
			}
		})
	}
}
