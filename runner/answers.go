package runner

import (
	"fmt"

	"handoff/agents"
)

// An Answer is what a model said, as a journal has it: without the host's
// secrets, and without what an output guardrail withheld.
type Answer struct {
	Agent string
	// Turn counts the model calls of a run, from 1.
	Turn int
	// Compaction says that it is the summary that a history was replaced by; it
	// was asked for before the turn of the same number.
	Compaction bool
	Response   agents.Response
}

// Answers returns what the models of a session's last root run answered, in
// order. The records must be all of them.
func Answers(records []Record) ([]Answer, error) {
	state, err := Fold(records)
	if err != nil {
		return nil, err
	}
	var answers []Answer
	var asked modelRequest
	for _, record := range records {
		if record.RunID != state.Root {
			continue
		}
		payload, err := decodePayload(record)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", record.Seq, err)
		}
		switch p := payload.(type) {
		case modelRequest:
			asked = p
		case modelResponse:
			answers = append(answers, Answer{Agent: p.Agent, Turn: p.Turn, Response: agents.Response{
				Text: p.Text, Reasoning: p.Reasoning, Refusal: p.Refusal, ToolCalls: p.Calls, FinishReason: p.Finish,
				Raw: p.Raw, Provider: p.Provider, Asked: p.Asked, Model: p.Model, RequestID: p.RequestID, Usage: p.Usage,
			}})
		case compactionAdded:
			answers = append(answers, Answer{Agent: asked.Agent, Turn: asked.Turn, Compaction: true, Response: agents.Response{
				Text: p.Summary, FinishReason: "stop", Usage: p.Usage,
			}})
		}
	}
	return answers, nil
}
