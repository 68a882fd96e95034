package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	openai "github.com/sashabaranov/go-openai"

	"handoff/agents"
)

// keptTools is how many lists of tools are kept encoded: a crew has a handful,
// one for each agent.
const keptTools = 32

// A toolCache keeps lists of tools as they are on the wire. They are a large
// part of a request and the same in every call of an agent.
type toolCache struct {
	// plain says that schemas are made plain first.
	plain bool
	mu    sync.Mutex
	lists []toolList
}

type toolList struct {
	tools   []agents.ToolSpec
	encoded json.RawMessage
}

func (c *toolCache) encode(tools []agents.ToolSpec) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.lists {
		if slices.EqualFunc(known.tools, tools, sameTool) {
			return known.encoded, nil
		}
	}
	encoded, err := encodeToolList(tools, c.plain)
	if err != nil {
		return nil, err
	}
	if len(c.lists) == keptTools {
		c.lists = slices.Delete(c.lists, 0, 1)
	}
	kept := slices.Clone(tools)
	for i := range kept {
		kept[i].Schema = bytes.Clone(kept[i].Schema)
	}
	c.lists = append(c.lists, toolList{kept, encoded})
	return encoded, nil
}

func sameTool(a, b agents.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

func encodeToolList(tools []agents.ToolSpec, plain bool) (json.RawMessage, error) {
	list := make([]openai.Tool, 0, len(tools))
	for _, tool := range tools {
		schema := tool.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(schema) {
			return nil, fmt.Errorf("the schema of the tool %s is not JSON", tool.Name)
		}
		function := &openai.FunctionDefinition{Name: tool.Name, Description: tool.Description, Parameters: schema}
		if plain {
			function.Parameters = plainParameters(schema)
		}
		list = append(list, openai.Tool{Type: openai.ToolTypeFunction, Function: function})
	}
	return marshal(list)
}
