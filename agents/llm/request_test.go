package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"handoff/agents"
)

// tools are two tools whose schemas have keys in an order of their own.
var tools = []agents.ToolSpec{
	{Name: "look", Description: "Looks <at> something.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}`)},
	{Name: "stop"},
}

// TestPrefixIsStable: a history that grows is sent as the same bytes with more
// behind them, so that a provider's cache has them.
func TestPrefixIsStable(t *testing.T) {
	call := data(`{"choices":[{"index":0,"delta":{"content":"","reasoning_content":"hm","tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{\"b\":1, \"a\":2}"}}]},"finish_reason":"tool_calls"}]}`)
	for _, d := range dialects {
		s := newServer(t, streams(call...))
		client := newClient(t, d.provider, s)
		request := question("Hi & <hello>")
		request.Messages = append([]*agents.Message{{Role: agents.RoleSystem, Content: "You work."}}, request.Messages...)
		request.Tools = tools
		for turn := range 6 {
			request.Turn = turn + 1
			response, err := client.Respond(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			request.Messages = append(request.Messages,
				&agents.Message{Role: agents.RoleAssistant, ToolCalls: response.ToolCalls, Raw: response.Raw, Provider: response.Provider},
				&agents.Message{Role: agents.RoleTool, ToolCallID: response.ToolCalls[0].ID, Content: fmt.Sprint("output ", turn)},
				&agents.Message{Role: agents.RoleSystem, Content: "[System] A note."})
		}
		bodies := s.asked()
		for i := 1; i < len(bodies); i++ {
			prefix := strings.TrimSuffix(bodies[i-1], "]}")
			if !strings.HasPrefix(bodies[i], prefix) {
				t.Fatalf("%s: request %d does not begin with request %d:\n%s", d.provider, i+1, i, cmp.Diff(prefix, bodies[i]))
			}
		}
	}
}

func TestMessagesAreEncodedOnceForEachProvider(t *testing.T) {
	raw := json.RawMessage(`{"role":"assistant","content":"yes","secret_thought":"s"}`)
	message := &agents.Message{Role: agents.RoleAssistant, Content: "yes", Raw: raw, Provider: ProviderZAI}
	zai := newClient(t, ProviderZAI, newServer(t, streams(text("ok")...)))
	openAI := newClient(t, ProviderOpenAI, newServer(t, streams(text("ok")...)))
	first := zai.main.encoded(ModelInfo{}, message, true)
	again := zai.main.encoded(ModelInfo{}, message, true)
	other := openAI.main.encoded(ModelInfo{}, message, true)
	if &first[0] != &again[0] {
		t.Error("the message was encoded twice")
	}
	if string(first) != string(raw) || string(other) != `{"role":"assistant","content":"yes"}` {
		t.Errorf("for its own provider %s, for another %s", first, other)
	}
}

func TestReplayKeepsTheRunnersIDs(t *testing.T) {
	raw := `{"role":"assistant","content":"","tool_calls":[{"id":"same","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"sig":"S"}}]}`
	for name, test := range map[string]struct {
		calls []agents.ToolCall
		want  string
	}{
		"the same id":      {[]agents.ToolCall{{ID: "same", Name: "look"}}, raw},
		"another id":       {[]agents.ToolCall{{ID: "mine", Name: "look"}}, `{"content":"","role":"assistant","tool_calls":[{"extra_content":{"sig":"S"},"function":{"name":"look","arguments":"{}"},"id":"mine","type":"function"}]}`},
		"the call was cut": {nil, `{"role":"assistant","content":"said"}`},
	} {
		message := &agents.Message{Role: agents.RoleAssistant, Content: "said", ToolCalls: test.calls, Raw: json.RawMessage(raw)}
		endpoint := newClient(t, ProviderOpenAI, newServer(t, streams("x"))).main
		if got := string(endpoint.encodeMessage(message)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func TestSystemNotesInTheMiddle(t *testing.T) {
	request := agents.Request{Messages: []*agents.Message{
		{Role: agents.RoleSystem, Content: "You work."},
		{Role: agents.RoleUser, Content: "Hi"},
		{Role: agents.RoleSystem, Content: "[System] Handoff from a to b: go"},
	}}
	if got := string(sent(t, ProviderOpenAI, request)["messages"]); !strings.Contains(got, `{"role":"system","content":"[System] Handoff`) {
		t.Errorf("openai: %s", got)
	}
	got := string(sent(t, ProviderVertex, request)["messages"])
	if !strings.Contains(got, `{"role":"user","content":"[System] Handoff`) || !strings.Contains(got, `{"role":"system","content":"You work."}`) {
		t.Errorf("vertex: %s", got)
	}
}

func TestOutputSchema(t *testing.T) {
	request := question("Hi")
	request.Output = &agents.OutputSchema{Name: "plan", Schema: json.RawMessage(`{"type":"object"}`)}
	strict := sent(t, ProviderOpenAI, request)
	if got := string(strict["response_format"]); got != `{"type":"json_schema","json_schema":{"name":"plan","schema":{"type":"object"},"strict":true}}` {
		t.Errorf("openai: %s", got)
	}
	loose := sent(t, ProviderZAI, request)
	if got := string(loose["response_format"]); got != `{"type":"json_object"}` || !strings.Contains(string(loose["messages"]), `fit this JSON schema: {\"type\":\"object\"}`) {
		t.Errorf("zai: %s, %s", got, loose["messages"])
	}
}

func TestToolChoice(t *testing.T) {
	for _, test := range []struct{ provider, choice, want string }{
		{ProviderOpenAI, "", ""},
		{ProviderOpenAI, "required", `"required"`},
		{ProviderOpenAI, "look", `{"type":"function","function":{"name":"look"}}`},
		{ProviderZAI, "required", ""},
		{ProviderZAI, "auto", `"auto"`},
	} {
		request := question("Hi")
		request.Tools, request.Settings.ToolChoice = tools, test.choice
		if got := string(sent(t, test.provider, request)["tool_choice"]); got != test.want {
			t.Errorf("%s, %q: %s, want %s", test.provider, test.choice, got, test.want)
		}
	}
}

func TestToolsOnTheWire(t *testing.T) {
	request := question("Hi")
	request.Tools = tools
	got := string(sent(t, ProviderOpenAI, request)["tools"])
	var read []struct {
		Type     string
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got), &read); err != nil || len(read) != 2 {
		t.Fatalf("%s: %v", got, err)
	}
	if read[0].Function.Name != "look" || string(read[0].Function.Parameters) != string(tools[0].Schema) || read[0].Function.Description != tools[0].Description {
		t.Errorf("first tool %s", got)
	}
	if string(read[1].Function.Parameters) != `{"type":"object","properties":{}}` {
		t.Errorf("a tool without schema: %s", got)
	}
	request.Tools = []agents.ToolSpec{{Name: "bad", Schema: json.RawMessage(`{`)}}
	_, err := newClient(t, ProviderOpenAI, newServer(t, streams("x"))).Respond(t.Context(), request)
	if failure := failureOf(t, err); failure.Kind != agents.KindRejected || !strings.Contains(failure.Message, "bad") {
		t.Errorf("%v", failure)
	}
}

func TestReasoningEffort(t *testing.T) {
	request := question("Hi")
	request.Settings.ReasoningEffort = "high"
	if got := string(sent(t, ProviderOpenAI, request)["reasoning_effort"]); got != `"high"` {
		t.Errorf("openai %s", got)
	}
	if got := string(sent(t, ProviderZAI, request)["thinking"]); got != `{"type":"enabled"}` {
		t.Errorf("zai %s", got)
	}
}

func TestPromptCacheIsAskedForWhereItMustBe(t *testing.T) {
	request := question("Hi")
	request.Model.ID = "anthropic/claude-sonnet-4.5"
	if got := string(sent(t, ProviderOpenRouter, request)["cache_control"]); got != `{"type":"ephemeral"}` {
		t.Errorf("claude: %s", got)
	}
	if got, ok := sent(t, ProviderOpenRouter, question("Hi"))["cache_control"]; ok {
		t.Errorf("gpt-4o: %s", got)
	}
}

func TestOpenRouterRouting(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	client := newClient(t, ProviderOpenRouter, s, func(c *Config) { c.AllowDataCollection, c.Upstreams = true, []string{"openai"} })
	if _, err := client.Respond(t.Context(), question("Hi")); err != nil {
		t.Fatal(err)
	}
	if body := s.asked()[0]; !strings.Contains(body, `"provider":{"only":["openai"]}`) || !strings.Contains(body, `"usage":{"include":true}`) {
		t.Error(body)
	}
}
