package llm

import (
	"encoding/json"
	"errors"
	"math"
	"sync"

	"handoff/agents"
)

// A wireUsage is what a provider reports. The numbers are read as floats,
// because some providers write them so.
type wireUsage struct {
	Prompt     float64  `json:"prompt_tokens"`
	Completion float64  `json:"completion_tokens"`
	Total      float64  `json:"total_tokens"`
	Cost       *float64 `json:"cost"`
	// BYOK says that openrouter used a key of the account's owner: Cost is its
	// own fee, the upstream bills the rest (openrouter.ai/docs, usage
	// accounting).
	BYOK        bool `json:"is_byok"`
	CostDetails *struct {
		Upstream float64 `json:"upstream_inference_cost"`
	} `json:"cost_details"`
	PromptDetails *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// UnmarshalJSON implements [json.Unmarshaler]. A usage of a strange shape is
// no usage; it does not spoil the answer.
func (u *wireUsage) UnmarshalJSON(data []byte) error {
	type plain wireUsage
	var read plain
	if json.Unmarshal(data, &read) == nil {
		*u = wireUsage(read)
	}
	return nil
}

// bytesPerToken is the first guess: four bytes of English or code are about a
// token in the vocabularies of all providers. The body that is counted has
// JSON around the text, which makes the guess a little high, to the safe side.
const bytesPerToken = 4

// reported returns the usage of a complete answer as its provider reports it,
// or an estimate.
func (a *assembly) reported(call call) agents.Usage {
	entry := agents.UsageEntry{Agent: call.request.Agent, Model: call.info.ID}
	if a.usage == nil || (a.usage.Prompt <= 0 && a.usage.Completion <= 0) {
		return agents.Usage{Entries: []agents.UsageEntry{entry}}
	}
	entry.Input, entry.Output = count(a.usage.Prompt), count(a.usage.Completion)
	entry.Total = max(count(a.usage.Total), entry.Input+entry.Output)
	// Google counts what a model thinks in the total only, and bills it as
	// output.
	hidden := entry.Total - entry.Input - entry.Output
	entry.Output += hidden
	if a.usage.PromptDetails != nil {
		entry.Cached = min(count(a.usage.PromptDetails.Cached), entry.Input)
	}
	if a.usage.CompletionDetails != nil {
		entry.Reasoning = count(a.usage.CompletionDetails.Reasoning)
	}
	entry.Reasoning = max(entry.Reasoning, hidden)
	entry.CostMicros, entry.CostUnknown = call.info.cost(entry)
	if cost := a.usage.Cost; call.endpoint.provider.ReportsCost && cost != nil && *cost >= 0 {
		entry.CostMicros, entry.CostUnknown = count((*cost+a.usage.upstream())*1e6), false
	}
	return agents.Usage{Entries: []agents.UsageEntry{entry}}
}

// upstream returns what another account is billed for the call, in US dollars.
// Without a key of its owner the same field only explains Cost.
func (u *wireUsage) upstream() float64 {
	if !u.BYOK || u.CostDetails == nil {
		return 0
	}
	return max(u.CostDetails.Upstream, 0)
}

// count makes a number of tokens of whatever a provider wrote.
func count(value float64) int64 {
	if !(value > 0) {
		return 0
	}
	return int64(math.Round(math.Min(value, 1e15)))
}

// cost returns the price in millionths of a US dollar, or that it is unknown.
func (m ModelInfo) cost(entry agents.UsageEntry) (micros int64, unknown bool) {
	if !m.Priced {
		return 0, entry.Total > 0
	}
	prices := m.Prices
	if m.Long != nil && entry.Input > m.Long.Above {
		prices = m.Long.Prices
	}
	cached := prices.Input
	if prices.Cached != nil {
		cached = *prices.Cached
	}
	price := float64(entry.Input-entry.Cached)*prices.Input + float64(entry.Cached)*cached + float64(entry.Output)*prices.Output
	return int64(math.Ceil(price)), false
}

// partial is what is known of an attempt that failed half-way, for its
// estimate.
func (r *reading) partial() agents.Response {
	response := agents.Response{Text: plainText(r.message["content"]), Reasoning: reasoningOf(r.message)}
	response.Usage = r.reported(r.call)
	return response
}

// usageOf returns the usage of one attempt (rule R80). What was reported is
// used and teaches the estimate; of an attempt that had begun to answer an
// estimate is made; one that was refused or never arrived cost nothing.
func (c *Client) usageOf(call call, attempt int, response agents.Response, err error) agents.Usage {
	entry := agents.UsageEntry{Agent: call.request.Agent, Model: call.info.ID}
	if len(response.Usage.Entries) > 0 {
		entry = response.Usage.Entries[0]
	}
	entry.Attempt = attempt
	switch {
	case entry.Total > 0:
		c.calibration.learn(call.info.ID, len(call.body.bytes), entry.Input)
	case err == nil || began(err):
		entry.Estimated = true
		entry.Input = c.calibration.tokens(call.info.ID, len(call.body.bytes))
		entry.Output = c.calibration.tokens(call.info.ID, outputSize(response))
		entry.Total = entry.Input + entry.Output
		entry.CostMicros, entry.CostUnknown = call.info.cost(entry)
	}
	return agents.Usage{
		Requests: 1, Input: entry.Input, Output: entry.Output, Total: entry.Total, Cached: entry.Cached,
		Reasoning: entry.Reasoning, CostMicros: entry.CostMicros, CostUnknown: entry.CostUnknown,
		Entries: []agents.UsageEntry{entry},
	}
}

// began says that a failed attempt had begun to answer.
func began(err error) bool {
	failure, ok := errors.AsType[*agents.Error](err)
	return ok && failure.Status == 200
}

func outputSize(response agents.Response) int {
	size := len(response.Text) + len(response.Reasoning)
	for _, call := range response.ToolCalls {
		size += len(call.Name) + len(call.Arguments)
	}
	return size
}

// EstimateTokens returns about how many tokens a request would have. The
// estimate is calibrated for each model by what its provider reports. It is
// cheap: messages are encoded at most once.
func (c *Client) EstimateTokens(request agents.Request) (int64, error) {
	endpoint, err := c.endpoint(request.Model.Provider)
	if err != nil {
		return 0, err
	}
	info := endpoint.model(c.modelID(endpoint, request.Model))
	body, err := encodeRequest(endpoint, info, request)
	if err != nil {
		return 0, endpoint.failure(agents.KindRejected, err, "The request cannot be encoded: "+err.Error()+".")
	}
	defer body.release()
	return c.calibration.tokens(info.ID, len(body.bytes)), nil
}

// A calibration knows how many bytes a token of each model has.
type calibration struct {
	mu    sync.Mutex
	bytes map[string]float64
}

// learn takes a reported number into account. Old reports fade slowly, and a
// single strange one (a provider that counts only what is new) cannot move
// the number out of what is possible.
func (c *calibration) learn(model string, size int, tokens int64) {
	if tokens < 50 || size < 200 {
		return
	}
	observed := math.Min(math.Max(float64(size)/float64(tokens), 1), 8)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes == nil {
		c.bytes = map[string]float64{}
	}
	known, ok := c.bytes[model]
	if !ok {
		known = bytesPerToken
	}
	c.bytes[model] = known + (observed-known)/4
}

// tokens estimates a size.
func (c *calibration) tokens(model string, size int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	perToken, ok := c.bytes[model]
	if !ok {
		perToken = bytesPerToken
	}
	return int64(math.Ceil(float64(size) / perToken))
}
