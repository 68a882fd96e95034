package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/runner"
)

// errKilled is what the journal says once the process of a case is dead.
var errKilled = errors.New("the process was killed")

// A world is everything around the runner in one case: the endpoint that
// plays the model, the tools that count what they do, and the moment at which
// the process dies.
type world struct {
	mu     sync.Mutex
	server *httptest.Server
	turns  []caseTurn
	served int
	// committed is how many turns had been served when the last response was
	// recorded: where a repeated script goes on.
	committed int
	requests  []capturedRequest

	effects  map[string]int
	byCall   map[string]int
	byKey    map[string]int
	external map[string]bool
	args     map[string][]json.RawMessage
	running  int
	parallel int

	dead    bool
	crashes []caseCrash
	seen    map[string]int
	// dieAt kills the process at the n-th append: after it, or before it when
	// dieBefore is set. 0 means never.
	dieAt     int
	dieBefore bool
	appends   int

	events []runner.Event
}

// A capturedRequest is what the endpoint was asked.
type capturedRequest struct {
	Messages []wireMessage
	Tools    []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	body map[string]any
}

type wireMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

func newWorld(t *testing.T, c testCase) *world {
	w := &world{
		turns: c.Turns, effects: map[string]int{}, byCall: map[string]int{}, byKey: map[string]int{},
		external: map[string]bool{}, args: map[string][]json.RawMessage{}, crashes: slices.Clone(c.Crash), seen: map[string]int{},
	}
	w.server = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(w.server.Close)
	return w
}

// answer plays the next turn of the script.
func (w *world) answer(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(rw, "no such page", http.StatusNotFound)
		return
	}
	turn, ok := w.next(r)
	if !ok {
		http.Error(rw, `{"error":{"message":"the script has no further turn"}}`, http.StatusBadRequest)
		return
	}
	if turn.DelayMS > 0 {
		select {
		case <-time.After(time.Duration(turn.DelayMS) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
	for name, value := range turn.Headers {
		rw.Header().Set(name, value)
	}
	status := turn.Status
	if status == 0 {
		status = http.StatusOK
	}
	if turn.SSE != nil {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.WriteHeader(status)
		for _, line := range turn.SSE {
			fmt.Fprint(rw, line, "\n\n")
		}
		return
	}
	var text string
	if json.Unmarshal(turn.Body, &text) == nil { // a body that is no JSON
		rw.Header().Set("Content-Type", "text/html")
		rw.WriteHeader(status)
		io.WriteString(rw, text)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	rw.Write(turn.Body)
}

func (w *world) next(r *http.Request) (caseTurn, bool) {
	body, _ := io.ReadAll(r.Body)
	var request capturedRequest
	_ = json.Unmarshal(body, &request) // what is no JSON has no messages, which the checks find
	_ = json.Unmarshal(body, &request.body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request)
	if w.strike("after_model_request", func(c caseCrash) bool { return c.Nth <= 1 || c.Nth == len(w.requests) }) {
		w.dead = true
	}
	if w.served >= len(w.turns) {
		return caseTurn{}, false
	}
	w.served++
	return w.turns[w.served-1], true
}

// strike takes a crash of that point off the list if it is due.
func (w *world) strike(point string, due func(caseCrash) bool) bool {
	for i, crash := range w.crashes {
		if crash.Point == point && due(crash) {
			w.crashes = slices.Delete(w.crashes, i, i+1)
			return true
		}
	}
	return false
}

// restart is a new process on the same session.
func (w *world) restart(rewind bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.dieAt = false, 0
	if rewind {
		w.served = w.committed
	}
}

// mortal wraps a journal so that nothing is appended once the process is dead,
// and so that it dies where the case says.
func (w *world) mortal(journal runner.Journal) runner.Journal {
	return &mortalJournal{Journal: journal, world: w}
}

type mortalJournal struct {
	runner.Journal
	world *world
}

func (j *mortalJournal) Append(ctx context.Context, batch runner.Batch) (int64, error) {
	w := j.world
	w.mu.Lock()
	w.appends++
	if w.dieAt == w.appends && w.dieBefore {
		w.dead = true
	}
	dead := w.dead
	w.mu.Unlock()
	if dead {
		return 0, errKilled
	}
	first, err := j.Journal.Append(ctx, batch)
	if err != nil {
		return first, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, record := range batch.Records {
		w.seen[string(record.Kind)]++
		if record.Kind == runner.RecordModelResponse || record.Kind == runner.RecordCompactionAdded {
			w.committed = w.served
		}
		if w.strike("after_record", func(c caseCrash) bool {
			return c.Record == string(record.Kind) && max(c.Nth, 1) == w.seen[c.Record]
		}) {
			w.dead = true
		}
	}
	if w.dieAt == w.appends {
		w.dead = true
	}
	if w.dead {
		return 0, errKilled
	}
	return first, nil
}

func (j *mortalJournal) Load(ctx context.Context, from int64) ([]runner.Record, error) {
	j.world.mu.Lock()
	dead := j.world.dead
	j.world.mu.Unlock()
	if dead {
		return nil, errKilled
	}
	return j.Journal.Load(ctx, from)
}

// tool makes a case's tool.
func (w *world) tool(c caseTool) agents.Tool {
	tool := agents.Tool{
		Name: c.Name, Description: "A tool of a test.", Schema: c.Params,
		Effect: agents.Effect(c.Effect), Reconcile: agents.Reconcile(c.Reconcile),
		Timeout: time.Duration(c.TimeoutMS) * time.Millisecond, RaiseErrors: c.OnError == "raise" || c.OnTimeout == "raise",
	}
	if len(tool.Schema) == 0 {
		tool.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if c.NeedsApproval {
		tool.NeedsApproval = func(context.Context, agents.Call) (bool, error) { return true, nil }
	}
	if c.InputGuardrail != nil {
		tool.InputGuardrail = func(context.Context, agents.Call) (string, bool, error) { return c.InputGuardrail.Reject, true, nil }
	}
	if tool.Reconcile == agents.ReconcileQuery || tool.Reconcile == agents.ReconcileHash {
		tool.Query = func(_ context.Context, call agents.Call, _ agents.Intent) (agents.Result, bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			result, _ := c.result(call)
			return result, w.byKey[call.IdempotencyKey] > 0, nil
		}
	}
	tool.Run = func(ctx context.Context, call agents.Call) (agents.Result, error) { return w.use(ctx, c, call) }
	return tool
}

// use counts a call, takes its time and gives the case's result.
func (w *world) use(ctx context.Context, c caseTool, call agents.Call) (agents.Result, error) {
	w.mu.Lock()
	if w.dead { // a dead process does nothing
		w.mu.Unlock()
		return agents.Result{}, errKilled
	}
	w.effects[c.Name]++
	w.byCall[call.ID]++
	w.byKey[call.IdempotencyKey]++
	w.external[call.IdempotencyKey] = c.Effect == string(agents.EffectExternal)
	w.args[c.Name] = append(w.args[c.Name], call.Args)
	w.running++
	w.parallel = max(w.parallel, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
		if w.strike("after_effect", func(crash caseCrash) bool { return crash.CallID == call.ID }) {
			w.dead = true
		}
	}()
	select {
	case <-time.After(time.Duration(c.Behavior.SleepMS) * time.Millisecond):
	case <-ctx.Done():
		return agents.Result{}, ctx.Err()
	}
	return c.result(call)
}

func (c caseTool) result(call agents.Call) (agents.Result, error) {
	switch b := c.Behavior; {
	case b.Error != "":
		return agents.Result{}, errors.New(b.Error)
	case b.ReturnArg != "":
		var args map[string]any
		_ = json.Unmarshal(call.Args, &args) // checked by the runner
		return agents.Result{Output: fmt.Sprint(args[b.ReturnArg])}, nil
	default:
		return agents.Result{Output: asText(b.Return)}, nil
	}
}

// model makes the real client, on the case's endpoint.
func (w *world) model(c testCase) (agents.Model, error) {
	config := llm.Config{Provider: c.Env["PROVIDER"], BaseURL: w.server.URL, Getenv: func(name string) string { return c.Env[name] }}
	if c.Env == nil {
		config.Getenv = func(name string) string {
			if name == "OPENROUTER_API_KEY" {
				return "test-key"
			}
			return ""
		}
	}
	if retries := c.RunConfig.ModelRetry.MaxRetries; retries != nil {
		config.Retry.Attempts = *retries + 1
	}
	config.Retry.Base = time.Duration(c.RunConfig.ModelRetry.InitialMS) * time.Millisecond
	return llm.New(config)
}

// crew makes the agents of a case, and what they need beside.
func (c testCase) request(w *world) (runner.RunRequest, error) {
	request := runner.RunRequest{
		Session: "s-" + c.ID, Crew: map[string]agents.Agent{}, AgentTools: map[string]runner.AgentTool{}, Chart: map[string][]string{},
		Start: c.StartAgent, Config: c.config(),
		Hooks: runner.Hooks{OnEvent: func(event runner.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, event)
		}},
	}
	for _, agent := range c.Agents {
		made, err := agent.agent(request.AgentTools)
		if err != nil {
			return request, err
		}
		request.Crew[agent.Name] = made
		if len(agent.AgencyRecipients) > 0 {
			request.Chart[agent.Name] = agent.AgencyRecipients
		}
		if request.Start == "" {
			request.Start = agent.Name
		}
	}
	var tools []agents.Tool
	for _, tool := range c.Tools {
		tools = append(tools, w.tool(tool))
	}
	var err error
	request.Tools, err = agents.NewRegistry(tools...)
	return request, err
}

func (a caseAgent) agent(asTools map[string]runner.AgentTool) (agents.Agent, error) {
	agent := agents.Agent{
		ID: a.Name, Name: a.Name, Instructions: a.Instructions, Settings: agents.ModelSettings{ToolChoice: a.ToolChoice},
		KeepToolChoice: a.ResetToolChoice != nil && !*a.ResetToolChoice,
	}
	for _, tool := range a.Tools {
		name := tool.Name
		if tool.AgentAsTool != "" {
			name = tool.AgentAsTool
			asTools[name] = runner.AgentTool{Agent: name, Description: "Ask " + name + "."}
		}
		agent.Tools = append(agent.Tools, name)
	}
	for _, handoff := range a.Handoffs {
		filter, err := namedFilter(handoff.InputFilter)
		if err != nil {
			return agent, err
		}
		agent.Handoffs = append(agent.Handoffs, agents.Handoff{Target: handoff.Agent, Filter: filter})
	}
	if a.OutputSchema != nil {
		agent.Output = &agents.OutputSchema{Name: "answer", Schema: a.OutputSchema}
	}
	agent.ToolUseBehavior.Kind = a.ToolUseBehavior.Kind
	if a.ToolUseBehavior.StopAtToolNames != nil {
		agent.ToolUseBehavior = agents.ToolUseBehavior{Kind: "stop_at_tool_names", Names: a.ToolUseBehavior.StopAtToolNames}
	}
	agent.InputGuardrails = guardrails(a.InputGuardrails)
	agent.OutputGuardrails = guardrails(a.OutputGuardrails)
	return agent, nil
}

func guardrails(cases []caseGuardrail) []agents.Guardrail {
	var rails []agents.Guardrail
	for _, c := range cases {
		rails = append(rails, agents.Guardrail{Name: c.Name, Parallel: c.Parallel, Check: func(context.Context, string) (string, bool, error) {
			return "the case says so", c.Trip, nil
		}})
	}
	return rails
}

// namedFilter returns the input filter that a case names.
func namedFilter(name string) (func([]agents.Item) []agents.Item, error) {
	if name == "" {
		return nil, nil
	}
	if n, ok := strings.CutPrefix(name, "keep_last_"); ok {
		keep, err := strconv.Atoi(n)
		return func(items []agents.Item) []agents.Item { return items[max(len(items)-keep, 0):] }, err
	}
	if name == "remove_all_tools" {
		return func(items []agents.Item) []agents.Item {
			return slices.DeleteFunc(items, func(item agents.Item) bool { return item.Call != nil })
		}, nil
	}
	return nil, fmt.Errorf("the driver knows no input filter %q", name)
}

func (c testCase) config() runner.RunConfig {
	config := runner.RunConfig{
		MaxTurns: c.RunConfig.MaxTurns, MaxHandoffs: c.RunConfig.MaxHandoffs, MaxTotalTokens: c.RunConfig.MaxTotalTokens,
		MaxToolConcurrency: c.RunConfig.MaxToolConcurrency, RunTimeout: time.Duration(c.RunConfig.RunTimeoutMS) * time.Millisecond,
		CompactAt: c.RunConfig.CompactAtChars, HistoryLimit: c.RunConfig.SessionLimit, NestHistory: c.RunConfig.NestHandoffHistory,
		Fallbacks: map[agents.Code]string{},
	}
	if repairs := c.RunConfig.OutputRepairAttempts; repairs != nil {
		config.OutputRepairs = *repairs
		if *repairs == 0 {
			config.OutputRepairs = -1
		}
	}
	codes := map[string]agents.Code{
		"max_turns": agents.CodeLimitTurns, "model_refusal": agents.CodeModelRefusal, "invalid_output": agents.CodeInvalidOutput,
	}
	for name, value := range c.ErrorHandlers {
		config.Fallbacks[codes[name]] = asText(value)
	}
	return config
}

// asText is a JSON string's text, and other JSON as it is.
func asText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}
