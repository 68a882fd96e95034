package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A Code names a kind of failure. Codes are stable.
type Code string

// The codes of [Error].
const (
	// CodeNotFound: it does not exist, or the token may not see it.
	CodeNotFound Code = "not_found"
	// CodeGone: it existed and was deleted or switched off.
	CodeGone Code = "gone"
	// CodeForbidden: a permission is missing, or the repository refuses
	// (archived, locked, blocked).
	CodeForbidden Code = "forbidden"
	// CodeUnauthorized: GitHub does not accept the App's credentials.
	CodeUnauthorized Code = "unauthorized"
	// CodeNotInstalled: the App is not installed on that account or that
	// repository, or the installation is suspended.
	CodeNotInstalled Code = "not_installed"
	// CodeRateLimited: wait until RetryAt. Nothing was done.
	CodeRateLimited Code = "rate_limited"
	// CodeValidation: GitHub, or this package before asking, refuses the
	// request's content.
	CodeValidation Code = "validation"
	// CodeConflict: it clashes with what is there.
	CodeConflict Code = "conflict"
	// CodeUnavailable: GitHub could not be reached or was unwell; nothing was
	// created. Try again later.
	CodeUnavailable Code = "unavailable"
	// CodeUnknownOutcome: a request that creates something has left and its
	// answer did not arrive. Look before sending it again.
	CodeUnknownOutcome Code = "unknown_outcome"
	// CodeCancelled: the caller's context ended and nothing was created.
	CodeCancelled Code = "cancelled"
	// CodeUnexpected: an answer that makes no sense.
	CodeUnexpected Code = "unexpected"
)

// An Error is a failed request. It never carries a credential.
type Error struct {
	Code Code
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// RequestID is GitHub's X-GitHub-Request-Id, which its support asks for.
	RequestID string
	// RetryAt is when a rate limit ends, by the local clock; zero otherwise.
	RetryAt time.Time
	// Said are GitHub's own words, on one line; "" when it said nothing.
	Said string
	// Message is one sentence for a person, with what to do next.
	Message string
	// Err is the cause, nil when there is none.
	Err error
}

// Error returns the code and the sentence.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary says whether the same request may succeed later without anybody
// changing anything.
func (e *Error) Temporary() bool {
	switch e.Code {
	case CodeRateLimited, CodeUnavailable, CodeUnauthorized, CodeCancelled, CodeUnexpected:
		return true
	}
	return false
}

// CodeOf returns the code of the first [Error] in err's chain, "" for none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// errorOf turns what go-github returned into an [*Error]; nil stays nil. What
// says what was tried ("create the comment"). Sent says that a request that
// creates something has left this machine.
func errorOf(clock *clock, what string, err error, sent bool) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if response := responseOf(err); response != nil {
		return answered(clock, what, response, err, sent)
	}
	switch {
	case sent:
		return &Error{Code: CodeUnknownOutcome, Err: err,
			Message: fmt.Sprintf("GitHub did not answer the request to %s, which may have taken effect.", what)}
	case errors.Is(err, errOtherHost):
		return &Error{Code: CodeUnexpected, Err: err,
			Message: fmt.Sprintf("Could not %s: GitHub redirected the request to another host; check GITHUB_URL and any proxy in between.", what)}
	case errors.Is(err, errMoved):
		return &Error{Code: CodeUnavailable, Err: err, Message: fmt.Sprintf("Could not %s: the repository was renamed just now. It is tried again.", what)}
	case errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Err: err, Message: fmt.Sprintf("Stopped before GitHub was asked to %s.", what)}
	case errors.Is(err, gh.ErrPathForbidden):
		return &Error{Code: CodeValidation, Err: err, Message: fmt.Sprintf("Could not %s: a path may not contain '..'.", what)}
	case isDecodeError(err):
		return &Error{Code: CodeUnexpected, Err: err, Message: fmt.Sprintf("Could not %s: GitHub's answer is not what its documentation promises.", what)}
	default:
		return &Error{Code: CodeUnavailable, Err: err, Message: fmt.Sprintf("Could not %s: GitHub did not answer. Check the network and GitHub's status page; it is tried again.", what)}
	}
}

func isDecodeError(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// responseOf returns the HTTP response inside go-github's errors.
func responseOf(err error) *http.Response {
	if e, ok := errors.AsType[*gh.ErrorResponse](err); ok {
		return e.Response
	}
	if e, ok := errors.AsType[*gh.RateLimitError](err); ok {
		return withReset(e)
	}
	if e, ok := errors.AsType[*gh.AbuseRateLimitError](err); ok {
		return withRetryAfter(e)
	}
	if e, ok := errors.AsType[*gh.TwoFactorAuthError](err); ok {
		return e.Response
	}
	return nil
}

// withReset completes the response that go-github invents when it refuses to
// send because it knows that the limit is used up.
func withReset(e *gh.RateLimitError) *http.Response {
	r := *e.Response
	r.Header = r.Header.Clone()
	r.Header.Set("X-RateLimit-Remaining", "0")
	if !e.Rate.Reset.IsZero() {
		r.Header.Set("X-RateLimit-Reset", strconv.FormatInt(e.Rate.Reset.Unix(), 10))
	}
	return &r
}

func withRetryAfter(e *gh.AbuseRateLimitError) *http.Response {
	r := *e.Response
	r.Header = r.Header.Clone()
	seconds := 60
	if e.RetryAfter != nil {
		seconds = int(max(*e.RetryAfter, 0)/time.Second) + 1
	}
	r.Header.Set("Retry-After", strconv.Itoa(seconds))
	return &r
}

// answered makes the error for an answer that reports a failure.
func answered(clock *clock, what string, response *http.Response, cause error, sent bool) *Error {
	said := saidBy(response)
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-GitHub-Request-Id"), Said: said, Err: cause}
	if until, limited := limitOf(clock, response); limited {
		e.Code, e.RetryAt = CodeRateLimited, until
		e.Message = fmt.Sprintf("GitHub's request limit is used up; waiting until %s.", until.UTC().Format("15:04 MST"))
		return e
	}
	switch response.StatusCode {
	case http.StatusNotFound:
		e.Code, e.Message = CodeNotFound, fmt.Sprintf("Could not %s: GitHub does not know it, or the App may not see it.", what)
	case http.StatusGone:
		e.Code, e.Message = CodeGone, fmt.Sprintf("Could not %s: it was deleted or switched off.", what)
	case http.StatusUnauthorized:
		e.Code, e.Message = CodeUnauthorized, fmt.Sprintf("Could not %s: GitHub does not accept the App's credentials; check GITHUB_APP_ID, GITHUB_PRIVATE_KEY and the machine's clock.", what)
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		e.Code, e.Message = CodeForbidden, fmt.Sprintf("Could not %s: GitHub refuses it (%s). Check the App's permissions and whether the repository is archived or the conversation locked.", what, said)
	case http.StatusConflict:
		e.Code, e.Message = CodeConflict, fmt.Sprintf("Could not %s: it conflicts with the present state (%s).", what, said)
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		e.Code, e.Message = CodeValidation, fmt.Sprintf("Could not %s: GitHub refuses the content (%s).", what, said)
	default:
		unwell(e, what, sent)
	}
	return e
}

// unwell fills the error for a 5xx or an answer of no known meaning.
func unwell(e *Error, what string, sent bool) {
	switch {
	case sent && (e.Status >= 500 || e.Status == http.StatusAccepted):
		e.Code, e.Message = CodeUnknownOutcome, fmt.Sprintf("GitHub answered the request to %s with an internal error (%d); it may have taken effect.", what, e.Status)
	case e.Status >= 500:
		e.Code, e.Message = CodeUnavailable, fmt.Sprintf("Could not %s: GitHub is unwell (%d). It is tried again.", what, e.Status)
	default:
		e.Code, e.Message = CodeUnexpected, fmt.Sprintf("Could not %s: GitHub answered %d, which was not expected.", what, e.Status)
	}
}

// mintError makes the error for a token that could not be had.
func mintError(clock *clock, installation int64, response *http.Response, cause error) error {
	const what = "get a token for the App's installation"
	if response == nil {
		return errorOf(clock, what, cause, false)
	}
	e := answered(clock, what, response, cause, false)
	switch {
	case e.Code == CodeRateLimited:
	case e.Status == http.StatusNotFound:
		e.Code, e.Message = CodeNotInstalled, fmt.Sprintf("The App's installation %d does not exist (any more): install the App again.", installation)
	case e.Status == http.StatusForbidden:
		e.Code, e.Message = CodeNotInstalled, fmt.Sprintf("The App's installation %d gives no tokens (%s): it may be suspended.", installation, saidBy(response))
	case e.Status == http.StatusUnprocessableEntity:
		e.Code, e.Message = CodeNotInstalled, fmt.Sprintf("The App's installation %d does not cover this repository or lacks a permission (%s): check the installation's settings and accept new permissions.", installation, saidBy(response))
	}
	return e
}

// saidBy returns GitHub's own words in an answer, on one line and cut.
func saidBy(response *http.Response) string {
	var said struct {
		Message string `json:"message"`
		Errors  []any  `json:"errors"`
	}
	_ = json.Unmarshal(keepBody(response), &said)
	text := said.Message
	for _, one := range said.Errors {
		switch one := one.(type) {
		case string:
			text += "; " + one
		case map[string]any:
			if message, ok := one["message"].(string); ok {
				text += "; " + message
			} else {
				text += fmt.Sprintf("; %v %v", one["field"], one["code"])
			}
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if text == "" {
		return "no reason given"
	}
	return fmt.Sprintf("%.300s", text)
}
