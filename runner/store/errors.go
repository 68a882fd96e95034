package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// What callers tell apart with errors.Is. A lost lease is runner.ErrFenced.
var (
	// ErrNone says that there is nothing to do now.
	ErrNone = errors.New("there is nothing to do now")
	// ErrNotFound says that no row has that id.
	ErrNotFound = errors.New("not found in the database")
	// ErrDuplicate says that another row with the same key but different
	// content exists.
	ErrDuplicate = errors.New("the key is taken by something else")
	// ErrNodeExpired says that the node's lease ran out: it cancels all its
	// work and registers anew.
	ErrNodeExpired = errors.New("the lease of this node has run out")
	// ErrSessionEnded says that the session is over and takes nothing more.
	ErrSessionEnded = errors.New("the session has ended")
	// ErrAlreadyDecided says that somebody else's decision stands.
	ErrAlreadyDecided = errors.New("the approval was decided before")
	// ErrTooEarly says that an approval came before or within the cooldown
	// after its prompt appeared.
	ErrTooEarly = errors.New("the prompt can be approved five seconds after it appeared")
	// ErrApprovalExpired says that the decision came after the expiry.
	ErrApprovalExpired = errors.New("the approval has expired")
	// ErrStale says that what was approved is not what is about to be done.
	ErrStale = errors.New("the approval is for something else")
	// ErrAmbiguous says that a prefix of a digest or an id names more than one
	// approval or session.
	ErrAmbiguous = errors.New("the prefix is too short to name one")
	// ErrReadOnly says that the store was opened with ModeRead.
	ErrReadOnly = errors.New("the database was opened for reading only")
	// ErrMissingBlob says that a checkpoint names contents that the store lacks.
	ErrMissingBlob = errors.New("the checkpoint lacks the contents of a file")
	// ErrAuditBroken says that the audit log was changed after it was written.
	ErrAuditBroken = errors.New("the audit log was changed")
)

// The codes of [Error].
const (
	CodeBadURL      = "STORE_URL"
	CodeNoDirectory = "STORE_DIRECTORY"
	CodeUnreachable = "STORE_UNREACHABLE"
	CodeLocked      = "STORE_LOCKED"
	CodeNewerSchema = "STORE_SCHEMA_NEWER"
	CodeOlderSchema = "STORE_SCHEMA_OLDER"
	CodeMigration   = "STORE_MIGRATION"
)

// An Error is a fault in opening or migrating the database: a stable code and
// one sentence for the operator. It never carries a password.
type Error struct {
	Code    string
	Message string
	Err     error
}

// Error returns the code and the sentence.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// withoutSecrets returns an error's text without what a connection's
// configuration may hold.
func withoutSecrets(err error) string {
	if refused, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		// Its text names user and database; the causes are enough.
		if fault, ok := errors.AsType[*pgconn.PgError](refused); ok {
			return fmt.Sprintf("%s, %s", fault.Message, fault.Code)
		}
		return fmt.Sprintf("%s:%d cannot be connected", refused.Config.Host, refused.Config.Port)
	}
	return err.Error()
}
