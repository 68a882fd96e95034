package fakegithub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is GitHub's published description of its REST API, the part that the fake serves.
var description = sync.OnceValue(func() *openapi3.T {
	document, err := openapi3.NewLoader().LoadFromFile("testdata/github-rest-openapi.json")
	if err != nil {
		panic(err)
	}
	for _, one := range exceptions {
		one.change(document)
	}
	return document
})

// exceptions are where the description cannot be met, each with the reason.
var exceptions = []struct {
	reason string
	change func(*openapi3.T)
}{
	{"an account is a user or an enterprise; the list of installations says that it is both at once",
		func(document *openapi3.T) {
			list := document.Paths.Value("/app/installations").Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json")
			account := list.Schema.Value.Items.Value.Properties["account"].Value
			account.AnyOf, account.AllOf = account.AllOf, nil
		}},
}

// findPath matches a request's path against the description. The routers of kin-openapi do not know parameters of
// several segments, which GitHub marks with x-multi-segment.
func findPath(method, path string) (string, *openapi3.PathItem, *openapi3.Operation) {
	var found string
	for template, item := range description().Paths.Map() {
		if item.GetOperation(method) != nil && templateMatches(template, path) && len(template) > len(found) {
			found = template
		}
	}
	if found == "" {
		return "", nil, nil
	}
	item := description().Paths.Value(found)
	return found, item, item.GetOperation(method)
}

var severalSegments = map[string]bool{"{ref}": true, "{branch}": true, "{path}": true, "{basehead}": true}

func templateMatches(template, path string) bool {
	return segmentsMatch(strings.Split(template, "/"), strings.Split(path, "/"))
}

func segmentsMatch(template, path []string) bool {
	switch {
	case len(template) == 0 || len(path) == 0:
		return len(template) == len(path)
	case severalSegments[template[0]]:
		for taken := 1; taken <= len(path); taken++ {
			if segmentsMatch(template[1:], path[taken:]) {
				return true
			}
		}
		return false
	case strings.HasPrefix(template[0], "{") || template[0] == path[0]:
		return segmentsMatch(template[1:], path[1:])
	default:
		return false
	}
}

var covered sync.Map // method and path of operations that the tests have called

// checkAnswer validates an answer of the API against the description. Statuses that it does not list for an operation
// (401 everywhere, 403 and 404 where GitHub answers them too, 5xx) must be GitHub's general error.
func checkAnswer(t *testing.T, request *http.Request, response *http.Response, body []byte) {
	t.Helper()
	path := strings.TrimPrefix(request.URL.Path, "/api/v3")
	template, item, operation := findPath(request.Method, path)
	if operation == nil {
		return
	}
	covered.Store(strings.ToLower(request.Method)+" "+template, true)
	if operation.Responses.Status(response.StatusCode) == nil {
		checkGeneralError(t, request, response, body)
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request,
			Route: &routers.Route{Spec: description(), Path: template, PathItem: item, Method: request.Method, Operation: operation}},
		Status: response.StatusCode, Header: response.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{MultiError: true},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		t.Errorf("%s %s: the answer does not fit GitHub's description: %v", request.Method, path, shorten(err.Error()))
	}
}

func shorten(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > 300 {
			line = line[:300] + "…"
		}
		lines = append(lines, line)
		if len(lines) > 25 {
			break
		}
	}
	return strings.Join(lines, "\n")
}

func checkGeneralError(t *testing.T, request *http.Request, response *http.Response, body []byte) {
	t.Helper()
	if response.StatusCode < 300 {
		t.Errorf("%s %s: GitHub does not answer %d", request.Method, request.URL.Path, response.StatusCode)
	}
	if response.StatusCode == http.StatusNotModified {
		return
	}
	var failure struct {
		Message          string `json:"message"`
		DocumentationURL string `json:"documentation_url"`
	}
	if err := json.Unmarshal(body, &failure); err != nil || failure.Message == "" || failure.DocumentationURL == "" {
		t.Errorf("%s %s: %d is not in GitHub's form: %s", request.Method, request.URL.Path, response.StatusCode, body)
	}
}

// webhookSchemas compiles GitHub's description of its webhooks.
var webhookSchemas = sync.OnceValue(func() *jsonschema.Compiler {
	data, err := os.ReadFile("testdata/github-webhooks-openapi.json")
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	// GitHub's templates, such as {+path}, go beyond what the validator's format knows.
	compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }})
	// The addresses of GitHub's own bots, such as 1+robot[bot]@…, are none by the standard.
	compiler.RegisterFormat(&jsonschema.Format{Name: "email", Validate: func(value any) error {
		if address, ok := value.(string); ok && !strings.Contains(address, "@") {
			return fmt.Errorf("%q has no @", address)
		}
		return nil
	}})
	if err := compiler.AddResource("webhooks.json", document); err != nil {
		panic(err)
	}
	return compiler
})

// webhookNames lists what GitHub describes.
func webhookNames(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile("testdata/github-webhooks-openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Webhooks map[string]any `json:"webhooks"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document.Webhooks
}

var compiling sync.Mutex // a Compiler is not safe for concurrent use

var seenWebhooks sync.Map

func checkWebhook(t *testing.T, one received) {
	t.Helper()
	name := strings.ReplaceAll(one.event, "_", "-")
	if one.action != "" {
		name += "-" + strings.ReplaceAll(one.action, "_", "-")
	}
	seenWebhooks.Store(name, true)
	compiling.Lock()
	defer compiling.Unlock()
	schema, err := webhookSchemas().Compile("webhooks.json#/webhooks/" + name + "/post/requestBody/content/application~1json/schema")
	if err != nil {
		t.Errorf("webhook %s is not one of GitHub's: %v", name, err)
		return
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(one.body))
	if err != nil {
		t.Errorf("webhook %s: %v", name, err)
		return
	}
	if err := schema.Validate(body); err != nil {
		t.Errorf("webhook %s does not fit GitHub's description: %v", name, shorten(err.Error()))
	}
}
