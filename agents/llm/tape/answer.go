package tape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A call is one request to the player.
type call struct {
	session string
	agent   string
	turn    int
	model   string
	stream  bool
	usage   bool
	// request returns the normalised request. Making it takes a while, and a
	// loose player hardly ever needs it.
	request func() (*Request, error)
	// last is the text of the last message of a user or tool, as it came.
	last string
	// users are the texts of the user's messages.
	users []string
}

func (c call) mentions(task string) bool {
	return task == "" || slices.ContainsFunc(c.users, func(text string) bool { return strings.Contains(text, task) })
}

// readCall reads who asks from the headers and what is asked from the body.
func readCall(header http.Header, body []byte) (call, error) {
	read := call{session: header.Get("X-Handoff-Session"), agent: header.Get("X-Handoff-Agent")}
	turn, err := strconv.Atoi(header.Get("X-Handoff-Turn"))
	if read.agent == "" || err != nil {
		return call{}, errors.New("a tape needs the headers X-Handoff-Agent and X-Handoff-Turn; ask it with PROVIDER=tape")
	}
	read.turn = turn
	var wire struct {
		Model         string `json:"model"`
		Stream        bool   `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return call{}, fmt.Errorf("the request is not chat completions: %w", err)
	}
	read.model, read.stream, read.usage = wire.Model, wire.Stream, wire.StreamOptions.IncludeUsage
	for _, message := range wire.Messages {
		text := contentText(message.Content)
		switch message.Role {
		case "user":
			read.users = append(read.users, text)
			read.last = text
		case "tool":
			read.last = text
		}
	}
	read.request = sync.OnceValues(func() (*Request, error) { return normalise(body) })
	return read, nil
}

// An answer is a line on its way to a client.
type answer struct {
	line  *Line
	call  call
	pause time.Duration
}

type object = map[string]any

// message returns the answer as a chat completions message.
func (a answer) message() object {
	response := a.line.Response
	message := object{}
	if len(response.Raw) > 0 {
		// Read checked that it is JSON; anything but an object says nothing.
		_ = decode(response.Raw, &message)
	}
	message["role"] = "assistant"
	message["content"] = response.Content
	if response.Reasoning != "" && message["reasoning_content"] == nil && message["reasoning"] == nil {
		message["reasoning_content"] = response.Reasoning
	}
	if response.Refusal != "" {
		message["refusal"] = response.Refusal
	}
	if len(response.ToolCalls) == 0 {
		return message
	}
	raw, _ := message["tool_calls"].([]any)
	calls := make([]any, len(response.ToolCalls))
	for i, call := range response.ToolCalls {
		made := object{}
		if i < len(raw) {
			if fields, ok := raw[i].(object); ok {
				made = fields
			}
		}
		made["id"] = a.callID(i)
		made["type"] = "function"
		made["function"] = object{"name": call.Name, "arguments": string(call.Arguments)}
		calls[i] = made
	}
	message["tool_calls"] = calls
	return message
}

// callID returns the call's id, or one made of its place on the tape.
func (a answer) callID(index int) string {
	if id := a.line.Response.ToolCalls[index].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_%d_%s_%d_%d", a.line.Session, a.line.Agent, a.line.Turn, index+1)
}

func (a answer) finishReason() string {
	switch {
	case a.line.Response.FinishReason != "":
		return a.line.Response.FinishReason
	case len(a.line.Response.ToolCalls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

func (a answer) usage() object {
	usage := a.line.Usage
	if usage == nil {
		return nil
	}
	wire := object{
		"prompt_tokens": usage.Input, "completion_tokens": usage.Output, "total_tokens": usage.Input + usage.Output,
		"prompt_tokens_details":     object{"cached_tokens": usage.Cached},
		"completion_tokens_details": object{"reasoning_tokens": usage.Reasoning},
	}
	if usage.CostMicros != nil {
		wire["cost"] = float64(*usage.CostMicros) / 1e6
	}
	return wire
}

func (a answer) id() string {
	return fmt.Sprintf("tape-%d-%s-%d", a.line.Session, a.line.Agent, a.line.Turn)
}

// whole sends the answer in one piece.
func (a answer) whole(ctx context.Context, w http.ResponseWriter) {
	if !wait(ctx, a.pause) {
		return
	}
	body := object{
		"id": a.id(), "object": "chat.completion", "model": a.call.model,
		"choices": []any{object{"index": 0, "message": a.message(), "finish_reason": a.finishReason()}},
	}
	if usage := a.usage(); usage != nil {
		body["usage"] = usage
	}
	send(w, http.StatusOK, body)
}

// stream sends the answer in pieces, half of its time before the first one
// and the other half between them.
func (a answer) stream(ctx context.Context, w http.ResponseWriter) {
	if !wait(ctx, a.pause/2) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	deltas := a.deltas()
	for i, delta := range deltas {
		finish := any(nil)
		if i == len(deltas)-1 {
			finish = a.finishReason()
		}
		a.event(w, object{"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
		if !wait(ctx, a.pause/2/time.Duration(len(deltas))) {
			return
		}
	}
	if usage := a.usage(); usage != nil && a.call.usage {
		a.event(w, object{"choices": []any{}, "usage": usage})
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// deltas cuts the message into pieces: what is neither text nor call, the text
// in parts, each call, and an empty piece for the finish reason.
func (a answer) deltas() []object {
	first := a.message()
	calls, _ := first["tool_calls"].([]any)
	content, _ := first["content"].(string)
	delete(first, "tool_calls")
	first["content"] = ""
	deltas := []object{first}
	for _, piece := range pieces(content) {
		deltas = append(deltas, object{"content": piece})
	}
	for i, call := range calls {
		numbered := maps.Clone(call.(object))
		numbered["index"] = i
		deltas = append(deltas, object{"tool_calls": []any{numbered}})
	}
	return append(deltas, object{})
}

// pieces cuts a text into parts of about 48 bytes, between characters.
func pieces(text string) []string {
	const size = 48
	var parts []string
	for len(text) > size {
		end := size
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}

// event sends one piece. A client that has gone is noticed by wait.
func (a answer) event(w http.ResponseWriter, body object) {
	body["id"], body["object"], body["model"] = a.id(), "chat.completion.chunk", a.call.model
	encoded, err := marshal(body)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", encoded)
	if a.pause > 0 {
		_ = http.NewResponseController(w).Flush()
	}
}

// wait returns false when the client has gone.
func wait(ctx context.Context, pause time.Duration) bool {
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	send(w, status, object{"error": object{"message": message, "type": "tape", "code": status}})
}

func send(w http.ResponseWriter, status int, body object) {
	encoded, err := marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}
