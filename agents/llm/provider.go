package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// DefaultProvider is asked when no provider is named (rule R85).
const DefaultProvider = "openrouter"

// Names of providers.
const (
	ProviderOpenRouter = "openrouter"
	ProviderZAI        = "zai"
	ProviderVertex     = "vertex"
	ProviderOpenAI     = "openai"
	ProviderCompatible = "compatible"
	ProviderTape       = "tape"
)

// A provider is one way to speak chat completions: where, with which
// credentials, with which accent.
type provider struct {
	Name string
	// BaseURL is the address without a trailing slash, "" when it is made of
	// settings.
	BaseURL string
	// KeyVariable names the variable that holds the key, "" for none.
	KeyVariable string
	// KeyOptional says that calls work without a key.
	KeyOptional bool
	// URLVariable names the variable that holds the address, "" for none.
	URLVariable string
	// Headers are sent with every call.
	Headers map[string]string
	// StrictSchema says that the provider holds a strict JSON schema if the
	// model can.
	StrictSchema bool
	// PlainSchemas says that the schemas of tools must keep to the part of JSON
	// schema that Google reads.
	PlainSchemas bool
	// OnlyAutoToolChoice says that a tool cannot be forced.
	OnlyAutoToolChoice bool
	// ThinkingSwitch says that reasoning is switched on or off, not graded.
	ThinkingSwitch bool
	// Routing says that the body carries openrouter's routing and accounting.
	Routing bool
	// ReportsCost says that usage.cost is the price of the call in US dollars.
	ReportsCost bool
	// Priced says that the prices of the table are this provider's.
	Priced bool
	// Tape says that this is a tape: it is told session, agent and turn.
	Tape bool
}

// providers are all that we know, in the order in which people see them.
// Sources are the providers' own API references.
var providers = []provider{
	{
		Name: ProviderOpenRouter, BaseURL: "https://openrouter.ai/api/v1", KeyVariable: "OPENROUTER_API_KEY",
		// openrouter.ai/docs: the two headers name the app in its rankings.
		Headers:      map[string]string{"HTTP-Referer": "https://github.com/apps/handoff", "X-Title": "handoff"},
		StrictSchema: true, Routing: true, ReportsCost: true, Priced: true,
	},
	{Name: ProviderOpenAI, BaseURL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY", StrictSchema: true, Priced: true},
	{
		Name: ProviderZAI, BaseURL: "https://api.z.ai/api/paas/v4", KeyVariable: "ZAI_API_KEY",
		OnlyAutoToolChoice: true, ThinkingSwitch: true, Priced: true,
	},
	{Name: ProviderVertex, StrictSchema: true, PlainSchemas: true, Priced: true},
	{Name: ProviderCompatible, KeyVariable: "OPENAI_API_KEY", KeyOptional: true, URLVariable: "OPENAI_BASE_URL"},
	{Name: ProviderTape, URLVariable: "TAPE_URL", StrictSchema: true, ReportsCost: true, Priced: true, Tape: true},
}

func providerNames() string {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// findProvider returns the provider of a name. OpenAI at another address than
// its own is some compatible server, about which less can be assumed.
func findProvider(name string, getenv func(string) string) (provider, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == ProviderOpenAI && getenv("OPENAI_BASE_URL") != "" {
		name = ProviderCompatible
	}
	for _, p := range providers {
		if p.Name == name {
			return p, nil
		}
	}
	return provider{}, fmt.Errorf("provider %q is not known; known are %s", name, providerNames())
}

// address returns where the provider listens, or the variables that are
// missing to know it.
func (p provider) address(getenv func(string) string) (string, []string) {
	switch {
	case p.Name == ProviderVertex:
		return vertexAddress(getenv)
	case p.URLVariable != "":
		if value := getenv(p.URLVariable); value != "" {
			return value, nil
		}
		return "", []string{p.URLVariable}
	default:
		return p.BaseURL, nil
	}
}

// An endpoint is a provider that this process can reach: address, credentials
// and connection pool.
type endpoint struct {
	provider     provider
	pattern      *http.Request
	transport    http.RoundTripper
	defaultModel string
	credential   credential
	config       Config
	forms        forms
	tools        toolCache
}

// forms name the encodings of messages at an endpoint, each made once: as it
// is, a system note as a user's words, an answer without what only the model
// that gave it can read.
type forms struct{ plain, userNote, foreign string }

// connect makes an endpoint from settings; it sends nothing.
func connect(config Config, name, baseURL string) (*endpoint, error) {
	known, err := findProvider(name, config.Getenv)
	if err != nil {
		return nil, configurationError(name, err)
	}
	if baseURL == "" {
		var missing []string
		if baseURL, missing = known.address(config.Getenv); len(missing) > 0 {
			return nil, missingKey(known.Name, missing)
		}
	}
	base, err := parseBase(cmp.Or(known.URLVariable, "the base URL"), baseURL)
	if err != nil {
		return nil, configurationError(known.Name, err)
	}
	credential, err := credentialFor(known, config)
	if err != nil {
		return nil, err
	}
	if err := known.checkPlace(config.Getenv); err != nil {
		return nil, configurationError(known.Name, err)
	}
	pattern, err := newPattern(known, strings.TrimRight(base.String(), "/")+"/chat/completions")
	if err != nil {
		return nil, configurationError(known.Name, err)
	}
	return &endpoint{
		provider:     known,
		pattern:      pattern,
		transport:    transportOf(config),
		defaultModel: table.Defaults[known.Name],
		credential:   credential,
		config:       config,
		forms:        forms{plain: known.Name, userNote: known.Name + "/user-note", foreign: known.Name + "/foreign"},
		tools:        toolCache{plain: known.PlainSchemas},
	}, nil
}

// parseBase reads an address that stands in the variable of a name.
func parseBase(name, address string) (*url.URL, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, errors.New(name + " must look like https://host/path")
	}
	if base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return nil, errors.New(name + " must not carry credentials, a query or a fragment; put the key in its own variable")
	}
	return base, nil
}
