package session

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"handoff/agents"
	"handoff/runner/intake"
	"handoff/runner/report"
	"handoff/runner/store"
)

//go:embed templates/*.txt
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"inline":   report.Inline,
	"fence":    func(text string) string { return report.Fence(text, "") },
	"duration": report.Duration,
	"tokens":   report.Tokens,
	"dollars":  func(micros int64) string { return fmt.Sprintf("$%.2f", float64(micros)/1e6) },
	"words":    func(name string) string { return strings.ReplaceAll(name, "_", " ") },
}).ParseFS(templateFiles, "templates/*.txt"))

// prepare makes everything ready that the crew needs.
func (h *hold) prepare(ctx context.Context) error {
	if h.session.State == store.StateQueued || h.session.State == store.StatePreparing {
		if err := h.lease.SetState(ctx, store.StatePreparing, ""); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{h.findBase, h.loadConfig, h.loadCrew, h.loadPlan, h.openBench, h.setUp} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
	h.wantTree()
	return nil
}

// loadCrew reads the agents from the database and remembers their versions.
func (h *hold) loadCrew(ctx context.Context) error {
	rows, err := h.Store.Agents(ctx)
	if err != nil {
		return err
	}
	h.crew = make(map[string]agents.Agent, len(rows))
	versions := make(map[string]string, len(rows))
	for _, row := range rows {
		agent, err := agents.ParseAgent([]byte(row.Source))
		if err != nil {
			return &fault{code: "AGENT", message: fmt.Sprintf("The agent %s cannot be used: %v", row.ID, err), next: "Ask the operator to correct it, or to run `handoff seed --force`."}
		}
		agent.Model = h.chooseModel(agent)
		h.crew[agent.ID], versions[agent.ID] = agent, row.Version
	}
	if _, ok := h.crew[firstAgent]; !ok {
		return &fault{code: "AGENT", message: "The database holds no agent named " + firstAgent + ".", next: "Ask the operator to run `handoff seed`."}
	}
	h.noticePrices()
	for _, name := range slices.Sorted(maps.Keys(h.config.Models)) {
		if _, ok := h.crew[name]; !ok {
			h.notices = append(h.notices, fmt.Sprintf("`models.%s` names no agent of the crew; it was left out", name))
		}
	}
	if h.errand() == intake.ErrandPlan {
		h.planOnly()
	}
	if maps.Equal(h.session.AgentVersions, versions) {
		return nil
	}
	return h.lease.RecordAgents(ctx, versions)
}

// input is the task as the crew reads it first. The task is the person's; the
// issue around it is material.
func (h *hold) input() string {
	var b strings.Builder
	// The data are plain strings, so a failure is a defect of the template.
	if err := templates.ExecuteTemplate(&b, "input.txt", map[string]any{
		"Requester": h.session.RequesterLogin,
		"Task":      report.Clean(h.session.Task),
		"Issue":     h.session.Issue,
		"Title":     quoteLines(h.session.IssueTitle),
		"Body":      quoteLines(report.Visible(h.session.IssueBody)),
		"PlanOnly":  h.errand() == intake.ErrandPlan,
		"Plan":      h.plan,
		"Failing":   h.failing,
		"Customs":   h.bench.customs,
		"Limits":    h.bench.limits,
	}); err != nil {
		return h.session.Task
	}
	return b.String()
}

// quoteLines marks every line, so that no line of somebody else's can pass for
// one of ours, and takes out what people do not see on the page.
func quoteLines(text string) string {
	text = report.Clean(report.StripComments(text))
	if strings.TrimSpace(text) == "" {
		return "> (empty)"
	}
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ")
}
