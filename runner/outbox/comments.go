package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"handoff/gitops/github"
	"handoff/runner/report"
	"handoff/runner/store"
)

func (o *Outbox) createComment(ctx context.Context, repository Repository, effect store.Effect, payload CommentCreate, reconcile bool, end *store.EffectEnd) (any, error) {
	marker := Marker(o.Key, effect)
	var comment github.Comment
	found := false
	var err error
	if reconcile {
		comment, found, err = findComment(ctx, repository, effect, payload.Issue, marker)
	}
	if err == nil && !found {
		body := report.Cut(disarm(payload.Body), report.MaxBody-len(marker)-2) + "\n" + marker
		comment, err = repository.CreateComment(ctx, payload.Issue, body)
	}
	if err != nil {
		return nil, err
	}
	if payload.ApprovalID != "" {
		end.Prompt = &store.ApprovalPrompt{ID: payload.ApprovalID, CommentID: comment.ID, BodyHash: BodyHash(comment.Body)}
	}
	return CommentResult{CommentID: comment.ID, URL: comment.HTMLURL}, nil
}

// BodyHash names the text of a comment, so that an edit is noticed.
func BodyHash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// clockSlack is how far our clock may be ahead of GitHub's before a comment that
// we made is looked for in vain.
const clockSlack = time.Hour

// findComment looks for a comment that an earlier attempt may have made.
func findComment(ctx context.Context, repository Repository, effect store.Effect, issue int, marker string) (github.Comment, bool, error) {
	bot, err := repository.Bot(ctx)
	if err != nil {
		return github.Comment{}, false, err
	}
	comments, err := repository.ListComments(ctx, issue, effect.CreatedAt.Add(-clockSlack))
	if err != nil {
		return github.Comment{}, false, err
	}
	for _, comment := range comments {
		if comment.Author.ID == bot.ID && HasMarker(comment.Body, marker) {
			return comment, true, nil
		}
	}
	return github.Comment{}, false, nil
}

func (o *Outbox) updateComment(ctx context.Context, repository Repository, payload CommentUpdate) (any, error) {
	id := payload.CommentID
	marker := ""
	if payload.EffectKey != "" {
		created, result, err := made[CommentResult](ctx, o, payload.EffectKey)
		if err != nil {
			return nil, err
		}
		id, marker = result.CommentID, Marker(o.Key, created)
	}
	body := report.Cut(disarm(payload.Body), report.MaxBody-len(marker)-2)
	if marker != "" {
		body += "\n" + marker
	}
	comment, err := repository.EditComment(ctx, id, body)
	return CommentResult{CommentID: comment.ID, URL: comment.HTMLURL}, err
}

func (o *Outbox) react(ctx context.Context, repository Repository, payload Reaction) (any, error) {
	id := payload.CommentID
	if payload.EffectKey != "" {
		_, result, err := made[CommentResult](ctx, o, payload.EffectKey)
		if err != nil {
			return nil, err
		}
		id = result.CommentID
	}
	react := repository.CreateReaction
	if payload.CommentKind == CommentReview {
		react = repository.CreateReviewReaction
	}
	reaction, err := react(ctx, id, payload.Content)
	return struct {
		ReactionID int64 `json:"reaction_id"`
	}{reaction.ID}, err
}
