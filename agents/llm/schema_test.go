package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"handoff/agents"
)

// TestSchemasThatGoogleReads: of each pair the first is what a tool says, the
// second what Vertex AI is told.
func TestSchemasThatGoogleReads(t *testing.T) {
	for name, pair := range map[string][2]string{
		"as it is": {
			`{"type":"object","properties":{"a":{"type":"string","description":"d","minLength":1}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"d","minLength":1}},"required":["a"]}`,
		},
		"words that it has not": {
			`{"$schema":"x","type":"object","additionalProperties":false,"properties":{"a":{"type":"integer","format":"int64","default":1,"exclusiveMinimum":0}}}`,
			`{"type":"object","properties":{"a":{"type":"integer"}}}`,
		},
		"a list of types": {
			`{"type":"object","properties":{"a":{"type":["null","array"],"items":{"type":"string"}}}}`,
			`{"type":"object","properties":{"a":{"type":"array","nullable":true,"items":{"type":"string"}}}}`,
		},
		"something or nothing": {
			`{"type":"object","properties":{"a":{"description":"d","anyOf":[{"type":"string"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true,"description":"d"}}}`,
		},
		"a choice stands alone": {
			`{"type":"object","properties":{"a":{"description":"d","oneOf":[{"type":"string"},{"type":"array"}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`,
		},
		"constants and lists": {
			`{"type":"object","properties":{"a":{"const":"x"},"b":{"enum":["p","q"]},"c":{"type":"integer","enum":[1,2]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","enum":["p","q"]},"c":{"type":"integer"}}}`,
		},
		"references": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"allOf":[{"type":"boolean"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"boolean"}}}`,
		},
		"required but not there": {
			`{"type":"object","properties":{"a":{}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
		},
		"no arguments":    {`{"type":"object","properties":{}}`, `null`},
		"not even object": {`true`, `null`},
	} {
		got, err := marshal(plainParameters(json.RawMessage(pair[0])))
		if err != nil || !sameJSON(string(got), pair[1]) {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, pair[1])
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// TestSchemaWithoutEnd: a schema of a server somewhere may refer to itself, in
// as many places as it likes.
func TestSchemaWithoutEnd(t *testing.T) {
	var properties []string
	for i := range 40 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#"}`, i), fmt.Sprintf(`"q%d":{"$ref":"#/$defs/loop"}`, i))
	}
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"$defs":{"loop":{"$ref":"#/$defs/loop"}}}`
	encoded, err := marshal(plainParameters(json.RawMessage(schema)))
	if err != nil || len(encoded) > 1<<20 || strings.Contains(string(encoded), "$") {
		t.Errorf("%d bytes, %v", len(encoded), err)
	}
}

func TestOnlyVertexIsToldPlainSchemas(t *testing.T) {
	request := question("Hi")
	request.Tools = []agents.ToolSpec{{Name: "look", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"at":{"type":"string"}}}`)}}
	for _, d := range dialects {
		plain := !strings.Contains(string(sent(t, d.provider, request)["tools"]), "additionalProperties")
		if plain != (d.provider == ProviderVertex) {
			t.Errorf("%s: plain %v", d.provider, plain)
		}
	}
}
