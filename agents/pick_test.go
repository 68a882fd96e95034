package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	reference "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

type greetArgs struct {
	Name  string      `json:"name" jsonschema:"who is greeted"`
	Times int         `json:"times,omitempty" jsonschema:"how often"`
	Loud  *bool       `json:"loud,omitempty"`
	Gifts []greetGift `json:"gifts,omitempty"`
}

type greetGift struct {
	Title string  `json:"title"`
	Price float64 `json:"price,omitempty"`
}

func greetTool(t testing.TB) Tool {
	t.Helper()
	tool, err := MakeTool("greet", "Greets.", func(_ context.Context, _ Call, args greetArgs) (Result, error) {
		return Result{Output: strings.Repeat("hello "+args.Name+"\n", max(args.Times, 1))}, nil
	}, func(schema *jsonschema.Schema) {
		schema.Properties["times"].Maximum = jsonschema.Ptr(3.0)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestMakeToolInfersAStrictSchema(t *testing.T) {
	var schema struct {
		Type                 string
		Required             []string
		AdditionalProperties any
		Properties           map[string]struct{ Description string }
	}
	if err := json.Unmarshal(greetTool(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || fmt.Sprint(schema.Required) != "[name]" || schema.AdditionalProperties != false {
		t.Errorf("schema is %s", greetTool(t).Schema)
	}
	if got := schema.Properties["name"].Description; got != "who is greeted" {
		t.Errorf("description of name is %q", got)
	}
}

func TestMakeToolRunsWithDecodedArguments(t *testing.T) {
	result, err := greetTool(t).Run(t.Context(), Call{Args: json.RawMessage(`{"name":"Ada","times":2}`)})
	if err != nil || result.Output != "hello Ada\nhello Ada\n" {
		t.Errorf("got %q, %v", result.Output, err)
	}
}

func TestMakeToolRefusesWhatCannotBeATool(t *testing.T) {
	if _, err := MakeTool("no spaces", "", func(context.Context, Call, greetArgs) (Result, error) { return Result{}, nil }); err == nil {
		t.Error("a name with a space was accepted")
	}
	if _, err := MakeTool("list", "", func(context.Context, Call, []string) (Result, error) { return Result{}, nil }); err == nil {
		t.Error("arguments that are no object were accepted")
	}
	type withChannel struct{ C chan int }
	if _, err := MakeTool("channel", "", func(context.Context, Call, withChannel) (Result, error) { return Result{}, nil }); err == nil {
		t.Error("a channel was accepted as an argument")
	}
}

func TestPickKeepsOrderAndNamesTheUnknown(t *testing.T) {
	named := func(name string) Tool { return Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)} }
	registry, err := NewRegistry(named("b"), named("a"), named("c"))
	if err != nil {
		t.Fatal(err)
	}
	picked, err := registry.Pick("c", "a", "c")
	if err != nil || len(picked) != 2 || picked[0].Name != "c" || picked[1].Name != "a" {
		t.Errorf("picked %v, %v", picked, err)
	}
	_, err = registry.Pick("a", "x", "y")
	if want := `no tool is named "x" or "y"; the tools are a, b, c`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := NewRegistry(named("a"), named("a")); err == nil {
		t.Error("two tools of one name were accepted")
	}
	if _, err := NewRegistry(Tool{Name: "a", Schema: json.RawMessage(`{"type":7}`)}); err == nil {
		t.Error("a broken schema was accepted")
	}
}

func TestValidateNamesThePathOfEachFault(t *testing.T) {
	schema := greetTool(t).Schema
	cases := map[string]struct {
		args string
		want []string // "path: part of the reason"
	}{
		"right":               {`{"name":"Ada"}`, nil},
		"null means left out": {`{"name":"Ada","times":null,"loud":null,"gifts":null}`, nil},
		"nothing sent":        {``, []string{"name: is required and missing"}},
		"no JSON":             {`{name}`, []string{"(root): not valid JSON"}},
		"cut off":             {`{"name":"A`, []string{"(root): the JSON is cut off"}},
		"two objects":         {`{"name":"A"}{}`, []string{"(root): there is more text"}},
		"an array":            {`["A"]`, []string{"(root): the arguments must be a JSON object, not array"}},
		"wrong type":          {`{"name":7}`, []string{"name: must be string, not integer"}},
		"required null":       {`{"name":null}`, []string{"name: must be string, not null"}},
		"unknown argument":    {`{"name":"A","nmae":"B"}`, []string{"nmae: is no argument of this tool; known are gifts, loud, name, times"}},
		"beyond the maximum":  {`{"name":"A","times":9}`, []string{"times: maximum: 9"}},
		"deep and several":    {`{"gifts":[{"title":"x"},{"price":"y","z":1}]}`, []string{"name: is required", "gifts[1].title: is required", "gifts[1].price: must be number, not string", "gifts[1].z: is no argument"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Validate(schema, json.RawMessage(c.args))
			if c.want == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			cause, ok := errors.AsType[*InvalidArgs](err)
			if !ok || CodeOf(err) != CodeInvalidArgs {
				t.Fatalf("error %v has code %q", err, CodeOf(err))
			}
			if len(cause.Faults) != len(c.want) {
				t.Fatalf("faults:\n%v\nwant %d", cause, len(c.want))
			}
			for i, want := range c.want {
				if line := cause.Faults[i].Path + ": " + cause.Faults[i].Reason; !strings.HasPrefix(line, want) {
					t.Errorf("fault %d is %q, want %q…", i, line, want)
				}
			}
		})
	}
}

// Schemas of MCP servers are not ours: combinations and references are judged
// by the library as a whole when no part alone is at fault.
func TestValidateOfForeignSchemas(t *testing.T) {
	cases := map[string]struct {
		schema, args, path string
	}{
		"reference":   {`{"$defs":{"n":{"type":"integer","minimum":1}},"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}`, `{"n":0}`, "n"},
		"one of":      {`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`, `{"a":1,"b":2}`, "(root)"},
		"enum":        {`{"type":"object","properties":{"how":{"enum":["x","y"]}}}`, `{"how":"z"}`, "how"},
		"pattern":     {`{"type":"object","properties":{"s":{"type":"string","pattern":"^a"}}}`, `{"s":"b"}`, "s"},
		"open object": {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"s":1}`, "(root)"},
		"array size":  {`{"type":"object","properties":{"l":{"type":"array","minItems":1,"items":{"type":"string"}}}}`, `{"l":[]}`, "l"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Validate(json.RawMessage(c.schema), json.RawMessage(c.args))
			cause, ok := errors.AsType[*InvalidArgs](err)
			if !ok || cause.Faults[0].Path != c.path {
				t.Errorf("got %v, want a fault at %s", err, c.path)
			}
		})
	}
	if err := Validate(json.RawMessage(`{"type":`), json.RawMessage(`{}`)); err == nil || CodeOf(err) == CodeInvalidArgs {
		t.Errorf("a broken schema was blamed on the arguments: %v", err)
	}
}

// The verdict agrees with an independent validator on any arguments.
func TestValidateAgreesWithAnotherValidator(t *testing.T) {
	tool := greetTool(t)
	document, err := reference.UnmarshalJSON(strings.NewReader(string(tool.Schema)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := reference.NewCompiler()
	if err := compiler.AddResource("greet.json", document); err != nil {
		t.Fatal(err)
	}
	other := compiler.MustCompile("greet.json")
	scalar := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-5, 5), func(n int) any { return n }),
		rapid.Just[any](true), rapid.Just[any](1.5),
		rapid.Just[any]([]any{map[string]any{"title": "t"}}), rapid.Just[any]([]any{map[string]any{"price": 1}}),
	)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.MapOfN(rapid.SampledFrom([]string{"name", "times", "loud", "gifts", "other"}), scalar, 0, 5).Draw(t, "args")
		args, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := reference.UnmarshalJSON(strings.NewReader(string(args)))
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := Validate(tool.Schema, args), other.Validate(decoded)
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("%s: ours %v, theirs %v", args, ours, theirs)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add(`{"name":"A","gifts":[{}]}`)
	f.Add(`{"name":null}`)
	schema := greetTool(f).Schema
	f.Fuzz(func(t *testing.T, args string) {
		if err := Validate(schema, json.RawMessage(args)); err != nil && CodeOf(err) != CodeInvalidArgs {
			t.Errorf("arguments %q led to %v", args, err)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	schema, args := greetTool(b).Schema, json.RawMessage(`{"name":"Ada","gifts":[{"title":"book","price":3}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := Validate(schema, args); err != nil {
			b.Fatal(err)
		}
	}
}
