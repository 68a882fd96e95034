package runner

import (
	"context"
	"strings"

	"handoff/agents"
)

// compactIfLong replaces the beginning of a history that has grown past the
// limit by a summary, which the agent's own model writes (rule R112). The
// journal keeps everything; only the view changes.
func (l *loop) compactIfLong(ctx context.Context, run *RunState, agent agents.Agent) error {
	size := l.view(run).size
	if size < l.config.CompactAt && run.tokens(size) < l.tokenLimit(agent) {
		return nil
	}
	_, err := l.compact(ctx, run, agent, min(size, l.config.CompactAt)/2)
	return err
}

// A windowed model knows how many tokens each model takes, 0 where it does not
// know.
type windowed interface {
	ContextTokens(model agents.ModelRef) int64
}

// tokenLimit is how long the agent's history may become, in tokens. An agent
// with a smaller model than the others gets its summary earlier: a quarter of
// the window is left for the instructions, the tools and the answer.
func (l *loop) tokenLimit(agent agents.Agent) int64 {
	if model, ok := l.Model.(windowed); ok {
		if window := model.ContextTokens(agent.Model); window > 0 {
			return min(l.config.CompactAtTokens, window*3/4)
		}
	}
	return l.config.CompactAtTokens
}

// compact asks for a summary of all but the last turns, which together are no
// longer than the tail, in bytes. It says whether it could: a history that has
// nothing to leave out stays as it is.
func (l *loop) compact(ctx context.Context, run *RunState, agent agents.Agent, tail int) (bool, error) {
	shown := l.view(run).shown()
	prefix := compactable(shown, tail)
	if prefix == 0 {
		return false, nil
	}
	// What is longer than a whole history may be has no place in one request.
	content, _ := cut(transcript(shown[:prefix]), l.config.CompactAt)
	text := &agents.Message{Role: agents.RoleUser, Content: content}
	request := agents.Request{
		Model: agent.Model, Session: l.Session, Agent: agent.ID, Turn: run.Turn + 1,
		Messages: []*agents.Message{{Role: agents.RoleSystem, Content: prompt("compaction", nil)}, text},
	}
	err := l.append(ctx, Batch{Usage: run.lost()}, draft{run: run, kind: RecordModelRequest, payload: modelRequest{
		Agent: agent.ID, Turn: request.Turn, Purpose: "compaction", Model: agent.Model.ID, Estimate: run.tokens(len(text.Content)),
	}})
	if err != nil {
		return false, err
	}
	response, err := l.Model.Respond(ctx, request)
	if err != nil {
		return false, err
	}
	for i := range response.Usage.Entries {
		response.Usage.Entries[i].Agent = agent.ID
	}
	summary := strings.TrimSpace(l.redact(response.Text))
	if summary == "" {
		summary = "(The model wrote no summary. Read again what you need.)"
	}
	return true, l.append(ctx, Batch{Usage: response.Usage}, draft{run: run, kind: RecordCompactionAdded, payload: compactionAdded{
		Summary: summary, Upto: shown[prefix].Seq - 1, Items: prefix, Usage: response.Usage,
	}})
}

// compactable returns how many items of the view may be replaced: all but the
// last turns, which together are no longer than the tail, and at least the
// last one. Calls and their outputs stay together. It returns 0 when nothing
// but summaries and the person's words stands before them.
func compactable(items []agents.Item, tail int) int {
	end, size := 0, 0
	for i := len(items) - 1; i > 0; i-- {
		size += len(items[i].Text)
		if isCall(items[i]) {
			size += len(items[i].Call.Arguments)
		}
		startsTurn := isResponse(items[i]) && items[i-1].Seq != items[i].Seq
		if !startsTurn {
			continue
		}
		if end > 0 && size > tail {
			break
		}
		end = i
	}
	for _, item := range items[:end] {
		if isResponse(item) || item.Kind == nestedKind {
			return end
		}
	}
	return 0
}
