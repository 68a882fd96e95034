package main

import (
	"errors"
	"fmt"
	"strings"

	"handoff/agents"
	"handoff/agents/rules"
)

type rulesCommand struct {
	helperSettings
	Globs []string `arg:"" optional:"" help:"Where rule files are, such as docs/rules/**; empty for the usual places." placeholder:"GLOB"`
}

// Run brings the index of the repository's rules up to date.
func (r *rulesCommand) Run(p *process) (err error) {
	h, err := r.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	index, usage, err := rules.Update(p.ctx, h.model, h.root, r.Globs)
	if err != nil {
		return err
	}
	show := newScreen(p.stdout)
	for _, rule := range index.Rules {
		show.line(rule.Path)
		show.line("  " + rule.Description)
		show.line("  " + show.paint(faint, strings.Join(rule.Tags, ", ")))
	}
	if len(index.Rules) == 0 {
		show.line("No rule files here; rules are looked for in " + strings.Join(rules.DefaultGlobs, ", ") + " unless other places are named.")
	}
	show.line("")
	show.done(fmt.Sprintf("%d rules in %s", len(index.Rules), rules.IndexPath))
	show.spent(usage)
	return nil
}

// spent shows what a helper's questions cost, if it had to ask any.
func (s *screen) spent(usage agents.Usage) {
	if len(usage.Entries) == 0 {
		s.fact("model", "not asked: nothing has changed")
		return
	}
	s.fact("tokens", fmt.Sprintf("%d in, %d out", usage.Input, usage.Output))
	s.cost(usage)
}
