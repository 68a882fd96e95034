package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"handoff/agents"
)

// maxView is how much of a file the planner is shown, in bytes.
const maxView = 32 << 10

type lookupArguments struct {
	Query string `json:"query,omitempty" jsonschema:"words to look for in ids, descriptions and tags; empty for all rules"`
}

type viewArguments struct {
	Path string `json:"path" jsonschema:"path of a file, relative to the repository"`
}

// lookingTools are what the planner may use. They change nothing.
func lookingTools(repository *os.Root, rules []Rule) ([]agents.Tool, error) {
	lookup, err := agents.MakeTool("lookupRules", "Find the repository's rules by words.",
		func(_ context.Context, _ agents.Call, args lookupArguments) (agents.Result, error) {
			return lookUp(rules, args.Query)
		})
	if err != nil {
		return nil, err
	}
	view, err := agents.MakeTool("viewFile", "Read a file of the repository.",
		func(_ context.Context, _ agents.Call, args viewArguments) (agents.Result, error) {
			text, err := view(repository, args.Path)
			return agents.Result{Output: text}, err
		})
	return []agents.Tool{lookup, view}, err
}

// lookUp lists the rules that contain every word of the query.
func lookUp(rules []Rule, query string) (agents.Result, error) {
	words := strings.Fields(strings.ToLower(query))
	found := []Rule{}
	for _, rule := range rules {
		text := strings.ToLower(rule.ID + " " + rule.Description + " " + strings.Join(rule.Tags, " "))
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			found = append(found, rule)
		}
	}
	if len(found) == 0 {
		return agents.Result{Output: fmt.Sprintf("None of the %d rules fits. Ask with fewer words, or with none for all.", len(rules))}, nil
	}
	encoded, err := json.Marshal(found)
	return agents.Result{Output: string(encoded)}, err
}

// view reads a regular file inside the repository, its git directory apart.
func view(repository *os.Root, name string) (string, error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if first, _, _ := strings.Cut(name, "/"); strings.EqualFold(first, ".git") {
		return "", fmt.Errorf("%s is not a file of the repository", name)
	}
	info, err := repository.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("there is no file %s in the repository", name)
	}
	file, err := repository.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read", name)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxView))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read", name)
	}
	text := strings.ToValidUTF8(string(content), "")
	if info.Size() > maxView {
		text += fmt.Sprintf("\n[the first %d of %d bytes]", maxView, info.Size())
	}
	return text, nil
}
