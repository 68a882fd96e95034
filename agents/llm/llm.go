// Package llm talks to language models. It is the only package that knows
// that they exist: everybody else sees [agents.Model], which [Client]
// implements.
//
// The idea is that all providers speak one wire format, chat completions, and
// each speaks it with an accent. What they have in common is code and is
// written once; the accents are data: the list of providers in provider.go
// and the table of models in models.yaml.
//
// One call goes like this. Respond finds the provider that the request names
// and what is known of the model, and encodes the request. Messages are
// encoded once in their life ([agents.Message.EncodedAs]) and stand last in
// the body, so that the body of a call is, but for its last two bytes, the
// beginning of the next call's body: the prompt caches of the providers work,
// and a body is written on where the last one ended, so that a long history
// costs no more than its way over the wire. Then come the attempts.
// An attempt posts the body, reads the stream of events with its own reader,
// merges the pieces to one raw assistant message, kept for replay with every
// field that we do not know, and counts what it cost. It has four clocks:
// connecting, first byte, pause between data lines, and all together. What is
// worth trying again is tried again after the time that the provider asked
// for, or a growing one.
//
// It promises: an answer without an error was complete on the wire; an error
// is an [*agents.Error] with code, kind and a sentence for a person; no key
// and no token is ever part of an error, a log line or a recording; nothing
// that a provider sends makes it panic, hang or use unbounded memory.
//
// The types of requests, tools and errors are go-openai's where those carry
// what is needed. Its client is not used: it takes a stream that was cut for
// a complete one, drops fields that must come back, loses the headers of
// failed calls and knows neither retry nor time limit. traps_test.go has a
// test for each of its traps.
//
// Package tape, below, records calls and plays them back as one more provider.
package llm

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"handoff/agents"
)

// A Config says which provider a [Client] asks unless a request names another.
// The zero value means: openrouter with its default model, keys from the
// process's environment.
type Config struct {
	// Provider is a name of [Providers], "" means [DefaultProvider].
	Provider string
	// Model is the model's id, "" means the provider's default.
	Model string
	// Getenv looks settings up; nil means os.Getenv.
	Getenv func(string) string
	// BaseURL replaces the address of Provider, for gateways and tests.
	BaseURL string
	// HTTPClient replaces the transport by its own. Nothing else of it is used,
	// and no redirect is followed: that would carry a prompt and a key to an
	// address that nobody configured.
	HTTPClient *http.Client
	// TokenSource replaces Application Default Credentials for vertex.
	TokenSource oauth2.TokenSource
	// AllowDataCollection lets openrouter choose upstreams that keep prompts.
	AllowDataCollection bool
	// Upstreams, when set, are the only upstreams openrouter may choose.
	Upstreams []string
	// Retry and Timeouts have careful defaults in their zero values.
	Retry    Retry
	Timeouts Timeouts
	// Logger gets one line for each attempt; nil means no logs.
	Logger *slog.Logger
	// Recorder, when set, is told of every complete call.
	Recorder Recorder
	// Redact, when set, removes the host's other secrets from error texts. The
	// client's own keys are removed in any case.
	Redact func(string) string
}

// A Recorder keeps complete calls, so that they can be played back. Body is
// the request as it was sent, without credentials; it must not be kept or
// changed after Record has returned. Record must be safe for concurrent use.
// Its error is logged and never fails a call.
type Recorder interface {
	Record(request agents.Request, body []byte, response agents.Response, latency time.Duration) error
}

// A Client asks language models. It implements [agents.Model] and is safe for
// concurrent use.
type Client struct {
	config Config
	log    *slog.Logger
	main   *endpoint

	mu     sync.Mutex
	others map[string]*endpoint

	calibration calibration
	helperTurns helperTurns
}

var _ agents.Model = (*Client)(nil)

// New returns a client, or an error that names the setting that is missing. It
// sends nothing.
func New(config Config) (*Client, error) {
	if config.Getenv == nil {
		config.Getenv = os.Getenv
	}
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	main, err := connect(config, cmp.Or(config.Provider, DefaultProvider), config.BaseURL)
	if err != nil {
		return nil, err
	}
	if config.Model == "" && main.defaultModel == "" {
		return nil, missingKey(main.provider.Name, []string{"MODEL"})
	}
	return &Client{config: config, log: log, main: main, others: map[string]*endpoint{}}, nil
}

// Provider returns the name of the default provider.
func (c *Client) Provider() string { return c.main.provider.Name }

// Model returns what is known of a model; the zero reference means the default.
// It fails when the reference names a provider that is not configured.
func (c *Client) Model(ref agents.ModelRef) (ModelInfo, error) {
	endpoint, err := c.endpoint(ref.Provider)
	if err != nil {
		return ModelInfo{}, err
	}
	return endpoint.model(c.modelID(endpoint, ref)), nil
}

// ContextTokens returns how many tokens a model can hold, 0 when its provider is
// not configured. An unknown model has the careful default of the table.
func (c *Client) ContextTokens(ref agents.ModelRef) int64 {
	info, err := c.Model(ref)
	if err != nil {
		return 0
	}
	return info.Context
}

// Priced says whether the cost of a model's calls is known, from the table or
// because its provider reports it. Where it is not, no limit on cost can hold.
func (c *Client) Priced(ref agents.ModelRef) bool {
	endpoint, err := c.endpoint(ref.Provider)
	return err == nil && (endpoint.provider.ReportsCost || endpoint.model(c.modelID(endpoint, ref)).Priced)
}

// Respond implements [agents.Model].
func (c *Client) Respond(ctx context.Context, request agents.Request) (agents.Response, error) {
	endpoint, err := c.endpoint(request.Model.Provider)
	if err != nil {
		return agents.Response{}, err
	}
	info := endpoint.model(c.modelID(endpoint, request.Model))
	if info.ID == "" {
		return agents.Response{}, missingKey(endpoint.provider.Name, []string{"MODEL"})
	}
	body, err := encodeRequest(endpoint, info, request)
	if err != nil {
		return agents.Response{}, endpoint.failure(agents.KindRejected, err, "The request cannot be encoded: "+err.Error()+".")
	}
	defer body.release()
	start := time.Now()
	response, err := c.attempts(ctx, call{endpoint: endpoint, info: info, request: request, body: body})
	if err != nil {
		return agents.Response{}, err
	}
	response.Asked = info.ID
	c.record(request, body.bytes, response, time.Since(start))
	return response, nil
}

// endpoint returns the connection to a provider, made at first use. A tape
// answers for every provider, so that a session of several can be replayed.
func (c *Client) endpoint(provider string) (*endpoint, error) {
	if provider == "" || provider == c.main.provider.Name || c.main.provider.Tape {
		return c.main, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.others[provider]; ok {
		return known, nil
	}
	made, err := connect(c.config, provider, "")
	if err != nil {
		return nil, err
	}
	c.others[provider] = made
	return made, nil
}

// modelID chooses the model: the request's, the configured one if the request
// stays with the configured provider, the provider's default.
func (c *Client) modelID(endpoint *endpoint, ref agents.ModelRef) string {
	if ref.ID != "" {
		return ref.ID
	}
	if endpoint == c.main && c.config.Model != "" {
		return c.config.Model
	}
	return endpoint.defaultModel
}

func (c *Client) record(request agents.Request, body []byte, response agents.Response, latency time.Duration) {
	if c.config.Recorder == nil {
		return
	}
	if err := c.config.Recorder.Record(request, body, response, latency); err != nil {
		c.log.Warn("a model call was not recorded", "agent", request.Agent, "turn", request.Turn, "error", err)
	}
}
