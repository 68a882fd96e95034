package patch

// A Code names why a patch was refused. Codes are stable.
type Code string

// The reasons for which a patch is refused.
const (
	// NoMatch: the file has no place for a hunk.
	NoMatch Code = "no_match"
	// Ambiguous: it has several, and nothing decides between them.
	Ambiguous Code = "ambiguous"
	// AlreadyApplied: the new text is there already and the old is not.
	AlreadyApplied Code = "already_applied"
	// GapInRemoved: removed lines are there, with others between them.
	GapInRemoved Code = "gap_in_removed"
	// ForgottenPlus: a context line beside a change is not in the file.
	ForgottenPlus Code = "forgotten_plus"
	// Truncated: the diff breaks off.
	Truncated Code = "truncated"
	// Overlap: two hunks change the same lines.
	Overlap Code = "overlap"
	// Exists: the diff creates a file that exists.
	Exists Code = "exists"
	// Missing: the diff changes a file that does not exist.
	Missing Code = "missing"
	// Binary: the diff or the file is not text.
	Binary Code = "binary"
	// NoChange: the diff has no hunk, or applying it changes nothing.
	NoChange Code = "no_change"
	// TooLarge: a limit of the package is exceeded.
	TooLarge Code = "too_large"
)

// An Error says why nothing was changed, written for the model that wrote the
// diff: it holds the lines from which a right diff can be written.
type Error struct {
	Code Code
	// Hunk is the failing hunk, counted from 1; 0 is the diff as a whole.
	Hunk int
	// Line is the place in the file that the text shows, counted from 1; 0
	// when it shows none.
	Line int
	// Text is the whole explanation, at most 60 lines.
	Text string
}

// Error returns the code and the explanation.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Text }

// maxErrorLines bounds an explanation; a longer one would cost the model more
// than reading the file again.
const maxErrorLines = 60

// nothingChanged opens every explanation, because a model that believes in a
// half-applied patch goes on to write wrong ones.
const nothingChanged = "Nothing was changed. "

func refuse(code Code, text string) *Error {
	return &Error{Code: code, Text: nothingChanged + text}
}
