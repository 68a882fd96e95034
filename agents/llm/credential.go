package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"handoff/agents"
)

// A credential signs requests and knows what must never be shown.
type credential interface {
	// authorize adds the credential to a request. It honours ctx.
	authorize(ctx context.Context, request *http.Request) error
	// redact removes every secret of the credential from a text.
	redact(text string) string
}

// credentialFor finds the provider's credential in the settings, or says which
// one is missing.
func credentialFor(p provider, config Config) (credential, error) {
	if p.Name == ProviderVertex {
		return vertexCredential(config)
	}
	if p.KeyVariable == "" {
		return key(""), nil
	}
	value := strings.TrimSpace(config.Getenv(p.KeyVariable))
	if value == "" && !p.KeyOptional {
		return nil, missingKey(p.Name, []string{p.KeyVariable})
	}
	if strings.ContainsAny(value, " \r\n\t") {
		return nil, configurationError(p.Name, errors.New(p.KeyVariable+" contains white space"))
	}
	return key(value), nil
}

// A key is a bearer key that never changes; "" means none.
type key string

func (k key) authorize(_ context.Context, request *http.Request) error {
	if k != "" {
		request.Header.Set("Authorization", "Bearer "+string(k))
	}
	return nil
}

func (k key) redact(text string) string { return hide(text, string(k)) }

// String keeps a key out of logs that print structures.
func (key) String() string { return "[key]" }

// GoString does the same for %#v.
func (key) GoString() string { return "[key]" }

// hide replaces a secret. Short strings are left alone: they are no secrets,
// and replacing them would destroy the text.
func hide(text, secret string) string {
	if len(secret) < 6 {
		return text
	}
	return strings.ReplaceAll(text, secret, "[redacted]")
}

// tokenTimeout bounds one refresh of a token, which oauth2 does not.
const tokenTimeout = 20 * time.Second

// googleScope is the scope that Vertex AI asks for.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// A tokenCredential gets short-lived tokens. The source is found at the first
// call, because looking for ambient credentials asks the network.
type tokenCredential struct {
	find func(context.Context) (oauth2.TokenSource, error)

	mu     sync.Mutex
	source oauth2.TokenSource
	// last is the last token, apart from mu: an error is made readable while a
	// refresh hangs.
	last atomic.Pointer[string]
}

func (c *tokenCredential) authorize(ctx context.Context, request *http.Request) error {
	type result struct {
		token *oauth2.Token
		err   error
	}
	// Token knows no context: the refresh goes on by itself when nobody waits
	// any more, bounded by the client's own time limit.
	done := make(chan result, 1)
	go func() {
		token, err := c.token()
		done <- result{token, err}
	}()
	timer := time.NewTimer(tokenTimeout)
	defer timer.Stop()
	select {
	case got := <-done:
		if got.err != nil {
			return &credentialError{err: got.err}
		}
		got.token.SetAuthHeader(request)
		return nil
	case <-timer.C:
		return &credentialError{err: errTokenSlow}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *tokenCredential) token() (*oauth2.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source == nil {
		ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTimeout})
		source, err := c.find(ctx)
		if err != nil {
			return nil, err
		}
		c.source = oauth2.ReuseTokenSource(nil, source)
	}
	token, err := c.source.Token()
	if err != nil {
		return nil, err
	}
	c.last.Store(&token.AccessToken)
	return token, nil
}

func (c *tokenCredential) redact(text string) string {
	if last := c.last.Load(); last != nil {
		text = hide(text, *last)
	}
	return text
}

var errTokenSlow = errors.New("the token service did not answer in time")

// A credentialError says that no token could be had. Its cause may carry the
// answer of a token service, so only its own words are shown.
type credentialError struct{ err error }

func (e *credentialError) Error() string {
	if retrieve, ok := errors.AsType[*oauth2.RetrieveError](e.err); ok && retrieve.Response != nil {
		return "the token service answered " + retrieve.Response.Status
	}
	if errors.Is(e.err, errTokenSlow) {
		return errTokenSlow.Error()
	}
	if _, network := errors.AsType[net.Error](e.err); network {
		return "the token service could not be reached"
	}
	return "no token could be had"
}

// temporary says that another attempt may get a token.
func (e *credentialError) temporary() bool {
	if retrieve, ok := errors.AsType[*oauth2.RetrieveError](e.err); ok && retrieve.Response != nil {
		return retrieve.Response.StatusCode >= 500 || retrieve.Response.StatusCode == http.StatusTooManyRequests
	}
	_, network := errors.AsType[net.Error](e.err)
	return network || errors.Is(e.err, errTokenSlow)
}

func vertexCredential(config Config) (credential, error) {
	if config.TokenSource != nil {
		return &tokenCredential{source: oauth2.ReuseTokenSource(nil, config.TokenSource)}, nil
	}
	file := config.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	if file == "" {
		return &tokenCredential{find: func(ctx context.Context) (oauth2.TokenSource, error) {
			return google.DefaultTokenSource(ctx, googleScope)
		}}, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, &agents.Error{
			Code: agents.CodeLLM, Kind: agents.KindMissingKey, Provider: ProviderVertex,
			Message: "The file that GOOGLE_APPLICATION_CREDENTIALS names cannot be read; set it to the path of a credentials file.",
		}
	}
	var kind struct {
		Type google.CredentialsType `json:"type"`
	}
	if json.Unmarshal(content, &kind) != nil || kind.Type == "" {
		return nil, configurationError(ProviderVertex, errors.New("the file that GOOGLE_APPLICATION_CREDENTIALS names is no credentials file"))
	}
	return &tokenCredential{find: func(ctx context.Context) (oauth2.TokenSource, error) {
		found, err := google.CredentialsFromJSONWithType(ctx, content, kind.Type, googleScope)
		if err != nil {
			return nil, err
		}
		return found.TokenSource, nil
	}}, nil
}

// placeName is what a Google Cloud project or location is made of. Anything else
// would be another address than it seems.
var placeName = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*$`)

// checkPlace refuses a project or location that cannot be one.
func (p provider) checkPlace(getenv func(string) string) error {
	if p.Name != ProviderVertex {
		return nil
	}
	for _, variable := range []string{"VERTEX_PROJECT", "VERTEX_LOCATION"} {
		if value := getenv(variable); value != "" && !placeName.MatchString(value) {
			return errors.New(variable + " names no Google Cloud project or location")
		}
	}
	return nil
}

// vertexAddress makes Vertex AI's OpenAI-compatible address. The location
// "global" has no region prefix in its host name.
func vertexAddress(getenv func(string) string) (string, []string) {
	project, location := getenv("VERTEX_PROJECT"), getenv("VERTEX_LOCATION")
	if project == "" {
		return "", []string{"VERTEX_PROJECT"}
	}
	if location == "" {
		location = "global"
	}
	host := location + "-aiplatform.googleapis.com"
	if location == "global" {
		host = "aiplatform.googleapis.com"
	}
	return "https://" + host + "/v1/projects/" + project + "/locations/" + location + "/endpoints/openapi", nil
}
