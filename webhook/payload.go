package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// payload is what is read of GitHub's payloads: a few fields of some events.
// Fields that an event lacks stay empty.
type payload struct {
	Action       string `json:"action"`
	Installation struct {
		ID number `json:"id"`
	} `json:"installation"`
	Repository  repository  `json:"repository"`
	Sender      account     `json:"sender"`
	Issue       issue       `json:"issue"`
	PullRequest pullRequest `json:"pull_request"`
	Comment     comment     `json:"comment"`
	CheckRun    struct {
		ID         number `json:"id"`
		ExternalID string `json:"external_id"`
		HeadSHA    string `json:"head_sha"`
		App        struct {
			ID number `json:"id"`
		} `json:"app"`
	} `json:"check_run"`
	RequestedAction struct {
		Identifier string `json:"identifier"`
	} `json:"requested_action"`
	RepositoriesRemoved []struct {
		ID number `json:"id"`
	} `json:"repositories_removed"`
}

type account struct {
	ID    number `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

type repository struct {
	ID      number  `json:"id"`
	Name    string  `json:"name"`
	Owner   account `json:"owner"`
	Private bool    `json:"private"`
}

type issue struct {
	Number number  `json:"number"`
	Title  string  `json:"title"`
	Body   string  `json:"body"`
	State  string  `json:"state"`
	Locked bool    `json:"locked"`
	User   account `json:"user"`
	// PullRequest is there when the issue is one.
	PullRequest *struct{} `json:"pull_request"`
}

type pullRequest struct {
	Number number  `json:"number"`
	Title  string  `json:"title"`
	Body   string  `json:"body"`
	State  string  `json:"state"`
	Locked bool    `json:"locked"`
	Merged bool    `json:"merged"`
	User   account `json:"user"`
	Head   struct {
		Ref string `json:"ref"`
	} `json:"head"`
}

type comment struct {
	ID        number  `json:"id"`
	Body      string  `json:"body"`
	User      account `json:"user"`
	HTMLURL   string  `json:"html_url"`
	CreatedAt moment  `json:"created_at"`
	UpdatedAt moment  `json:"updated_at"`
	Path      string  `json:"path"`
	Line      number  `json:"line"`
	DiffHunk  string  `json:"diff_hunk"`
	// App is set when an App wrote the comment, also in a person's name.
	App *struct {
		ID number `json:"id"`
	} `json:"performed_via_github_app"`
}

// A number is an id or a count. GitHub's recorded payloads have them as
// numbers and, here and there, as strings.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(text []byte) error {
	text = bytes.Trim(text, `"`)
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a whole number", text)
	}
	*n = number(value)
	return nil
}

// A moment is a time. Most events have RFC 3339; the payloads of pushes and
// GitHub's own recorded installation events have seconds.
type moment struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. A time that cannot be read is the
// zero time: no command may be lost to a date.
func (m *moment) UnmarshalJSON(text []byte) error {
	var written string
	if json.Unmarshal(text, &written) == nil {
		m.Time, _ = time.Parse(time.RFC3339, written)
		return nil
	}
	if seconds, err := strconv.ParseInt(string(text), 10, 64); err == nil && seconds > 0 {
		const milliseconds = 1e12 // as seconds this is the year 33658
		if seconds >= milliseconds {
			m.Time = time.UnixMilli(seconds).UTC()
		} else {
			m.Time = time.Unix(seconds, 0).UTC()
		}
	}
	return nil
}
