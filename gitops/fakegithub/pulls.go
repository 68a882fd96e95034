package fakegithub

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"

	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// pullRequest is what opening or editing a pull request may say.
type pullRequest struct {
	Title               *string `json:"title"`
	Body                *string `json:"body"`
	Head                *string `json:"head"`
	Base                *string `json:"base"`
	State               *string `json:"state"`
	Draft               *bool   `json:"draft"`
	MaintainerCanModify *bool   `json:"maintainer_can_modify"`
}

// createPull opens a pull request from a branch of the same repository; the fake has no forks.
func (s *Server) createPull(r *repository, by actor, wanted pullRequest) (*issue, error) {
	head, err := s.checkPull(r, &wanted)
	if err != nil {
		return nil, err
	}
	body := ""
	set(&body, wanted.Body)
	i := s.newIssue(r, by, *wanted.Title, body)
	i.pull = &pull{id: s.world.nextID(), headBranch: head, baseBranch: *wanted.Base, canModify: true}
	set(&i.pull.draft, wanted.Draft)
	set(&i.pull.canModify, wanted.MaintainerCanModify)
	tip := plumbing.NewHashReference(pullRef(i.number), plumbing.NewHash(s.branchSHA(r, head)))
	if err := s.storage(r).SetReference(tip); err != nil {
		return nil, err
	}
	s.emitIssue(r, i, "opened", by.account, nil)
	return i, nil
}

// checkPull makes GitHub's checks before a pull request is opened and returns the head branch's bare name.
func (s *Server) checkPull(r *repository, wanted *pullRequest) (string, error) {
	switch {
	case wanted.Head == nil || *wanted.Head == "":
		return "", invalid("PullRequest", "head", "missing_field")
	case wanted.Base == nil || *wanted.Base == "":
		return "", invalid("PullRequest", "base", "missing_field")
	case wanted.Title == nil:
		return "", invalid("PullRequest", "title", "missing_field")
	}
	if err := checkTitle("PullRequest", *wanted.Title); err != nil {
		return "", err
	}
	if wanted.Body != nil {
		if err := checkBody("PullRequest", *wanted.Body); err != nil {
			return "", err
		}
	}
	owner, head, qualified := strings.Cut(*wanted.Head, ":")
	if !qualified {
		owner, head = r.owner.login, *wanted.Head
	}
	if !strings.EqualFold(owner, r.owner.login) || s.branchSHA(r, head) == "" {
		return "", invalid("PullRequest", "head", "invalid")
	}
	if s.branchSHA(r, *wanted.Base) == "" {
		return "", invalid("PullRequest", "base", "invalid")
	}
	return head, s.checkPullIsNew(r, head, *wanted.Base)
}

func (s *Server) checkPullIsNew(r *repository, head, base string) error {
	sentence := func(text string) error {
		return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed",
			errors: []any{object{"resource": "PullRequest", "code": "custom", "message": text}}}
	}
	for _, i := range sorted(r.issues) {
		if i.pull != nil && !i.closed && i.pull.headBranch == head && i.pull.baseBranch == base {
			return sentence(fmt.Sprintf("A pull request already exists for %s:%s.", r.owner.login, head))
		}
	}
	difference, err := s.compare(r, s.branchSHA(r, base), s.branchSHA(r, head))
	if err != nil {
		return err
	}
	if len(difference.commits) == 0 {
		return sentence(fmt.Sprintf("No commits between %s and %s", base, head))
	}
	return nil
}

// editPull changes title, body, base and state.
func (s *Server) editPull(r *repository, i *issue, by actor, edit pullRequest) error {
	if edit.Base != nil && *edit.Base != i.pull.baseBranch {
		if s.branchSHA(r, *edit.Base) == "" {
			return invalid("PullRequest", "base", "invalid")
		}
		before := i.pull.baseBranch
		i.pull.baseBranch = *edit.Base
		s.emitIssue(r, i, "edited", by.account, object{"changes": object{"base": object{
			"ref": object{"from": before}, "sha": object{"from": s.branchSHA(r, before)}}}})
	}
	set(&i.pull.canModify, edit.MaintainerCanModify)
	return s.editIssue(r, i, by, issueEdit{Title: edit.Title, Body: edit.Body, State: edit.State})
}

// mergeable says whether the merge would work, and GitHub's word for it.
func (s *Server) mergeable(r *repository, i *issue) (any, string) {
	if i.closed {
		return nil, "unknown"
	}
	difference := s.pullChange(r, i)
	if difference.head == nil {
		return nil, "unknown"
	}
	if _, err := difference.merged(); err != nil {
		return false, "dirty"
	}
	return true, "clean"
}

// mergedEntries is the tree of the merge. Files are merged whole: one that both sides changed is a conflict.
func mergedEntries(c *change) (map[string]fileEntry, error) {
	var before map[string]fileEntry
	if c.mergeBase != nil {
		entries, err := entriesOf(c.mergeBase)
		if err != nil {
			return nil, err
		}
		before = entries
	}
	result, err := entriesOf(c.base)
	if err != nil {
		return nil, err
	}
	theirs, err := entriesOf(c.head)
	if err != nil {
		return nil, err
	}
	for path, entry := range theirs {
		if before[path] == entry {
			continue
		}
		if result[path] != before[path] && result[path] != entry {
			return nil, errorStatus(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
		}
		result[path] = entry
	}
	for path, entry := range before {
		if _, kept := theirs[path]; kept {
			continue
		}
		if current, there := result[path]; there && current != entry {
			return nil, errorStatus(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
		}
		delete(result, path)
	}
	return result, nil
}

func entriesOf(commit *gitobject.Commit) (map[string]fileEntry, error) {
	tree, err := commit.Tree()
	if err != nil {
		return nil, err
	}
	return flatten(tree)
}

// mergePull merges: with a merge commit, or as one commit on the base for squash and rebase. The repository's gitMu
// must be held.
func (s *Server) mergePull(r *repository, i *issue, by actor, method, title, message, sha string) (string, error) {
	if err := s.checkMerge(r, i, method, sha); err != nil {
		return "", err
	}
	difference := s.pullChange(r, i)
	entries, err := difference.merged()
	if err != nil {
		return "", err
	}
	if title == "" {
		title = fmt.Sprintf("Merge pull request #%d from %s/%s", i.number, r.owner.login, i.pull.headBranch)
	}
	if message == "" {
		message = i.title
	}
	parents := []plumbing.Hash{difference.base.Hash}
	if method == "merge" {
		parents = append(parents, difference.head.Hash)
	}
	store := s.storage(r)
	hash, err := writeCommit(store, entries, title+"\n\n"+message, s.signature(by.account, s.Now()), parents...)
	if err != nil {
		return "", err
	}
	return hash.String(), s.finishMerge(r, i, by, store, difference.base.Hash, hash)
}

func (s *Server) checkMerge(r *repository, i *issue, method, sha string) error {
	switch {
	case i.pull.merged:
		return errorStatus(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case i.closed, i.pull.draft:
		return errorStatus(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case method != "merge" && method != "squash" && method != "rebase":
		return invalid("PullRequest", "merge_method", "invalid")
	case sha != "" && sha != s.headSHA(r, i):
		return errorStatus(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	return nil
}

func (s *Server) finishMerge(r *repository, i *issue, by actor, store *filesystem.Storage, old, merged plumbing.Hash) error {
	branch := plumbing.NewBranchReferenceName(i.pull.baseBranch)
	if err := store.SetReference(plumbing.NewHashReference(branch, merged)); err != nil {
		return err
	}
	s.markMerged(r, i, by.account, old.String(), merged.String())
	s.refsMoved(r, by.account, []refUpdate{{name: branch, old: old, new: merged}})
	return nil
}

func (s *Server) markMerged(r *repository, i *issue, by *account, base, merged string) {
	i.pull.merged, i.pull.mergedAt, i.pull.mergedBy, i.pull.mergeCommit = true, s.Now(), by, merged
	i.closed, i.closedAt, i.closedBy, i.updated = true, s.Now(), by, s.Now()
	i.pull.closedBaseSHA = base
	s.emitIssue(r, i, "closed", by, nil)
}
