package outbox

// The kinds of effects, as [store.Effect.Kind] holds them. Each has one
// payload type below, stored as JSON in the effect's row; whoever wants an
// effect writes that row and nothing else.
const (
	KindCommentCreate  = "comment.create"
	KindCommentUpdate  = "comment.update"
	KindReaction       = "reaction"
	KindCheckRunCreate = "check_run.create"
	KindCheckRunUpdate = "check_run.update"
	KindPush           = "push"
	KindPullRequest    = "pull_request"
)

// The priorities of effects in an installation's writer queue; a lower one
// goes first.
const (
	// PriorityReaction is for what a person waits for with a finger on the
	// screen: 👀 and answers to decisions.
	PriorityReaction = 0
	// PriorityResult is for answers, prompts and final results.
	PriorityResult = 1
	// PriorityProgress is for what may come later or be replaced.
	PriorityProgress = 2
)

// The kinds of comments, as [store.Command.CommentKind] and [Reaction] name
// them. GitHub keeps the two in separate number spaces.
const (
	// CommentIssue is a comment on an issue or in a pull request's conversation.
	CommentIssue = "issue"
	// CommentReview is a comment on a line of a pull request's diff.
	CommentReview = "review"
)

// CommentCreate is the payload of [KindCommentCreate]: a new comment on an
// issue or a pull request.
type CommentCreate struct {
	// Issue is the number of the issue or pull request.
	Issue int `json:"issue"`
	// Body is Markdown without any marker, cut to GitHub's limit by the outbox.
	Body string `json:"body"`
	// ApprovalID is set when the comment is the prompt of that approval: where
	// it appeared is then noted with the effect's end.
	ApprovalID string `json:"approval_id,omitempty"`
}

// CommentUpdate is the payload of [KindCommentUpdate]: the new text of a
// comment of ours. Exactly one of EffectKey and CommentID is set.
type CommentUpdate struct {
	// EffectKey names the comment.create effect that made the comment, for
	// whoever writes the update before the comment's id is known.
	EffectKey string `json:"effect_key,omitempty"`
	CommentID int64  `json:"comment_id,omitempty"`
	Body      string `json:"body"`
}

// Reaction is the payload of [KindReaction]. GitHub answers a repeated
// reaction with the first one, so this effect may be sent again.
type Reaction struct {
	// EffectKey names the comment.create effect whose comment gets the
	// reaction; otherwise CommentID and CommentKind do.
	EffectKey   string `json:"effect_key,omitempty"`
	CommentID   int64  `json:"comment_id,omitempty"`
	CommentKind string `json:"comment_kind,omitempty"`
	// Content is GitHub's word: +1, -1, laugh, confused, heart, hooray,
	// rocket, eyes.
	Content string `json:"content"`
}

// A CheckRunAction is one button of a check run. GitHub's limits: label 20,
// description 40, identifier 20 characters.
type CheckRunAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// CheckRunCreate is the payload of [KindCheckRunCreate].
type CheckRunCreate struct {
	HeadSHA string `json:"head_sha"`
	// Name is unique per session, so that sessions do not hide each other.
	Name string `json:"name"`
	// ExternalID is the approval's id; after a crash the check run is found by
	// it, and its own id is noted in the approval.
	ExternalID string `json:"external_id"`
	DetailsURL string `json:"details_url,omitempty"`
	// Status is queued, in_progress or completed; Conclusion belongs to
	// completed only. Buttons are shown on completed ones only.
	Status     string           `json:"status"`
	Conclusion string           `json:"conclusion,omitempty"`
	Title      string           `json:"title"`
	Summary    string           `json:"summary"`
	Text       string           `json:"text,omitempty"`
	Actions    []CheckRunAction `json:"actions,omitempty"`
}

// CheckRunUpdate is the payload of [KindCheckRunUpdate]. Exactly one of
// EffectKey and CheckRunID is set. Name is needed: GitHub's client library
// blanks it otherwise.
type CheckRunUpdate struct {
	// EffectKey names the check_run.create effect that made it.
	EffectKey  string           `json:"effect_key,omitempty"`
	CheckRunID int64            `json:"check_run_id,omitempty"`
	Name       string           `json:"name"`
	Status     string           `json:"status"`
	Conclusion string           `json:"conclusion,omitempty"`
	Title      string           `json:"title"`
	Summary    string           `json:"summary"`
	Text       string           `json:"text,omitempty"`
	Actions    []CheckRunAction `json:"actions,omitempty"`
}

// Push is the payload of [KindPush]. Commit, target and expected remote are in
// the approval's row, which is checked again and consumed with the push.
type Push struct {
	ApprovalID string `json:"approval_id"`
	// BranchOnly says that no pull request follows: the push's end is the
	// outcome of the call.
	BranchOnly bool `json:"branch_only,omitempty"`
}

// PullRequest is the payload of [KindPullRequest]: the pull request of the
// approval's target branch is opened, or updated if there is an open one.
type PullRequest struct {
	ApprovalID string `json:"approval_id"`
	Title      string `json:"title"`
	Body       string `json:"body"`
	// Base is the branch that the pull request asks to be merged into.
	Base string `json:"base"`
	// Head is the branch that was pushed, Commit the approved commit.
	Head   string `json:"head"`
	Commit string `json:"commit"`
	Draft  bool   `json:"draft,omitempty"`
}
