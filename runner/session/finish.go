package session

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"handoff/agents"
	"handoff/runner"
	"handoff/runner/intake"
	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
)

// patchName is the artifact that holds a session's work as a diff.
const patchName = "work.patch"

// An end is how a session ended, in words.
type end struct {
	state store.SessionState
	// headline is said in place of the state's usual one.
	headline string
	code     string
	result   string
	failure  string
	next     string
}

// words are the one line that says how it ended.
func (e end) words() string { return cmp.Or(e.headline, headlines[e.state]) }

// finishFinal ends a session whose crew has given its answer.
func (h *hold) finishFinal(ctx context.Context, outcome runner.Outcome) error {
	if h.errand() == intake.ErrandPlan {
		return h.finishPlan(ctx, outcome)
	}
	return h.finish(ctx, end{state: store.StateCompleted, result: outcome.Output})
}

// finishEnded ends a session that a limit, a model or a person ended.
func (h *hold) finishEnded(ctx context.Context, outcome runner.Outcome) error {
	failed := outcome.Err
	e := end{
		state: store.StateFailed, code: string(failed.Code), failure: failed.Message,
		next: "Comment `/copilot retry` to go on from here, with fresh limits.",
	}
	if failed.Code == agents.CodeCancelled {
		e.state = store.StateCancelled
		e.next = "Comment `/copilot retry` to go on from here."
	}
	return h.finish(ctx, e)
}

// finishFault ends a session that could not begin or go on.
func (h *hold) finishFault(ctx context.Context, failed *fault) error {
	state := store.StateFailed
	if failed.code == "EXPIRED" {
		state = store.StateExpired
	}
	return h.finish(ctx, end{state: state, code: failed.code, failure: failed.message, next: failed.next})
}

// finishBroken ends a session in which the program itself has a fault: another
// attempt would meet it again, and the other sessions of the node go on.
func (h *hold) finishBroken(ctx context.Context, broken *runner.Panic) error {
	h.log.Error("the session met a fault of the program", "fault", broken)
	return h.finishFault(ctx, &fault{
		code:    "INTERNAL",
		message: "The session met a fault of handoff's own, and was ended so that it does no harm to others.",
		next:    "The work so far is kept: comment `/copilot retry` to go on from it. The operator finds the fault in the log, under the session " + h.session.ID + ".",
	})
}

// finishCancelled ends a session that was stopped before the crew began or
// while it waited.
func (h *hold) finishCancelled(ctx context.Context, cause *agents.Error) error {
	return h.finish(ctx, end{
		state: store.StateCancelled, code: string(cause.Code), failure: cause.Message,
		next: "Comment `/copilot retry` to go on from here.",
	})
}

// finish closes the progress comment, tells people in one new comment, and
// ends the session, all in one transaction.
func (h *hold) finish(ctx context.Context, e end) error {
	// A stop cancels the work, but its end must still be written.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := runner.Contain(func() error { return h.keepPatch(ctx) }); err != nil {
		h.log.Warn("the work could not be kept as a patch", "error", err)
	}
	if err := h.closeQuestions(ctx, e); err != nil {
		return err
	}
	h.progress.doing("", "")
	patch := h.patchLink(ctx, e)
	err := h.progress.edit(ctx, string(e.state), func(r *report.Progress) {
		r.Headline, r.Result, r.Failure, r.Next = e.words(), e.result, e.failure, e.next
		r.PatchURL, r.PatchUntil = patch.URL, patch.Expires
	})
	if err != nil {
		return err
	}
	notice, err := h.notice(ctx, e, patch)
	if err != nil {
		return err
	}
	h.log.Info("the session ended", "state", e.state, "code", e.code, "reason", e.failure)
	err = h.lease.Finish(ctx, store.Ending{State: e.state, Code: e.code, Reason: cmp.Or(e.failure, "done"), Effects: []store.Effect{notice}})
	h.ended = err == nil
	return err
}

// notice is the one new comment at the end: an edit notifies nobody.
func (h *hold) notice(ctx context.Context, e end, patch Link) (store.Effect, error) {
	session := h.lease.Session()
	past, err := h.history(ctx)
	if err != nil {
		return store.Effect{}, err
	}
	last := report.LastWords{
		Requester: session.RequesterLogin, State: string(e.state), Headline: e.words(),
		Failure: e.failure, Next: e.next, PullRequestURL: session.Variables[outbox.VariablePullRequestURL],
		PatchURL: patch.URL, PatchUntil: patch.Expires,
	}
	last.NotPushed, _ = declined(past.items)
	payload, err := json.Marshal(outbox.CommentCreate{Issue: session.Issue, Body: last.Markdown()})
	return store.Effect{
		Key: "session:" + session.ID + ":end", Kind: outbox.KindCommentCreate, After: progressKey(session.ID),
		Priority: outbox.PriorityResult, Payload: payload,
	}, err
}

// closeQuestions shows on all prompts how they ended; those that are open need
// no decision any more.
func (h *hold) closeQuestions(ctx context.Context, e end) error {
	approvals, err := h.Store.ApprovalsOfSession(ctx, h.session.ID)
	if err != nil {
		return err
	}
	for _, row := range approvals {
		if row.State == store.ApprovalPending {
			row.State, row.Reason = store.ApprovalSuperseded, cmp.Or(e.failure, "the session ended")
		}
		if err := h.close(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// keepPatch stores the work as a diff, if there is any.
func (h *hold) keepPatch(ctx context.Context) error {
	if h.bench == nil || h.bench.workspace == nil {
		return nil
	}
	diff, err := h.bench.workspace.Diff(ctx)
	if err != nil || diff == "" {
		return err
	}
	if _, err := h.lease.PutArtifact(ctx, store.Artifact{Name: patchName, MediaType: "text/x-diff", Body: []byte(h.bench.redact(diff))}); err != nil {
		return err
	}
	checkpoint, err := h.bench.Snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = h.lease.Append(ctx, runner.Batch{Checkpoint: checkpoint})
	return err
}

// A Link is an address that works until it expires.
type Link struct {
	URL     string
	Expires time.Time
}

// patchLink is where the work can be fetched as a diff, for a session that ended
// without a pull request; zero where there is no such work or no such place.
func (h *hold) patchLink(ctx context.Context, e end) Link {
	if h.PatchLink == nil || e.state == store.StateCompleted && h.lease.Session().Variables[outbox.VariablePullRequestURL] != "" {
		return Link{}
	}
	artifacts, err := h.Store.Artifacts(ctx, h.session.ID)
	if err == nil && slices.ContainsFunc(artifacts, func(a store.Artifact) bool { return a.Name == patchName }) {
		var link Link
		if link, err = h.PatchLink(ctx, h.session.ID, patchName); err == nil {
			return link
		}
	}
	if err != nil {
		h.log.Warn("no link to the work can be made", "error", err)
	}
	return Link{}
}
