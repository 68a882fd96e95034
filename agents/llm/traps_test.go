package llm

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"handoff/agents"
)

// The tests of this file are the traps of go-openai's client that were
// reproduced on it, by their numbers in the design. Each shows that our loop
// does not fall in.

func oneAttempt(c *Config) { c.Retry.Attempts = 1 }

func respond(t *testing.T, replies ...reply) (agents.Response, *agents.Error) {
	t.Helper()
	response, err := newClient(t, ProviderOpenAI, newServer(t, replies...), oneAttempt).Respond(t.Context(), question("Hi"))
	if err != nil {
		return response, failureOf(t, err)
	}
	return response, nil
}

func TestTrap1CutStreamIsNoAnswer(t *testing.T) {
	_, failure := respond(t, streams(text("Half an ans")[0]))
	if failure == nil || failure.Kind != agents.KindTransport || !failure.Retryable {
		t.Errorf("a stream without end gave %v", failure)
	}
}

func TestTrap2FaultAfterKeepAliveKeepsItsWords(t *testing.T) {
	_, failure := respond(t, streams(": keep-alive", `data: {"error":{"message":"the words of the provider","code":500}}`))
	if failure == nil || !strings.Contains(failure.Message, "the words of the provider") {
		t.Errorf("got %v", failure)
	}
	_, failure = respond(t, streams(": keep-alive", `{"error":{"message":"bare words","code":500}}`))
	if failure == nil || !strings.Contains(failure.Message, "bare words") {
		t.Errorf("got %v", failure)
	}
}

func TestTrap3FaultNeedNotBeTheFirstKey(t *testing.T) {
	_, failure := respond(t, streams(data(`{"id":"x","choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}],"error":{"message":"not fine"}}`)...))
	if failure == nil || !strings.Contains(failure.Message, "not fine") {
		t.Errorf("got %v", failure)
	}
}

func TestTrap4ManyEmptyLines(t *testing.T) {
	lines := []string{strings.Repeat(": waiting\n\n\n\n", 5000)}
	response, failure := respond(t, streams(append(lines, text("patience")...)...))
	if failure != nil || response.Text != "patience" {
		t.Errorf("got %q, %v", response.Text, failure)
	}
}

func TestTrap5ErrorWithStatus200(t *testing.T) {
	_, failure := respond(t, wholly(`{"error":{"message":"no","code":"server_error"}}`))
	if failure == nil || failure.Kind != agents.KindUnavailable {
		t.Errorf("got %v", failure)
	}
}

func TestTrap6ArrayBody(t *testing.T) {
	_, failure := respond(t, fails(400, `[{"error":{"code":400,"message":"the reason","status":"INVALID_ARGUMENT"}}]`))
	if failure == nil || !strings.Contains(failure.Message, "the reason") || strings.Contains(failure.Message, "[{") {
		t.Fatalf("got %v", failure)
	}
	// The cause is go-openai's own error, for whoever knows it.
	cause, ok := errors.AsType[*openai.APIError](failure)
	if !ok || cause.HTTPStatusCode != 400 || cause.Code != 400 {
		t.Errorf("cause %#v", cause)
	}
}

func TestTrap7HeadersOfFailedCalls(t *testing.T) {
	_, failure := respond(t, fails(429, `{}`, "Retry-After", "12", "X-Request-Id", "r-9"))
	if failure == nil || failure.RetryAfter.Seconds() != 12 || failure.RequestID != "r-9" {
		t.Errorf("got %+v", failure)
	}
}

// sent returns the body of one request as fields.
func sent(t *testing.T, provider string, request agents.Request) map[string]json.RawMessage {
	t.Helper()
	s := newServer(t, streams(text("ok")...))
	if _, err := newClient(t, provider, s).Respond(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.asked()[0]), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestTrap8EmptyToolOutputHasContent(t *testing.T) {
	request := question("Hi")
	request.Messages = append(request.Messages,
		&agents.Message{Role: agents.RoleAssistant, ToolCalls: []agents.ToolCall{{ID: "c1", Name: "look"}}},
		&agents.Message{Role: agents.RoleTool, ToolCallID: "c1"})
	messages := string(sent(t, ProviderOpenAI, request)["messages"])
	if !strings.Contains(messages, `{"role":"tool","content":"(no output)","tool_call_id":"c1"}`) {
		t.Errorf("the tool's message has no content: %s", messages)
	}
	if !strings.Contains(messages, `"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]`) {
		t.Errorf("the call is not as it must be: %s", messages)
	}
}

func TestTrap9TemperatureZero(t *testing.T) {
	zero := 0.0
	request := question("Hi")
	request.Settings.Temperature = &zero
	if got := string(sent(t, ProviderOpenAI, request)["temperature"]); got != "0" {
		t.Errorf("temperature %q", got)
	}
	if _, ok := sent(t, ProviderOpenAI, question("Hi"))["temperature"]; ok {
		t.Error("a temperature that nobody set is sent")
	}
}

func TestTrap10UnknownFieldsComeBack(t *testing.T) {
	first := data(
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"a","invented":{"deep":[1,{"x":1.50}]},"list":["p"]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"b","invented":{"more":true},"list":["q"]},"finish_reason":"stop"}]}`)
	s := newServer(t, streams(first...), streams(text("ok")...))
	client := newClient(t, ProviderOpenAI, s)
	request := question("Hi")
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	request.Messages = append(request.Messages, &agents.Message{Role: agents.RoleAssistant, Content: response.Text, Raw: response.Raw})
	if _, err := client.Respond(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	want := `{"content":"ab","invented":{"deep":[1,{"x":1.50}],"more":true},"list":["p","q"],"role":"assistant"}`
	if !strings.Contains(s.asked()[1], want) {
		t.Errorf("%s\nlacks %s", s.asked()[1], want)
	}
}

func TestTrap11ReasoningModels(t *testing.T) {
	warm := 0.7
	for _, model := range []string{"o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5-something-new", "openai/gpt-5-mini"} {
		request := question("Hi")
		request.Model.ID = model
		request.Settings = agents.ModelSettings{Temperature: &warm, MaxTokens: 50}
		fields := sent(t, ProviderOpenAI, request)
		if string(fields["max_completion_tokens"]) != "50" || fields["max_tokens"] != nil || fields["temperature"] != nil {
			t.Errorf("%s: limit %s, %s, temperature %s", model, fields["max_completion_tokens"], fields["max_tokens"], fields["temperature"])
		}
	}
	request := question("Hi")
	request.Settings = agents.ModelSettings{Temperature: &warm, MaxTokens: 50}
	fields := sent(t, ProviderOpenAI, request)
	if string(fields["max_tokens"]) != "50" || string(fields["temperature"]) != "0.7" {
		t.Errorf("gpt-4o: limit %s, temperature %s", fields["max_tokens"], fields["temperature"])
	}
}

func TestTrap12BodyWithoutEnd(t *testing.T) {
	huge := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: ")
		block := strings.Repeat("x", 1<<20)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}
	_, failure := respond(t, huge)
	if failure == nil || failure.Kind != agents.KindMalformed {
		t.Errorf("got %v", failure)
	}
}

func TestStreamThatIsCalledJSON(t *testing.T) {
	response, failure := respond(t, wholly(": hm\n\n"+strings.Join(text("mislabelled"), "\n\n")))
	if failure != nil || response.Text != "mislabelled" {
		t.Errorf("got %q, %v", response.Text, failure)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	elsewhere := newServer(t, streams(text("stolen")...))
	_, failure := respond(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if failure == nil || failure.Status != http.StatusTemporaryRedirect || len(elsewhere.asked()) != 0 {
		t.Errorf("got %v, the other host was asked %d times", failure, len(elsewhere.asked()))
	}
}

func TestUsageThatComesTooLateIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	finished := data(`{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}`)[0]
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		streams(finished)(w, r)
		<-r.Context().Done()
	})
	client := newClient(t, ProviderOpenAI, s, once(Timeouts{Idle: time.Second}))
	response, err := client.Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "done" || !response.Usage.Entries[0].Estimated {
		t.Errorf("%+v, %v", response, err)
	}
}
