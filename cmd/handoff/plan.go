package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"handoff/agents/plan"
	"handoff/agents/rules"
)

// maxSpecification is the longest specification in bytes: a model has to read
// all of it.
const maxSpecification = 256 << 10

type planCommand struct {
	helperSettings
	Specification string `arg:"" help:"File with the specification that is to be divided into tasks." type:"path" placeholder:"SPEC"`
}

// Run divides a specification into tasks by the repository's rules.
func (c *planCommand) Run(p *process) (err error) {
	specification, err := c.read()
	if err != nil {
		return err
	}
	h, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	index, err := rules.ReadIndex(h.root)
	if err != nil {
		return err
	}
	if len(index.Rules) == 0 {
		return fmt.Errorf("the repository has no index of rules, and every task needs one that holds for it; run handoff rules first")
	}
	known := make([]plan.Rule, 0, len(index.Rules))
	for _, rule := range index.Rules {
		known = append(known, plan.Rule{ID: rule.Path, Description: rule.Description, Tags: rule.Tags})
	}
	divided, usage, err := plan.Divide(p.ctx, h.model, h.root, specification, known)
	if err != nil {
		return err
	}
	if err := divided.Write(h.root); err != nil {
		return err
	}
	show := newScreen(p.stdout)
	for i, task := range divided.Tasks {
		after := ""
		if len(task.Dependencies) > 0 {
			after = show.paint(faint, " after "+strings.Join(task.Dependencies, ", "))
		}
		show.line(fmt.Sprintf("%d. %s: %s", i+1, task.ID, task.Title) + after)
	}
	show.line("")
	show.done(fmt.Sprintf("%d tasks in %s", len(divided.Tasks), plan.Path))
	show.spent(usage)
	return nil
}

func (c *planCommand) read() (string, error) {
	info, err := os.Stat(c.Specification)
	if err != nil {
		return "", fmt.Errorf("the specification cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSpecification {
		return "", fmt.Errorf("the specification %s is no file of at most %d kB; give the part that is to be planned", c.Specification, maxSpecification>>10)
	}
	content, err := os.ReadFile(c.Specification)
	if err != nil {
		return "", fmt.Errorf("the specification cannot be read: %w", err)
	}
	if strings.TrimSpace(string(content)) == "" {
		return "", fmt.Errorf("the specification %s is empty", c.Specification)
	}
	return strings.ToValidUTF8(string(content), "\uFFFD"), nil
}
