package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"handoff/agents"
)

// The tests of this file are what providers were seen to do that no
// description of chat completions mentions.

// TestFaultInsideAChoice: openrouter reports an upstream that failed in the
// choice itself, of a stream and of a whole answer.
func TestFaultInsideAChoice(t *testing.T) {
	const fault = `"error":{"code":502,"message":"the upstream's words","metadata":{"provider_name":"P"}}`
	for name, answer := range map[string]reply{
		"streamed": streams(data(`{"choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":"error",` + fault + `}]}`)...),
		"whole":    wholly(`{"choices":[{"index":0,"message":{"content":"Half"},"finish_reason":"stop",` + fault + `}]}`),
	} {
		_, failure := respond(t, answer)
		if failure == nil || failure.Kind != agents.KindUnavailable || !failure.Retryable || !strings.Contains(failure.Message, "the upstream's words") {
			t.Errorf("%s: %v", name, failure)
		}
	}
}

func TestFinishReasonsOfEveryAccent(t *testing.T) {
	for said, want := range map[string]string{
		"stop": "stop", "STOP": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length",
		"MAX_TOKENS": "length", "sensitive": "content_filter", "SAFETY": "content_filter",
		"content_filter: PROHIBITED_CONTENT": "content_filter", "something_new": "something_new",
	} {
		response, failure := respond(t, streams(data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"`+said+`"}]}`)...))
		if failure != nil || response.FinishReason != want {
			t.Errorf("%s: %q, %v; want %q", said, response.FinishReason, failure, want)
		}
	}
	for said, kind := range map[string]string{
		"error": agents.KindTransport, "network_error": agents.KindTransport,
		"function_call_filter: MALFORMED_FUNCTION_CALL": agents.KindTransport,
		"model_context_window_exceeded":                 agents.KindContextTooLong,
	} {
		_, failure := respond(t, streams(data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"`+said+`"}]}`)...))
		if failure == nil || failure.Kind != kind || failure.Retryable != (kind == agents.KindTransport) {
			t.Errorf("%s: %+v; want %s", said, failure, kind)
		}
	}
}

// TestMessageThatIsSaidTwice: gateways send pieces and then the whole, of the
// message and of a call.
func TestMessageThatIsSaidTwice(t *testing.T) {
	response, err := assemble(
		`{"choices":[{"index":0,"delta":{"content":"Once","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"message":{"role":"assistant","content":"Once","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}]}`)
	if err != nil || response.Text != "Once" || len(response.ToolCalls) != 1 || response.ToolCalls[0].Arguments != `{"x":1}` {
		t.Errorf("%+v, %v", response, err)
	}
}

// TestPartsAndPlainText: a model that thinks in parts of a list speaks in plain
// text afterwards, and the other way round.
func TestPartsAndPlainText(t *testing.T) {
	response, err := assemble(
		`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}]}]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"It "}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"works"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"."}]}}]}`)
	want := `"content":[{"thinking":[{"text":"Hmm.","type":"text"}],"type":"thinking"},{"text":"It works.","type":"text"}]`
	if err != nil || response.Text != "It works." || !strings.Contains(string(response.Raw), want) {
		t.Errorf("%q, %s, %v", response.Text, response.Raw, err)
	}
	response, err = assemble(
		`{"choices":[{"index":0,"delta":{"content":"a"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"b"}]}}]}`)
	if err != nil || response.Text != "ab" {
		t.Errorf("%q, %v", response.Text, err)
	}
}

func TestReasoningThatIsOnlyInDetails(t *testing.T) {
	response, err := assemble(`{"choices":[{"index":0,"delta":{"content":"x","reasoning_details":[{"type":"reasoning.summary","summary":"In short","index":0},{"type":"reasoning.encrypted","data":"E","index":1}]}}]}`)
	if err != nil || response.Reasoning != "In short" {
		t.Errorf("%+v, %v", response, err)
	}
}

// TestWebPageIsNoAnswer: a proxy, a login, or a server whose API is elsewhere.
func TestWebPageIsNoAnswer(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title>")
	}
	s := newServer(t, page)
	_, err := newClient(t, ProviderCompatible, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if failure.Kind != agents.KindRejected || len(s.asked()) != 1 || !strings.Contains(failure.Message, "OPENAI_BASE_URL") || failure.Usage.Total != 0 {
		t.Errorf("%+v after %d attempts", failure, len(s.asked()))
	}
}

// TestAdviceIsOfThisProvider: what to do about a refusal depends on who refused.
func TestAdviceIsOfThisProvider(t *testing.T) {
	for _, test := range []struct {
		provider string
		answer   reply
		want     string
	}{
		{ProviderOpenAI, fails(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`), "check the name in MODEL"},
		{ProviderZAI, fails(400, `{"error":{"code":"1211","message":"Unknown Model"}}`), "check the name in MODEL"},
		{ProviderCompatible, fails(404, `404 page not found`), "OPENAI_BASE_URL"},
		{ProviderCompatible, fails(308, ``, "Location", "https://elsewhere.test/"), "OPENAI_BASE_URL"},
		{ProviderOpenRouter, fails(404, `{"error":{"message":"No endpoints found matching your data policy","code":404}}`), "ALLOW_DATA_COLLECTION"},
		{ProviderZAI, fails(401, `{"error":{"code":"1002","message":"Authorization Token is illegal"}}`), "ZAI_API_KEY"},
	} {
		_, err := newClient(t, test.provider, newServer(t, test.answer)).Respond(t.Context(), question("Hi"))
		if failure := failureOf(t, err); !strings.Contains(failure.Message, test.want) {
			t.Errorf("%s: %q lacks %q", test.provider, failure.Message, test.want)
		}
	}
}

// TestThoughtsStayWithTheirModel: a crew may have several models at one
// provider, and each refuses the signatures of the others.
func TestThoughtsStayWithTheirModel(t *testing.T) {
	s := newServer(t, streams(dialects[0].call...), streams(text("ok")...))
	client := newClient(t, ProviderOpenRouter, s)
	request := question("Hi")
	request.Model.ID = "anthropic/claude-sonnet-4.5"
	response, err := client.Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	answer := &agents.Message{
		Role: agents.RoleAssistant, Content: response.Text, ToolCalls: response.ToolCalls,
		Raw: response.Raw, Provider: response.Provider, Model: response.Asked,
	}
	request.Messages = append(request.Messages, answer, &agents.Message{Role: agents.RoleTool, ToolCallID: "c1", Content: "seen"})
	for _, model := range []string{"anthropic/claude-sonnet-4.5", "openai/gpt-4o", "anthropic/claude-sonnet-4.5"} {
		request.Model.ID = model
		if _, err := client.Respond(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		asked := s.asked()
		last := asked[len(asked)-1]
		if own := strings.Contains(last, "sig=="); own != (model == "anthropic/claude-sonnet-4.5") {
			t.Errorf("%s is told the signature: %v", model, own)
		}
		if !strings.Contains(last, `"id":"c1"`) || !strings.Contains(last, `"tool_call_id":"c1"`) {
			t.Errorf("%s is not told the call: %s", model, last)
		}
	}
	if asked := s.asked(); asked[1] != asked[3] {
		t.Errorf("the same request differs:\n%s\n%s", asked[1], asked[3])
	}
}

// TestRateLimitWithoutAHeader: Google says in the body when to come again, and
// others do not say it at all; they count by the minute.
func TestRateLimitWithoutAHeader(t *testing.T) {
	said := fails(429, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`)
	silent := fails(429, `{"error":{"message":"slow down"}}`)
	s := newServer(t, said, silent, silent, streams(text("ok")...))
	var slept waits
	client := newClient(t, ProviderVertex, s, func(c *Config) { c.Retry = Retry{Sleep: slept.sleep} })
	if _, err := client.Respond(t.Context(), question("Hi")); err != nil {
		t.Fatal(err)
	}
	if w := slept.list; len(w) != 3 || w[0] != 34500*time.Millisecond || w[1] < 10*time.Second || w[2] < 20*time.Second || w[2] > time.Minute {
		t.Errorf("slept %v, want 34.5s, 10s to 20s, 20s to 40s", w)
	}
}
