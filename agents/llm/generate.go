package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"handoff/agents"
)

// Options are the knobs of [Client.GenerateText].
type Options = agents.GenerateOptions

// defaultHelperTurns is how many model calls one question may take.
const defaultHelperTurns = 12

// GenerateText asks once, outside of any session, and returns the answer's
// text with the usage of all calls that it took. The model may use the tools
// first; a tool's failure is told to the model. It never retries what
// [Client.Respond] would not, and its errors are of the same kind.
func (c *Client) GenerateText(ctx context.Context, messages []*agents.Message, options Options) (agents.Response, error) {
	request := agents.Request{
		Model:    options.Model,
		Agent:    cmp.Or(options.Name, "helper"),
		Messages: slices.Clone(messages),
		Settings: agents.ModelSettings{Temperature: options.Temperature, MaxTokens: options.MaxTokens},
		Output:   options.Output,
	}
	for _, tool := range options.Tools {
		if tool.Effect != agents.EffectNone || tool.Run == nil {
			return agents.Response{}, c.main.failure(agents.KindRejected, nil, "The tool "+tool.Name+" changes something and cannot be used by a helper.")
		}
		request.Tools = append(request.Tools, agents.ToolSpec{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
	}
	var usage agents.Usage
	for range cmp.Or(options.MaxTurns, defaultHelperTurns) {
		request.Turn = c.helperTurns.next(request.Agent)
		response, err := c.Respond(ctx, request)
		if err != nil {
			if failure, ok := errors.AsType[*agents.Error](err); ok {
				usage.Add(failure.Usage)
				failure.Usage = usage
			}
			return agents.Response{}, err
		}
		usage.Add(response.Usage)
		response.Usage = usage
		if err := c.unfinished(response); err != nil {
			return agents.Response{}, err
		}
		if len(response.ToolCalls) == 0 {
			return response, nil
		}
		request.Messages = append(request.Messages, answers(ctx, response, request, options.Tools)...)
	}
	return agents.Response{}, withUsage(c.main.failure(agents.KindRejected, nil, "The model kept using tools and gave no answer."), usage)
}

// unfinished says why a response is no answer: refused, filtered or cut.
func (c *Client) unfinished(response agents.Response) error {
	var failure *agents.Error
	switch {
	case response.Refusal != "":
		failure = c.main.failure(agents.KindRefused, nil, "The model refused: "+response.Refusal)
	case response.FinishReason == "content_filter":
		failure = c.main.failure(agents.KindRefused, nil, "The provider filtered the answer.")
	case response.FinishReason == "length":
		failure = c.main.failure(agents.KindMalformed, nil, "The answer was cut off at the token limit; allow more tokens.")
	default:
		return nil
	}
	return withUsage(failure, response.Usage)
}

// answers runs the calls of a response and returns the messages that follow.
func answers(ctx context.Context, response agents.Response, request agents.Request, tools []agents.Tool) []*agents.Message {
	messages := []*agents.Message{{
		Role: agents.RoleAssistant, Content: response.Text, ToolCalls: response.ToolCalls,
		Raw: response.Raw, Provider: response.Provider, Model: response.Asked,
	}}
	for _, call := range response.ToolCalls {
		messages = append(messages, &agents.Message{
			Role: agents.RoleTool, ToolCallID: call.ID, Content: runTool(ctx, call, request.Agent, tools),
		})
	}
	return messages
}

func runTool(ctx context.Context, call agents.ToolCall, agent string, tools []agents.Tool) string {
	at := slices.IndexFunc(tools, func(tool agents.Tool) bool { return tool.Name == call.Name })
	if at < 0 {
		names := make([]string, len(tools))
		for i, tool := range tools {
			names[i] = tool.Name
		}
		return fmt.Sprintf("Tool %q was not found. There are: %s.", call.Name, strings.Join(names, ", "))
	}
	if !json.Valid([]byte(call.Arguments)) {
		return "INVALID_ARGS: the arguments are not JSON."
	}
	tool := tools[at]
	if tool.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, tool.Timeout)
		defer cancel()
	}
	result, err := tool.Run(ctx, agents.Call{ToolCall: call, Agent: agent, Args: json.RawMessage(call.Arguments)})
	if err != nil {
		return "The tool failed: " + err.Error()
	}
	return result.Output
}

// helperTurns numbers the calls of each helper, so that a tape can tell them
// apart.
type helperTurns struct {
	mu    sync.Mutex
	turns map[string]int
}

func (h *helperTurns) next(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns == nil {
		h.turns = map[string]int{}
	}
	h.turns[name]++
	return h.turns[name]
}
