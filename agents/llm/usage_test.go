package llm

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoff/agents"
)

func TestModelTable(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, PricesDate()); err != nil {
		t.Errorf("the table's date: %v", err)
	}
	for _, entry := range table.Models {
		if _, ok := table.Families[entry.Family]; !ok {
			t.Errorf("%s: family %q is not there", entry.ID, entry.Family)
		}
		if entry.Context < 1000 || entry.Input < 0 || entry.Output < entry.Input || (entry.Cached != nil && *entry.Cached > entry.Input) {
			t.Errorf("%s: %+v makes no sense", entry.ID, entry.ModelInfo)
		}
		for _, provider := range entry.Providers {
			if _, err := findProvider(provider, environment(nil)); err != nil {
				t.Errorf("%s: %v", entry.ID, err)
			}
		}
	}
	for provider, model := range table.Defaults {
		p, err := findProvider(provider, environment(nil))
		if err != nil {
			t.Fatal(err)
		}
		if info := table.lookup(p, model); !info.Known || !info.Priced {
			t.Errorf("the default model of %s is not known: %+v", provider, info)
		}
	}
}

func TestLookup(t *testing.T) {
	openRouter, _ := findProvider(ProviderOpenRouter, environment(nil))
	openAI, _ := findProvider(ProviderOpenAI, environment(nil))
	compatible, _ := findProvider(ProviderCompatible, environment(nil))
	for _, test := range []struct {
		provider      provider
		id            string
		priced        bool
		input         float64
		context       int64
		temperature   bool
		systemInside  bool
		limitRenamed  bool
		parallelTools bool
	}{
		{openRouter, "openai/gpt-4o", true, 2.5, 128000, true, true, false, true},
		{openRouter, "openai/gpt-4o-2024-08-06", true, 2.5, 128000, true, true, false, true},
		{openAI, "gpt-4-turbo", true, 10, 128000, true, true, false, true},
		{openAI, "gpt-4o-audio-preview", false, 0, 32768, true, true, false, true},
		{openAI, "o3-ultra", false, 0, 32768, false, true, true, false},
		{openRouter, "anthropic/claude-sonnet-4.5", true, 3, 200000, true, false, false, true},
		{openRouter, "deepseek/deepseek-r1:free", false, 0, 32768, true, true, false, false},
		{openRouter, "z-ai/glm-4.5-air:free", true, 0, 131072, true, true, false, false},
		{openAI, "nobody/knows", false, 0, 32768, true, false, false, false},
		{compatible, "gpt-4o", false, 2.5, 128000, true, true, false, true},
	} {
		info := table.lookup(test.provider, test.id)
		if info.Priced != test.priced || info.Input != test.input || info.Context != test.context || info.ID != test.id ||
			info.Temperature != test.temperature || info.SystemNotes != test.systemInside ||
			info.CompletionTokens != test.limitRenamed || info.ParallelTools != test.parallelTools {
			t.Errorf("%s at %s: %+v", test.id, test.provider.Name, info)
		}
	}
}

func TestCost(t *testing.T) {
	// 600 new and 400 cached tokens in, 100 out, at gpt-4o's prices.
	s := newServer(t, streams(text("ok")...))
	response, err := newClient(t, ProviderOpenAI, s).Respond(t.Context(), question("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(600*2.5 + 400*1.25 + 100*10); response.Usage.CostMicros != want || response.Usage.CostUnknown {
		t.Errorf("%d millionths of a dollar, want %d", response.Usage.CostMicros, want)
	}
	request := question("Hi")
	request.Model.ID = "nobody/knows"
	response, err = newClient(t, ProviderOpenAI, s).Respond(t.Context(), request)
	if err != nil || !response.Usage.CostUnknown || response.Usage.CostMicros != 0 || !response.Usage.Entries[0].CostUnknown {
		t.Errorf("%+v, %v", response.Usage, err)
	}
}

func TestReportedCostWins(t *testing.T) {
	chunks := data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cost":0.00123,"completion_tokens_details":{"reasoning_tokens":3}}}`)
	response, err := newClient(t, ProviderOpenRouter, newServer(t, streams(chunks...))).Respond(t.Context(), question("Hi"))
	if err != nil || response.Usage.CostMicros != 1230 || response.Usage.Reasoning != 3 {
		t.Errorf("%+v, %v", response.Usage, err)
	}
	response, err = newClient(t, ProviderOpenAI, newServer(t, streams(chunks...))).Respond(t.Context(), question("Hi"))
	if err != nil || response.Usage.CostMicros != 10*2.5+5*10 {
		t.Errorf("openai reports no cost: %+v, %v", response.Usage, err)
	}
}

func TestStrangeUsage(t *testing.T) {
	for _, usage := range []string{`"none"`, `[]`, `{}`, `{"prompt_tokens":"12"}`, `{"prompt_tokens":-5,"completion_tokens":-1}`, `{"prompt_tokens":1e300}`} {
		chunks := data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":` + usage + `}`)
		response, err := newClient(t, ProviderOpenAI, newServer(t, streams(chunks...))).Respond(t.Context(), question("Hi"))
		if err != nil || response.Usage.Input <= 0 || response.Usage.Total < response.Usage.Input || response.Usage.CostMicros < 0 {
			t.Errorf("%s: %+v, %v", usage, response.Usage, err)
		}
	}
}

func TestEstimatesLearn(t *testing.T) {
	// The provider counts a token for two bytes; after a few calls so do we.
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		tokens := strconv.Itoa(int(r.ContentLength) / 2)
		streams(data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":`+tokens+`,"completion_tokens":1}}`)...)(w, r)
	})
	client := newClient(t, ProviderOpenAI, s)
	request := question(strings.Repeat("word ", 400))
	before, err := client.EstimateTokens(request)
	if err != nil {
		t.Fatal(err)
	}
	var last agents.Response
	for range 12 {
		if last, err = client.Respond(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	after, err := client.EstimateTokens(request)
	if err != nil {
		t.Fatal(err)
	}
	if off := float64(after)/float64(last.Usage.Entries[0].Input) - 1; off > 0.05 || off < -0.05 {
		t.Errorf("estimated %d, then %d, reported %d", before, after, last.Usage.Entries[0].Input)
	}
	// Another model has learned nothing.
	request.Model.ID = "gpt-4.1"
	if other, err := client.EstimateTokens(request); err != nil || other < before-3 || other > before+3 {
		t.Errorf("gpt-4.1: %d, %v", other, err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"1.5":                           1500 * time.Millisecond,
		"-3":                            0,
		"NaN":                           0,
		"soon":                          0,
		"1e99":                          24 * time.Hour,
		"Fri, 02 Jan 2026 15:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 15:04:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}, now); got != 250*time.Millisecond {
		t.Errorf("in milliseconds: %v", got)
	}
}

// TestBackoff: without a word of the provider the wait grows, varies and never
// passes the cap.
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(1, 2000).Draw(t, "attempt")
		retry := Retry{Base: time.Second, Cap: 20 * time.Second}
		wait := retry.wait(attempt, &agents.Error{})
		full := 20 * time.Second
		if attempt < 6 {
			full = min(full, time.Second<<(attempt-1))
		}
		if wait < full/2 || wait > full {
			t.Fatalf("attempt %d waits %v of %v", attempt, wait, full)
		}
	})
}

// usageReported asks once and returns what the call cost.
func usageReported(t *testing.T, provider, model, usage string) agents.Usage {
	t.Helper()
	chunks := data(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":`+usage+`}`)
	request := question("Hi")
	request.Model.ID = model
	response, err := newClient(t, provider, newServer(t, streams(chunks...))).Respond(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return response.Usage
}

// TestThoughtsArePaidFor: Google counts them in the total alone.
func TestThoughtsArePaidFor(t *testing.T) {
	usage := usageReported(t, ProviderVertex, "google/gemini-2.5-flash", `{"prompt_tokens":20,"completion_tokens":198,"total_tokens":623}`)
	if usage.Output != 603 || usage.Reasoning != 405 || usage.Total != 623 || usage.CostMicros != 6+1508 {
		t.Errorf("%+v", usage)
	}
}

// TestOwnKeysArePaidFor: with a key of the account's owner openrouter reports
// its fee and, apart from it, what the upstream bills.
func TestOwnKeysArePaidFor(t *testing.T) {
	const usage = `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cost":0.0005,"cost_details":{"upstream_inference_cost":0.01},"is_byok":`
	if got := usageReported(t, ProviderOpenRouter, "openai/gpt-4o", usage+`true}`); got.CostMicros != 10500 {
		t.Errorf("own key: %+v", got)
	}
	if got := usageReported(t, ProviderOpenRouter, "openai/gpt-4o", usage+`false}`); got.CostMicros != 500 {
		t.Errorf("openrouter's key: %+v", got)
	}
}

func TestLongPromptsCostMore(t *testing.T) {
	short := usageReported(t, ProviderVertex, "google/gemini-2.5-pro", `{"prompt_tokens":200000,"completion_tokens":10,"total_tokens":200010}`)
	long := usageReported(t, ProviderVertex, "google/gemini-2.5-pro", `{"prompt_tokens":200001,"completion_tokens":10,"total_tokens":200011}`)
	if short.CostMicros != 250000+100 || long.CostMicros != 500003+150 {
		t.Errorf("%d, %d millionths of a dollar", short.CostMicros, long.CostMicros)
	}
}

// TestPricedModels: a cap on cost holds where the cost is known, and nowhere
// else.
func TestPricedModels(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	for provider, models := range map[string]map[string]bool{
		ProviderOpenAI:     {"": true, "gpt-4o": true, "nobody/knows": false},
		ProviderOpenRouter: {"nobody/knows": true},
		ProviderCompatible: {"": false, "gpt-4o": false},
		ProviderTape:       {"": true, "nobody/knows": true},
	} {
		client := newClient(t, provider, s)
		for model, want := range models {
			if got := client.Priced(agents.ModelRef{ID: model}); got != want {
				t.Errorf("%s %q: priced %v", provider, model, got)
			}
		}
	}
}
