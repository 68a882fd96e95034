package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// plainKeys are the words of JSON schema that Google's Schema has with the same
// meaning (cloud.google.com/vertex-ai, FunctionDeclaration). One that it does
// not have makes it refuse the whole request: "Cannot find field".
var plainKeys = []string{
	"type", "description", "properties", "required", "items", "enum", "anyOf", "nullable",
	"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern",
}

// maxPlainNodes bounds a schema that refers to itself.
const maxPlainNodes = 2000

// plainParameters writes the schema of a tool's arguments in the words of
// plainKeys. What cannot be said in them is left out: the host checks the
// arguments against the whole schema in any case. It returns nil for a tool
// without arguments, as Google refuses an object without properties.
func plainParameters(schema json.RawMessage) any {
	read, err := decodeObject(schema)
	if err != nil {
		return nil
	}
	writer := plainWriter{root: read, left: maxPlainNodes}
	plain := writer.schema(read)
	if properties, _ := plain["properties"].(map[string]any); len(properties) == 0 {
		return nil
	}
	return plain
}

// decodeObject decodes with numbers kept digit by digit.
func decodeObject(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, errNoJSON
	}
	return fields, nil
}

// A plainWriter writes the schemas inside of one root.
type plainWriter struct {
	root map[string]any
	left int
}

func (w *plainWriter) schema(schema map[string]any) map[string]any {
	if w.left--; w.left < 0 {
		return map[string]any{"type": "string"}
	}
	schema = w.resolved(schema)
	if alternatives := listOf(schema, "anyOf", "oneOf"); len(alternatives) > 0 {
		return w.choice(schema, alternatives)
	}
	plain := map[string]any{}
	for _, key := range plainKeys {
		if value, ok := schema[key]; ok {
			plain[key] = value
		}
	}
	plainType(plain)
	plainEnum(plain, schema)
	if properties, ok := plain["properties"].(map[string]any); ok {
		made := map[string]any{}
		for name, property := range properties {
			made[name] = w.schema(objectOf(property))
		}
		plain["properties"] = made
		plainRequired(plain, made)
	}
	if items, ok := plain["items"]; ok || plain["type"] == "array" {
		plain["items"] = w.schema(objectOf(items))
	}
	return plain
}

// choice writes alternatives. A choice between something and nothing is
// something that may be null; next to a real choice nothing else may stand.
func (w *plainWriter) choice(schema map[string]any, alternatives []any) map[string]any {
	var made []any
	nullable := false
	for _, alternative := range alternatives {
		if one := objectOf(alternative); one["type"] == "null" {
			nullable = true
		} else {
			made = append(made, w.schema(one))
		}
	}
	if len(made) != 1 {
		return map[string]any{"anyOf": made}
	}
	only := made[0].(map[string]any)
	if description, ok := schema["description"]; ok {
		only["description"] = description
	}
	if nullable {
		only["nullable"] = true
	}
	return only
}

// plainType makes one type of a list of them, the first that is not null, and
// gives one to a schema that has none.
func plainType(plain map[string]any) {
	types, _ := plain["type"].([]any)
	if _, ok := plain["type"].(string); !ok {
		delete(plain, "type")
	}
	for _, name := range types {
		if name == "null" {
			plain["nullable"] = true
		} else if _, chosen := plain["type"]; !chosen {
			plain["type"] = name
		}
	}
	if _, ok := plain["type"]; ok {
		return
	}
	plain["type"] = "string"
	for key, kind := range map[string]string{"properties": "object", "items": "array"} {
		if _, ok := plain[key]; ok {
			plain["type"] = kind
		}
	}
}

// plainEnum keeps lists of texts, which are the only ones that there are, and
// writes a constant as one.
func plainEnum(plain, schema map[string]any) {
	values, _ := plain["enum"].([]any)
	if constant, ok := schema["const"]; ok {
		values = []any{constant}
	}
	delete(plain, "enum")
	texts := slices.DeleteFunc(slices.Clone(values), func(value any) bool { _, text := value.(string); return !text })
	if len(texts) > 0 && len(texts) == len(values) {
		plain["enum"], plain["type"] = texts, "string"
	}
}

// plainRequired leaves out names that are no properties.
func plainRequired(plain, properties map[string]any) {
	names, _ := plain["required"].([]any)
	delete(plain, "required")
	known := slices.DeleteFunc(slices.Clone(names), func(name any) bool {
		text, _ := name.(string)
		_, ok := properties[text]
		return !ok
	})
	if len(known) > 0 {
		plain["required"] = known
	}
}

// resolved follows references within the root, and merges what must all hold.
func (w *plainWriter) resolved(schema map[string]any) map[string]any {
	for reference, ok := schema["$ref"].(string); ok && w.left > 0; reference, ok = schema["$ref"].(string) {
		w.left--
		var target any = w.root
		for step := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
			target = objectOf(target)[step]
		}
		schema = under(schema, objectOf(target), "$ref")
	}
	for _, part := range listOf(schema, "allOf") {
		schema = under(schema, objectOf(part), "")
	}
	return schema
}

// under lays a schema over another one. The word that led to the other is not
// kept.
func under(over, below map[string]any, word string) map[string]any {
	merged := maps.Clone(over)
	delete(merged, word)
	for key, value := range below {
		if _, ok := merged[key]; !ok {
			merged[key] = value
		}
	}
	return merged
}

func listOf(schema map[string]any, names ...string) []any {
	for _, name := range names {
		if list, ok := schema[name].([]any); ok {
			return list
		}
	}
	return nil
}

// objectOf returns an empty schema for what is none, such as true.
func objectOf(value any) map[string]any {
	if object, ok := value.(map[string]any); ok {
		return object
	}
	return map[string]any{}
}
