package rules

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"handoff/agents"
)

// IndexPath is where the index is kept, relative to the repository.
const IndexPath = ".bluprint/rules/index.json"

// DefaultGlobs are where rule files usually are.
var DefaultGlobs = []string{".cursor/rules/**", ".github/instructions/**", "docs/rules/**", "AGENTS.md"}

// indexVersion is the version of the index file's form.
const indexVersion = 1

// An Index is what is known about a repository's rule files, sorted by path.
type Index struct {
	Version int    `json:"version"`
	Rules   []Rule `json:"rules"`
}

// A Rule is one rule file. Its path is its id.
type Rule struct {
	// Path is slash-separated and relative to the repository.
	Path string `json:"path"`
	// Hash is the SHA-256 of the content that was summarised, in hex.
	Hash string `json:"hash"`
	Summary
}

// Find returns the rule files of a repository that match any of the globs (see
// [agents.MatchGlob]), sorted. Only regular files count; links are not
// followed.
func Find(repository fs.FS, globs []string) ([]string, error) {
	var found []string
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		if slices.ContainsFunc(globs, func(glob string) bool { return agents.MatchGlob(glob, name) }) {
			found = append(found, name)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// ReadIndex returns the repository's index, the empty one when there is none
// or its form is not this version's.
func ReadIndex(root *os.Root) (Index, error) {
	data, err := root.ReadFile(IndexPath)
	if errors.Is(err, fs.ErrNotExist) {
		return Index{Version: indexVersion}, nil
	}
	if err != nil {
		return Index{}, fmt.Errorf("read the index of rules: %w", err)
	}
	var index Index
	if json.Unmarshal(data, &index) != nil || index.Version != indexVersion {
		return Index{Version: indexVersion}, nil
	}
	return index, nil
}

// Update brings the index in line with the rule files that the globs match,
// [DefaultGlobs] when there are none, and writes it if it changed. The model
// is asked about new and changed files only. After any error the index on disk
// is as it was. Everything stays inside root.
func Update(ctx context.Context, model Generator, root *os.Root, globs []string) (Index, agents.Usage, error) {
	var usage agents.Usage
	if len(globs) == 0 {
		globs = DefaultGlobs
	}
	old, err := ReadIndex(root)
	if err != nil {
		return Index{}, usage, err
	}
	files, err := Find(root.FS(), globs)
	if err != nil {
		return Index{}, usage, fmt.Errorf("look for rule files: %w", err)
	}
	index := Index{Version: indexVersion, Rules: []Rule{}}
	for _, file := range files {
		rule, spent, err := update(ctx, model, root, old, file)
		usage.Add(spent)
		if err != nil {
			return Index{}, usage, err
		}
		index.Rules = append(index.Rules, rule)
	}
	return index, usage, write(root, old, index)
}

// update returns a file's rule: the known one while the content is the same.
func update(ctx context.Context, model Generator, root *os.Root, old Index, file string) (Rule, agents.Usage, error) {
	content, err := root.ReadFile(file)
	if err != nil {
		return Rule{}, agents.Usage{}, fmt.Errorf("read a rule file: %w", err)
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	if i, found := slices.BinarySearchFunc(old.Rules, file, func(r Rule, name string) int { return cmp.Compare(r.Path, name) }); found && old.Rules[i].Hash == hash {
		return old.Rules[i], agents.Usage{}, nil
	}
	summary, usage, err := Summarise(ctx, model, file, string(content))
	return Rule{Path: file, Hash: hash, Summary: summary}, usage, err
}

// write replaces the index file in one step.
func write(root *os.Root, old, index Index) error {
	encoded, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	before, err := json.MarshalIndent(old, "", "  ")
	if err != nil || bytes.Equal(encoded, before) {
		return err
	}
	if err := root.MkdirAll(path.Dir(IndexPath), 0o755); err != nil {
		return fmt.Errorf("make the folder of the index: %w", err)
	}
	temporary := IndexPath + "." + rand.Text()
	if err := root.WriteFile(temporary, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the index of rules: %w", errors.Join(err, root.Remove(temporary)))
	}
	if err := root.Rename(temporary, IndexPath); err != nil {
		return fmt.Errorf("replace the index of rules: %w", errors.Join(err, root.Remove(temporary)))
	}
	return nil
}
