package fakegithub

import (
	"net/http"
	"strings"
)

// createReview adds a person's review of a pull request.
func (s *Server) createReview(r *repository, i *issue, by actor, state, body string) (*review, error) {
	switch state {
	case "APPROVED", "CHANGES_REQUESTED", "COMMENTED":
	default:
		return nil, invalid("PullRequestReview", "event", "invalid")
	}
	if state != "COMMENTED" && i.author == by.account {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Can not approve or request changes on your own pull request.")
	}
	v := &review{id: s.world.nextID(), number: i.number, author: by.account, state: state, body: body,
		commit: s.headSHA(r, i), submitted: s.Now()}
	r.reviews = append(r.reviews, v)
	shown := s.reviewObject(r, v)
	shown["state"] = strings.ToLower(state)
	s.emit(event{name: "pull_request_review", action: "submitted", repo: r, sender: by.account,
		payload: object{"review": shown, "pull_request": s.simplePull(r, i)}})
	return v, nil
}

// createReviewComment comments on a line of a pull request's diff, as a review of its own.
func (s *Server) createReviewComment(r *repository, i *issue, by actor, path string, line int, body string) (*comment, error) {
	if err := checkReviewComment(body); err != nil {
		return nil, err
	}
	hunk := s.hunkOf(r, i, path)
	if hunk == "" {
		return nil, invalid("PullRequestReviewComment", "path", "invalid")
	}
	v, err := s.createReview(r, i, by, "COMMENTED", "")
	if err != nil {
		return nil, err
	}
	return s.addReviewComment(r, i, by, body, lineComment{review: v.id, path: path, line: line, position: 1, hunk: hunk, commit: s.headSHA(r, i)}), nil
}

func (s *Server) createReply(r *repository, to *comment, by actor, body string) (*comment, error) {
	if err := checkReviewComment(body); err != nil {
		return nil, err
	}
	line := *to.line
	line.replyTo = to.id
	return s.addReviewComment(r, r.issues[to.number], by, body, line), nil
}

func checkReviewComment(body string) error {
	if strings.TrimSpace(body) == "" {
		return invalid("PullRequestReviewComment", "body", "missing_field")
	}
	return checkBody("PullRequestReviewComment", body)
}

// hunkOf is the first hunk of a file in the pull request's diff; empty if the file is not in it.
func (s *Server) hunkOf(r *repository, i *issue, path string) string {
	for _, file := range s.pullChange(r, i).files {
		if file.name == path {
			hunk, _, _ := strings.Cut(file.patch, "\n@@ ")
			return hunk
		}
	}
	return ""
}

func (s *Server) addReviewComment(r *repository, i *issue, by actor, body string, line lineComment) *comment {
	m := &comment{id: s.world.nextID(), number: i.number, body: body, author: by.account, via: by.via,
		created: s.Now(), updated: s.Now(), line: &line}
	r.comments[m.id] = m
	i.updated = s.Now()
	s.emit(event{name: "pull_request_review_comment", action: "created", repo: r, sender: by.account,
		payload: object{"comment": s.reviewCommentObject(r, m), "pull_request": s.simplePull(r, i)}})
	return m
}
