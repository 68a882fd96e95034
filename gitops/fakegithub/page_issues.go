package fakegithub

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

func (s *Server) routeIssuePages(pages *echo.Group) {
	pages.GET("/:owner/:repo/issues", s.page(issueListPage(false)))
	pages.GET("/:owner/:repo/pulls", s.page(issueListPage(true)))
	pages.GET("/:owner/:repo/issues/new", s.page(newIssuePage))
	pages.POST("/:owner/:repo/issues", s.submit(submitIssue))
	pages.GET("/:owner/:repo/issues/:number", s.page(conversationPage(false)))
	pages.GET("/:owner/:repo/pull/:number", s.page(conversationPage(true)))
	pages.GET("/:owner/:repo/pull/:number/commits", s.page(pullPage("commits")))
	pages.GET("/:owner/:repo/pull/:number/checks", s.page(pullPage("checks")))
	pages.GET("/:owner/:repo/pull/:number/files", s.page(pullPage("files")))
	pages.GET("/:owner/:repo/runs/:id", s.page(checkRunPage))
	pages.POST("/:owner/:repo/issues/:number/comments", s.submit(submitComment))
	pages.POST("/:owner/:repo/issues/:number/state", s.submit(submitState))
	pages.POST("/:owner/:repo/issues/:number/reactions", s.submit(submitReaction))
	pages.POST("/:owner/:repo/issues/:number/merge", s.submit(submitMerge))
	pages.POST("/:owner/:repo/comments/:id/edit", s.submit(submitEdit))
	pages.POST("/:owner/:repo/comments/:id/reactions", s.submit(submitReaction))
	pages.POST("/:owner/:repo/runs/:id/actions", s.submit(submitAction))
}

// issueRow is one line of a list.
type issueRow struct {
	Number, Comments           int
	Title, Path, Author, State string
	LabelViews                 []labelView
	Created                    time.Time
	Pull                       bool
}

type labelView struct{ Name, Description string }

func labelViews(labels []*label) []labelView {
	var views []labelView
	for _, l := range labels {
		views = append(views, labelView{l.name, l.description})
	}
	return views
}

func issueListPage(pulls bool) func(*visit) (string, error) {
	return func(v *visit) (string, error) {
		state := cmp.Or(v.echo.QueryParam("state"), "open")
		var rows []issueRow
		for _, i := range slices.Backward(sorted(v.repo.issues)) {
			if (i.pull != nil) == pulls && wantedState(state, i) {
				rows = append(rows, v.row(i))
			}
		}
		v.view.Title, v.view.Tab = "Issues", "issues"
		if pulls {
			v.view.Title, v.view.Tab = "Pull requests", "pulls"
		}
		v.view.Page = struct {
			Rows  []issueRow
			State string
			Pulls bool
		}{rows, state, pulls}
		return "issues.html", nil
	}
}

func (v *visit) row(i *issue) issueRow {
	return issueRow{Number: i.number, Title: i.title, Path: v.path(i), Author: i.author.login, State: i.shownState(), LabelViews: labelViews(i.labels),
		Comments: len(conversation(v.repo, i.number)), Created: i.created, Pull: i.pull != nil}
}

// path is a conversation's address on this server.
func (v *visit) path(i *issue) string {
	return strings.TrimPrefix(v.server.conversationPage(v.repo, i), v.server.URL())
}

// shownState is the state as people see it: merged is more than closed.
func (i *issue) shownState() string {
	switch {
	case i.pull != nil && i.pull.merged:
		return "merged"
	case i.pull != nil && i.pull.draft && !i.closed:
		return "draft"
	default:
		return i.state()
	}
}

func newIssuePage(v *visit) (string, error) {
	v.view.Title, v.view.Tab = "New issue", "issues"
	return "new_issue.html", nil
}

func submitIssue(v *visit) (string, error) {
	i, err := v.server.createIssue(v.repo, actor{account: v.actor}, v.echo.FormValue("title"), v.formText("body"), nil)
	if err != nil {
		return "", err
	}
	return v.path(i), nil
}

// formText reads a text area; browsers send its line ends as CR LF, GitHub keeps LF.
func (v *visit) formText(name string) string {
	return strings.ReplaceAll(v.echo.FormValue(name), "\r\n", "\n")
}

// postView is one text in a conversation, with what people may do with it.
type postView struct {
	Anchor      string
	Author      string
	Profile     string
	Bot         bool
	Association string
	Created     time.Time
	Edited      bool
	HTML        template.HTML
	Source      string
	ReactTo     string // where the picker posts
	EditAt      string // where an edit goes; empty if the actor may not edit
	Reactions   []reactionCount
	File        string // of a comment on a diff
	Hunk        string
}

type reactionCount struct {
	Content string
	Count   int
	Mine    bool
	People  string
}

func countReactions(reactions []*reaction, actor *account) []reactionCount {
	var counts []reactionCount
	for _, content := range reactionContents {
		one := reactionCount{Content: content}
		var people []string
		for _, given := range reactions {
			if given.content == content {
				one.Count++
				one.Mine = one.Mine || given.user == actor
				people = append(people, given.user.login)
			}
		}
		one.People = strings.Join(people, ", ")
		counts = append(counts, one)
	}
	return counts
}

// conversationView is an issue's page, and the first page of a pull request.
type conversationView struct {
	Issue    issueRow
	Posts    []postView
	Linked   []issueRow
	Checks   []checkView
	Locked   bool
	MayClose bool
	Pull     *pullHead
	People   []string
}

// checkView is a check run with its buttons.
type checkView struct {
	ID                             int64
	Name, App, Status, Path, Title string
	SHA                            string
	Summary, Text                  template.HTML
	Actions                        []CheckAction
	MayClick                       bool
}

func conversationPage(pull bool) func(*visit) (string, error) {
	return func(v *visit) (string, error) {
		if number, plain := cutDiff(v.echo.Param("number")); plain && pull {
			return "", v.plainDiff(number)
		}
		i, err := v.issue()
		if err != nil {
			return "", err
		}
		if (i.pull != nil) != pull {
			return "", v.echo.Redirect(http.StatusFound, v.path(i))
		}
		v.view.Title, v.view.Tab, v.view.Live = fmt.Sprintf("%s #%d", i.title, i.number), "issues", true
		if pull {
			v.view.Tab = "pulls"
		}
		v.view.Page = v.conversation(i)
		return "conversation.html", nil
	}
}

func (v *visit) issue() (*issue, error) {
	number, err := strconv.ParseInt(v.echo.Param("number"), 10, 64)
	if err != nil {
		return nil, errNotFound
	}
	return v.repo.find(number)
}

func (v *visit) conversation(i *issue) conversationView {
	base := "/" + v.repo.fullName()
	opening := v.post(i.author, i.created, i.updated, i.body, i.reactions)
	opening.Anchor, opening.Edited = fmt.Sprintf("issue-%d", i.id), false
	opening.ReactTo = fmt.Sprintf("%s/issues/%d/reactions", base, i.number)
	result := conversationView{Issue: v.row(i), Posts: []postView{opening}, Locked: i.locked, People: []string{i.author.login},
		Linked: v.linked(i), MayClose: v.actor != nil && (i.author == v.actor || v.repo.role(v.actor).atLeast(RoleTriage))}
	for _, m := range commentsWhere(v.repo, func(m *comment) bool { return m.number == i.number }) {
		result.Posts = append(result.Posts, v.commentPost(m))
		if !slices.Contains(result.People, m.author.login) {
			result.People = append(result.People, m.author.login)
		}
	}
	if i.pull != nil {
		result.Pull = v.pullHead(i)
	}
	result.Checks = v.checksFor(i)
	return result
}

func (v *visit) commentPost(m *comment) postView {
	base := "/" + v.repo.fullName()
	one := v.post(m.author, m.created, m.updated, m.body, m.reactions)
	one.Anchor = fmt.Sprintf("issuecomment-%d", m.id)
	one.ReactTo = fmt.Sprintf("%s/comments/%d/reactions", base, m.id)
	if v.actor != nil && mayEdit(v.repo, m, actor{account: v.actor}) == nil {
		one.EditAt = fmt.Sprintf("%s/comments/%d/edit", base, m.id)
	}
	if m.line != nil {
		one.Anchor, one.File, one.Hunk = fmt.Sprintf("discussion_r%d", m.id), m.line.path, m.line.hunk
	}
	return one
}

func (v *visit) post(author *account, created, updated time.Time, body string, reactions []*reaction) postView {
	association := ""
	if role := v.repo.roleName(author); role != RoleRead && role != RoleNone {
		association = string(role)
	}
	return postView{Author: author.login, Profile: strings.TrimPrefix(v.server.accountPage(author), v.server.URL()), Bot: author.kind == "Bot", Association: association, Created: created, Edited: updated.After(created),
		HTML: renderComment(body, v.place()), Source: body, Reactions: countReactions(reactions, v.actor)}
}

func (v *visit) place() place {
	return place{repository: "/" + v.repo.fullName(), known: func(login string) bool { return v.server.world.account(login) != nil }}
}

var mention = regexp.MustCompile(`#(\d+)\b`)

// mentions says whether a text names the issue by its number.
func mentions(text string, number int) bool {
	for _, found := range mention.FindAllStringSubmatch(text, -1) {
		if found[1] == strconv.Itoa(number) {
			return true
		}
	}
	return false
}

// linked lists the pull requests that name this issue, and for a pull request the issues that it names.
func (v *visit) linked(i *issue) []issueRow {
	var rows []issueRow
	for _, other := range sorted(v.repo.issues) {
		if other.pull != nil && i.pull == nil && mentions(other.title+"\n"+other.body, i.number) ||
			i.pull != nil && other.pull == nil && mentions(i.title+"\n"+i.body, other.number) {
			rows = append(rows, v.row(other))
		}
	}
	return rows
}

// checksFor lists the check runs on a pull request's head; for an issue, those whose name has its number.
func (v *visit) checksFor(i *issue) []checkView {
	var checks []checkView
	head := ""
	if i.pull != nil {
		head = v.server.headSHA(v.repo, i)
	}
	for _, run := range v.repo.checkRuns {
		if (i.pull != nil && run.headSHA == head) || (i.pull == nil && mentions(run.name, i.number)) {
			checks = append(checks, v.check(run))
		}
	}
	return checks
}

func (v *visit) check(run *checkRun) checkView {
	status := cmp.Or(run.conclusion, run.status)
	result := checkView{ID: run.id, Name: run.name, App: run.app.slug, Status: status, Path: fmt.Sprintf("/%s/runs/%d", v.repo.fullName(), run.id),
		Title: run.title, SHA: run.headSHA, Summary: renderDocument(run.summary), Text: renderDocument(run.text),
		MayClick: v.repo.role(v.actor).atLeast(RoleWrite)}
	if run.status == "completed" {
		result.Actions = run.actions
	}
	return result
}

func checkRunPage(v *visit) (string, error) {
	run, err := v.checkRun()
	if err != nil {
		return "", err
	}
	v.view.Title, v.view.Live, v.view.Page = run.name, true, v.check(run)
	return "check.html", nil
}

func (v *visit) checkRun() (*checkRun, error) {
	id, err := strconv.ParseInt(v.echo.Param("id"), 10, 64)
	if err != nil {
		return nil, errNotFound
	}
	return v.repo.checkRun(id)
}
