package git

import (
	"errors"
	"fmt"
)

// A Code names a kind of failure. Codes are stable.
type Code string

// The codes of this package.
const (
	// CodeInvalid: an argument is not acceptable (ref name, id, URL, path).
	CodeInvalid Code = "invalid"
	// CodeNotFound: the repository, ref, commit or object does not exist, or
	// the token may not see it (GitHub does not tell these apart).
	CodeNotFound Code = "not_found"
	// CodeEmpty: the repository has no commit yet.
	CodeEmpty Code = "empty"
	// CodeAuth: the server refused the token.
	CodeAuth Code = "auth"
	// CodeRedirect: the server sent us to another host; nothing was sent there.
	CodeRedirect Code = "redirect"
	// CodeTransport: the server could not be reached or spoke nonsense; nothing
	// was changed there and the call may be repeated.
	CodeTransport Code = "transport"
	// CodeUnknown: a push may or may not have arrived; ask [Cache.RemoteRef].
	CodeUnknown Code = "unknown"
	// CodeRejected: the server declined the push; Server holds its words.
	CodeRejected Code = "rejected"
	// CodeStale: the ref is not where it was expected to be.
	CodeStale Code = "stale"
	// CodeTooLarge: a limit on files, bytes, depth or size was passed.
	CodeTooLarge Code = "too_large"
	// CodeRefused: the tree holds something that is never pushed or written
	// (devices, escaping symlinks, .git, new submodules); Paths names it.
	CodeRefused Code = "refused"
	// CodeNoChange: there is nothing to seal.
	CodeNoChange Code = "no_change"
	// CodeCorrupt: stored objects or workspace data contradict each other.
	CodeCorrupt Code = "corrupt"
	// CodeIO: the local file system failed.
	CodeIO Code = "io"
)

// An Error is a failure with a code for programs and a sentence for people. It
// never carries a token.
type Error struct {
	Code Code
	// Message says what happened and what to do next.
	Message string
	// Server is what the server itself said, cleaned of control characters.
	Server string
	// Paths names files that caused the failure.
	Paths []string
	// Err is the cause, nil when there is none.
	Err error
}

// Error returns the code, the sentence and the server's words.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if e.Server != "" {
		text += " (the server said: " + e.Server + ")"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
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

// failf makes an [Error]; cause may be nil.
func failf(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// ioError wraps a failure of the local file system, unless it already says more.
func ioError(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if CodeOf(err) != "" {
		return err
	}
	return failf(CodeIO, err, format, args...)
}
