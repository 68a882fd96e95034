package approval

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"handoff/gitops/github"
	"handoff/runner/store"
)

// pollBatch is how many prompts one round reads.
const pollBatch = 20

// idle is how long the poller rests when nothing is due; a prompt is due to the
// moment, and somebody waits for it.
const idle = 250 * time.Millisecond

// A Poller reads the reactions to waiting prompts, because GitHub sends no
// webhook for them, and lets approvals expire.
type Poller struct {
	service *Service
	// refused are votes that did not count, and until when that is believed.
	refused map[voter]time.Time
}

// A voter is one person's vote on one prompt.
type voter struct {
	approval string
	person   int64
	verdict  Verdict
}

const (
	// refusalAge is how long a vote that did not count is not tried again.
	refusalAge = 30 * time.Second
	// maxTries is how many votes one look at a prompt tries; the others wait for
	// the next, so that a crowd costs neither GitHub's patience nor ours.
	maxTries = 10
)

// NewPoller returns a poller that decides through the service.
func NewPoller(service *Service) *Poller {
	return &Poller{service: service, refused: map[voter]time.Time{}}
}

// Run polls for the node until ctx is done or the node is lost. Several nodes
// may run one each: the store gives every prompt to one of them.
func (p *Poller) Run(ctx context.Context, node *store.Node) {
	changed, stop := p.service.store.Notify(store.TopicApprovals)
	defer stop()
	for ctx.Err() == nil {
		if err := p.round(ctx, node); errors.Is(err, store.ErrNodeExpired) {
			return
		} else if err != nil && !errors.Is(err, store.ErrNone) && ctx.Err() == nil {
			p.service.log.Warn("cannot look for prompts to poll", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-node.Lost():
			return
		case <-changed:
		case <-time.After(idle):
		}
	}
}

func (p *Poller) round(ctx context.Context, node *store.Node) error {
	if _, err := p.service.store.ExpireApprovals(ctx, pollBatch); err != nil {
		return err
	}
	due, err := p.service.store.DuePolls(ctx, node, pollBatch)
	if err != nil || len(due) == 0 {
		return err
	}
	polls := make([]store.Poll, 0, len(due))
	for _, approval := range due {
		polls = append(polls, p.poll(ctx, approval))
	}
	return p.service.store.SetPolls(ctx, polls)
}

// poll reads one prompt's reactions and decides if they say so.
func (p *Poller) poll(ctx context.Context, approval store.Approval) store.Poll {
	now := p.service.store.Now()
	next, etag, err := p.read(ctx, approval, now)
	if err != nil {
		p.service.log.Warn("the reactions to a prompt could not be used", "approval", approval.ID, "error", err)
	}
	return store.Poll{Approval: approval.ID, Next: next, ETag: etag}
}

// read returns when to look again, and with which ETag. The ETag is kept only
// when all that the list says was dealt with.
func (p *Poller) read(ctx context.Context, approval store.Approval, now time.Time) (next time.Time, etag string, err error) {
	next = now.Add(interval(now.Sub(approval.PromptedAt)))
	repository := p.service.repository(approval.InstallationID, approval.RepositoryID)
	reactions, err := repository.ListReactions(ctx, approval.PromptCommentID, approval.PollETag)
	switch code := github.CodeOf(err); {
	case code == github.CodeNotFound || code == github.CodeGone:
		return next, "", p.service.void(ctx, approval, "the prompt was deleted")
	case err != nil:
		if failed, ok := errors.AsType[*github.Error](err); ok && failed.RetryAt.After(next) {
			next = failed.RetryAt
		}
		return next, approval.PollETag, err
	case reactions.NotModified:
		return next, approval.PollETag, nil
	}
	switch err := p.answer(ctx, approval, reactions.All); {
	case errors.Is(err, store.ErrTooEarly):
		return approval.PromptedAt.Add(store.ApprovalCooldown), "", nil
	case err != nil:
		return next, "", err
	}
	// Somebody without the role today may have it tomorrow, so a list with
	// undecided reactions is read in full again.
	if len(votes(reactions.All)) > 0 {
		return next, "", nil
	}
	return next, reactions.ETag, nil
}

// answer tries the votes, rejections first: reject wins.
func (p *Poller) answer(ctx context.Context, approval store.Approval, reactions []github.Reaction) error {
	now, tries := p.service.store.Now(), 0
	maps.DeleteFunc(p.refused, func(_ voter, until time.Time) bool { return until.Before(now) })
	for _, vote := range votes(reactions) {
		key := voter{approval.ID, vote.ByID, vote.Verdict}
		if _, known := p.refused[key]; known {
			continue
		}
		if tries++; tries > maxTries {
			return nil
		}
		_, err := p.service.decide(ctx, approval, vote)
		if _, refused := errors.AsType[*Refused](err); refused {
			p.service.log.Info("a reaction does not count", "approval", approval.ID, "by", vote.By, "reason", err)
			p.refused[key] = now.Add(refusalAge)
			continue
		}
		return err
	}
	return nil
}

// votes turns people's thumbs into answers, rejections first.
func votes(reactions []github.Reaction) []Answer {
	var approvals, rejections []Answer
	for _, reaction := range reactions {
		if reaction.User.Type != "User" {
			continue
		}
		answer := Answer{By: reaction.User.Login, ByID: reaction.User.ID, Via: store.ViaReaction}
		switch reaction.Content {
		case "+1":
			answer.Verdict = Approve
			approvals = append(approvals, answer)
		case "-1":
			rejections = append(rejections, answer)
		}
	}
	return append(rejections, approvals...)
}

// interval is how long to wait between two looks at a prompt of that age: 5 s
// for two minutes, 15 s up to ten, then a minute, with a tenth of jitter so
// that many prompts do not come at once.
func interval(age time.Duration) time.Duration {
	base := time.Minute
	switch {
	case age < 2*time.Minute:
		base = 5 * time.Second
	case age < 10*time.Minute:
		base = 15 * time.Second
	}
	return base + rand.N(base/10)
}
