package fakegithub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// labelNames reads labels in both forms that GitHub takes: names and objects with a name.
type labelNames []string

func (l *labelNames) UnmarshalJSON(data []byte) error {
	var mixed []any
	if err := json.Unmarshal(data, &mixed); err != nil {
		return err
	}
	*l = labelNames{}
	for _, one := range mixed {
		switch value := one.(type) {
		case string:
			*l = append(*l, value)
		case map[string]any:
			if name, ok := value["name"].(string); ok {
				*l = append(*l, name)
			}
		}
	}
	return nil
}

// issueOf finds the issue or pull request of the path.
func issueOf(c *call) (*issue, error) {
	number, err := c.number("issue_number")
	if err != nil {
		return nil, err
	}
	return c.repo.find(number)
}

func listIssues(c *call) (any, error) {
	query := c.request().URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	list := slices.DeleteFunc(sorted(c.repo.issues), func(i *issue) bool {
		return !wantedState(query.Get("state"), i) || i.updated.Before(since) || !hasLabels(i, query.Get("labels")) ||
			(query.Get("creator") != "" && !strings.EqualFold(query.Get("creator"), i.author.login))
	})
	if query.Get("direction") != "asc" {
		slices.Reverse(list)
	}
	return each(paginate(c, list), func(i *issue) object { return c.server.issueObject(c.repo, i) }), nil
}

func wantedState(wanted string, i *issue) bool {
	return wanted == "all" || i.state() == wanted || (wanted == "" && !i.closed)
}

func hasLabels(i *issue, wanted string) bool {
	for name := range strings.SplitSeq(wanted, ",") {
		if name != "" && !slices.ContainsFunc(i.labels, func(l *label) bool { return strings.EqualFold(l.name, name) }) {
			return false
		}
	}
	return true
}

func createIssue(c *call) (any, error) {
	var wanted struct {
		Title  *string    `json:"title"`
		Body   *string    `json:"body"`
		Labels labelNames `json:"labels"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	title, body := "", ""
	set(&title, wanted.Title)
	set(&body, wanted.Body)
	i, err := c.server.createIssue(c.repo, c.caller.actor(), title, body, wanted.Labels)
	if err != nil {
		return nil, err
	}
	c.header("Location", c.server.issueAPI(c.repo, i.number))
	return c.server.issueObject(c.repo, i), nil
}

func getIssue(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	return c.server.issueObject(c.repo, i), nil
}

func updateIssue(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	var edit struct {
		issueEdit
		Labels *labelNames `json:"labels"`
	}
	if err := c.decode(&edit); err != nil {
		return nil, err
	}
	if edit.Labels != nil {
		names := []string(*edit.Labels)
		edit.issueEdit.Labels = &names
	}
	if err := c.server.editIssue(c.repo, i, c.caller.actor(), edit.issueEdit); err != nil {
		return nil, err
	}
	return c.server.issueObject(c.repo, i), nil
}

func listComments(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	since, _ := time.Parse(time.RFC3339, c.request().URL.Query().Get("since"))
	list := slices.DeleteFunc(conversation(c.repo, i.number), func(m *comment) bool { return m.updated.Before(since) })
	return each(paginate(c, list), func(m *comment) object { return c.server.commentObject(c.repo, m) }), nil
}

type bodyOnly struct {
	Body string `json:"body"`
}

func createComment(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	var wanted bodyOnly
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	m, err := c.server.createComment(c.repo, i, c.caller.actor(), wanted.Body)
	if err != nil {
		return nil, err
	}
	result := c.server.commentObject(c.repo, m)
	c.header("Location", result["url"].(string))
	return result, nil
}

// commentOf finds a comment of the path: on a conversation, or on a diff.
func commentOf(c *call, onDiff bool) (*comment, error) {
	id, err := c.number("comment_id")
	if err != nil {
		return nil, err
	}
	m := c.repo.comments[id]
	if m == nil || (m.line != nil) != onDiff {
		return nil, errNotFound
	}
	return m, nil
}

func getComment(c *call) (any, error) {
	m, err := commentOf(c, false)
	if err != nil {
		return nil, err
	}
	return c.server.commentObject(c.repo, m), nil
}

func updateComment(c *call) (any, error) {
	m, err := commentOf(c, false)
	if err != nil {
		return nil, err
	}
	var wanted bodyOnly
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	if err := c.server.editComment(c.repo, m, c.caller.actor(), wanted.Body); err != nil {
		return nil, err
	}
	return c.server.commentObject(c.repo, m), nil
}

func deleteComment(c *call) (any, error) {
	m, err := commentOf(c, false)
	if err != nil {
		return nil, err
	}
	return nil, c.server.deleteComment(c.repo, m, c.caller.actor())
}

// reactionsOf finds what a path's reactions belong to.
func reactionsOf(c *call) (*[]*reaction, error) {
	if c.param("issue_number") != "" {
		i, err := issueOf(c)
		if err != nil {
			return nil, err
		}
		return &i.reactions, nil
	}
	m, err := commentOf(c, strings.Contains(c.operation.path, "/pulls/comments/"))
	if err != nil {
		return nil, err
	}
	return &m.reactions, nil
}

func listReactions(c *call) (any, error) {
	reactions, err := reactionsOf(c)
	if err != nil {
		return nil, err
	}
	content := c.request().URL.Query().Get("content")
	list := slices.DeleteFunc(slices.Clone(*reactions), func(one *reaction) bool { return content != "" && one.content != content })
	return each(paginate(c, list), c.server.reactionObject), nil
}

func createReaction(c *call) (any, error) {
	reactions, err := reactionsOf(c)
	if err != nil {
		return nil, err
	}
	var wanted struct {
		Content string `json:"content"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	one, created, err := c.server.react(reactions, c.caller.account, wanted.Content)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusOK
	if created {
		c.status = http.StatusCreated
	}
	return c.server.reactionObject(one), nil
}

func deleteReaction(c *call) (any, error) {
	reactions, err := reactionsOf(c)
	if err != nil {
		return nil, err
	}
	id, err := c.number("reaction_id")
	if err != nil {
		return nil, err
	}
	return nil, unreact(reactions, c.caller.account, id)
}

func listIssueLabels(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	return labelList(c, i.labels), nil
}

func labelList(c *call, labels []*label) []object {
	return each(paginate(c, labels), func(l *label) object { return c.server.labelObject(c.repo, l) })
}

func addIssueLabels(c *call) (any, error) {
	i, err := issueOf(c)
	if err != nil {
		return nil, err
	}
	names, err := wantedLabels(c)
	if err != nil {
		return nil, err
	}
	known := len(i.labels)
	c.server.label(c.repo, i, names)
	i.updated = c.server.Now()
	for _, l := range i.labels[known:] {
		c.server.emitIssue(c.repo, i, "labeled", c.caller.account, object{"label": c.server.labelObject(c.repo, l)})
	}
	return labelList(c, i.labels), nil
}

// wantedLabels reads {"labels": […]} or a bare list.
func wantedLabels(c *call) ([]string, error) {
	var bare labelNames
	if err := json.Unmarshal(c.body, &bare); err == nil {
		return bare, nil
	}
	var wrapped struct {
		Labels labelNames `json:"labels"`
	}
	err := c.decode(&wrapped)
	return wrapped.Labels, err
}

func listLabels(c *call) (any, error) { return labelList(c, c.repo.labels), nil }

func createLabel(c *call) (any, error) {
	var wanted struct {
		Name        string `json:"name"`
		Color       string `json:"color"`
		Description string `json:"description"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	switch {
	case wanted.Name == "":
		return nil, invalid("Label", "name", "missing_field")
	case len([]rune(wanted.Name)) > 50:
		return nil, invalidBecause("Label", "name", "name is too long (maximum is 50 characters)")
	case len([]rune(wanted.Description)) > 100:
		return nil, invalidBecause("Label", "description", "description is too long (maximum is 100 characters)")
	case slices.ContainsFunc(c.repo.labels, func(l *label) bool { return strings.EqualFold(l.name, wanted.Name) }):
		return nil, invalid("Label", "name", "already_exists")
	}
	l := c.server.labelNamed(c.repo, wanted.Name)
	l.description = wanted.Description
	if wanted.Color != "" {
		l.color = wanted.Color
	}
	return c.server.labelObject(c.repo, l), nil
}
