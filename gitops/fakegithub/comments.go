package fakegithub

import (
	"net/http"
	"slices"
	"strings"
)

// conversation lists an issue's comments, oldest first, without those on a diff.
func conversation(r *repository, number int) []*comment {
	return commentsWhere(r, func(m *comment) bool { return m.number == number && m.line == nil })
}

// reviewComments lists the comments on a pull request's diff, oldest first.
func reviewComments(r *repository, number int) []*comment {
	return commentsWhere(r, func(m *comment) bool { return m.number == number && m.line != nil })
}

func commentsWhere(r *repository, wanted func(*comment) bool) []*comment {
	return slices.DeleteFunc(sorted(r.comments), func(m *comment) bool { return !wanted(m) })
}

// createComment posts on an issue or pull request. Whoever sees the repository may, unless the conversation is locked.
func (s *Server) createComment(r *repository, i *issue, by actor, body string) (*comment, error) {
	if strings.TrimSpace(body) == "" {
		return nil, invalid("IssueComment", "body", "missing_field")
	}
	if err := checkBody("IssueComment", body); err != nil {
		return nil, err
	}
	if i.locked && by.via == nil && !r.role(by.account).atLeast(RoleWrite) {
		return nil, errorStatus(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	m := &comment{id: s.world.nextID(), number: i.number, body: body, author: by.account, via: by.via, created: s.Now(), updated: s.Now()}
	r.comments[m.id] = m
	i.updated = s.Now()
	s.emitComment(r, m, "created", by.account, nil)
	return m, nil
}

func mayEdit(r *repository, m *comment, by actor) error {
	if m.author == by.account || by.via != nil || r.role(by.account).atLeast(RoleWrite) {
		return nil
	}
	return errorStatus(http.StatusForbidden, "Must have admin rights to Repository.")
}

// editComment replaces a comment's text: its author may, and who can write to the repository.
func (s *Server) editComment(r *repository, m *comment, by actor, body string) error {
	if err := mayEdit(r, m, by); err != nil {
		return err
	}
	if strings.TrimSpace(body) == "" {
		return invalid("IssueComment", "body", "missing_field")
	}
	if err := checkBody("IssueComment", body); err != nil {
		return err
	}
	before := m.body
	m.body, m.updated = body, s.Now()
	s.emitComment(r, m, "edited", by.account, object{"changes": object{"body": object{"from": before}}})
	return nil
}

func (s *Server) deleteComment(r *repository, m *comment, by actor) error {
	if err := mayEdit(r, m, by); err != nil {
		return err
	}
	delete(r.comments, m.id)
	s.emitComment(r, m, "deleted", by.account, nil)
	return nil
}

func (s *Server) emitComment(r *repository, m *comment, action string, sender *account, extra object) {
	payload := object{"comment": s.commentObject(r, m), "issue": s.issueObject(r, r.issues[m.number])}
	for key, value := range extra {
		payload[key] = value
	}
	s.emit(event{name: "issue_comment", action: action, repo: r, sender: sender, payload: payload})
}

// react adds a reaction, or returns the one that is there: a person has each content once.
func (s *Server) react(reactions *[]*reaction, by *account, content string) (one *reaction, created bool, err error) {
	if !slices.Contains(reactionContents, content) {
		return nil, false, invalid("Reaction", "content", "invalid")
	}
	for _, one := range *reactions {
		if one.user == by && one.content == content {
			return one, false, nil
		}
	}
	one = &reaction{id: s.world.nextID(), content: content, user: by, created: s.Now()}
	*reactions = append(*reactions, one)
	return one, true, nil
}

// unreact removes a reaction; people remove their own only.
func unreact(reactions *[]*reaction, by *account, id int64) error {
	for at, one := range *reactions {
		if one.id == id && one.user == by {
			*reactions = slices.Delete(*reactions, at, at+1)
			return nil
		}
	}
	return errNotFound
}
