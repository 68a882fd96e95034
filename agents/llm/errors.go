package llm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	openai "github.com/sashabaranov/go-openai"

	"handoff/agents"
)

// maxErrorText is how many bytes of a provider's own words an error keeps.
const maxErrorText = 600

func missingKey(provider string, variables []string) error {
	return &agents.Error{
		Code: agents.CodeLLM, Kind: agents.KindMissingKey, Provider: provider,
		Message: fmt.Sprintf("The model provider %s needs %s; set it in the environment, or choose another with PROVIDER.",
			provider, strings.Join(variables, " and ")),
	}
}

func configurationError(provider string, err error) error {
	return &agents.Error{
		Code: agents.CodeLLM, Kind: agents.KindRejected, Provider: provider, Err: err,
		Message: "The model provider is not configured: " + err.Error() + ".",
	}
}

// failure makes an error of this endpoint.
func (e *endpoint) failure(kind string, cause error, message string) *agents.Error {
	return &agents.Error{
		Code: agents.CodeLLM, Kind: kind, Provider: e.provider.Name,
		Message: e.clean(message), Err: cause,
	}
}

// clean makes a text that came from outside fit for an error: no secret, no
// control characters, not too long.
func (e *endpoint) clean(text string) string {
	text = e.credential.redact(text)
	// A gateway may repeat the key of another provider.
	for _, p := range providers {
		if p.KeyVariable != "" {
			text = hide(text, strings.TrimSpace(e.config.Getenv(p.KeyVariable)))
		}
	}
	if e.config.Redact != nil {
		text = e.config.Redact(text)
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && e.provider.Tape:
			return r // a tape shows a difference on lines below each other
		case unicode.IsSpace(r):
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// cancelled says that the caller gave up.
func (e *endpoint) cancelled(ctx context.Context) *agents.Error {
	return &agents.Error{
		Code: agents.CodeCancelled, Provider: e.provider.Name, Err: ctx.Err(),
		Message: "The model call was cancelled.",
	}
}

// transportFailure is an attempt that broke on the way. The address is left
// out of the text: it says nothing that the provider's name does not.
func (e *endpoint) transportFailure(err error) *agents.Error {
	if credential, ok := errors.AsType[*credentialError](err); ok {
		failure := e.failure(agents.KindAuth, nil, "No token for "+e.provider.Name+": "+credential.Error()+
			"; check GOOGLE_APPLICATION_CREDENTIALS or log in with gcloud auth application-default login.")
		failure.Retryable = credential.temporary()
		return failure
	}
	advice := ""
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		advice = "; check the network" + e.addressAdvice()
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
		err, advice = http.ErrSchemeMismatch, "; check the network"+e.addressAdvice()
	}
	text := e.clean(err.Error())
	failure := e.failure(agents.KindTransport, errors.New(text), "The call to "+e.provider.Name+" broke: "+text+advice+".")
	failure.Retryable = true
	return failure
}

// addressAdvice names the variable that an address was read from.
func (e *endpoint) addressAdvice() string {
	if e.provider.URLVariable == "" {
		return ""
	}
	return " and the address in " + e.provider.URLVariable
}

// advice says what to do about a verdict in the words of this provider.
func (e *endpoint) advice(v verdict, f fault) string {
	switch {
	case v == verdictAuth:
		return e.keyAdvice()
	case e.provider.Routing && strings.Contains(strings.ToLower(f.Message), "data policy"):
		return "no upstream of this model promises to keep no prompts; take another MODEL, or allow it with ALLOW_DATA_COLLECTION"
	case v == verdictGone || v == verdictAway:
		return v.hint + e.addressAdvice()
	}
	return v.hint
}

// page is the error of an answer that is a web page.
func (e *endpoint) page(header http.Header) *agents.Error {
	failure := e.failure(agents.KindRejected, nil,
		e.provider.Name+" answered with a web page in place of a model's answer; check the network"+e.addressAdvice()+".")
	failure.RequestID = requestID(header)
	return failure
}

// keyAdvice names the variable that the refused key was read from.
func (e *endpoint) keyAdvice() string {
	switch {
	case e.provider.Name == ProviderVertex:
		return "check GOOGLE_APPLICATION_CREDENTIALS, VERTEX_PROJECT and what the account may do"
	case e.provider.KeyVariable != "":
		return "check the key in " + e.provider.KeyVariable
	}
	return verdictAuth.hint
}

// A fault is what a provider said went wrong, in an HTTP answer or in a line
// of a stream.
type fault struct {
	openai.APIError
	// flagged says that the provider's moderation refused the prompt.
	flagged bool
	// retryAfter is when to try again, where the body says it.
	retryAfter time.Duration
}

// readFault reads the shapes in which providers say what went wrong: an
// object with "error" (an object or a string), an array of such objects, a
// bare object with "message" or "detail", or plain text.
func readFault(body []byte) fault {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return readFault(list[0])
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return fault{APIError: openai.APIError{Message: string(body[:min(len(body), 4*maxErrorText)])}}
	}
	if inner, ok := outer["error"]; ok && !isNull(inner) {
		var text string
		if json.Unmarshal(inner, &text) == nil {
			return fault{APIError: openai.APIError{Message: text, Code: codeOf(outer["code"])}}
		}
		return faultFields(inner)
	}
	return faultFields(body)
}

func faultFields(object []byte) fault {
	var fields struct {
		Code     json.RawMessage `json:"code"`
		Status   json.RawMessage `json:"status"`
		Type     json.RawMessage `json:"type"`
		Message  json.RawMessage `json:"message"`
		Detail   json.RawMessage `json:"detail"`
		Param    json.RawMessage `json:"param"`
		Metadata struct {
			Raw     json.RawMessage `json:"raw"`
			Reasons json.RawMessage `json:"reasons"`
		} `json:"metadata"`
		Details []struct {
			RetryDelay string `json:"retryDelay"`
		} `json:"details"`
	}
	// A field of another shape leaves the others as they are.
	_ = json.Unmarshal(object, &fields)
	var read fault
	read.Message = textOf(fields.Message)
	if read.Message == "" {
		read.Message = textOf(fields.Detail)
	}
	// openrouter puts the upstream's own words here.
	if raw := textOf(fields.Metadata.Raw); raw != "" && !strings.Contains(read.Message, raw) {
		read.Message += " (" + raw + ")"
	}
	if read.Message == "" {
		read.Message = string(object[:min(len(object), 4*maxErrorText)])
	}
	read.Code = codeOf(fields.Code)
	read.Type = textOf(fields.Type)
	if read.Type == "" {
		read.Type = textOf(fields.Status)
	}
	if param := textOf(fields.Param); param != "" {
		read.Param = &param
	}
	// Google's RetryInfo, which comes without a header.
	for _, detail := range fields.Details {
		if delay, err := time.ParseDuration(detail.RetryDelay); err == nil && delay > 0 {
			read.retryAfter = min(delay, 24*time.Hour)
		}
	}
	read.flagged = len(fields.Metadata.Reasons) > 0 && !isNull(fields.Metadata.Reasons)
	return read
}

// codeOf returns an int for a number, a string for a string.
func codeOf(raw json.RawMessage) any {
	var number int
	if json.Unmarshal(raw, &number) == nil && !isNull(raw) {
		return number
	}
	if text := textOf(raw); text != "" {
		return text
	}
	return nil
}

// textOf returns a JSON string's text, the JSON of an object, "" for nothing.
func textOf(raw json.RawMessage) string {
	if len(raw) == 0 || isNull(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// A verdict is what a failed answer means.
type verdict struct {
	kind  string
	retry bool
	hint  string
}

var (
	verdictAuth = verdict{agents.KindAuth, false, "check the key"}
	verdictPaid = verdict{agents.KindRejected, false, "the account has no credit or quota left"}
	verdictLong = verdict{agents.KindContextTooLong, false, "the history does not fit the model's context window"}
	verdictRate = verdict{agents.KindRateLimited, true, "try again later"}
	verdictSafe = verdict{agents.KindRefused, false, "the provider refused the prompt"}
	verdictDown = verdict{agents.KindUnavailable, true, "try again later"}
	verdictGone = verdict{agents.KindRejected, false, "there is no such model or address; check the name in MODEL"}
	verdictAway = verdict{agents.KindRejected, false, "it sends the call elsewhere, where neither prompt nor key may go; check the network"}
	verdictBad  = verdict{agents.KindRejected, false, "the request is not acceptable to this model"}
)

// codes are the words that providers use for what the HTTP status does not
// say. Numbers are zai's (docs.z.ai, error codes), upper case is Google's.
var codes = map[string]verdict{
	"context_length_exceeded":  verdictLong,
	"string_above_max_length":  verdictLong,
	"insufficient_quota":       verdictPaid,
	"rate_limit_exceeded":      verdictRate,
	"invalid_api_key":          verdictAuth,
	"content_filter":           verdictSafe,
	"content_policy_violation": verdictSafe,
	"model_not_found":          verdictGone,
	"server_error":             verdictDown,
	"overloaded_error":         verdictDown,
	"UNAUTHENTICATED":          verdictAuth,
	"PERMISSION_DENIED":        verdictAuth,
	"RESOURCE_EXHAUSTED":       verdictRate,
	"UNAVAILABLE":              verdictDown,
	"1000":                     verdictAuth,
	"1001":                     verdictAuth,
	"1002":                     verdictAuth,
	"1003":                     verdictAuth,
	"1112":                     verdictAuth,
	"1113":                     verdictPaid,
	"1210":                     verdictBad,
	"1211":                     verdictGone,
	"1214":                     verdictBad,
	"1261":                     verdictLong,
	"1301":                     verdictSafe,
	"1302":                     verdictRate,
	"1303":                     verdictRate,
	"1304":                     verdictPaid,
	"1305":                     verdictRate,
}

// tooLong are phrases of providers that have no code for it.
var tooLong = []string{
	"maximum context length", "context length exceeded", "prompt is too long", "input token count",
	"context window", "too many tokens",
}

// judge decides what a fault means. A status of 0 or 200 is a fault inside an
// answer that began well: there the code may be a status of its own.
func judge(status int, f fault) verdict {
	if f.flagged {
		return verdictSafe
	}
	for _, word := range []string{fmt.Sprint(f.Code), f.Type} {
		if known, ok := codes[word]; ok {
			return known
		}
	}
	if inner, ok := f.Code.(int); ok && status < 300 && inner >= 400 && inner < 600 {
		status = inner
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return verdictAuth
	case status == http.StatusPaymentRequired:
		return verdictPaid
	case status == http.StatusRequestEntityTooLarge:
		return verdictLong
	case status == http.StatusTooManyRequests:
		return verdictRate
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return verdictDown
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return verdictGone
	case status >= 300 && status < 400:
		return verdictAway
	case status >= 400:
		message := strings.ToLower(f.Message)
		for _, phrase := range tooLong {
			if strings.Contains(message, phrase) {
				return verdictLong
			}
		}
		return verdictBad
	default:
		// An error in the middle of a good answer, of which nothing more is
		// known: the attempt failed, the next may not (rule R84).
		return verdictDown
	}
}

// refused makes the error of an answer that reports a fault.
func (e *endpoint) refused(status int, header http.Header, body []byte) *agents.Error {
	f := readFault(body)
	v := judge(status, f)
	v.hint = e.advice(v, f)
	f.HTTPStatusCode = status
	f.Message = e.clean(f.Message)
	if code, ok := f.Code.(string); ok {
		f.Code = e.clean(code)
	}
	if f.Param != nil {
		*f.Param = e.clean(*f.Param)
	}
	f.Type = e.clean(f.Type)
	where := e.provider.Name
	if status >= 300 {
		where += fmt.Sprintf(" (HTTP %d)", status)
	}
	text := where + ": " + v.hint
	if e.provider.Tape && f.Message != "" {
		text = where
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	failure := e.failure(v.kind, &f.APIError, text)
	failure.Status = status
	failure.RequestID = requestID(header)
	failure.Retryable = v.retry
	failure.RetryAfter = cmp.Or(retryAfter(header, time.Now()), f.retryAfter)
	return failure
}
