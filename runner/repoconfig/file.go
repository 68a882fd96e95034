package repoconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// maxFile is far above any sensible configuration; it bounds the parser.
const maxFile = 64 << 10

// A File is what a repository's configuration says; zero values were not said.
type File struct {
	Setup        []string
	Test         []string
	Timeout      time.Duration
	Limits       Limits
	Approval     Approval
	Models       map[string]string
	Instructions []string
	Git          Git
	Commit       CommitWishes

	lines map[string]int
}

// CommitWishes are what a file says about commits; nil was not said.
type CommitWishes struct {
	Author                      Author
	CoAuthor, SignOff, Verified *bool
}

// A Fault is one thing wrong with a configuration file.
type Fault struct {
	// Line is the line in the file, 0 where it is not known.
	Line int
	// Field is the dotted name of the setting, "" for the file as a whole.
	Field string
	// Reason continues the sentence that starts with the field's name.
	Reason string
}

// String is the fault as one sentence.
func (f Fault) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Field != "" {
		fmt.Fprintf(&b, "`%s` ", f.Field)
	}
	return b.String() + f.Reason
}

// Parse reads a configuration file. It reports every fault that it finds; the
// file is nil when there is any. It never panics and reads at most 64 KiB.
func Parse(data []byte) (*File, []Fault) {
	if len(data) > maxFile {
		return nil, []Fault{{Reason: fmt.Sprintf("the file has %d bytes; %d are allowed", len(data), maxFile)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return &File{}, nil
	} else if err != nil {
		return nil, []Fault{syntaxFault(err)}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, []Fault{{Reason: "the file holds more than one YAML document; keep one"}}
	}
	r := reader{file: &File{lines: map[string]int{}}}
	r.mapping("", document.Content[0], r.topLevel)
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return r.file, nil
}

// syntaxFault takes the line out of the parser's "yaml: line 3: …".
func syntaxFault(err error) Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	fault := Fault{Reason: "is not YAML: " + text}
	if rest, found := strings.CutPrefix(text, "line "); found {
		number, reason, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			fault = Fault{Line: line, Reason: "is not YAML: " + reason}
		}
	}
	return fault
}

type reader struct {
	file   *File
	faults []Fault
}

func (r *reader) fault(node *yaml.Node, field, reason string) {
	r.faults = append(r.faults, Fault{Line: node.Line, Field: field, Reason: reason})
}

// mapping calls set for every entry of a mapping; set says whether it knows
// the name.
func (r *reader) mapping(prefix string, node *yaml.Node, set func(name string, value *yaml.Node) bool) {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.fault(node, strings.TrimSuffix(prefix, "."), "must be a mapping of names to values")
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := prefix + key.Value
		if _, twice := r.file.lines[field]; twice {
			r.fault(key, field, "is there twice; keep one")
			continue
		}
		r.file.lines[field] = key.Line
		if !set(key.Value, value) {
			r.fault(key, field, "is no setting; see docs/configuration.md for those there are")
		}
	}
}

func (r *reader) topLevel(name string, value *yaml.Node) bool {
	switch name {
	case "setup":
		r.file.Setup = r.texts(name, value)
	case "test":
		r.file.Test = r.texts(name, value)
	case "timeout":
		r.file.Timeout = r.duration(name, value)
	case "instructions":
		r.file.Instructions = r.paths(name, value)
	case "models":
		r.file.Models = map[string]string{}
		r.mapping("models.", value, func(agent string, model *yaml.Node) bool {
			r.file.Models[agent] = r.text("models."+agent, model)
			return true
		})
	case "limits":
		r.mapping("limits.", value, r.limit)
	case "approval":
		r.mapping("approval.", value, r.approval)
	case "git":
		r.file.Git = Git(r.oneOf(name, value, string(GitNone), string(GitSynthetic)))
	case "commit":
		r.mapping("commit.", value, r.commit)
	default:
		return false
	}
	return true
}

func (r *reader) limit(name string, value *yaml.Node) bool {
	field, limits := "limits."+name, &r.file.Limits
	switch name {
	case "turns":
		limits.Turns = int(r.number(field, value, 1))
	case "handoffs":
		limits.Handoffs = int(r.number(field, value, 1))
	case "tokens":
		limits.Tokens = int64(r.number(field, value, 1))
	case "cost_usd":
		limits.CostMicros = int64(math.Round(r.number(field, value, 1e-6) * 1e6))
	case "minutes":
		limits.ActiveTime = time.Duration(r.number(field, value, 1) * float64(time.Minute))
	default:
		return false
	}
	return true
}

func (r *reader) approval(name string, value *yaml.Node) bool {
	field, approval := "approval."+name, &r.file.Approval
	switch name {
	case "role":
		approval.Role = Role(r.oneOf(field, value, string(RoleWrite), string(RoleMaintain), string(RoleAdmin)))
	case "require_other":
		approval.RequireOther = *r.truth(field, value)
	case "expires":
		approval.Expires = r.duration(field, value)
	case "check_run":
		approval.CheckRun = r.oneOf(field, value, "auto", "always", "never")
	default:
		return false
	}
	return true
}

func (r *reader) commit(name string, value *yaml.Node) bool {
	field, commit := "commit."+name, &r.file.Commit
	switch name {
	case "author":
		commit.Author = Author(r.oneOf(field, value, string(AuthorBot), string(AuthorRequester)))
	case "co_author":
		commit.CoAuthor = r.truth(field, value)
	case "sign_off":
		commit.SignOff = r.truth(field, value)
	case "verified":
		commit.Verified = r.truth(field, value)
	default:
		return false
	}
	return true
}

func (r *reader) truth(field string, node *yaml.Node) *bool {
	return new(r.oneOf(field, node, "true", "false") == "true")
}

func (r *reader) text(field string, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || strings.TrimSpace(node.Value) == "" {
		r.fault(node, field, "must be a text")
		return ""
	}
	return node.Value
}

// texts reads one text or a list of them.
func (r *reader) texts(field string, node *yaml.Node) []string {
	if node.Kind != yaml.SequenceNode {
		return []string{r.text(field, node)}
	}
	texts := []string{}
	for _, entry := range node.Content {
		texts = append(texts, r.text(field, entry))
	}
	return texts
}

// paths reads files of the repository, by names that cannot leave it.
func (r *reader) paths(field string, node *yaml.Node) []string {
	names := r.texts(field, node)
	for _, name := range names {
		if path.IsAbs(name) || name != path.Clean(name) || name == ".." || strings.HasPrefix(name, "../") {
			r.fault(node, field, fmt.Sprintf("names %q, which is no plain path inside the repository", name))
		}
	}
	return names
}

func (r *reader) oneOf(field string, node *yaml.Node, allowed ...string) string {
	if node.Kind != yaml.ScalarNode || !slices.Contains(allowed, node.Value) {
		r.fault(node, field, "must be one of "+strings.Join(allowed, ", "))
		return ""
	}
	return node.Value
}

// number reads a number of at least the minimum given and at most a billion.
func (r *reader) number(field string, node *yaml.Node, minimum float64) float64 {
	var value float64
	if node.Kind != yaml.ScalarNode || node.Decode(&value) != nil || math.IsNaN(value) || value < minimum || value > 1e9 {
		r.fault(node, field, fmt.Sprintf("must be a number from %v to a billion", minimum))
		return 0
	}
	return value
}

func (r *reader) duration(field string, node *yaml.Node) time.Duration {
	value, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || value < time.Minute || value > 90*24*time.Hour {
		r.fault(node, field, "must be a time such as 90m or 48h, from one minute to 90 days")
		return 0
	}
	return value
}
