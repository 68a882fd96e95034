package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"handoff/gitops/git"
	"handoff/gitops/github"
	"handoff/runner/approval"
	"handoff/runner/outbox"
	"handoff/runner/repoconfig"
	"handoff/runner/store"
)

// A ground is what an approval stands on at the moment of its push, beside the
// commit itself: the person, the rules, the issue and the history.
type ground struct {
	*Conductor
	host   Repository
	remote git.Remote
	// branch is the default branch as GitHub names it now, rules the commit of
	// it at which the session began.
	branch string
	rules  string
	row    store.Approval
	action approval.Action
}

// holds refuses a push whose ground has gone. What GitHub cannot tell is an
// error and not a yes.
func (g ground) holds(ctx context.Context) error {
	for _, check := range []func(context.Context) error{g.ofRules, g.ofIssue, g.ofHistory, g.ofThumbs} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ofRules checks the person who decided by the stricter of two rules: those
// that the question was asked under, and those of the default branch now. A
// maintainer who tightens them means what is under way as well.
func (g ground) ofRules(ctx context.Context) error {
	role, requireOther := repoconfig.Role(g.action.RoleNeeded), g.action.RequireOther
	now, err := g.rulesNow(ctx)
	if err != nil {
		return err
	}
	if now.Role.AtLeast(role) {
		role = now.Role
	}
	if (requireOther || now.RequireOther) && g.row.DecidedByID == g.row.RequesterID {
		return noLonger("the rules of the repository ask for somebody else than %s to approve", g.row.RequesterLogin)
	}
	return g.mayDecide(ctx, g.row.DecidedByID, g.row.DecidedBy, role)
}

// mayDecide asks GitHub whether somebody has a role.
func (g ground) mayDecide(ctx context.Context, id int64, login string, role repoconfig.Role) error {
	err := approval.CheckRole(ctx, pushChecker{g.host}, id, login, role)
	if refused, ok := errors.AsType[*approval.Refused](err); ok {
		return noLonger("%s", refused.Reason)
	}
	return err
}

func noLonger(format string, args ...any) error {
	return &outbox.Refusal{Reason: "the approval is no longer good: " + fmt.Sprintf(format, args...)}
}

// rulesNow reads who may approve from the tip of the default branch.
func (g ground) rulesNow(ctx context.Context) (repoconfig.Approval, error) {
	tip, err := g.Cache.Fetch(ctx, g.remote, g.branch)
	if err != nil {
		return repoconfig.Approval{}, err
	}
	repository, err := g.Cache.Repository(g.remote)
	if err != nil {
		return repoconfig.Approval{}, err
	}
	content, err := repository.ReadFile(ctx, tip, repoconfig.Path, 1<<20)
	if git.CodeOf(err) == git.CodeNotFound {
		config, _ := g.Operator.Resolve(nil)
		return config.Approval, nil
	}
	if err != nil {
		return repoconfig.Approval{}, err
	}
	file, faults := repoconfig.Parse(content)
	if len(faults) > 0 {
		return repoconfig.Approval{}, noLonger("%s has faults now, so nobody knows who may approve", repoconfig.Path)
	}
	config, _ := g.Operator.Resolve(file)
	return config.Approval, nil
}

// ofIssue wants the issue open to those who talk there.
func (g ground) ofIssue(ctx context.Context) error {
	issue, err := g.host.Issue(ctx, g.row.Issue)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeGone:
		return &outbox.Refusal{Reason: fmt.Sprintf("issue #%d is not there any more", g.row.Issue), Err: err}
	case err != nil:
		return err
	case issue.State == "closed":
		return &outbox.Refusal{Reason: fmt.Sprintf("issue #%d was closed", g.row.Issue)}
	case issue.Locked:
		return &outbox.Refusal{Reason: fmt.Sprintf("issue #%d was locked", g.row.Issue)}
	}
	return nil
}

// ofHistory wants a new branch to begin where the default branch was: a base
// that was rewritten away would come back with the push. A branch that is there
// already moves by compare-and-swap, and a session that goes on from another
// one's work may begin at a commit that the default branch never had.
func (g ground) ofHistory(ctx context.Context) error {
	if g.action.ExpectedRemote != "" || g.action.Base != g.rules {
		return nil
	}
	contained, err := g.host.Contains(ctx, g.branch, g.action.Base)
	if err == nil && !contained {
		return &outbox.Refusal{Reason: fmt.Sprintf("the history of %s was rewritten: the commit %s that this is based on is not part of it any more", g.branch, approval.Short(g.action.Base))}
	}
	return err
}

// maxThumbs is how many thumbs down are looked into, the newest first: a crowd
// that came before must not hide a maintainer who objects now.
const maxThumbs = 10

// ofThumbs looks at the prompt's reactions once more. An approval by reaction
// stands only while the thumb does, and whoever may approve may also object
// until the push: reject wins.
func (g ground) ofThumbs(ctx context.Context) error {
	if g.row.DecidedVia != store.ViaReaction {
		return nil
	}
	reactions, err := g.host.ListReactions(ctx, g.row.PromptCommentID, "")
	if code := github.CodeOf(err); code == github.CodeNotFound || code == github.CodeGone {
		return noLonger("the prompt was deleted")
	}
	if err != nil {
		return err
	}
	stands, against := false, 0
	for _, reaction := range slices.Backward(reactions.All) {
		switch {
		case reaction.Content == "+1" && reaction.User.ID == g.row.DecidedByID:
			stands = true
		case reaction.Content == "-1" && reaction.User.Type == "User" && against < maxThumbs:
			against++
			err := g.mayDecide(ctx, reaction.User.ID, reaction.User.Login, repoconfig.Role(g.action.RoleNeeded))
			if err == nil {
				return noLonger("%s rejects it", reaction.User.Login)
			}
			if _, refused := errors.AsType[*outbox.Refusal](err); !refused {
				return err
			}
		}
	}
	if !stands {
		return noLonger("%s has taken the 👍 back", g.row.DecidedBy)
	}
	return nil
}
