package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"handoff/runner/outbox"
	"handoff/runner/report"
	"handoff/runner/store"
)

// A Question is an approval to be asked for: the row and the effects that show
// it, recorded in one transaction.
type Question struct {
	Approval store.Approval
	Effects  []store.Effect
}

// An Ask is what a [Question] is made of.
type Ask struct {
	Session store.Session
	Action  Action
	Prompt  Prompt
	// HeadSHA is a commit that GitHub has, for the check run: the head of the
	// pull request if there is one, otherwise the base. "" means no check run.
	HeadSHA string
	// HasPullRequest decides how loud the check run is: a pull request shows
	// "action required", the default branch stays neutral.
	HasPullRequest bool
	ExpiresAt      time.Time
}

// promptKey is the key of the effect that posts an approval's prompt.
func promptKey(approvalID string) string { return "approval:" + approvalID + ":prompt" }

// checkKey is the key of the effect that makes an approval's check run.
func checkKey(approvalID string) string { return "approval:" + approvalID + ":check" }

// NewQuestion draws a nonce, computes the digest and renders the prompt.
func NewQuestion(ask Ask) (Question, error) {
	ask.Action.Version = 1
	ask.Action.Nonce = NewNonce()
	digest, record := ask.Action.Digest()
	ask.Prompt.Digest, ask.Prompt.ExpiresAt = digest, ask.ExpiresAt
	ask.Prompt.CheckRun = ask.HeadSHA != ""
	action := ask.Action
	approval := store.Approval{
		ID: store.NewID(), SessionID: ask.Session.ID,
		InstallationID: ask.Session.InstallationID, RepositoryID: ask.Session.RepositoryID,
		Owner: ask.Session.Owner, Repository: ask.Session.Repository, Issue: ask.Session.Issue,
		CallKey: action.CallKey, Kind: action.Kind, Digest: digest, Nonce: action.Nonce, Record: record,
		Base: action.Base, BaseRef: action.BaseRef, Commit: action.Commit, Tree: action.Tree,
		TargetRef: action.TargetRef, ExpectedRemote: action.ExpectedRemote,
		Title: action.Title, Body: action.Body, ConfigHash: action.ConfigHash,
		RoleNeeded: action.RoleNeeded, RequesterID: ask.Session.RequesterID, RequesterLogin: ask.Session.RequesterLogin,
		State: store.ApprovalPending, ExpiresAt: ask.ExpiresAt,
	}
	effects, err := promptEffects(ask, approval)
	return Question{Approval: approval, Effects: effects}, err
}

func promptEffects(ask Ask, approval store.Approval) ([]store.Effect, error) {
	effects := newEffects(approval)
	effects.add(promptKey(approval.ID), outbox.KindCommentCreate, "", outbox.CommentCreate{
		Issue: approval.Issue, Body: ask.Prompt.Markdown(), ApprovalID: approval.ID,
	})
	// The bot reacts first, so that deciding is one click.
	for _, content := range []string{"+1", "-1"} {
		effects.add(promptKey(approval.ID)+":"+content, outbox.KindReaction, promptKey(approval.ID), outbox.Reaction{
			EffectKey: promptKey(approval.ID), CommentKind: outbox.CommentIssue, Content: content,
		})
	}
	if ask.HeadSHA != "" {
		check := checkRun(approval)
		check.HeadSHA, check.Conclusion = ask.HeadSHA, "neutral"
		if ask.HasPullRequest {
			check.Conclusion = "action_required"
		}
		check.Summary = checkSummary(ask.Prompt)
		ask.Prompt.diffLimit = diffLimits[0]
		check.Text = report.Cut(ask.Prompt.FoldedDiff(), checkTextLimit)
		check.Actions = []outbox.CheckRunAction{
			{Label: approveLabel(approval.Kind), Description: "Do exactly what the prompt shows", Identifier: ActionApprove},
			{Label: "Reject", Description: "Do nothing; the crew is told", Identifier: ActionReject},
		}
		effects.add(checkKey(approval.ID), outbox.KindCheckRunCreate, "", check)
	}
	return effects.all, effects.err
}

// checkTextLimit is GitHub's limit for the text of a check run's output.
const checkTextLimit = 65_535

func approveLabel(kind string) string {
	if kind == kindDeleteFile {
		return "Approve deletion"
	}
	return "Approve push"
}

// kindDeleteFile is the tool whose prompt is not about a push.
const kindDeleteFile = "delete_file"

func checkRun(approval store.Approval) outbox.CheckRunCreate {
	what := "push"
	if approval.Kind == kindDeleteFile {
		what = "delete"
	}
	return outbox.CheckRunCreate{
		Name:       fmt.Sprintf("copilot %s #%d %s", what, approval.Issue, Short(approval.Digest)),
		ExternalID: approval.ID, Status: "completed", Title: "Waiting for a maintainer",
	}
}

func checkSummary(prompt Prompt) string {
	if prompt.Kind == kindDeleteFile {
		return "The crew asks to delete " + report.Inline(prompt.Path) + "."
	}
	summary := fmt.Sprintf("Commit `%s` to `%s`: %s.\n\n%s\n\nTests: %s",
		prompt.Commit, prompt.Branch(), prompt.Totals(), report.Inline(prompt.Title), prompt.Verification.Result())
	if failures := prompt.Verification.Failures(); failures != "" {
		summary += "\n\n" + failures
	}
	return report.Cut(summary, checkTextLimit)
}

// Closing returns the effects that show on GitHub how an approval ended: the
// prompt gets its outcome as the first line, the check run loses its buttons.
// The prompt's text is the one that was asked with; hasCheck says whether a
// check run was asked for as well.
func Closing(approval store.Approval, promptBody string, hasCheck bool) ([]store.Effect, error) {
	sign, line, conclusion := closingLine(approval)
	effects := newEffects(approval)
	effects.add(promptKey(approval.ID)+":closed", outbox.KindCommentUpdate, promptKey(approval.ID), outbox.CommentUpdate{
		EffectKey: promptKey(approval.ID), Body: sign + " **" + line + "**\n\n" + answered(promptBody),
	})
	if hasCheck {
		check := checkRun(approval)
		effects.add(checkKey(approval.ID)+":closed", outbox.KindCheckRunUpdate, checkKey(approval.ID), outbox.CheckRunUpdate{
			EffectKey: checkKey(approval.ID), Name: check.Name, Status: "completed", Conclusion: conclusion,
			Title: line, Summary: sign + " " + line,
		})
	}
	return effects.all, effects.err
}

func closingLine(approval store.Approval) (sign, line, conclusion string) {
	by := report.Inline(approval.DecidedBy)
	reason := ""
	if approval.Reason != "" {
		reason = ": " + report.Inline(approval.Reason)
	}
	switch approval.State {
	case store.ApprovalApproved, store.ApprovalConsumed:
		return "✅", fmt.Sprintf("Approved by %s (%s)", by, viaWords[approval.DecidedVia]), "success"
	case store.ApprovalRejected:
		return "⛔", fmt.Sprintf("Rejected by %s (%s)%s", by, viaWords[approval.DecidedVia], reason), "cancelled"
	case store.ApprovalExpired:
		return "⌛", "Expired without a decision; nothing was done", "cancelled"
	}
	return "♻️", "No longer valid" + reason, "cancelled"
}

var viaWords = map[string]string{
	"comment": "by comment", "reaction": "by reaction", "check_run": "by check run", "terminal": "in the terminal", "host": "by the host",
}

// PromptBody returns the text with which an approval was asked for, from the
// effect that posted it.
func PromptBody(effect store.Effect) string {
	var payload outbox.CommentCreate
	if err := json.Unmarshal(effect.Payload, &payload); err != nil {
		return ""
	}
	return payload.Body
}

// PromptKey returns the key of the effect that posts an approval's prompt.
func PromptKey(approval store.Approval) string { return promptKey(approval.ID) }

// CheckKey returns the key of the effect that makes an approval's check run.
func CheckKey(approval store.Approval) string { return checkKey(approval.ID) }

// howToDecide is how the templates begin to say how to answer.
const howToDecide = "**To decide:**"

// answered is a prompt's text without the part that asks for an answer, which is
// its end: words of the crew that look the same come before.
func answered(promptBody string) string {
	if end := strings.LastIndex(promptBody, howToDecide); end >= 0 {
		promptBody = promptBody[:end]
	}
	return strings.TrimRight(promptBody, "\n")
}

// effects collects the effects of one approval and the first error.
type effects struct {
	approval store.Approval
	all      []store.Effect
	err      error
}

func newEffects(approval store.Approval) *effects { return &effects{approval: approval} }

func (e *effects) add(key, kind, after string, payload any) {
	encoded, err := json.Marshal(payload)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("effect %s cannot be encoded: %w", key, err)
	}
	e.all = append(e.all, store.Effect{
		Key: key, Kind: kind, After: after, Priority: outbox.PriorityResult, Payload: encoded,
		SessionID: e.approval.SessionID, InstallationID: e.approval.InstallationID, RepositoryID: e.approval.RepositoryID,
		Owner: e.approval.Owner, Repository: e.approval.Repository,
	})
}
