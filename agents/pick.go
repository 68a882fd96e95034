package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Registry holds tools by name, so that an agent's list of names becomes the
// tools themselves. It does not change after [NewRegistry] and is safe for
// concurrent use; the zero value holds nothing.
type Registry struct {
	tools map[string]Tool
}

// NewRegistry returns a registry of the tools. Two tools of one name, a name
// that providers refuse, or a schema that is none is an error, because each
// would fail later, in the middle of somebody's session.
func NewRegistry(tools ...Tool) (*Registry, error) {
	registry := &Registry{tools: make(map[string]Tool, len(tools))}
	for _, tool := range tools {
		if err := checkToolName(tool.Name); err != nil {
			return nil, err
		}
		if _, taken := registry.tools[tool.Name]; taken {
			return nil, fmt.Errorf("two tools are named %q; give one of them another name", tool.Name)
		}
		if _, err := compileSchema(tool.Schema); err != nil {
			return nil, fmt.Errorf("tool %q: %w", tool.Name, err)
		}
		registry.tools[tool.Name] = tool
	}
	return registry, nil
}

// Pick returns the named tools in the order of the names, each once. Unknown
// names are one error that lists them and the names that exist.
func (r *Registry) Pick(names ...string) ([]Tool, error) {
	var picked []Tool
	var unknown []string
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		tool, ok := r.tools[name]
		if !ok {
			unknown = append(unknown, fmt.Sprintf("%q", name))
			continue
		}
		picked = append(picked, tool)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no tool is named %s; the tools are %s",
			strings.Join(unknown, " or "), strings.Join(r.Names(), ", "))
	}
	return picked, nil
}

// Names returns the names of all tools in alphabetical order.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.tools))
}

// toolName is what chat completions accept as a function's name.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// ValidToolName says whether chat completions accept the name of a tool. Models
// make up others.
func ValidToolName(name string) bool { return toolName.MatchString(name) }

func checkToolName(name string) error {
	if !ValidToolName(name) {
		return fmt.Errorf("%q cannot name a tool: use 1 to 64 letters, digits, _ or -", name)
	}
	return nil
}

// MakeTool wraps a typed Go function as a tool. The schema of the arguments is
// inferred from the struct A: names and optional fields from `json` tags
// (omitempty or omitzero means optional), descriptions from `jsonschema` tags;
// further properties are refused. The adjusters, if any, may narrow the schema
// (an enum, a minimum) before it is fixed.
//
// The tool has [EffectNone] and [ReconcileNone]; set its other fields on the
// returned value. Its Run decodes Call.Args, which the runner has validated;
// arguments that do not decode are an INVALID_ARGS error all the same.
func MakeTool[A any](name, description string, run func(context.Context, Call, A) (Result, error), adjust ...func(*jsonschema.Schema)) (Tool, error) {
	if err := checkToolName(name); err != nil {
		return Tool{}, err
	}
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %q: its arguments have no JSON schema: %w", name, err)
	}
	if schema.Type != "object" {
		return Tool{}, fmt.Errorf("tool %q: arguments must be a struct, not %T", name, *new(A))
	}
	withoutNull(schema)
	for _, f := range adjust {
		f(schema)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %q: encoding its schema: %w", name, err)
	}
	return Tool{
		Name:        name,
		Description: description,
		Schema:      raw,
		Effect:      EffectNone,
		Reconcile:   ReconcileNone,
		Run: func(ctx context.Context, call Call) (Result, error) {
			args, err := DecodeArgs[A](call)
			if err != nil {
				return Result{}, err
			}
			return run(ctx, call, args)
		},
	}, nil
}

// withoutNull takes the null out of types that are inferred for slices and
// pointers: who leaves a property out leaves it out, and Google refuses a
// request of which one tool has a list of types.
func withoutNull(schema *jsonschema.Schema) {
	if types := slices.DeleteFunc(schema.Types, func(name string) bool { return name == "null" }); len(types) == 1 {
		schema.Type, schema.Types = types[0], nil
	}
	for _, property := range schema.Properties {
		withoutNull(property)
	}
	for _, inner := range []*jsonschema.Schema{schema.Items, schema.AdditionalProperties} {
		if inner != nil {
			withoutNull(inner)
		}
	}
}

// DecodeArgs decodes a call's arguments into A, for the functions of a tool
// that see the bare call (Prepare, Query, NeedsApproval). It takes Call.Args,
// or Call.Arguments as the model wrote them when Args is empty. The error is
// INVALID_ARGS.
func DecodeArgs[A any](call Call) (A, error) {
	var args A
	raw := call.Args
	if len(raw) == 0 {
		raw = json.RawMessage(call.Arguments)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return args, invalidArgs([]Fault{{Path: "(root)", Reason: err.Error()}})
	}
	return args, nil
}
