package fakegithub

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// longestBody is GitHub's limit for the text of an issue, a pull request or a comment, in characters.
const longestBody = 65536

const longestTitle = 256

func checkBody(resource, body string) error {
	if utf8.RuneCountInString(body) > longestBody {
		return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed",
			errors: []any{object{"resource": resource, "field": "body", "code": "custom", "message": "body is too long (maximum is 65536 characters)"}}}
	}
	return nil
}

func checkTitle(resource, title string) error {
	switch {
	case strings.TrimSpace(title) == "":
		return invalid(resource, "title", "missing_field")
	case utf8.RuneCountInString(title) > longestTitle:
		return invalidBecause(resource, "title", "title is too long (maximum is 256 characters)")
	}
	return nil
}

// actor is who changes something: an account, and the App through which it does if it is a bot.
type actor struct {
	account *account
	via     *app
}

func (c *caller) actor() actor { return actor{account: c.account, via: c.app} }

// number finds an issue or pull request.
func (r *repository) find(number int64) (*issue, error) {
	if i := r.issues[int(number)]; i != nil {
		return i, nil
	}
	return nil, errNotFound
}

// createIssue opens an issue. Whoever sees the repository may.
func (s *Server) createIssue(r *repository, by actor, title, body string, labels []string) (*issue, error) {
	if err := checkTitle("Issue", title); err != nil {
		return nil, err
	}
	if err := checkBody("Issue", body); err != nil {
		return nil, err
	}
	i := s.newIssue(r, by, title, body)
	if r.role(by.account).atLeast(RoleTriage) || by.via != nil {
		s.label(r, i, labels)
	}
	s.emitIssue(r, i, "opened", by.account, nil)
	return i, nil
}

func (s *Server) newIssue(r *repository, by actor, title, body string) *issue {
	r.number++
	i := &issue{id: s.world.nextID(), number: r.number, title: title, body: body, author: by.account, via: by.via,
		created: s.Now(), updated: s.Now()}
	r.issues[i.number] = i
	return i
}

// label adds labels by name, making those that the repository lacks.
func (s *Server) label(r *repository, i *issue, names []string) {
	for _, name := range names {
		if slices.ContainsFunc(i.labels, func(l *label) bool { return strings.EqualFold(l.name, name) }) {
			continue
		}
		i.labels = append(i.labels, s.labelNamed(r, name))
	}
}

func (s *Server) labelNamed(r *repository, name string) *label {
	for _, l := range r.labels {
		if strings.EqualFold(l.name, name) {
			return l
		}
	}
	l := &label{id: s.world.nextID(), name: name, color: "ededed"}
	r.labels = append(r.labels, l)
	return l
}

// issueEdit is what PATCH may change; nil leaves a field as it is.
type issueEdit struct {
	Title       *string   `json:"title"`
	Body        *string   `json:"body"`
	State       *string   `json:"state"`
	StateReason *string   `json:"state_reason"`
	Labels      *[]string `json:"labels"`
	Assignees   *[]string `json:"assignees"`
}

// editIssue changes an issue or the part of a pull request that it shares with issues. Its author may change the
// text and the state; the rest needs triage.
func (s *Server) editIssue(r *repository, i *issue, by actor, edit issueEdit) error {
	role := r.role(by.account)
	if by.via == nil && i.author != by.account && !role.atLeast(RoleTriage) {
		return errorStatus(http.StatusForbidden, "Must have triage access to Repository.")
	}
	if by.via == nil && i.author != by.account && (edit.Title != nil || edit.Body != nil) && !role.atLeast(RoleWrite) {
		return errorStatus(http.StatusForbidden, "Must have write access to Repository.")
	}
	changes, err := s.editText(i, edit)
	if err != nil {
		return err
	}
	if edit.Labels != nil {
		i.labels = nil
		s.label(r, i, *edit.Labels)
	}
	if edit.Assignees != nil {
		i.assignees = nil
		for _, login := range *edit.Assignees {
			if a := s.world.account(login); a != nil {
				i.assignees = append(i.assignees, a)
			}
		}
	}
	i.updated = s.Now()
	if len(changes) > 0 {
		s.emitIssue(r, i, "edited", by.account, object{"changes": changes})
	}
	return s.editState(r, i, by, edit)
}

func (s *Server) editText(i *issue, edit issueEdit) (object, error) {
	changes := object{}
	if edit.Title != nil && *edit.Title != i.title {
		if err := checkTitle("Issue", *edit.Title); err != nil {
			return nil, err
		}
		changes["title"] = object{"from": i.title}
	}
	if edit.Body != nil && *edit.Body != i.body {
		if err := checkBody("Issue", *edit.Body); err != nil {
			return nil, err
		}
		changes["body"] = object{"from": i.body}
	}
	if changes["title"] != nil {
		i.title = *edit.Title
	}
	if changes["body"] != nil {
		i.body = *edit.Body
	}
	return changes, nil
}

func (s *Server) editState(r *repository, i *issue, by actor, edit issueEdit) error {
	if edit.State == nil || *edit.State == i.state() {
		return nil
	}
	switch *edit.State {
	case "closed":
		reason := "completed"
		if edit.StateReason != nil {
			reason = *edit.StateReason
		}
		s.closeIssue(r, i, by.account, reason)
	case "open":
		return s.reopenIssue(r, i, by.account)
	default:
		return invalid("Issue", "state", "invalid")
	}
	return nil
}

func (s *Server) closeIssue(r *repository, i *issue, by *account, reason string) {
	i.closed, i.closedAt, i.closedBy, i.updated = true, s.Now(), by, s.Now()
	if i.pull != nil {
		i.pull.closedBaseSHA = s.branchSHA(r, i.pull.baseBranch)
	} else {
		i.stateReason = reason
	}
	s.emitIssue(r, i, "closed", by, nil)
}

func (s *Server) reopenIssue(r *repository, i *issue, by *account) error {
	if i.pull != nil {
		if i.pull.merged || s.branchSHA(r, i.pull.headBranch) == "" {
			return invalidBecause("PullRequest", "state", "state cannot be changed. The "+i.pull.headBranch+" branch has been deleted or merged.")
		}
		i.pull.closedBaseSHA = ""
	} else {
		i.stateReason = "reopened"
	}
	i.closed, i.closedAt, i.closedBy, i.updated = false, zeroTime, nil, s.Now()
	s.emitIssue(r, i, "reopened", by, nil)
	return nil
}

// emitIssue tells of an issue, or of a pull request when it is one.
func (s *Server) emitIssue(r *repository, i *issue, action string, sender *account, extra object) {
	payload := object{}
	for key, value := range extra {
		payload[key] = value
	}
	name := "issues"
	if i.pull != nil {
		name = "pull_request"
		payload["number"], payload["pull_request"] = i.number, s.pullObject(r, i)
	} else {
		payload["issue"] = s.issueObject(r, i)
	}
	s.emit(event{name: name, action: action, repo: r, sender: sender, payload: payload})
}
