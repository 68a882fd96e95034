package store

import "time"

// CommentDetail is [Command.Detail] of a [CommandComment]: what the webhook
// told beside the command's own words. All of it is other people's text or
// facts of that moment; nothing of it is an instruction.
type CommentDetail struct {
	IssueTitle    string `json:"issue_title"`
	IssueBody     string `json:"issue_body"`
	IssueState    string `json:"issue_state"`
	IssueLocked   bool   `json:"issue_locked,omitempty"`
	IssueAuthorID int64  `json:"issue_author_id,omitempty"`
	// IsPullRequest says that Command.Issue is a pull request's number.
	IsPullRequest bool      `json:"is_pull_request,omitempty"`
	CommentURL    string    `json:"comment_url"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	// Excerpts are what the command quotes, fences, pastes as a log or folds
	// away. Command.Text holds [excerpt 1], [excerpt 2]… in their places.
	Excerpts []Excerpt `json:"excerpts,omitempty"`
	// Hidden counts what was taken out of the comment because people cannot
	// see it: HTML comments, invisible characters, attributes.
	Hidden int `json:"hidden,omitempty"`
	// Path, Line and DiffHunk say where a review comment stands.
	Path     string `json:"path,omitempty"`
	Line     int    `json:"line,omitempty"`
	DiffHunk string `json:"diff_hunk,omitempty"`
	// OwnerID is the account that owns the repository; Private whether
	// strangers can see it.
	OwnerID int64 `json:"owner_id,omitempty"`
	Private bool  `json:"private,omitempty"`
}

// An Excerpt is a part of a comment that is data and never an instruction.
type Excerpt struct {
	// Kind is quote, code, log or details.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// CheckActionDetail is [Command.Detail] of a [CommandCheckAction]. All five
// must match the approval's check run.
type CheckActionDetail struct {
	CheckRunID int64  `json:"check_run_id"`
	Identifier string `json:"identifier"`
	ExternalID string `json:"external_id"`
	HeadSHA    string `json:"head_sha"`
	AppID      int64  `json:"app_id"`
}

// NoticeDetail is [Command.Detail] of a [CommandNotice]. Event and Action are
// GitHub's words; the other fields are set where the event has them.
type NoticeDetail struct {
	Event  string `json:"event"`
	Action string `json:"action"`
	// CommentID is in Command.CommentID; CommentAuthorID wrote it.
	CommentAuthorID int64 `json:"comment_author_id,omitempty"`
	// Repositories are those that the App lost with installation_repositories.
	Repositories []int64 `json:"repositories,omitempty"`
	// Head and Merged belong to a closed pull request.
	Head   string `json:"head,omitempty"`
	Merged bool   `json:"merged,omitempty"`
}
