package runner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoff/runner"
)

func (p *played) checkRequest(f *faultList, a requestAssert) {
	if a.Request < 1 || a.Request > len(p.world.requests) {
		f.add("there is no request %d", a.Request)
		return
	}
	r := p.world.requests[a.Request-1]
	g := &faultList{}
	r.checkText(g, a)
	r.checkShape(g, a)
	r.checkCalls(g, a)
	r.checkTools(g, a)
	for _, fault := range g.list {
		f.add("request %d: %s", a.Request, fault)
	}
}

func (r capturedRequest) checkText(f *faultList, a requestAssert) {
	if a.ToolCallID != "" {
		i := slices.IndexFunc(r.Messages, func(m wireMessage) bool { return m.Role == "tool" && m.ToolCallID == a.ToolCallID })
		switch {
		case i < 0:
			f.add("no output of call %s", a.ToolCallID)
		case !strings.Contains(r.Messages[i].Content, a.ContentContains):
			f.add("the output of call %s is %q, want %q in it", a.ToolCallID, r.Messages[i].Content, a.ContentContains)
		}
	} else if a.ContentContains != "" && r.count(a.ContentContains) == 0 {
		f.add("no message contains %q", a.ContentContains)
	}
	if len(a.ContentContainsAny) > 0 && !slices.ContainsFunc(a.ContentContainsAny, func(text string) bool { return r.count(text) > 0 }) {
		f.add("no message contains any of %q", a.ContentContainsAny)
	}
	if a.ContainsText != "" && r.count(a.ContainsText) == 0 {
		f.add("no message contains %q", a.ContainsText)
	}
	if a.SystemPromptContains != "" && (len(r.Messages) == 0 || r.Messages[0].Role != "system" || !strings.Contains(r.Messages[0].Content, a.SystemPromptContains)) {
		f.add("the system prompt lacks %q", a.SystemPromptContains)
	}
	if len(a.CountSubstring) == 2 {
		f.equal(fmt.Sprintf("occurrences of %q", a.CountSubstring[0]), float64(r.count(fmt.Sprint(a.CountSubstring[0]))), a.CountSubstring[1])
	}
}

func (r capturedRequest) count(text string) int {
	n := 0
	for _, message := range r.Messages {
		n += strings.Count(message.Content, text)
	}
	return n
}

func (r capturedRequest) checkShape(f *faultList, a requestAssert) {
	roles := []string{}
	pairs := [][2]string{}
	for _, message := range r.Messages {
		roles = append(roles, message.Role)
		pairs = append(pairs, [2]string{message.Role, message.Content})
		if a.NoRole != "" && message.Role == a.NoRole {
			f.add("there is a message of role %s", a.NoRole)
		}
	}
	if a.MessagesEqual != nil {
		f.equal("messages", pairs, a.MessagesEqual)
	}
	if a.MessagesRoles != nil {
		f.equal("roles", roles, a.MessagesRoles)
	}
	if a.RolesTail != nil {
		f.equal("last roles", roles[max(len(roles)-len(a.RolesTail), 0):], a.RolesTail)
	}
	if a.JSONPath == "" {
		return
	}
	value, present := lookUp(r.body, a.JSONPath)
	switch {
	case a.Absent && present && value != nil:
		f.add("%s is %v, want it absent", a.JSONPath, value)
	case !a.Absent:
		got, err := json.Marshal(value)
		if err != nil || !present || !sameJSON(got, a.Equals) {
			f.add("%s is %s, want %s", a.JSONPath, got, a.Equals)
		}
	}
}

func lookUp(value any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

func (r capturedRequest) checkCalls(f *faultList, a requestAssert) {
	var called, answered []string
	open := map[string]bool{}
	for _, message := range r.Messages {
		if message.Role == "tool" {
			answered = append(answered, message.ToolCallID)
			if a.NoOrphanToolMessages && !slices.Contains(called, message.ToolCallID) {
				f.add("the output %q has no call", message.ToolCallID)
			}
			if a.AllToolCallsAnswered && !open[message.ToolCallID] {
				f.add("call %q is answered without being open", message.ToolCallID)
			}
			delete(open, message.ToolCallID)
			continue
		}
		if a.AllToolCallsAnswered && len(open) > 0 {
			f.add("calls %v are not answered before the next %s message", open, message.Role)
		}
		for _, call := range message.ToolCalls {
			if a.ToolCallIDNonempty && call.ID == "" {
				f.add("a call has no id")
			}
			if a.ToolCallIDsUniqueFlag && slices.Contains(called, call.ID) {
				f.add("the call id %q occurs twice", call.ID)
			}
			called = append(called, call.ID)
			open[call.ID] = true
		}
	}
	if a.AllToolCallsAnswered && len(open) > 0 {
		f.add("calls %v are never answered", open)
	}
	if a.ToolCallIDsMatch {
		f.equal("ids of the outputs", answered, called)
	}
}

func (r capturedRequest) checkTools(f *faultList, a requestAssert) {
	names := []string{}
	for _, tool := range r.Tools {
		names = append(names, tool.Function.Name)
		if a.HandoffEnum == nil || tool.Function.Name != runner.HandoffTool {
			continue
		}
		var schema struct {
			Properties struct {
				Target struct{ Enum []string } `json:"target_agent"`
			}
		}
		if err := json.Unmarshal(tool.Function.Parameters, &schema); err != nil {
			f.add("the schema of %s: %v", runner.HandoffTool, err)
		}
		f.equal("targets", schema.Properties.Target.Enum, a.HandoffEnum)
	}
	if a.HandoffEnum != nil && !slices.Contains(names, runner.HandoffTool) {
		f.add("%s is not offered", runner.HandoffTool)
	}
	if a.ToolNames != nil {
		slices.Sort(names)
		want := slices.Sorted(slices.Values(a.ToolNames))
		f.equal("tools", names, want)
	}
}
