package sandbox

import "fmt"

// Code names a kind of failure. Codes are stable.
type Code string

const (
	// CodeUnavailable: this machine offers no isolation that the driver needs.
	CodeUnavailable Code = "SANDBOX_UNAVAILABLE"
	// CodeInvalidSpec and CodeInvalidCommand: the caller's mistake.
	CodeInvalidSpec    Code = "SANDBOX_INVALID_SPEC"
	CodeInvalidCommand Code = "SANDBOX_INVALID_COMMAND"
	// CodeSetup: the sandbox could not be built although the probe succeeded.
	CodeSetup Code = "SANDBOX_SETUP"
	// CodeClosed: the sandbox was used after Close.
	CodeClosed Code = "SANDBOX_CLOSED"
)

// Error is the error type of this package.
type Error struct {
	Code Code
	// Message is a sentence or two for a person: what is wrong and what to do.
	Message string
	// Cause is the error underneath, or nil.
	Cause error
}

// Error returns the message, with the cause behind it.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func fail(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: cause}
}
