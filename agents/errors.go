package agents

import (
	"errors"
	"time"
)

// A Code names a kind of failure. Codes are stable: pages, tests and people
// rely on them.
type Code string

// The codes of the loop, its tools and its models.
const (
	CodeLLM             Code = "LLM_ERROR"
	CodeCancelled       Code = "CANCELLED"
	CodeLimitTurns      Code = "LIMIT_TURNS"
	CodeLimitTokens     Code = "LIMIT_TOKENS"
	CodeLimitCost       Code = "LIMIT_COST"
	CodeLimitTime       Code = "LIMIT_TIME"
	CodeLimitHandoffs   Code = "LIMIT_HANDOFFS"
	CodeLimitLoop       Code = "LIMIT_LOOP"
	CodeModelRefusal    Code = "MODEL_REFUSAL"
	CodeModelBehavior   Code = "MODEL_BEHAVIOR"
	CodeInvalidOutput   Code = "INVALID_OUTPUT"
	CodeInvalidArgs     Code = "INVALID_ARGS"
	CodeToolError       Code = "TOOL_ERROR"
	CodeToolTimeout     Code = "TOOL_TIMEOUT"
	CodeGuardrailInput  Code = "GUARDRAIL_INPUT"
	CodeGuardrailOutput Code = "GUARDRAIL_OUTPUT"
	// CodeAgent is an agent's definition that cannot be used as it is.
	CodeAgent Code = "AGENT_ERROR"
)

// The kinds of [CodeLLM], in [Error.Kind].
const (
	KindMissingKey     = "missing_key"
	KindAuth           = "auth"
	KindRateLimited    = "rate_limited"
	KindContextTooLong = "context_too_long"
	KindRefused        = "refused"
	KindTransport      = "transport"
	KindMalformed      = "malformed"
	KindRejected       = "rejected"
	KindUnavailable    = "unavailable"
)

// An Error is a failure with a code that programs can act on and a sentence
// that people can. It never carries a secret.
type Error struct {
	Code Code
	// Kind refines CodeLLM; see the Kind constants.
	Kind string
	// Message is one sentence for a person, with what to do next.
	Message string
	// Err is the cause, nil when there is none.
	Err error

	// Provider, Status and RequestID are set for CodeLLM where known.
	Provider  string
	Status    int
	RequestID string
	// Retryable says that the same request may succeed later, RetryAfter when.
	Retryable  bool
	RetryAfter time.Duration
	// Usage is what the failed attempts cost.
	Usage Usage
}

// Error returns the code and the sentence.
func (e *Error) Error() string {
	if e.Message == "" && e.Err != nil {
		return string(e.Code) + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain, "" for none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
