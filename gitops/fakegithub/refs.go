package fakegithub

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// refsMoved draws the consequences of moved refs: pull requests follow their branches, Apps are told. Server.mu must
// be held.
func (s *Server) refsMoved(r *repository, by *account, updates []refUpdate) {
	r.size = measure(r)
	for _, update := range updates {
		r.pushed, r.updated = s.Now(), s.Now()
		s.emitPush(r, by, update)
		if !update.name.IsBranch() {
			continue
		}
		for _, i := range sorted(r.issues) {
			if i.pull != nil && !i.closed {
				s.pullFollows(r, i, by, update)
			}
		}
	}
}

// pullFollows brings one open pull request up to date with a branch that moved.
func (s *Server) pullFollows(r *repository, i *issue, by *account, update refUpdate) {
	switch branch := update.name.Short(); {
	case i.pull.headBranch == branch && update.new.IsZero():
		s.closeIssue(r, i, by, "")
	case i.pull.headBranch == branch:
		if err := s.storage(r).SetReference(plumbing.NewHashReference(pullRef(i.number), update.new)); err != nil {
			s.log.Error("a pull request's head was not kept", "error", err)
			return
		}
		i.updated = s.Now()
		s.emitIssue(r, i, "synchronize", by, object{"before": update.old.String(), "after": update.new.String()})
	case i.pull.baseBranch == branch && isAncestor(s.storage(r), plumbing.NewHash(s.headSHA(r, i)), update.new):
		s.markMerged(r, i, by, update.old.String(), update.new.String())
	}
}

// mostPushedCommits is how many commits GitHub lists in a push event.
// Source: https://docs.github.com/webhooks/webhook-events-and-payloads#push
const mostPushedCommits = 2048

func (s *Server) emitPush(r *repository, by *account, update refUpdate) {
	payload := object{
		"ref": update.name.String(), "before": update.old.String(), "after": update.new.String(),
		"created": update.old.IsZero(), "deleted": update.new.IsZero(), "forced": false, "base_ref": nil,
		"pusher":  pusher(by),
		"commits": []object{}, "head_commit": nil,
		"compare": s.repoPage(r) + "/compare/" + shortHash(update.old) + "..." + shortHash(update.new),
	}
	if !update.new.IsZero() {
		store := s.storage(r)
		payload["forced"] = !update.old.IsZero() && !isAncestor(store, update.old, update.new)
		if commit, err := peel(store, update.new); err == nil {
			payload["head_commit"] = s.pushedCommit(r, commit)
		}
		payload["commits"] = s.pushedCommits(r, update)
	}
	s.emit(event{name: "push", repo: r, sender: by, payload: payload})
}

// pusher has no address when it is a bot.
func pusher(a *account) object {
	if a.kind == "Bot" {
		return object{"name": a.login, "email": nil}
	}
	return object{"name": a.login, "email": fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, a.login)}
}

func shortHash(hash plumbing.Hash) string { return hash.String()[:12] }

func (s *Server) pushedCommits(r *repository, update refUpdate) []object {
	base := update.old.String()
	if update.old.IsZero() {
		base = s.branchSHA(r, r.defaultBranch)
	}
	difference, err := s.compare(r, base, update.new.String())
	if err != nil {
		return []object{}
	}
	commits := difference.commits
	return each(commits[max(0, len(commits)-mostPushedCommits):], s.pushedCommitIn(r))
}

// apiWords is how the API words what git's server says about a refused ref.
func apiWords(reason string, words []string) string {
	if len(words) == 0 {
		return reason
	}
	last := words[len(words)-1]
	if rule, found := strings.CutPrefix(last, "- "); found {
		return "Repository rule violations found\n\n" + rule + "\n\n"
	}
	return strings.TrimPrefix(last, "error: ")
}

// moveByAPI moves one ref for a caller of the REST API, under the same rules as a push. The repository's gitMu must
// be held.
func (s *Server) moveByAPI(r *repository, c *caller, update refUpdate) error {
	store := s.storage(r)
	if reason, words := s.judgeUpdate(r, c, update, store); reason != "" {
		return errorStatus(http.StatusUnprocessableEntity, "%s", apiWords(reason, words))
	}
	if err := moveRef(store, update); err != nil {
		return err
	}
	s.refsMoved(r, c.account, []refUpdate{update})
	return nil
}
