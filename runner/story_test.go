package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"handoff/agents"
	"handoff/runner"
)

// A story is a session in memory with a model that plays a script. Tests tell
// what the model says and look at what it was asked.
type story struct {
	*testing.T
	session *memorySession
	journal runner.Journal
	request runner.RunRequest
	model   *scriptedModel
	events  []runner.Event
}

// A line is one answer of the scripted model.
type line func(ctx context.Context, request agents.Request) (agents.Response, error)

// A scriptedModel gives its lines in order and keeps what it was asked.
type scriptedModel struct {
	mu       sync.Mutex
	lines    []line
	requests []agents.Request
}

func (m *scriptedModel) Respond(ctx context.Context, request agents.Request) (agents.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, request)
	if len(m.lines) == 0 {
		m.mu.Unlock()
		return agents.Response{}, &agents.Error{Code: agents.CodeLLM, Kind: agents.KindUnavailable, Message: "the script is over"}
	}
	next := m.lines[0]
	m.lines = m.lines[1:]
	m.mu.Unlock()
	return next(ctx, request)
}

// says answers with text only.
func says(text string) line {
	return func(context.Context, agents.Request) (agents.Response, error) {
		return agents.Response{Text: text, FinishReason: "stop", Usage: cost(20, 5)}, nil
	}
}

// calls answers with tool calls: name and arguments in turn.
func calls(namesAndArguments ...string) line {
	return func(_ context.Context, request agents.Request) (agents.Response, error) {
		response := agents.Response{FinishReason: "tool_calls", Usage: cost(20, 5)}
		for i := 0; i < len(namesAndArguments); i += 2 {
			response.ToolCalls = append(response.ToolCalls, agents.ToolCall{
				ID: fmt.Sprintf("%s-%d-%d", request.Agent, request.Turn, i/2), Name: namesAndArguments[i], Arguments: namesAndArguments[i+1],
			})
		}
		return response, nil
	}
}

func fails(failure *agents.Error) line {
	return func(context.Context, agents.Request) (agents.Response, error) { return agents.Response{}, failure }
}

func cost(input, output int64) agents.Usage {
	entry := agents.UsageEntry{Attempt: 1, Input: input, Output: output, Total: input + output}
	return agents.Usage{Requests: 1, Input: input, Output: output, Total: input + output, Entries: []agents.UsageEntry{entry}}
}

// handsTo is the arguments of a handoff.
func handsTo(target, words string) string {
	arguments, _ := json.Marshal(map[string]string{"target_agent": target, "reason": "next", "context": words})
	return string(arguments)
}

// tell begins a story with two agents, one and two, who may hand over to each
// other and have all the tools.
func tell(t *testing.T, tools []agents.Tool, lines ...line) *story {
	s := &story{T: t, session: &memorySession{}, model: &scriptedModel{lines: lines}}
	s.journal = s.session.take()
	var names []string
	for i := range tools {
		names = append(names, tools[i].Name)
		if tools[i].Schema == nil {
			tools[i].Schema = json.RawMessage(`{"type":"object"}`)
		}
	}
	registry, err := agents.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	s.request = runner.RunRequest{
		Session: "s1", Tools: registry, Model: s.model, Start: "one", Input: runner.Input{ID: "task", Text: "Add a login."},
		Crew: map[string]agents.Agent{
			"one": {ID: "one", Name: "One", Instructions: "You are one.", Tools: names, Handoffs: []agents.Handoff{{Target: "two"}}},
			"two": {ID: "two", Name: "Two", Instructions: "You are two.", Tools: names, Handoffs: []agents.Handoff{{Target: "one"}}},
		},
	}
	s.request.Hooks.OnEvent = func(event runner.Event) { s.events = append(s.events, event) }
	return s
}

// happened returns the events of a kind that people were told of.
func (s *story) happened(kind runner.EventKind) []runner.Event {
	return slices.DeleteFunc(slices.Clone(s.events), func(event runner.Event) bool { return event.Kind != kind })
}

// run runs the session and expects no error of the surroundings.
func (s *story) run() runner.Outcome {
	s.Helper()
	outcome, err := s.tryRun(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return outcome
}

func (s *story) tryRun(ctx context.Context) (runner.Outcome, error) {
	s.request.Journal = s.journal
	return runner.Run(ctx, s.request)
}

// restart is another process that takes the session.
func (s *story) restart() { s.journal = s.session.take() }

// ends checks that a run ended with an answer.
func (s *story) ends(outcome runner.Outcome, output string) {
	s.Helper()
	if outcome.Status != runner.StatusFinal || outcome.Output != output {
		s.Fatalf("the run is %s with %q (%v), want final with %q", outcome.Status, outcome.Output, outcome.Err, output)
	}
}

// endsWith checks that a run ended with an error.
func (s *story) endsWith(outcome runner.Outcome, code agents.Code) {
	s.Helper()
	if outcome.Status != runner.StatusEnded || outcome.Err.Code != code {
		s.Fatalf("the run is %s (%v), want ended with %s", outcome.Status, outcome.Err, code)
	}
}

// decide answers all calls that wait.
func (s *story) decide(outcome runner.Outcome, decide func(*runner.Decision)) {
	s.Helper()
	if len(outcome.Approvals) == 0 {
		s.Fatalf("nothing waits; the run is %s", outcome.Status)
	}
	for _, approval := range outcome.Approvals {
		decision := runner.Decision{CallKey: approval.CallKey, ArgumentHash: approval.ArgumentHash, Kind: runner.DecisionApproved, Approval: "a1", By: "ann"}
		decide(&decision)
		record, err := decision.Record()
		if err != nil {
			s.Fatal(err)
		}
		if _, err := s.journal.Append(s.Context(), runner.Batch{Records: []runner.Record{record}}); err != nil {
			s.Fatal(err)
		}
	}
}

// heard is the text of the n-th request's messages of a role.
func (s *story) heard(n int, role agents.Role) string {
	s.Helper()
	if n > len(s.model.requests) {
		s.Fatalf("there were %d requests, not %d", len(s.model.requests), n)
	}
	var texts []string
	for _, message := range s.model.requests[n-1].Messages {
		if message.Role == role {
			texts = append(texts, message.Content)
		}
	}
	return strings.Join(texts, "\n")
}

// prompted is the system prompt of the n-th request.
func (s *story) prompted(n int) string { return s.model.requests[n-1].Messages[0].Content }

// holds checks that a text contains another.
func (s *story) holds(text, part string) {
	s.Helper()
	if !strings.Contains(text, part) {
		s.Errorf("%q is not in:\n%s", part, text)
	}
}

func (s *story) lacks(text, part string) {
	s.Helper()
	if strings.Contains(text, part) {
		s.Errorf("%q is in:\n%s", part, text)
	}
}

// recorded is the whole journal as text.
func (s *story) recorded() string {
	var text strings.Builder
	for _, record := range s.session.records {
		fmt.Fprintf(&text, "%d %s %s\n", record.Seq, record.Kind, record.Payload)
	}
	return text.String()
}

// batch is the batch that a record of the kind was appended with.
func (s *story) batch(kind runner.RecordKind) runner.Batch {
	s.Helper()
	for _, batch := range s.session.batches {
		if slices.ContainsFunc(batch.Records, func(r runner.Record) bool { return r.Kind == kind }) {
			return batch
		}
	}
	s.Fatalf("no %s was recorded", kind)
	return runner.Batch{}
}

func (s *story) count(kind runner.RecordKind) int {
	n := 0
	for _, record := range s.session.records {
		if record.Kind == kind {
			n++
		}
	}
	return n
}

// A bench is a tool that counts its calls.
type bench struct {
	agents.Tool
	ran  int
	last agents.Call
}

func counting(tool agents.Tool, output string) *bench {
	b := &bench{Tool: tool}
	if b.Run == nil {
		b.Run = func(_ context.Context, call agents.Call) (agents.Result, error) {
			b.ran++
			b.last = call
			return agents.Result{Output: output}, nil
		}
	}
	return b
}

var always = func(context.Context, agents.Call) (bool, error) { return true, nil }
