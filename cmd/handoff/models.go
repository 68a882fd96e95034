package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"handoff/agents"
	"handoff/agents/llm"
	"handoff/gitops/secrets"
	"handoff/runner/report"
)

type modelsCommand struct {
	modelSettings
	List modelsListCommand `cmd:"" default:"1" help:"List the providers: what is configured, what is missing. Nothing is sent."`
	Test modelsTestCommand `cmd:"" help:"Send one cheap request and say what came of it."`
}

type modelsListCommand struct{}

// Run lists the providers.
func (modelsListCommand) Run(p *process, settings *modelsCommand) error {
	show := newScreen(p.stdout)
	known := false
	for _, provider := range llm.Providers(os.Getenv) {
		chosen := strings.EqualFold(provider.Name, settings.Provider)
		if chosen {
			known = true
			provider.Model = cmp.Or(settings.Model, provider.Model)
		}
		show.provider(provider, chosen)
	}
	show.line("")
	if !known {
		return fmt.Errorf("PROVIDER is %q, which is none of these", settings.Provider)
	}
	show.line("Prices are of " + llm.PricesDate() + "; openrouter reports the cost of each call itself. → marks the provider that is asked.")
	return nil
}

// provider shows one provider on one line, and what there is to say about it
// on more.
func (s *screen) provider(status llm.ProviderStatus, chosen bool) {
	mark := "  "
	if chosen {
		mark = "→ "
	}
	state := s.paint(green, pad("configured", 14))
	if !status.Configured {
		state = s.paint(yellow, pad("not configured", 14))
	}
	model := cmp.Or(status.Model, "(no default model)")
	s.write(mark + s.paint(bold, pad(status.Name, 12)) + state + "  " + s.paint(plain, model))
	if len(status.Missing) > 0 {
		s.write("      " + s.paint(faint, "missing: "+strings.Join(status.Missing, ", ")))
	}
	if status.Address != "" {
		s.write("      " + s.paint(faint, "address: "+status.Address))
	}
	if status.Note != "" {
		s.write("      " + s.paint(faint, status.Note))
	}
}

type modelsTestCommand struct{}

// Run sends one cheap request.
func (modelsTestCommand) Run(p *process, settings *modelsCommand) error {
	scanner := secrets.New(modelSecrets(os.Getenv)...)
	// Whoever tests wants to know what is wrong, not to wait for it to pass.
	once := func(config *llm.Config) { config.Retry.Attempts = 1 }
	model, err := openModel(settings.modelSettings, tapeSettings{}, scanner, os.Getenv, slog.New(slog.DiscardHandler), once)
	if err != nil {
		return err
	}
	found, err := model.Test(p.ctx, agents.ModelRef{})
	if err != nil {
		return err
	}
	show := newScreen(p.stdout)
	show.fact("provider", found.Provider)
	show.fact("model", answeredBy(found))
	show.fact("answer", cmp.Or(shorten(found.Text, 80), "(empty)"))
	show.fact("latency", found.Latency.Round(time.Millisecond).String())
	show.fact("tokens", tokensOf(found.Usage))
	show.cost(found.Usage)
	show.fact("context", report.Tokens(found.Info.Context)+" tokens")
	show.fact("price", priceOf(found.Info))
	show.fact("takes", capabilitiesOf(found.Info.Capabilities))
	if !found.Info.Known {
		show.warn("The model is not in the table of " + llm.PricesDate() + ", so it gets nothing but what nearly every server understands.")
	}
	return nil
}

// cost shows what a model's work cost; the name of the line says what it is.
func (s *screen) cost(usage agents.Usage) {
	s.fact("cost", strings.TrimPrefix(report.Cost(usage), "cost "))
}

// tokensOf says how many tokens the request took, and whether the provider said
// so.
func tokensOf(usage agents.Usage) string {
	text := fmt.Sprintf("%d in, %d out", usage.Input, usage.Output)
	if len(usage.Entries) > 0 && usage.Entries[0].Estimated {
		text += ", estimated: the provider reports none"
	}
	return text
}

func answeredBy(found llm.Report) string {
	if found.Answered == "" || found.Answered == found.Model {
		return found.Model
	}
	return found.Model + ", answered by " + found.Answered
}

// priceOf says what a million tokens cost, as the table has it.
func priceOf(info llm.ModelInfo) string {
	if !info.Priced {
		return "unknown"
	}
	cached := ""
	if info.Cached != nil {
		cached = fmt.Sprintf(", %g cached", *info.Cached)
	}
	return fmt.Sprintf("$%g in%s, $%g out, per million tokens", info.Input, cached, info.Output)
}

// capabilitiesOf names what a model takes beyond the plain minimum.
func capabilitiesOf(takes llm.Capabilities) string {
	var names []string
	for _, one := range []struct {
		has  bool
		name string
	}{
		{takes.StrictSchema, "strict schemas"},
		{takes.ParallelTools, "parallel tool calls"},
		{takes.Temperature, "temperature"},
		{takes.SystemNotes, "notes in the middle of a history"},
		{takes.CacheOnRequest, "prompt caching on request"},
	} {
		if one.has {
			names = append(names, one.name)
		}
	}
	if len(names) == 0 {
		return "the plain minimum"
	}
	return strings.Join(names, ", ")
}
