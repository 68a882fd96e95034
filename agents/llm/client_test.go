package llm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"handoff/agents"
)

func TestMissingKeyNamesTheVariable(t *testing.T) {
	for provider, variable := range map[string]string{
		"":                 "OPENROUTER_API_KEY",
		ProviderOpenRouter: "OPENROUTER_API_KEY",
		ProviderOpenAI:     "OPENAI_API_KEY",
		ProviderZAI:        "ZAI_API_KEY",
		ProviderVertex:     "VERTEX_PROJECT",
		ProviderCompatible: "OPENAI_BASE_URL",
		ProviderTape:       "TAPE_URL",
	} {
		_, err := New(Config{Provider: provider, Getenv: environment(nil)})
		failure := failureOf(t, err)
		if failure.Code != agents.CodeLLM || failure.Kind != agents.KindMissingKey || !strings.Contains(failure.Message, variable) {
			t.Errorf("%s: %v", provider, failure)
		}
	}
}

func TestAWrongKeyNamesTheVariable(t *testing.T) {
	for provider, variable := range map[string]string{
		ProviderOpenRouter: "OPENROUTER_API_KEY", ProviderOpenAI: "OPENAI_API_KEY", ProviderZAI: "ZAI_API_KEY",
		ProviderVertex: "GOOGLE_APPLICATION_CREDENTIALS", ProviderCompatible: "OPENAI_API_KEY",
	} {
		s := newServer(t, fails(http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided: `+canary+`"}}`))
		_, err := newClient(t, provider, s).Test(t.Context(), agents.ModelRef{})
		if failure := failureOf(t, err); failure.Kind != agents.KindAuth || !strings.Contains(failure.Message, variable) || len(s.asked()) != 1 {
			t.Errorf("%s: %v", provider, failure)
		}
	}
}

func TestADeadAddressNamesTheVariable(t *testing.T) {
	s := newServer(t)
	s.Close()
	_, err := newClient(t, ProviderCompatible, s).Test(t.Context(), agents.ModelRef{})
	if failure := failureOf(t, err); failure.Kind != agents.KindTransport || !failure.Retryable ||
		!strings.Contains(failure.Message, "check the network and the address in OPENAI_BASE_URL") {
		t.Errorf("%v", failure)
	}
}

func TestMissingKeyOfAnotherProviderComesBeforeAnyRequest(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	client := newClient(t, ProviderCompatible, s, func(c *Config) { c.Getenv = environment(nil) })
	request := question("Hi")
	request.Model = agents.ModelRef{Provider: ProviderZAI}
	_, err := client.Respond(t.Context(), request)
	if failure := failureOf(t, err); failure.Kind != agents.KindMissingKey || len(s.asked()) != 0 {
		t.Errorf("%v after %d requests", failure, len(s.asked()))
	}
}

func TestBadSettings(t *testing.T) {
	for name, config := range map[string]Config{
		"unknown provider":       {Provider: "acme"},
		"address with a key":     {Provider: ProviderOpenAI, BaseURL: "https://user:" + canary + "@host/v1"},
		"address without scheme": {Provider: ProviderOpenAI, BaseURL: "host/v1"},
		// What is added to it would be no path.
		"address with an empty query": {Provider: ProviderOpenAI, BaseURL: "https://host/v1?"},
		"address with a fragment":     {Provider: ProviderOpenAI, BaseURL: "https://host/v1#top"},
		"key with a line feed":        {Provider: ProviderZAI},
	} {
		config.Getenv = environment(map[string]string{"OPENAI_API_KEY": canary, "ZAI_API_KEY": canary + "\n" + canary})
		_, err := New(config)
		if failure := failureOf(t, err); failure.Kind != agents.KindRejected {
			t.Errorf("%s: %v", name, failure)
		}
	}
	_, err := New(Config{Provider: "acme", Getenv: environment(nil)})
	if !strings.Contains(err.Error(), "openrouter, openai, zai, vertex, compatible, tape") {
		t.Errorf("the error does not name the providers: %v", err)
	}
}

// TestCompatibleServerNeedsAModel: it is said at the start where it is the
// default, and at the call where an agent alone asks it.
func TestCompatibleServerNeedsAModel(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	settings := environment(map[string]string{"OPENAI_BASE_URL": s.URL, "ZAI_API_KEY": canary})
	_, err := New(Config{Provider: ProviderCompatible, Getenv: settings})
	if failure := failureOf(t, err); failure.Kind != agents.KindMissingKey || !strings.Contains(failure.Message, "MODEL") {
		t.Errorf("%v", failure)
	}
	client, err := New(Config{Provider: ProviderZAI, Getenv: settings})
	if err != nil {
		t.Fatal(err)
	}
	request := question("Hi")
	request.Model.Provider = ProviderCompatible
	_, err = client.Respond(t.Context(), request)
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "MODEL") || len(s.asked()) != 0 {
		t.Errorf("%v", failure)
	}
}

func TestOpenAIElsewhereIsACompatibleServer(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	client, err := New(Config{Provider: ProviderOpenAI, Model: "local", Getenv: environment(map[string]string{"OPENAI_BASE_URL": s.URL + "/v1/"})})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Respond(t.Context(), question("Hi"))
	if err != nil || client.Provider() != ProviderCompatible || !response.Usage.CostUnknown {
		t.Errorf("%s, %+v, %v", client.Provider(), response, err)
	}
	if got := s.headers[0].Get("Authorization"); got != "" {
		t.Errorf("authorization %q without a key", got)
	}
}

func TestATapeAnswersForEveryProvider(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	client := newClient(t, ProviderTape, s)
	request := question("Hi")
	request.Model = agents.ModelRef{Provider: ProviderZAI, ID: "glm-4.6"}
	if response, err := client.Respond(t.Context(), request); err != nil || response.Provider != ProviderTape {
		t.Errorf("%+v, %v", response, err)
	}
}

func TestProvidersList(t *testing.T) {
	byName := map[string]ProviderStatus{}
	for _, status := range Providers(environment(map[string]string{"OPENAI_API_KEY": canary, "VERTEX_PROJECT": "p", "VERTEX_LOCATION": "europe-west4"})) {
		byName[status.Name] = status
	}
	if s := byName[ProviderOpenRouter]; !s.Default || s.Configured || s.Missing[0] != "OPENROUTER_API_KEY" || s.Model != "openai/gpt-4o" {
		t.Errorf("%+v", s)
	}
	if s := byName[ProviderOpenAI]; !s.Configured || s.Address != "https://api.openai.com/v1" {
		t.Errorf("%+v", s)
	}
	if s := byName[ProviderVertex]; s.Address != "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/endpoints/openapi" || s.Note == "" {
		t.Errorf("%+v", s)
	}
	if address, _ := vertexAddress(environment(map[string]string{"VERTEX_PROJECT": "p"})); !strings.HasPrefix(address, "https://aiplatform.googleapis.com/v1/projects/p/locations/global/") {
		t.Errorf("global address %s", address)
	}
	if len(byName) != len(providers) {
		t.Errorf("%d of %d providers", len(byName), len(providers))
	}
}

func TestTestRequest(t *testing.T) {
	s := newServer(t, streams(text("ok")...))
	report, err := newClient(t, ProviderOpenAI, s).Test(t.Context(), agents.ModelRef{})
	if err != nil || report.Text != "ok" || report.Model != "gpt-4o" || report.Answered != "m" || !report.Info.StrictSchema || report.Usage.CostMicros == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := newClient(t, ProviderOpenAI, s).Respond(ctx, question("Hi"))
	if failure := failureOf(t, err); failure.Code != agents.CodeCancelled || !errors.Is(err, context.Canceled) || len(s.asked()) != 1 {
		t.Errorf("%v after %d attempts", failure, len(s.asked()))
	}
	_, err = newClient(t, ProviderOpenAI, s).Respond(ctx, question("Hi"))
	if failure := failureOf(t, err); failure.Code != agents.CodeCancelled || len(s.asked()) != 1 {
		t.Errorf("%v after %d attempts", failure, len(s.asked()))
	}
}

func TestCancellationWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(t, fails(503, `{}`))
	client := newClient(t, ProviderOpenAI, s, func(c *Config) {
		c.Retry.Sleep = func(ctx context.Context, wait time.Duration) error {
			cancel()
			return Retry{}.sleep(ctx, time.Hour)
		}
	})
	_, err := client.Respond(ctx, question("Hi"))
	if failure := failureOf(t, err); failure.Code != agents.CodeCancelled || failure.Usage.Requests != 1 {
		t.Errorf("%+v", failure)
	}
}

func TestUnreachable(t *testing.T) {
	s := newServer(t, streams("x"))
	s.Close()
	_, err := newClient(t, ProviderOpenAI, s).Respond(t.Context(), question("Hi"))
	failure := failureOf(t, err)
	if failure.Kind != agents.KindTransport || !failure.Retryable || failure.Usage.Requests != 4 || failure.Usage.Total != 0 {
		t.Errorf("%+v", failure)
	}
}

// A recording keeps what Record was told.
type recording struct{ text bytes.Buffer }

func (r *recording) Record(request agents.Request, body []byte, response agents.Response, _ time.Duration) error {
	r.text.WriteString(request.Agent)
	r.text.Write(body)
	r.text.Write(response.Raw)
	return errors.New("the disk is full")
}

// TestNoKeyLeaves lets a hostile server repeat the key everywhere and looks
// for it in whatever the client says.
func TestNoKeyLeaves(t *testing.T) {
	for _, provider := range []string{ProviderOpenRouter, ProviderOpenAI, ProviderZAI, ProviderVertex, ProviderCompatible} {
		for name, r := range map[string]reply{
			"in an error":         fails(500, `{"error":{"message":"Bearer `+canary+`","code":"`+canary+`","type":"`+canary+`","param":"`+canary+`"}}`),
			"in plain text":       fails(400, "you sent "+canary),
			"in a stream's error": streams(`data: {"error":{"message":"` + canary + `"}}`),
			"in a bad chunk":      streams("data: "+canary+"\n", "data: {"+canary),
		} {
			s := newServer(t, r, r, r, r)
			var logs bytes.Buffer
			var kept recording
			client := newClient(t, provider, s, func(c *Config) {
				c.Logger = slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
				c.Recorder = &kept
			})
			_, err := client.Respond(t.Context(), question("Hi"))
			failureOf(t, err)
			for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
				if strings.Contains(logs.String(), form) || strings.Contains(kept.text.String(), form) {
					t.Errorf("%s, %s: the key is in the log or the recording", provider, name)
				}
			}
			if logs.Len() == 0 {
				t.Errorf("%s, %s: nothing was logged", provider, name)
			}
		}
	}
}

func TestRecorderSeesCompleteCallsAndCannotFailThem(t *testing.T) {
	var kept recording
	var logs bytes.Buffer
	s := newServer(t, fails(503, "{}"), streams(text("recorded")...))
	client := newClient(t, ProviderOpenAI, s, func(c *Config) {
		c.Recorder, c.Logger = &kept, slog.New(slog.NewTextHandler(&logs, nil))
	})
	if _, err := client.Respond(t.Context(), question("Hi")); err != nil {
		t.Fatal(err)
	}
	if got := kept.text.String(); strings.Count(got, "copilot") != 1 || !strings.Contains(got, "recorded") || strings.Contains(got, canary) {
		t.Errorf("recorded %s", got)
	}
	if !strings.Contains(logs.String(), "the disk is full") {
		t.Errorf("the recorder's error is not logged: %s", logs.String())
	}
}

func TestVertexCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	get := environment(map[string]string{"VERTEX_PROJECT": "p", "GOOGLE_APPLICATION_CREDENTIALS": file})
	_, err := New(Config{Provider: ProviderVertex, Getenv: get})
	if failure := failureOf(t, err); failure.Kind != agents.KindMissingKey || !strings.Contains(failure.Message, "GOOGLE_APPLICATION_CREDENTIALS") {
		t.Errorf("%v", failure)
	}
	if err := os.WriteFile(file, []byte("no json "+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = New(Config{Provider: ProviderVertex, Getenv: get})
	failureOf(t, err)

	// A token service that fails after it saw the secret.
	service := newServer(t, fails(400, `{"error":"invalid_grant","error_description":"`+canary+`"}`))
	content, err := json.Marshal(map[string]string{
		"type": "authorized_user", "client_id": "c", "client_secret": canary, "refresh_token": canary, "token_uri": service.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	source := (&oauth2.Config{ClientID: "c", ClientSecret: canary, Endpoint: oauth2.Endpoint{TokenURL: service.URL}}).
		TokenSource(t.Context(), &oauth2.Token{RefreshToken: canary})
	s := newServer(t, streams(text("ok")...))
	client := newClient(t, ProviderVertex, s, func(c *Config) { c.TokenSource = source })
	_, err = client.Respond(t.Context(), question("Hi"))
	if failure := failureOf(t, err); failure.Kind != agents.KindAuth || len(s.asked()) != 0 {
		t.Errorf("%v after %d requests", failure, len(s.asked()))
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Provider: ProviderVertex, Getenv: get}); err != nil {
		t.Errorf("a good file: %v", err)
	}
}
