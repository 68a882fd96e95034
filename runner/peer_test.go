package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// sessions numbers the sessions at the endpoint, which counts their turns.
var sessions atomic.Int64

// plainAddress is the endpoint's address for a new session of so many turns.
func plainAddress(endpoint string, turns int) string {
	return fmt.Sprintf("%s/%d/%d", endpoint, sessions.Add(1), turns)
}

// benchmarkPeer measures a whole session as benchmarkTurns does.
func benchmarkPeer(b *testing.B, turns int, session func() error) {
	b.ReportAllocs()
	var spent time.Duration
	for range b.N {
		before := cpuTime(b)
		if err := session(); err != nil {
			b.Fatal(err)
		}
		spent += cpuTime(b) - before
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N*turns), "µs-cpu/turn")
}

// plainLoop is the shortest loop of an agent that go-openai allows.
func plainLoop(ctx context.Context, address string, turns int) error {
	config := openai.DefaultConfig("key")
	config.BaseURL = address
	client := openai.NewClientWithConfig(config)
	request := openai.ChatCompletionRequest{
		Model: "gpt-4o", Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages: []openai.ChatCompletionMessage{{Role: "system", Content: "You look."}, {Role: "user", Content: "Look."}},
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: "look", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		}}},
	}
	output := strings.Repeat("x", 200)
	for turn := 0; ; turn++ {
		answer, err := plainTurn(ctx, client, request)
		if err != nil {
			return err
		}
		request.Messages = append(request.Messages, answer)
		if len(answer.ToolCalls) == 0 {
			if turn != turns {
				return fmt.Errorf("ended after %d turns, not %d", turn, turns)
			}
			return nil
		}
		for _, call := range answer.ToolCalls {
			var arguments struct{ N int }
			if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil {
				return err
			}
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "tool", ToolCallID: call.ID, Content: output})
		}
	}
}

func plainTurn(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error) {
	answer := openai.ChatCompletionMessage{Role: "assistant"}
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return answer, err
	}
	defer stream.Close()
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		for _, choice := range piece.Choices {
			answer.Content += choice.Delta.Content
			answer.ToolCalls = append(answer.ToolCalls, choice.Delta.ToolCalls...)
		}
	}
}

// bytesPerTurn is by how much a turn makes the history longer on the wire.
const bytesPerTurn = 330

// post sends bodies as long as those of a session and reads the answers.
func post(address string, turns int) error {
	history := strings.Repeat("x", bytesPerTurn*(turns+1))
	for turn := range turns + 1 {
		answer, err := http.Post(address+"/chat/completions", "application/json", strings.NewReader(history[:bytesPerTurn*(turn+1)]))
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
	}
	return nil
}
