package github

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// GitHub's limits on texts, in characters unless said otherwise. Longer ones
// are refused with a 422 that does not always say why.
const (
	// BodyLimit holds for comments, issues and pull requests.
	BodyLimit = 65536
	// TitleLimit holds for issues and pull requests.
	TitleLimit = 256
	// CheckTextLimit holds for the summary and the text of a check run; it is
	// counted in bytes here, because GitHub's own documents disagree.
	CheckTextLimit = 65535
	// CheckActions is how many buttons a check run can have.
	CheckActions = 3
	// CheckLabelLimit, CheckDescriptionLimit and CheckIdentifierLimit hold for
	// a button.
	CheckLabelLimit       = 20
	CheckDescriptionLimit = 40
	CheckIdentifierLimit  = 20
	// CheckNameLimit holds for a check run's name and title.
	CheckNameLimit = 255
)

func tooLong(what string, limit int) error {
	return &Error{Code: CodeValidation, Message: fmt.Sprintf("The %s is longer than GitHub's limit of %d characters.", what, limit)}
}

func checkBody(body string) error {
	switch {
	case utf8.RuneCountInString(body) > BodyLimit:
		return tooLong("comment", BodyLimit)
	case strings.TrimSpace(body) == "":
		return &Error{Code: CodeValidation, Message: "The comment is empty."}
	}
	return nil
}

func (r PullRequestRequest) check() error {
	switch {
	case strings.TrimSpace(r.Title) == "":
		return &Error{Code: CodeValidation, Message: "The pull request has no title."}
	case utf8.RuneCountInString(r.Title) > TitleLimit:
		return tooLong("pull request's title", TitleLimit)
	case utf8.RuneCountInString(r.Body) > BodyLimit:
		return tooLong("pull request's text", BodyLimit)
	}
	return nil
}

func (r CheckRunRequest) check() error {
	switch {
	case r.Name == "":
		return &Error{Code: CodeValidation, Message: "The check run has no name."}
	case utf8.RuneCountInString(r.Name) > CheckNameLimit, utf8.RuneCountInString(r.Title) > CheckNameLimit:
		return tooLong("check run's name or title", CheckNameLimit)
	case len(r.Summary) > CheckTextLimit, len(r.Text) > CheckTextLimit:
		return tooLong("check run's text", CheckTextLimit)
	case len(r.Actions) > CheckActions:
		return &Error{Code: CodeValidation, Message: "A check run can have three buttons at most."}
	case r.Status == "completed" && r.Conclusion == "":
		return &Error{Code: CodeValidation, Message: "A completed check run needs a conclusion."}
	}
	for _, a := range r.Actions {
		if utf8.RuneCountInString(a.Label) > CheckLabelLimit || utf8.RuneCountInString(a.Description) > CheckDescriptionLimit ||
			utf8.RuneCountInString(a.Identifier) > CheckIdentifierLimit {
			return &Error{Code: CodeValidation, Message: fmt.Sprintf("The check run's button %.20q is longer than GitHub allows (label 20, description 40, identifier 20).", a.Label)}
		}
	}
	return nil
}
