package agents

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// The crew that handoff ships. A file's name is its agent's slug.
//
//go:embed crew/*.md
var crewFiles embed.FS

// crewOrder puts the manager first: the first agent of a crew is the one that
// a session starts with. The others follow in the order of the work.
var crewOrder = []string{"copilot", "architect", "implementer", "tester", "documentation"}

// Crew returns the agents that handoff ships, the manager first. Each call
// returns fresh values. The files are part of the program and tested, so a
// fault in one is a fault of the build; it shows as a missing agent in tests.
func Crew() []Agent {
	sources := CrewSources()
	crew := make([]Agent, 0, len(crewOrder))
	for _, slug := range crewOrder {
		agent, err := ParseAgent(sources[slug])
		if err != nil {
			continue
		}
		crew = append(crew, agent)
	}
	return crew
}

// CrewSources returns the Markdown of the shipped agents by slug, for
// `handoff seed` to write into the database.
func CrewSources() map[string][]byte {
	sources := make(map[string][]byte, len(crewOrder))
	names, _ := fs.Glob(crewFiles, "crew/*.md") // the pattern is constant and valid
	for _, name := range names {
		source, err := crewFiles.ReadFile(name)
		if err == nil {
			sources[strings.TrimSuffix(path.Base(name), ".md")] = source
		}
	}
	return sources
}

// A MarkdownError says what is wrong with an agent's Markdown, and where.
type MarkdownError struct {
	// Line counts from 1; 0 means the document as a whole.
	Line   int
	Reason string
}

// Error gives line and reason.
func (e *MarkdownError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// frontMatter is the head of an agent's file. Its fields are those of [Agent]
// that survive a round trip; functions do not.
type frontMatter struct {
	Name            string         `yaml:"name"`
	Slug            string         `yaml:"slug"`
	Role            string         `yaml:"role,omitempty"`
	Model           modelNode      `yaml:"model,omitempty"`
	Settings        *settingsNode  `yaml:"settings,omitempty"`
	Tools           []string       `yaml:"tools,omitempty"`
	Handoffs        []handoffNode  `yaml:"handoffs,omitempty"`
	PathScope       []string       `yaml:"path_scope,omitempty"`
	ToolUseBehavior *behaviorNode  `yaml:"tool_use_behavior,omitempty"`
	KeepToolChoice  bool           `yaml:"keep_tool_choice,omitempty"`
	Output          *outputNode    `yaml:"output,omitempty"`
	lines           map[string]int `yaml:"-"`
}

// modelNode is written as a model's id alone, or as {provider, id}.
type modelNode ModelRef

func (m *modelNode) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Tag != "!!null" {
			m.ID = node.Value
		}
		return nil
	}
	return node.Decode((*struct {
		Provider string `yaml:"provider"`
		ID       string `yaml:"id"`
	})(m))
}

func (m modelNode) MarshalYAML() (any, error) {
	if m.Provider == "" {
		return m.ID, nil
	}
	return map[string]string{"provider": m.Provider, "id": m.ID}, nil
}

// IsZero leaves an unset model out of the Markdown.
func (m modelNode) IsZero() bool { return m == modelNode{} }

type settingsNode struct {
	Temperature       *float64 `yaml:"temperature,omitempty"`
	MaxTokens         int      `yaml:"max_tokens,omitempty"`
	ReasoningEffort   string   `yaml:"reasoning_effort,omitempty"`
	ParallelToolCalls *bool    `yaml:"parallel_tool_calls,omitempty"`
	ToolChoice        string   `yaml:"tool_choice,omitempty"`
}

// handoffNode is written as the target's slug alone, or as a map.
type handoffNode struct {
	Target   string `yaml:"target"`
	Nest     bool   `yaml:"nest,omitempty"`
	Disabled bool   `yaml:"disabled,omitempty"`
}

func (h *handoffNode) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		h.Target = node.Value
		return nil
	}
	type plain handoffNode
	return node.Decode((*plain)(h))
}

func (h handoffNode) MarshalYAML() (any, error) {
	if !h.Nest && !h.Disabled {
		return h.Target, nil
	}
	type plain handoffNode
	return plain(h), nil
}

type behaviorNode struct {
	Kind  string   `yaml:"kind"`
	Names []string `yaml:"names,omitempty"`
}

type outputNode struct {
	Name    string `yaml:"name"`
	Schema  string `yaml:"schema"`
	Lenient bool   `yaml:"lenient,omitempty"`
}

// fence opens and closes the front matter.
const fence = "---"

// ParseAgent reads an agent from Markdown with YAML front matter: the head is
// the agent's data, the body its instructions. The error is a [*MarkdownError]
// with the line in the document and the reason. Unknown keys are errors, so
// that a misspelt path_scope cannot widen what an agent may change.
func ParseAgent(markdown []byte) (Agent, error) {
	head, body, bodyLine, err := splitFrontMatter(markdown)
	if err != nil {
		return Agent{}, err
	}
	front, err := decodeFrontMatter(head)
	if err != nil {
		return Agent{}, err
	}
	if err := front.check(); err != nil {
		return Agent{}, err
	}
	if strings.TrimSpace(body) == "" {
		return Agent{}, &MarkdownError{Line: bodyLine, Reason: "the instructions are missing; write them below the front matter"}
	}
	if err := checkVariables(body, bodyLine); err != nil {
		return Agent{}, err
	}
	return front.agent(strings.TrimSpace(body)), nil
}

// splitFrontMatter separates head and body; bodyLine is the body's first line.
func splitFrontMatter(markdown []byte) (head, body string, bodyLine int, err error) {
	text := strings.ReplaceAll(string(bytes.TrimPrefix(markdown, []byte("\ufeff"))), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != fence {
		return "", "", 0, &MarkdownError{Line: 1, Reason: "an agent starts with a line --- and its front matter"}
	}
	for i := 1; i < len(lines); i++ {
		if strings.TrimRight(lines[i], " \t") == fence {
			return strings.Join(lines[1:i], "\n"), strings.Join(lines[i+1:], "\n"), i + 2, nil
		}
	}
	return "", "", 0, &MarkdownError{Line: 1, Reason: "the front matter is not closed; end it with a line ---"}
}

// yamlLine finds the line that yaml.v3 puts into its error texts.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): (.*)`)

// decodeFrontMatter decodes strictly. Lines of the YAML are one less than the
// document's, which opens with the fence.
func decodeFrontMatter(head string) (frontMatter, error) {
	var front frontMatter
	decoder := yaml.NewDecoder(strings.NewReader(head))
	decoder.KnownFields(true)
	if err := decoder.Decode(&front); err != nil {
		return front, asMarkdownError(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(head), &document); err != nil {
		return front, asMarkdownError(err)
	}
	front.lines = map[string]int{}
	if len(document.Content) == 1 {
		pairs := document.Content[0].Content
		for i := 0; i+1 < len(pairs); i += 2 {
			front.lines[pairs[i].Value] = pairs[i].Line + 1
		}
	}
	return front, nil
}

func asMarkdownError(err error) error {
	text := err.Error()
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok && len(typed.Errors) > 0 {
		text = typed.Errors[0]
	}
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		line, _ := strconv.Atoi(match[1]) // the pattern admits digits only
		return &MarkdownError{Line: line + 1, Reason: match[2]}
	}
	if strings.HasSuffix(text, "EOF") {
		text = "the front matter is empty"
	}
	return &MarkdownError{Line: 2, Reason: strings.TrimPrefix(text, "yaml: ")}
}

// slug is what names an agent in handoffs, the journal and tapes.
var slug = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// check finds what YAML alone cannot: wrong slugs, doubled names, bad globs.
func (f frontMatter) check() error {
	fault := func(key, format string, args ...any) error {
		line := f.lines[key]
		if line == 0 {
			line = 1
		}
		return &MarkdownError{Line: line, Reason: fmt.Sprintf(format, args...)}
	}
	if strings.TrimSpace(f.Name) == "" {
		return fault("name", "name is missing")
	}
	if !slug.MatchString(f.Slug) {
		return fault("slug", "slug %q must be lower case letters, digits and hyphens, starting with a letter", f.Slug)
	}
	for i, name := range f.Tools {
		if err := checkToolName(name); err != nil {
			return fault("tools", "%v", err)
		}
		if slices.Contains(f.Tools[:i], name) {
			return fault("tools", "tool %q is listed twice", name)
		}
	}
	targets := make([]string, 0, len(f.Handoffs))
	for _, handoff := range f.Handoffs {
		switch {
		case !slug.MatchString(handoff.Target):
			return fault("handoffs", "%q is no agent's slug", handoff.Target)
		case handoff.Target == f.Slug:
			return fault("handoffs", "an agent cannot hand over to itself")
		case slices.Contains(targets, handoff.Target):
			return fault("handoffs", "handoff to %q is listed twice", handoff.Target)
		}
		targets = append(targets, handoff.Target)
	}
	for _, pattern := range f.PathScope {
		if err := CheckGlob(pattern); err != nil {
			return fault("path_scope", "%v", err)
		}
	}
	if b := f.ToolUseBehavior; b != nil && !slices.Contains([]string{"run_llm_again", "stop_on_first_tool", "stop_at_tool_names"}, b.Kind) {
		return fault("tool_use_behavior", "kind %q is not run_llm_again, stop_on_first_tool or stop_at_tool_names", b.Kind)
	}
	if o := f.Output; o != nil {
		if _, err := compileSchema(json.RawMessage(o.Schema)); err != nil {
			return fault("output", "%v", err)
		}
	}
	return nil
}

// agent is the front matter and the instructions as an [Agent].
func (f frontMatter) agent(instructions string) Agent {
	agent := Agent{
		ID:             f.Slug,
		Name:           f.Name,
		Role:           f.Role,
		Instructions:   instructions,
		Model:          ModelRef(f.Model),
		Tools:          f.Tools,
		PathScope:      f.PathScope,
		KeepToolChoice: f.KeepToolChoice,
	}
	for _, handoff := range f.Handoffs {
		agent.Handoffs = append(agent.Handoffs, Handoff{Target: handoff.Target, Nest: handoff.Nest, Disabled: handoff.Disabled})
	}
	if f.Settings != nil {
		agent.Settings = ModelSettings(*f.Settings)
	}
	if f.ToolUseBehavior != nil {
		agent.ToolUseBehavior = ToolUseBehavior{Kind: f.ToolUseBehavior.Kind, Names: f.ToolUseBehavior.Names}
	}
	if f.Output != nil {
		agent.Output = &OutputSchema{Name: f.Output.Name, Schema: json.RawMessage(f.Output.Schema), Lenient: f.Output.Lenient}
	}
	return agent
}

// Markdown writes the agent as [ParseAgent] reads it. Functions (guardrails,
// filters, InstructionsFunc) have no written form and are left out.
func (a Agent) Markdown() ([]byte, error) {
	front := frontMatter{
		Name: a.Name, Slug: a.ID, Role: a.Role, Model: modelNode(a.Model),
		Tools: a.Tools, PathScope: a.PathScope, KeepToolChoice: a.KeepToolChoice,
	}
	if a.Settings != (ModelSettings{}) {
		settings := settingsNode(a.Settings)
		front.Settings = &settings
	}
	for _, handoff := range a.Handoffs {
		front.Handoffs = append(front.Handoffs, handoffNode{Target: handoff.Target, Nest: handoff.Nest, Disabled: handoff.Disabled})
	}
	if a.ToolUseBehavior.Kind != "" {
		front.ToolUseBehavior = &behaviorNode{Kind: a.ToolUseBehavior.Kind, Names: a.ToolUseBehavior.Names}
	}
	if a.Output != nil {
		front.Output = &outputNode{Name: a.Output.Name, Schema: string(a.Output.Schema), Lenient: a.Output.Lenient}
	}
	head, err := yaml.Marshal(front)
	if err != nil {
		return nil, fmt.Errorf("writing agent %q as Markdown: %w", a.ID, err)
	}
	return fmt.Appendf(nil, "%s\n%s%s\n\n%s\n", fence, head, fence, a.Instructions), nil
}

// variable is the only form in which instructions refer to a session variable.
var variable = regexp.MustCompile(`\{\{\s*\.([a-z][a-z0-9_]*)\s*\}\}`)

// checkVariables refuses braces that look like a variable and are none, which
// would otherwise fail when a session starts.
func checkVariables(body string, firstLine int) error {
	for i, line := range strings.Split(body, "\n") {
		rest := variable.ReplaceAllString(line, "")
		if strings.Contains(rest, "{{") {
			return &MarkdownError{Line: firstLine + i, Reason: "a variable is written {{.name}}, with nothing else between the braces"}
		}
	}
	return nil
}
