package llm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"handoff/agents"
)

var lookTool = agents.Tool{
	Name: "look", Description: "Looks.", Effect: agents.EffectNone,
	Run: func(_ context.Context, call agents.Call) (agents.Result, error) {
		if strings.Contains(string(call.Args), "nowhere") {
			return agents.Result{}, errors.New("there is no such place")
		}
		return agents.Result{Output: "saw " + string(call.Args)}, nil
	},
}

func callOf(name, arguments string) reply {
	return streams(data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"` + name + `","arguments":"` + arguments + `"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)...)
}

func TestGenerateText(t *testing.T) {
	s := newServer(t, streams(text("An answer.")...))
	zeroPointTwo := 0.2
	response, err := newClient(t, ProviderOpenAI, s).GenerateText(t.Context(), question("Say it.").Messages, Options{Temperature: &zeroPointTwo, MaxTokens: 9})
	if err != nil || response.Text != "An answer." {
		t.Errorf("%+v, %v", response, err)
	}
	if body := s.asked()[0]; !strings.Contains(body, `"temperature":0.2`) || !strings.Contains(body, `"max_tokens":9`) {
		t.Error(body)
	}
}

func TestGenerateTextWithTools(t *testing.T) {
	s := newServer(t, callOf("look", `{\"at\":\"x\"}`), callOf("look", `{\"at\":\"nowhere\"}`), callOf("jump", `{}`), callOf("look", `{`), streams(text("Seen.")...))
	messages := question("Look around.").Messages
	response, err := newClient(t, ProviderOpenAI, s).GenerateText(t.Context(), messages, Options{Tools: []agents.Tool{lookTool}})
	if err != nil || response.Text != "Seen." || response.Usage.Requests != 5 || response.Usage.Input != 1040 {
		t.Errorf("%+v, %v", response, err)
	}
	if len(messages) != 1 {
		t.Errorf("the caller's messages grew to %d", len(messages))
	}
	last := s.asked()[4]
	for _, want := range []string{`saw {\"at\":\"x\"}`, "The tool failed: there is no such place", `Tool \"jump\" was not found. There are: look.`, "INVALID_ARGS"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last request lacks %q", want)
		}
	}
}

func TestGenerateTextEnds(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		kind  string
	}{
		"tools for ever": {callOf("look", `{}`), agents.KindRejected},
		"refused":        {streams(data(`{"choices":[{"index":0,"delta":{"refusal":"I will not"},"finish_reason":"stop"}]}`)...), agents.KindRefused},
		"filtered":       {streams(data(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"content_filter"}]}`)...), agents.KindRefused},
		"cut off":        {streams(data(`{"choices":[{"index":0,"delta":{"content":"{\"half"},"finish_reason":"length"}]}`)...), agents.KindMalformed},
		"wrong key":      {fails(401, `{}`), agents.KindAuth},
	} {
		s := newServer(t, test.reply)
		_, err := newClient(t, ProviderOpenAI, s).GenerateText(t.Context(), question("Hi").Messages, Options{Tools: []agents.Tool{lookTool}, MaxTurns: 3})
		if failure := failureOf(t, err); failure.Kind != test.kind || failure.Usage.Requests == 0 {
			t.Errorf("%s: %+v", name, failure)
		}
	}
}

func TestGenerateTextRefusesToolsWithEffects(t *testing.T) {
	s := newServer(t, streams("x"))
	tool := lookTool
	tool.Effect = agents.EffectWorkspace
	_, err := newClient(t, ProviderOpenAI, s).GenerateText(t.Context(), nil, Options{Tools: []agents.Tool{tool}})
	if failure := failureOf(t, err); failure.Kind != agents.KindRejected || len(s.asked()) != 0 {
		t.Errorf("%v", failure)
	}
}
