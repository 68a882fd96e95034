package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// pullHead is what stands on top of all pages of a pull request.
type pullHead struct {
	Path, Head, Base, MergeState string
	Commits, Files, Checks       int
	Additions, Deletions         int
	MayMerge                     bool
	Open                         bool
}

func (v *visit) pullHead(i *issue) *pullHead {
	difference := v.server.pullChange(v.repo, i)
	_, state := v.server.mergeable(v.repo, i)
	head := &pullHead{Path: v.path(i), Head: i.pull.headBranch, Base: i.pull.baseBranch, MergeState: state,
		Commits: len(difference.commits), Files: len(difference.files), Checks: len(v.checksFor(i)),
		Additions: difference.additions(), Deletions: difference.deletions(), Open: !i.closed,
		MayMerge: v.repo.role(v.actor).atLeast(RoleWrite)}
	return head
}

// pullView is a further page of a pull request.
type pullView struct {
	Issue   issueRow
	Pull    *pullHead
	Which   string
	Commits []commitRow
	Checks  []checkView
	Files   []fileView
}

type commitRow struct {
	SHA, Subject, Author, Path string
	When                       time.Time
}

type fileView struct {
	Name, Previous, Status string
	Additions, Deletions   int
	Patch                  string
}

func pullPage(which string) func(*visit) (string, error) {
	return func(v *visit) (string, error) {
		i, err := v.issue()
		if err != nil || i.pull == nil {
			return "", errNotFound
		}
		difference := v.server.pullChange(v.repo, i)
		v.view.Title, v.view.Tab = fmt.Sprintf("%s #%d", i.title, i.number), "pulls"
		v.view.Page = pullView{Issue: v.row(i), Pull: v.pullHead(i), Which: which, Checks: v.checksFor(i),
			Commits: v.commitRows(difference.commits), Files: fileViews(difference.files)}
		return "pull.html", nil
	}
}

func (v *visit) commitRows(commits []*gitobject.Commit) []commitRow {
	var rows []commitRow
	for _, commit := range commits {
		subject, _, _ := strings.Cut(commit.Message, "\n")
		rows = append(rows, commitRow{SHA: commit.Hash.String(), Subject: subject, Author: commit.Author.Name, When: commit.Author.When,
			Path: "/" + v.repo.fullName() + "/commit/" + commit.Hash.String()})
	}
	return rows
}

func fileViews(files []fileChange) []fileView {
	var views []fileView
	for _, file := range files {
		views = append(views, fileView{Name: file.name, Previous: file.previous, Status: file.status,
			Additions: file.additions, Deletions: file.deletions, Patch: file.patch})
	}
	return views
}

// plainDiff answers /pull/7.diff.
func (v *visit) plainDiff(number string) error {
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return errNotFound
	}
	i, err := v.repo.find(at)
	if err != nil || i.pull == nil {
		return errNotFound
	}
	return v.echo.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(v.server.pullChange(v.repo, i).diff))
}
