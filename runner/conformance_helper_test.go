package runner_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"handoff/agents/llm"
	"handoff/agents/rules"
	"handoff/runner"
)

// playHelper runs a case of a helper, which asks a model outside of any
// session, on a repository of one rule file. Files are what it wrote.
func (p *played) playHelper(t *testing.T, c testCase) {
	if c.Helper != "rules" {
		p.err = fmt.Errorf("the driver knows no helper %q", c.Helper)
		return
	}
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
	index, _, err := rules.Update(t.Context(), model.(*llm.Client), root, nil)
	if p.err = err; err == nil {
		answer, err := json.Marshal(index.Rules[0].Summary)
		if err != nil {
			t.Fatal(err)
		}
		p.outcomes = append(p.outcomes, runner.Outcome{Status: runner.StatusFinal, Output: string(answer)})
	}
	p.files = []string{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && name != "AGENTS.md" {
			p.files = append(p.files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
