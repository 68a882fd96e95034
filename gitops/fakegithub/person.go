package fakegithub

import (
	"fmt"
	"strings"
)

// A Person acts on the fake as one account, with that account's roles and nothing more: what GitHub would refuse is
// an error here. Get one with Server.As. Safe for concurrent use.
type Person struct {
	server *Server
	login  string
}

// As returns the person with this login; that it exists is checked when it acts.
func (s *Server) As(login string) *Person { return &Person{server: s, login: login} }

// Token is the person's personal access token for the REST API and git.
func (p *Person) Token() string {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if a := p.server.world.account(p.login); a != nil {
		return a.token
	}
	return ""
}

// act runs work as the person in the repository owner/name, under the lock and the rules of access.
func (p *Person) act(repository, needed string, role Role, work func(*repository, actor) error) error {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.world.account(p.login)
	if a == nil {
		return fmt.Errorf("fakegithub: no account %q", p.login)
	}
	owner, name, _ := strings.Cut(repository, "/")
	r := s.world.repository(owner, name)
	if r == nil {
		return fmt.Errorf("fakegithub: no repository %q", repository)
	}
	if err := (&caller{account: a}).may(r, needed, role); err != nil {
		return fmt.Errorf("fakegithub: %s in %s: %w", p.login, repository, err)
	}
	if err := work(r, actor{account: a}); err != nil {
		return fmt.Errorf("fakegithub: %s in %s: %w", p.login, repository, err)
	}
	return nil
}

func (p *Person) onIssue(repository string, number int, work func(*repository, *issue, actor) error) error {
	return p.act(repository, "issues:write", RoleRead, func(r *repo, by actor) error {
		i, err := r.find(int64(number))
		if err != nil {
			return err
		}
		return work(r, i, by)
	})
}

func (p *Person) onComment(repository string, id int64, work func(*repository, *comment, actor) error) error {
	return p.act(repository, "issues:write", RoleRead, func(r *repo, by actor) error {
		m := r.comments[id]
		if m == nil {
			return errNotFound
		}
		return work(r, m, by)
	})
}

// repo keeps signatures readable where a parameter is called repository.
type repo = repository

// CreateIssue opens an issue in the repository owner/name.
func (p *Person) CreateIssue(repository, title, body string, labels ...string) (result Issue, err error) {
	err = p.act(repository, "issues:write", RoleRead, func(r *repo, by actor) error {
		i, err := p.server.createIssue(r, by, title, body, labels)
		if err == nil {
			result = p.server.dumpIssue(r, i)
		}
		return err
	})
	return result, err
}

// EditIssue replaces title and body; an empty title leaves the title as it is.
func (p *Person) EditIssue(repository string, number int, title, body string) error {
	return p.onIssue(repository, number, func(r *repo, i *issue, by actor) error {
		edit := issueEdit{Body: &body}
		if title != "" {
			edit.Title = &title
		}
		return p.server.editIssue(r, i, by, edit)
	})
}

// CloseIssue closes an issue or, unmerged, a pull request.
func (p *Person) CloseIssue(repository string, number int) error {
	return p.setState(repository, number, "closed")
}

// ReopenIssue opens it again.
func (p *Person) ReopenIssue(repository string, number int) error {
	return p.setState(repository, number, "open")
}

func (p *Person) setState(repository string, number int, state string) error {
	return p.onIssue(repository, number, func(r *repo, i *issue, by actor) error {
		return p.server.editIssue(r, i, by, issueEdit{State: &state})
	})
}

// LockIssue locks the conversation, for who can write.
func (p *Person) LockIssue(repository string, number int) error {
	return p.act(repository, "issues:write", RoleWrite, func(r *repo, by actor) error {
		i, err := r.find(int64(number))
		if err != nil {
			return err
		}
		i.locked = true
		p.server.emitIssue(r, i, "locked", by.account, nil)
		return nil
	})
}

// Comment posts on an issue or pull request.
func (p *Person) Comment(repository string, number int, body string) (result Comment, err error) {
	err = p.onIssue(repository, number, func(r *repo, i *issue, by actor) error {
		m, err := p.server.createComment(r, i, by, body)
		if err == nil {
			result = p.server.dumpComment(r, m)
		}
		return err
	})
	return result, err
}

// EditComment replaces a comment's text; one's own, or anybody's with the write role.
func (p *Person) EditComment(repository string, id int64, body string) error {
	return p.onComment(repository, id, func(r *repo, m *comment, by actor) error {
		return p.server.editComment(r, m, by, body)
	})
}

// DeleteComment removes a comment; one's own, or anybody's with the write role.
func (p *Person) DeleteComment(repository string, id int64) error {
	return p.onComment(repository, id, func(r *repo, m *comment, by actor) error {
		return p.server.deleteComment(r, m, by)
	})
}

// React sets a reaction on a comment: +1, -1, laugh, hooray, confused, heart, rocket or eyes.
func (p *Person) React(repository string, commentID int64, content string) error {
	return p.onComment(repository, commentID, func(_ *repo, m *comment, by actor) error {
		_, _, err := p.server.react(&m.reactions, by.account, content)
		return err
	})
}

// Unreact takes the person's own reaction from a comment.
func (p *Person) Unreact(repository string, commentID int64, content string) error {
	return p.onComment(repository, commentID, func(_ *repo, m *comment, by actor) error {
		return unreactContent(&m.reactions, by.account, content)
	})
}

func unreactContent(reactions *[]*reaction, by *account, content string) error {
	for _, one := range *reactions {
		if one.user == by && one.content == content {
			return unreact(reactions, by, one.id)
		}
	}
	return errNotFound
}

// ReactToIssue sets a reaction on an issue's or pull request's own text.
func (p *Person) ReactToIssue(repository string, number int, content string) error {
	return p.onIssue(repository, number, func(_ *repo, i *issue, by actor) error {
		_, _, err := p.server.react(&i.reactions, by.account, content)
		return err
	})
}

// ClickCheckAction clicks a completed check run's button; it needs the write role.
func (p *Person) ClickCheckAction(repository string, checkRunID int64, identifier string) error {
	return p.act(repository, "checks:write", RoleWrite, func(r *repo, by actor) error {
		run, err := r.checkRun(checkRunID)
		if err != nil {
			return err
		}
		return p.server.clickAction(r, run, by.account, identifier)
	})
}

// RerequestCheck asks the App to run its check again.
func (p *Person) RerequestCheck(repository string, checkRunID int64) error {
	return p.act(repository, "checks:write", RoleWrite, func(r *repo, by actor) error {
		run, err := r.checkRun(checkRunID)
		if err != nil {
			return err
		}
		return p.server.rerequest(r, run, by)
	})
}

// CreatePull opens a pull request from a branch of the repository.
func (p *Person) CreatePull(repository, head, base, title, body string) (result Issue, err error) {
	err = p.act(repository, "pull_requests:write", RoleRead, func(r *repo, by actor) error {
		i, err := p.server.createPull(r, by, pullRequest{Title: &title, Body: &body, Head: &head, Base: &base})
		if err == nil {
			result = p.server.dumpIssue(r, i)
		}
		return err
	})
	return result, err
}

// MergePull merges a pull request with a merge commit and returns its hash.
func (p *Person) MergePull(repository string, number int) (sha string, err error) {
	err = p.act(repository, "contents:write", RoleWrite, func(r *repo, by actor) error {
		defer p.server.lockRefs(r)()
		i, err := r.find(int64(number))
		if err != nil || i.pull == nil {
			return errNotFound
		}
		sha, err = p.server.mergePull(r, i, by, "merge", "", "", "")
		return err
	})
	return sha, err
}

// Review submits a review: APPROVED, CHANGES_REQUESTED or COMMENTED.
func (p *Person) Review(repository string, number int, state, body string) error {
	return p.onIssue(repository, number, func(r *repo, i *issue, by actor) error {
		if i.pull == nil {
			return errNotFound
		}
		_, err := p.server.createReview(r, i, by, state, body)
		return err
	})
}

// ReviewComment comments on a line of a file that the pull request changes.
func (p *Person) ReviewComment(repository string, number int, path string, line int, body string) (result Comment, err error) {
	err = p.onIssue(repository, number, func(r *repo, i *issue, by actor) error {
		if i.pull == nil {
			return errNotFound
		}
		m, err := p.server.createReviewComment(r, i, by, path, line, body)
		if err == nil {
			result = p.server.dumpComment(r, m)
		}
		return err
	})
	return result, err
}
