package fakegithub

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/labstack/echo/v4"
)

func (s *Server) routeCodePages(pages *echo.Group) {
	pages.GET("/:owner/:repo", s.page(codePage))
	pages.GET("/:owner/:repo/tree/*", s.page(codePage))
	pages.GET("/:owner/:repo/blob/*", s.page(codePage))
	pages.GET("/:owner/:repo/raw/*", s.page(rawPage))
	pages.GET("/:owner/:repo/commit/:sha", s.page(commitPage))
	pages.GET("/:owner/:repo/compare/*", s.page(comparePage))
	pages.GET("/:owner/:repo/logs/:job", s.page(logPage))
}

// homeRow is a repository in the list.
type homeRow struct {
	Path, Description string
	Private           bool
	Issues, Pulls     int
}

func homePage(v *visit) (string, error) {
	var rows []homeRow
	for _, r := range sorted(v.server.world.repositories) {
		if !(&caller{account: v.actor}).sees(r) {
			continue
		}
		head := (&visit{server: v.server, actor: v.actor, repo: r}).repositoryHead()
		rows = append(rows, homeRow{Path: r.fullName(), Description: r.description, Private: r.private, Issues: head.OpenIssues, Pulls: head.OpenPulls})
	}
	var apps []App
	for _, a := range sorted(v.server.world.apps) {
		apps = append(apps, a.dump())
	}
	v.view.Title = "Repositories"
	v.view.Page = struct {
		Rows []homeRow
		Apps []App
	}{rows, apps}
	return "home.html", nil
}

func accountPage(v *visit) (string, error) {
	a := v.server.world.account(v.echo.Param("login"))
	if a == nil {
		return "", errNotFound
	}
	var rows []homeRow
	for _, r := range sorted(v.server.world.repositories) {
		if r.owner == a && (&caller{account: v.actor}).sees(r) {
			rows = append(rows, homeRow{Path: r.fullName(), Description: r.description, Private: r.private})
		}
	}
	v.view.Title = a.login
	v.view.Page = struct {
		Login, Kind string
		Rows        []homeRow
	}{a.login, a.kind, rows}
	return "account.html", nil
}

// codeView is a directory with its README, or a file.
type codeView struct {
	Ref, Path, CloneURL string
	Crumbs              []crumb
	Branches            []string
	Entries             []entryRow
	Readme              template.HTML
	File                bool
	Lines               []string
	Document            template.HTML
	Note                string
}

type crumb struct{ Name, Path string }

type entryRow struct {
	Name, Path string
	Directory  bool
}

func codePage(v *visit) (string, error) {
	ref, path, commit, err := v.splitRef(v.echo.Param("*"))
	v.view.Title, v.view.Tab = v.repo.fullName(), "code"
	shown := &codeView{Ref: ref, Path: path, CloneURL: v.server.repoPage(v.repo) + ".git"}
	v.view.Page = shown
	if failure, ok := errors.AsType[*apiError](err); ok && failure.status == http.StatusConflict {
		shown.Note = "This repository is empty."
		return "code.html", nil
	}
	if err != nil {
		return "", errNotFound
	}
	tree, err := commit.Tree()
	if err != nil {
		return "", err
	}
	v.crumbs(shown)
	if path == "" {
		return "code.html", v.showDirectory(shown, tree)
	}
	entry, err := tree.FindEntry(path)
	if err != nil {
		return "", errNotFound
	}
	if entry.Mode == filemode.Dir {
		if tree, err = tree.Tree(path); err != nil {
			return "", err
		}
		return "code.html", v.showDirectory(shown, tree)
	}
	return "code.html", v.showFile(shown, *entry)
}

// splitRef tells the branch or commit at the start of a path from the file that follows. Branches may contain
// slashes; the longest that exists wins.
func (v *visit) splitRef(rest string) (ref, path string, commit *gitobject.Commit, err error) {
	rest = strings.Trim(rest, "/")
	if rest == "" {
		commit, err = v.server.resolve(v.repo, v.repo.defaultBranch)
		return v.repo.defaultBranch, "", commit, err
	}
	segments := strings.Split(rest, "/")
	for taken := len(segments); taken > 0; taken-- {
		ref = strings.Join(segments[:taken], "/")
		if commit, err = v.server.resolve(v.repo, ref); err == nil {
			return ref, strings.Join(segments[taken:], "/"), commit, nil
		}
	}
	return "", "", nil, err
}

func (v *visit) crumbs(shown *codeView) {
	address := "/" + v.repo.fullName() + "/tree/" + shown.Ref
	shown.Crumbs = []crumb{{v.repo.name, address}}
	if shown.Path != "" {
		for part := range strings.SplitSeq(shown.Path, "/") {
			address += "/" + part
			shown.Crumbs = append(shown.Crumbs, crumb{part, address})
		}
	}
	refs, err := v.server.refs(v.repo, "refs/heads/")
	if err != nil {
		return
	}
	for _, ref := range refs {
		shown.Branches = append(shown.Branches, ref.Name().Short())
	}
}

func (v *visit) showDirectory(shown *codeView, tree *gitobject.Tree) error {
	prefix := strings.TrimSuffix(shown.Ref+"/"+shown.Path, "/")
	for _, directories := range []bool{true, false} {
		for _, entry := range tree.Entries {
			if (entry.Mode == filemode.Dir) != directories {
				continue
			}
			kind := "/blob/"
			if directories {
				kind = "/tree/"
			}
			shown.Entries = append(shown.Entries, entryRow{Name: entry.Name, Directory: directories, Path: "/" + v.repo.fullName() + kind + prefix + "/" + entry.Name})
			if strings.EqualFold(entry.Name, "README.md") {
				text, err := v.server.blob(v.repo, entry.Hash)
				if err != nil {
					return err
				}
				shown.Readme = renderDocument(string(text))
			}
		}
	}
	return nil
}

func (v *visit) showFile(shown *codeView, entry gitobject.TreeEntry) error {
	shown.File = true
	if entry.Mode == filemode.Submodule {
		shown.Note = "A submodule at " + entry.Hash.String()
		return nil
	}
	content, err := v.server.blob(v.repo, entry.Hash)
	switch {
	case err != nil:
		return err
	case bytes.IndexByte(content, 0) >= 0:
		shown.Note = "A binary file of " + plural(len(content), "byte")
	case strings.HasSuffix(strings.ToLower(shown.Path), ".md"):
		shown.Document = renderDocument(string(content))
	default:
		shown.Lines = strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	}
	return nil
}

func rawPage(v *visit) (string, error) {
	_, path, commit, err := v.splitRef(v.echo.Param("*"))
	if err != nil {
		return "", errNotFound
	}
	file, err := commit.File(path)
	if err != nil {
		return "", errNotFound
	}
	content, err := file.Contents()
	if err != nil {
		return "", err
	}
	return "", v.echo.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(content))
}

// changeView is a commit or a comparison.
type changeView struct {
	Heading, Message string
	Commits          []commitRow
	Files            []fileView
}

func commitPage(v *visit) (string, error) {
	commit, err := v.server.resolve(v.repo, v.echo.Param("sha"))
	if err != nil {
		return "", errNotFound
	}
	files, _, err := v.server.commitChange(commit)
	if err != nil {
		return "", err
	}
	v.view.Title, v.view.Tab = commit.Hash.String(), "code"
	v.view.Page = changeView{Heading: "Commit " + commit.Hash.String()[:12], Message: commit.Message,
		Commits: v.commitRows([]*gitobject.Commit{commit}), Files: fileViews(files)}
	return "change.html", nil
}

func comparePage(v *visit) (string, error) {
	name, plain := cutDiff(v.echo.Param("*"))
	left, right, ok := strings.Cut(name, "...")
	if !ok {
		return "", errNotFound
	}
	difference, err := v.server.compareNames(v.repo, left, right)
	if err != nil {
		return "", errNotFound
	}
	if plain {
		return "", v.echo.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(difference.diff))
	}
	v.view.Title, v.view.Tab = name, "code"
	v.view.Page = changeView{Heading: "Comparing " + name, Commits: v.commitRows(difference.commits), Files: fileViews(difference.files)}
	return "change.html", nil
}

// cutDiff takes .diff or .patch off a name; the fake has the same text for both.
func cutDiff(name string) (string, bool) {
	if cut, ok := strings.CutSuffix(name, ".diff"); ok {
		return cut, true
	}
	return strings.CutSuffix(name, ".patch")
}

func logPage(v *visit) (string, error) {
	id, err := strconv.ParseInt(v.echo.Param("job"), 10, 64)
	if err != nil {
		return "", errNotFound
	}
	for _, run := range v.repo.workflowRuns {
		for _, job := range run.jobs {
			if job.id == id {
				return "", v.echo.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(job.log))
			}
		}
	}
	return "", errNotFound
}
