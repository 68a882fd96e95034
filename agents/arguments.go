package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Fault is one thing wrong with a tool's arguments.
type Fault struct {
	// Path leads to the value in the arguments, "tasks[2].title"; "(root)" is
	// the arguments as a whole.
	Path string
	// Reason is half a sentence for the model.
	Reason string
}

// InvalidArgs is the cause of an [Error] with [CodeInvalidArgs]: every fault
// that was found, in the order of their paths.
type InvalidArgs struct {
	Faults []Fault
}

// Error lists the faults, one per line.
func (e *InvalidArgs) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.Path + ": " + fault.Reason
	}
	return strings.Join(lines, "\n")
}

func invalidArgs(faults []Fault) error {
	cause := &InvalidArgs{Faults: faults}
	return &Error{
		Code:    CodeInvalidArgs,
		Message: "nothing was done; correct these arguments and call again:\n" + cause.Error(),
		Err:     cause,
	}
}

// maxFaults bounds what a model is told at once; a hostile argument could
// otherwise be answered with a list of any length.
const maxFaults = 20

// Validate checks the arguments of a call against a tool's JSON schema, before
// the tool sees them. It returns nil, or an *[Error] with [CodeInvalidArgs]
// whose text names the path of each fault and whose cause is [*InvalidArgs].
// An unusable schema is an error without that code.
//
// Empty arguments stand for {}, as several models send no text for a call
// without arguments. A null for an optional property counts as left out, since
// that is how models with strict schemas leave out.
//
// The verdict is jsonschema-go's; because it stops at the first fault and
// names places in the schema, the faults themselves are found by asking it
// again about each part of the value. It is safe for concurrent use.
func Validate(schema, args json.RawMessage) error {
	compiled, err := compileSchema(schema)
	if err != nil {
		return err
	}
	value, err := decodeArguments(args)
	if err != nil {
		return invalidArgs([]Fault{{Path: "(root)", Reason: err.Error()}})
	}
	dropNulls(compiled.schema, value)
	verdict := compiled.resolved.Validate(value)
	if verdict == nil {
		return nil
	}
	search := faultSearch{root: compiled.schema}
	search.visit(compiled.schema, value, "")
	if len(search.faults) == 0 {
		search.add("", verdict.Error())
	}
	return invalidArgs(search.faults)
}

// decodeArguments reads exactly one JSON value.
func decodeArguments(args json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		return map[string]any{}, nil
	}
	var value any
	if json.Unmarshal(args, &value) != nil {
		return nil, whyNoValue(args)
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, fmt.Errorf("the arguments must be a JSON object, not %s", kindOf(value))
	}
	return value, nil
}

// whyNoValue says why arguments are not exactly one JSON value.
func whyNoValue(args json.RawMessage) error {
	var value any
	err := json.NewDecoder(bytes.NewReader(args)).Decode(&value)
	switch {
	case err == nil:
		return errors.New("there is more text after the JSON object; send one object only")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON is cut off; send it whole, and shorter if it was long")
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// A compiledSchema is a schema ready for use.
type compiledSchema struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// compiledSchemas keeps schemas by their text: the same few are used at every
// turn and compiling one costs more than a turn's whole budget. It is emptied
// when it has grown past what any crew needs.
var compiledSchemas = struct {
	sync.Mutex
	byText map[string]*compiledSchema
}{byText: map[string]*compiledSchema{}}

const maxCompiledSchemas = 1024

func compileSchema(raw json.RawMessage) (*compiledSchema, error) {
	cache := &compiledSchemas
	cache.Lock()
	defer cache.Unlock()
	if compiled, ok := cache.byText[string(raw)]; ok {
		return compiled, nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("the schema of the arguments is not a JSON schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema of the arguments cannot be used: %w", err)
	}
	if len(cache.byText) >= maxCompiledSchemas {
		clear(cache.byText)
	}
	compiled := &compiledSchema{schema: &schema, resolved: resolved}
	cache.byText[string(raw)] = compiled
	return compiled, nil
}

// dropNulls removes nulls given for optional properties, at any depth.
func dropNulls(schema *jsonschema.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			field, given := value[name]
			if !given {
				continue
			}
			if field == nil && !slices.Contains(schema.Required, name) {
				delete(value, name)
				continue
			}
			dropNulls(property, field)
		}
	case []any:
		if schema.Items != nil {
			for _, element := range value {
				dropNulls(schema.Items, element)
			}
		}
	}
}

// A faultSearch finds where a value breaks a schema.
type faultSearch struct {
	root   *jsonschema.Schema
	faults []Fault
}

func (s *faultSearch) add(path, reason string) {
	if path == "" {
		path = "(root)"
	}
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, Fault{Path: path, Reason: reason})
	}
}

// visit reports what is wrong with the value itself, then looks at its parts.
func (s *faultSearch) visit(schema *jsonschema.Schema, value any, path string) {
	if reason := s.judge(schema, value); reason != "" {
		s.add(path, reason)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		s.visitObject(schema, value, path)
	case []any:
		if schema.Items == nil {
			return
		}
		for i, element := range value {
			s.visit(schema.Items, element, path+"["+strconv.Itoa(i)+"]")
		}
	}
}

func (s *faultSearch) visitObject(schema *jsonschema.Schema, value map[string]any, path string) {
	for _, name := range schema.Required {
		if _, given := value[name]; !given {
			s.add(join(path, name), "is required and missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if property, known := schema.Properties[name]; known {
			s.visit(property, value[name], join(path, name))
		} else if closed(schema) {
			s.add(join(path, name), "is no argument of this tool; known are "+
				strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
		}
	}
}

// judge asks the library about one node without its parts, "" for no fault.
func (s *faultSearch) judge(schema *jsonschema.Schema, value any) string {
	node := schema.CloneSchemas()
	node.Properties, node.Required, node.Items = nil, nil, nil
	if closed(schema) {
		node.AdditionalProperties = nil
	}
	if schema != s.root {
		node.Defs, node.Definitions = s.root.Defs, s.root.Definitions
	}
	resolved, err := node.CloneSchemas().Resolve(nil)
	if err != nil {
		return "" // a part that cannot stand alone is judged with the whole
	}
	err = resolved.Validate(value)
	if err == nil {
		return ""
	}
	if wanted := typesOf(schema); len(wanted) > 0 && !isOneOf(value, wanted) {
		return fmt.Sprintf("must be %s, not %s", strings.Join(wanted, " or "), kindOf(value))
	}
	return innermost(err)
}

// isOneOf says whether the value has one of the types.
func isOneOf(value any, types []string) bool {
	kind := kindOf(value)
	return slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}

// innermost is what the library says without its trail through the schema.
func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// closed says whether the schema refuses properties that it does not name:
// JSON schema's false is written {"not": {}}.
func closed(schema *jsonschema.Schema) bool {
	extra := schema.AdditionalProperties
	return extra != nil && extra.Not != nil && len(schema.PatternProperties) == 0
}

func typesOf(schema *jsonschema.Schema) []string {
	if schema.Type != "" {
		return []string{schema.Type}
	}
	return schema.Types
}

// kindOf names a decoded value in the words of JSON schema.
func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
