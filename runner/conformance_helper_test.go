package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"handoff/agents/llm"
	"handoff/agents/plan"
	"handoff/agents/rules"
	"handoff/runner"
)

// playHelper runs a case of a helper, which asks a model outside of any
// session, on a repository of one rule file. Files are what it wrote.
func (p *played) playHelper(t *testing.T, c testCase) {
	model, err := p.world.model(c)
	if err != nil {
		p.err = err
		return
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "AGENTS.md"), []byte(c.Input), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var answer any
	switch c.Helper {
	case "rules":
		answer, p.err = summarise(t.Context(), model.(*llm.Client), root)
	case "plan":
		answer, p.err = divide(t.Context(), model.(*llm.Client), root, c.Input)
	default:
		p.err = fmt.Errorf("the driver knows no helper %q", c.Helper)
	}
	if p.err == nil {
		output, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		p.outcomes = append(p.outcomes, runner.Outcome{Status: runner.StatusFinal, Output: string(output)})
	}
	p.files = written(t, root)
}

func summarise(ctx context.Context, model *llm.Client, root *os.Root) (any, error) {
	index, _, err := rules.Update(ctx, model, root, nil)
	if err != nil {
		return nil, err
	}
	return index.Rules[0].Summary, nil
}

// divide plans with the one rule that the repository has.
func divide(ctx context.Context, model *llm.Client, root *os.Root, specification string) (any, error) {
	made, _, err := plan.Divide(ctx, model, root, specification, []plan.Rule{{ID: "AGENTS.md"}})
	if err != nil {
		return nil, err
	}
	return made, made.Write(root)
}

// written lists the files of the repository but its rule file.
func written(t *testing.T, root *os.Root) []string {
	files := []string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && name != "AGENTS.md" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
