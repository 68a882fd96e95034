package fakegithub

import (
	"fmt"
	"net/http"
)

// apiError is an answer other than success, in GitHub's form.
type apiError struct {
	status  int
	message string
	errors  []any // GitHub mixes objects and plain strings here
	headers map[string]string
	url     string // of a moved resource
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s", e.status, e.message) }

const documentationURL = "https://docs.github.com/rest"

func (e *apiError) body() object {
	body := object{"message": e.message, "documentation_url": documentationURL, "status": fmt.Sprint(e.status)}
	if len(e.errors) > 0 {
		body["errors"] = e.errors
	}
	if e.url != "" {
		body["url"] = e.url
	}
	return body
}

func errorStatus(status int, format string, arguments ...any) *apiError {
	return &apiError{status: status, message: fmt.Sprintf(format, arguments...)}
}

// The refusals that GitHub words the same way everywhere.
var (
	errNotFound       = &apiError{status: http.StatusNotFound, message: "Not Found"}
	errBadCredentials = &apiError{status: http.StatusUnauthorized, message: "Bad credentials"}
	errRequiresAuth   = &apiError{status: http.StatusUnauthorized, message: "Requires authentication"}
	errIntegration    = &apiError{status: http.StatusForbidden, message: "Resource not accessible by integration"}
	errNotDecodedJWT  = &apiError{status: http.StatusUnauthorized, message: "A JSON web token could not be decoded"}
	errArchived       = &apiError{status: http.StatusForbidden, message: "Repository was archived so is read-only."}
	errBadJSON        = &apiError{status: http.StatusBadRequest, message: "Problems parsing JSON"}
)

// invalid is a 422 about one field. The codes are GitHub's: missing, missing_field, invalid, already_exists,
// unprocessable, custom.
func invalid(resource, field, code string) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed",
		errors: []any{object{"resource": resource, "field": field, "code": code}}}
}

// invalidBecause is a 422 with a sentence.
func invalidBecause(resource, field, sentence string) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed",
		errors: []any{object{"resource": resource, "field": field, "code": "custom", "message": sentence}}}
}
