package llm

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"handoff/agents"
)

// A ProviderStatus says whether a provider could be asked.
type ProviderStatus struct {
	Name string
	// Default says that it is asked unless another one is named.
	Default bool
	// Configured says that nothing is missing.
	Configured bool
	// Missing names the variables that must be set.
	Missing []string
	// Address is where it listens, "" while that is not known.
	Address string
	// Model is its default model, "" when one must be named.
	Model string
	// Note is one sentence for people, "" for none.
	Note string
}

// Providers lists every provider with what is configured and what is missing.
// It sends nothing. A nil getenv means os.Getenv.
func Providers(getenv func(string) string) []ProviderStatus {
	if getenv == nil {
		getenv = os.Getenv
	}
	var list []ProviderStatus
	for _, p := range providers {
		name := p.Name
		if known, err := findProvider(name, getenv); err == nil {
			p = known // which is another one for openai at another address
		}
		status := ProviderStatus{Name: name, Default: name == DefaultProvider, Model: table.Defaults[p.Name]}
		status.Address, status.Missing = p.address(getenv)
		if p.KeyVariable != "" && !p.KeyOptional && getenv(p.KeyVariable) == "" {
			status.Missing = append(status.Missing, p.KeyVariable)
		}
		switch {
		case p.Name == ProviderVertex:
			status.Note = ambientNote(getenv)
			if file := getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" && !isFile(file) {
				status.Missing = append(status.Missing, "the file that GOOGLE_APPLICATION_CREDENTIALS names")
			}
		case name != p.Name:
			status.Note = "OPENAI_BASE_URL is set: openai means the compatible server there."
		case status.Model == "":
			status.Note = "It has no default model; name one with MODEL."
		}
		status.Configured = len(status.Missing) == 0
		list = append(list, status)
	}
	return list
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// ambientNote says where Google's credentials would come from.
func ambientNote(getenv func(string) string) string {
	if getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return "Credentials from the file that GOOGLE_APPLICATION_CREDENTIALS names."
	}
	if home := getenv("HOME"); home != "" {
		if isFile(filepath.Join(home, ".config", "gcloud", "application_default_credentials.json")) {
			return "Credentials from gcloud's application default login."
		}
	}
	return "Ambient credentials are looked for at the first call."
}

// A Report is what one cheap request found out.
type Report struct {
	Provider string
	// Model is the model's id as asked, Answered as the provider names it.
	Model, Answered string
	Info            ModelInfo
	Latency         time.Duration
	Text            string
	Usage           agents.Usage
}

// Test sends one cheap request to a model; the zero reference means the
// default.
func (c *Client) Test(ctx context.Context, ref agents.ModelRef) (Report, error) {
	info, err := c.Model(ref)
	if err != nil {
		return Report{}, err
	}
	request := agents.Request{
		Model: ref, Agent: "test", Turn: c.helperTurns.next("test"),
		Messages: []*agents.Message{{Role: agents.RoleUser, Content: "Reply with the single word ok."}},
		// Models that think need some for it, and spend no more than they need.
		Settings: agents.ModelSettings{MaxTokens: 512},
	}
	start := time.Now()
	response, err := c.Respond(ctx, request)
	if err != nil {
		return Report{}, err
	}
	return Report{
		Provider: response.Provider, Model: info.ID, Answered: response.Model, Info: info,
		Latency: time.Since(start), Text: response.Text, Usage: response.Usage,
	}, nil
}
