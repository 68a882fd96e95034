package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"handoff/agents"
)

// A dialect is how one provider speaks. The conformance suite runs against a
// server that speaks each of them.
type dialect struct {
	provider string
	// keepAlive is sent between the lines of a stream.
	keepAlive string
	// call is a streamed answer with one call of "look" {"at":"x"}.
	call []string
	// reasoning is the text that a person may see of it.
	reasoning string
	// back are JSON values that must be in the next request's assistant message.
	back []string
	// fault makes the body of a failed answer, line that of a fault in a stream.
	fault func(status int, text string) string
	line  func(text string) string
	// long is the provider's answer to a prompt that is too long.
	long reply
}

var dialects = []dialect{
	{
		provider:  ProviderOpenRouter,
		keepAlive: ": OPENROUTER PROCESSING",
		call: data(
			`{"id":"gen-2","model":"openai/gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","index":0,"format":"f1"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"look.","reasoning_details":[{"type":"reasoning.text","text":"look.","index":0,"format":"f1"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"sig==","index":0}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"ENC","index":1}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"tool_calls","native_finish_reason":"stop"}]}`,
		),
		reasoning: "I look.",
		back: []string{
			`{"format":"f1","index":0,"signature":"sig==","text":"I look.","type":"reasoning.text"}`,
			`{"data":"ENC","index":1,"type":"reasoning.encrypted"}`,
		},
		fault: func(status int, text string) string {
			return fmt.Sprintf(`{"error":{"code":%d,"message":"Provider returned error","metadata":{"raw":%q,"provider_name":"P"}},"user_id":"u"}`, status, text)
		},
		line: func(text string) string {
			return fmt.Sprintf(`data: {"id":"gen-3","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":%q}}`, text)
		},
		long: fails(400, `{"error":{"code":400,"message":"This endpoint's maximum context length is 128000 tokens."}}`),
	},
	{
		provider: ProviderZAI,
		call: data(
			`{"id":"z1","model":"glm-4.6","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"I "}}]}`,
			`{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"look."}}]}`,
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"c1","index":0,"type":"function","function":{"name":"look","arguments":"{\"at\":\"x\"}"}}]}}]}`,
			`{"choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010}}`,
		),
		reasoning: "I look.",
		back:      []string{`"reasoning_content":"I look."`},
		fault: func(status int, text string) string {
			code := map[int]string{401: "1001", 429: "1302"}[status]
			if code == "" {
				code = "500"
			}
			return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, text)
		},
		line: func(text string) string { return fmt.Sprintf(`data: {"error":{"code":"1305","message":%q}}`, text) },
		long: fails(400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`),
	},
	{
		provider: ProviderVertex,
		call: data(
			`{"choices":[{"delta":{"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"SIG+/="}},"function":{"arguments":"{\"at\":\"x\"}","name":"look"},"id":"c1","type":"function"}]},"index":0}],"model":"google/gemini-2.5-pro"}`,
			`{"choices":[{"delta":{"role":"assistant"},"finish_reason":"tool_calls","index":0}],"usage":{"completion_tokens":10,"prompt_tokens":1000,"total_tokens":1010,"extra_properties":{"google":{"traffic_type":"ON_DEMAND"}}}}`,
		),
		back: []string{`"extra_content":{"google":{"thought_signature":"SIG+/="}}`},
		fault: func(status int, text string) string {
			word := map[int]string{401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}[status]
			return fmt.Sprintf(`[{"error":{"code":%d,"message":%q,"status":%q}}]`, status, text, word)
		},
		line: func(text string) string {
			return fmt.Sprintf(`data: [{"error":{"code":503,"message":%q,"status":"UNAVAILABLE"}}]`, text)
		},
		long: fails(400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum","status":"INVALID_ARGUMENT"}}]`),
	},
	{
		provider: ProviderOpenAI,
		call: data(
			`{"id":"o1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}],"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":\"x\"}"}}]},"finish_reason":null}],"usage":null}`,
			`{"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}`,
		),
		back: []string{`"refusal":null`},
		fault: func(status int, text string) string {
			return fmt.Sprintf(`{"error":{"message":%q,"type":"t","param":null,"code":null}}`, text)
		},
		line: func(text string) string {
			return fmt.Sprintf("event: error\ndata: {\"error\":{\"message\":%q,\"type\":\"server_error\"}}", text)
		},
		long: fails(400, `{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`),
	},
	{
		provider: ProviderCompatible,
		// Small servers send whole calls, arguments as an object, no ids.
		call: data(
			`{"id":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"look","arguments":{"at":"x"}}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}`,
		),
		fault: func(_ int, text string) string { return fmt.Sprintf(`{"detail":%q}`, text) },
		line:  func(text string) string { return fmt.Sprintf(`{"error":%q}`, text) },
		long:  fails(413, `too large`),
	},
	{
		provider: ProviderTape,
		call: data(
			`{"id":"t","object":"chat.completion.chunk","model":"tape","choices":[{"index":0,"delta":{"role":"assistant","content":"","x_field":{"n":12345678901234567890}},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"x\"}"}}]},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		),
		back: []string{`"x_field":{"n":12345678901234567890}`},
		fault: func(status int, text string) string {
			return fmt.Sprintf(`{"error":{"message":%q,"type":"tape","code":%d}}`, text, status)
		},
		line: func(text string) string {
			return fmt.Sprintf(`data: {"error":{"message":%q,"type":"tape","code":500}}`, text)
		},
		long: fails(413, `{"error":{"message":"the request could not be read"}}`),
	},
}

func TestProviders(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.provider, func(t *testing.T) {
			t.Parallel()
			for name, test := range map[string]func(*testing.T, dialect){
				"text":                 providerText,
				"call and replay":      providerReplay,
				"missing usage":        providerMissingUsage,
				"fault in a stream":    providerFaultInStream,
				"200 with an error":    providerFaultInBody,
				"cut stream":           providerCut,
				"empty choices":        providerEmptyChoices,
				"rate limit":           providerRateLimit,
				"wrong key":            providerWrongKey,
				"unavailable":          providerUnavailable,
				"too long":             providerTooLong,
				"slow first byte":      providerSlow,
				"endless stream":       providerEndless,
				"endless keep-alive":   providerKeepAlive,
				"whole answer":         providerWhole,
				"credentials, headers": providerHeaders,
			} {
				t.Run(name, func(t *testing.T) { test(t, d) })
			}
		})
	}
}

// lines puts the provider's keep-alives between the lines of a stream.
func (d dialect) lines(lines []string) []string {
	if d.keepAlive == "" {
		return lines
	}
	var mixed []string
	for _, line := range lines {
		mixed = append(mixed, d.keepAlive, d.keepAlive, line)
	}
	return mixed
}

func providerText(t *testing.T, d dialect) {
	s := newServer(t, streams(d.lines(text("Hello <you> & Grüße"))...))
	client := newClient(t, d.provider, s)
	request := question("Hi")
	var shown string
	request.OnDelta = func(delta agents.Delta) { shown += delta.Text }
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if response.Text != "Hello <you> & Grüße" || shown != response.Text || response.FinishReason != "stop" {
		t.Errorf("text %q, shown %q, finish %q", response.Text, shown, response.FinishReason)
	}
	usage := response.Usage
	if usage.Requests != 1 || usage.Input != 1000 || usage.Output != 100 || usage.Cached != 400 || usage.Entries[0].Estimated {
		t.Errorf("usage %+v", usage)
	}
	if response.Provider != d.provider || response.RequestID != "req-1" {
		t.Errorf("provider %q, request %q", response.Provider, response.RequestID)
	}
}

func providerReplay(t *testing.T, d dialect) {
	s := newServer(t, streams(d.lines(d.call)...), streams(text("ok")...))
	client := newClient(t, d.provider, s)
	request := question("Hi")
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.ToolCalls) != 1 || response.ToolCalls[0].Name != "look" || response.ToolCalls[0].ID == "" {
		t.Fatalf("calls %+v", response.ToolCalls)
	}
	if arguments := response.ToolCalls[0].Arguments; arguments != `{"at":"x"}` {
		t.Errorf("arguments %s", arguments)
	}
	if response.Reasoning != d.reasoning {
		t.Errorf("reasoning %q, want %q", response.Reasoning, d.reasoning)
	}
	request.Messages = append(request.Messages,
		&agents.Message{
			Role: agents.RoleAssistant, Content: response.Text, ToolCalls: response.ToolCalls,
			Raw: response.Raw, Provider: response.Provider,
		},
		&agents.Message{Role: agents.RoleTool, ToolCallID: response.ToolCalls[0].ID})
	if _, err := client.Respond(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	second := s.asked()[1]
	for _, want := range append(d.back, `"content":"(no output)"`) {
		if !strings.Contains(second, want) {
			t.Errorf("the second request lacks %s:\n%s", want, second)
		}
	}
	if strings.Contains(second, `"index":0,"type":"function"`) {
		t.Errorf("the index of a stream came back: %s", second)
	}
}

func providerMissingUsage(t *testing.T, d dialect) {
	s := newServer(t, streams(text("Hello")[:2]...))
	client := newClient(t, d.provider, s)
	response, err := client.Respond(t.Context(), question(strings.Repeat("word ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	entry := response.Usage.Entries[0]
	if !entry.Estimated || entry.Input < 100 || entry.Input > 400 || entry.Output < 1 {
		t.Errorf("estimate %+v", entry)
	}
}

// providerFaultInStream: the first attempt shows a piece and breaks, the
// second is complete, and whoever listens is told to begin again.
func providerFaultInStream(t *testing.T, d dialect) {
	s := newServer(t,
		streams(append(d.lines(text("Half")[:1]), d.keepAlive, d.line("upstream fell over"))...),
		streams(text("Whole")...))
	client := newClient(t, d.provider, s)
	request := question("Hi")
	var shown string
	request.OnDelta = func(delta agents.Delta) {
		if delta.Restart {
			shown = ""
		}
		shown += delta.Text
	}
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if shown != "Whole" || response.Text != "Whole" || response.Usage.Requests != 2 || len(response.Usage.Entries) != 2 {
		t.Errorf("shown %q, text %q, usage %+v", shown, response.Text, response.Usage)
	}

	s = newServer(t, streams(d.keepAlive, d.line("upstream fell over")))
	_, err = newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if failure.Code != agents.CodeLLM || !strings.Contains(failure.Message, "upstream fell over") || len(s.asked()) != 4 {
		t.Errorf("%v after %d attempts", failure, len(s.asked()))
	}
}

func providerFaultInBody(t *testing.T, d dialect) {
	s := newServer(t, wholly(d.fault(500, "no capacity")))
	_, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if !strings.Contains(failure.Message, "no capacity") && d.provider != ProviderCompatible {
		t.Errorf("the provider's words are lost: %v", failure)
	}
	if failure.Code != agents.CodeLLM || !failure.Retryable || len(s.asked()) != 4 {
		t.Errorf("%+v after %d attempts", failure, len(s.asked()))
	}
}

func providerCut(t *testing.T, d dialect) {
	s := newServer(t, streams(d.lines(text("Half")[:1])...), streams(text("Half")[0], "data: [DONE]"), streams(text("Whole")...))
	response, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "Whole" || response.Usage.Requests != 3 {
		t.Errorf("%q, %v, usage %+v", response.Text, err, response.Usage)
	}
	if !response.Usage.Entries[0].Estimated || response.Usage.Entries[0].Input == 0 {
		t.Errorf("a cut answer cost nothing: %+v", response.Usage.Entries[0])
	}
}

func providerEmptyChoices(t *testing.T, d dialect) {
	s := newServer(t, streams(data(`{"id":"x","choices":[]}`)...), wholly(`{"id":"x","choices":[],"usage":{}}`), streams(text("ok")...))
	response, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "ok" || response.Usage.Requests != 3 {
		t.Errorf("%q, %v, usage %+v", response.Text, err, response.Usage)
	}
}

func providerRateLimit(t *testing.T, d dialect) {
	soon := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
	body := d.fault(429, "slow down")
	s := newServer(t, fails(429, body, "Retry-After", "7"), fails(429, body, "Retry-After", soon), fails(429, body, "Retry-After", "86400"), streams(text("ok")...))
	var slept waits
	client := newClient(t, d.provider, s, func(c *Config) { c.Retry = Retry{Sleep: slept.sleep} })
	response, err := client.Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "ok" {
		t.Fatalf("%q, %v", response.Text, err)
	}
	if w := slept.list; len(w) != 3 || w[0] != 7*time.Second || w[1] <= 0 || w[1] > 30*time.Second || w[2] != time.Minute {
		t.Errorf("slept %v, want 7s, up to 30s, the cap of 1m", w)
	}

	s = newServer(t, fails(429, body, "Retry-After", "7"))
	_, err = newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if failure.Kind != agents.KindRateLimited || failure.RetryAfter != 7*time.Second || failure.Status != 429 || failure.Usage.Requests != 4 {
		t.Errorf("%+v", failure)
	}
}

func providerWrongKey(t *testing.T, d dialect) {
	s := newServer(t, fails(401, d.fault(401, "the key "+canary+" is wrong")))
	_, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if failure.Kind != agents.KindAuth || failure.Retryable || len(s.asked()) != 1 || failure.Provider != d.provider {
		t.Errorf("%+v after %d attempts", failure, len(s.asked()))
	}
}

func providerUnavailable(t *testing.T, d dialect) {
	s := newServer(t, fails(500, d.fault(500, "oops")), fails(502, "<html>Bad gateway</html>"), fails(408, ""), streams(text("ok")...))
	response, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "ok" || response.Usage.Requests != 4 {
		t.Errorf("%q, %v, usage %+v", response.Text, err, response.Usage)
	}
	for _, status := range []int{400, 404, 422} {
		s := newServer(t, fails(status, `{"error":{"message":"no such thing"}}`))
		_, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
		if failure := failureOf(t, err); failure.Kind != agents.KindRejected || len(s.asked()) != 1 {
			t.Errorf("HTTP %d: %v after %d attempts", status, failure, len(s.asked()))
		}
	}
}

func providerTooLong(t *testing.T, d dialect) {
	s := newServer(t, d.long)
	_, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); failure.Kind != agents.KindContextTooLong || len(s.asked()) != 1 {
		t.Errorf("%v after %d attempts", failure, len(s.asked()))
	}
}

// once is for tests whose attempts end by a clock.
func once(timeouts Timeouts) func(*Config) {
	return func(c *Config) { c.Retry.Attempts, c.Timeouts = 1, timeouts }
}

func providerSlow(t *testing.T, d dialect) {
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client := newClient(t, d.provider, s, once(Timeouts{FirstByte: 20 * time.Millisecond}))
	_, err := client.Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); failure.Kind != agents.KindTransport || !strings.Contains(failure.Message, "no answer began in time") {
		t.Errorf("%v", failure)
	}
}

func providerEndless(t *testing.T, d dialect) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			streams(text("for ever and ")[:1]...)(w, r)
		}
	})
	client := newClient(t, d.provider, s, once(Timeouts{Total: 50 * time.Millisecond}))
	_, err := client.Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); failure.Kind != agents.KindTransport || !strings.Contains(failure.Message, "took too long") {
		t.Errorf("%v", failure)
	}
}

// providerKeepAlive: comments keep the connection, not the attempt.
func providerKeepAlive(t *testing.T, d dialect) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			streams(": still here")(w, r)
		}
	})
	client := newClient(t, d.provider, s, once(Timeouts{Idle: 50 * time.Millisecond}))
	_, err := client.Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "stood still") {
		t.Errorf("%v", failure)
	}
}

func providerWhole(t *testing.T, d dialect) {
	s := newServer(t, wholly(`{"id":"w","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"All at once"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}`))
	response, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi"))
	if err != nil || response.Text != "All at once" || response.Usage.Total != 8 {
		t.Errorf("%+v, %v", response, err)
	}
}

func providerHeaders(t *testing.T, d dialect) {
	s := newServer(t, streams(text("ok")...))
	if _, err := newClient(t, d.provider, s).Respond(t.Context(), question("Hi")); err != nil {
		t.Fatal(err)
	}
	header := s.headers[0]
	want := "Bearer " + canary
	if d.provider == ProviderTape {
		want = ""
	}
	if got := header.Get("Authorization"); got != want {
		t.Errorf("authorization %q", got)
	}
	if onTape := header.Get("X-Handoff-Agent") != ""; onTape != (d.provider == ProviderTape) {
		t.Errorf("the tape's headers are sent: %v", onTape)
	}
	if titled := header.Get("X-Title") == "handoff"; titled != (d.provider == ProviderOpenRouter) {
		t.Errorf("the title is sent: %v", titled)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.asked()[0]), &body); err != nil {
		t.Fatal(err)
	}
	if routing := string(body["provider"]); (routing == `{"data_collection":"deny"}`) != (d.provider == ProviderOpenRouter) {
		t.Errorf("routing %s", routing)
	}
}
