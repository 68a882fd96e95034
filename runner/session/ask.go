package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"handoff/gitops/git"
	"handoff/runner"
	"handoff/runner/approval"
	"handoff/runner/store"
)

// The tools whose calls wait for a maintainer.
const (
	toolGitPush    = "git_push"
	toolDeleteFile = "delete_file"
)

// deleteExpires is how long the crew waits for a deletion in the middle of its
// work.
const deleteExpires = 30 * time.Minute

// A pushArgs is what the manager says about a push.
type pushArgs struct {
	Title         string `json:"title"`
	Body          string `json:"body"`
	CommitMessage string `json:"commit_message"`
}

// A deleteArgs is what an agent says about a deletion.
type deleteArgs struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// A refusal answers a call in the place of a maintainer: there is nothing to
// decide about.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// A round is what one stop of a session puts to the maintainers.
type round struct {
	store.Suspension
	// prompts are what people are shown, one for each new approval.
	prompts []approval.Prompt
	// waiting are all approvals that the session waits for, those from before
	// included.
	waiting []store.Approval
}

// ask puts the calls that wait to the maintainers and lets the session go. A
// call about which there is nothing to decide is refused by the host; if that
// leaves none, the crew goes on at once (parked=false).
func (h *hold) ask(ctx context.Context, outcome runner.Outcome) (parked bool, err error) {
	asked, err := h.Store.ApprovalsOfSession(ctx, h.session.ID)
	if err != nil {
		return false, err
	}
	var round round
	for _, call := range outcome.Approvals {
		if err := h.askOne(ctx, call, outcome, asked, &round); err != nil {
			return false, err
		}
	}
	if len(round.waiting) == 0 {
		_, err := h.lease.Append(ctx, round.Batch)
		return false, err
	}
	round.State, round.Reason = store.StateAwaitingApproval, "waiting for a maintainer"
	round.WakeAt = earliestExpiry(round.waiting)
	// Whatever becomes of the question, the work so far is kept.
	if err := h.keepPatch(ctx); err != nil {
		return false, err
	}
	if err := h.progress.waiting(ctx); err != nil {
		return false, err
	}
	if err := h.lease.Suspend(ctx, round.Suspension); err != nil {
		return true, err
	}
	for i, row := range round.Approvals {
		if h.OnQuestion != nil {
			h.OnQuestion(row, round.prompts[i])
		}
	}
	return true, nil
}

// askOne adds what one call asks to the round, or the host's refusal of it.
func (h *hold) askOne(ctx context.Context, call runner.PendingApproval, outcome runner.Outcome, asked []store.Approval, round *round) error {
	earlier, ok := latest(asked, call.CallKey)
	open := ok && earlier.State == store.ApprovalPending
	if open && earlier.Kind != toolGitPush {
		// Another call of the turn was decided; this one's prompt still stands.
		round.waiting = append(round.waiting, earlier)
		return nil
	}
	if open {
		earlier.State, earlier.Reason = store.ApprovalSuperseded, "the request is made again"
		if err := h.close(ctx, earlier); err != nil {
			return err
		}
	}
	question, prompt, err := h.question(ctx, call, outcome)
	if refused, ok := errors.AsType[*refusal](err); ok {
		record, err := runner.Decision{
			CallKey: call.CallKey, ArgumentHash: call.ArgumentHash, Kind: runner.DecisionRejected, By: runner.ByHost, Reason: refused.reason,
		}.Record()
		round.Batch.Records = append(round.Batch.Records, record)
		return err
	}
	if err != nil {
		return err
	}
	round.Approvals = append(round.Approvals, question.Approval)
	round.Effects = append(round.Effects, question.Effects...)
	round.prompts = append(round.prompts, prompt)
	round.waiting = append(round.waiting, question.Approval)
	return nil
}

// question makes the question that a call asks, and what people are shown.
func (h *hold) question(ctx context.Context, call runner.PendingApproval, outcome runner.Outcome) (question approval.Question, prompt approval.Prompt, err error) {
	action := approval.Action{
		Kind: call.Tool, Session: h.session.ID, InstallationID: h.session.InstallationID, RepositoryID: h.session.RepositoryID,
		Issue: h.session.Issue, CallKey: call.CallKey, ArgumentsHash: call.ArgumentHash,
		RoleNeeded: string(h.config.Approval.Role), RequireOther: h.config.Approval.RequireOther, ConfigHash: h.config.Hash(),
	}
	ask := approval.Ask{Session: h.session, Action: action, Prompt: approval.Prompt{
		Kind: call.Tool, Repo: h.session.Owner + "/" + h.session.Repository, Issue: h.session.Issue, Requester: h.session.RequesterLogin,
		Role: action.RoleNeeded, RequireOther: action.RequireOther, Usage: outcome.Usage, SessionURL: h.sessionURL(),
	}}
	if h.config.Approval.CheckRun != "never" {
		ask.HeadSHA = h.base.commit
	}
	switch call.Tool {
	case toolGitPush:
		question, err = h.askPush(ctx, call, outcome, &ask)
	case toolDeleteFile:
		question, err = h.askDelete(ctx, call, &ask)
	default:
		err = &refusal{fmt.Sprintf("No maintainer can be asked about %s on this server.", call.Tool)}
	}
	return question, ask.Prompt, err
}

func (h *hold) askDelete(ctx context.Context, call runner.PendingApproval, ask *approval.Ask) (approval.Question, error) {
	var args deleteArgs
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return approval.Question{}, &refusal{"The arguments cannot be read: " + err.Error()}
	}
	root, err := os.OpenRoot(h.bench.workspace.Tree())
	if err != nil {
		return approval.Question{}, err
	}
	defer root.Close()
	info, err := root.Lstat(path.Clean(args.Path))
	if err != nil {
		return approval.Question{}, &refusal{fmt.Sprintf("There is no file %s to delete.", args.Path)}
	}
	tree, err := h.bench.workspace.TreeID(ctx)
	if err != nil {
		return approval.Question{}, gitFault(err)
	}
	ask.Action.Path, ask.Action.Tree = args.Path, tree
	ask.Prompt.Path, ask.Prompt.Size = args.Path, info.Size()
	ask.Prompt.Reason = cmp.Or(call.Conflict, args.Reason)
	ask.Prompt.Agent = h.crew[call.Agent].Name
	ask.ExpiresAt = h.Store.Now().Add(min(deleteExpires, h.config.Approval.Expires))
	return approval.NewQuestion(*ask)
}

// askPush seals the workspace, runs the tests on the sealed commit, looks for
// secrets, and makes the question of what it found.
func (h *hold) askPush(ctx context.Context, call runner.PendingApproval, outcome runner.Outcome, ask *approval.Ask) (approval.Question, error) {
	var args pushArgs
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return approval.Question{}, &refusal{"The arguments cannot be read: " + err.Error()}
	}
	h.progress.hostDoes("sealing the commit")
	seal, err := h.seal(ctx, args, outcome.State)
	if err != nil {
		return approval.Question{}, err
	}
	diff, err := h.bench.workspace.Diff(ctx)
	if err != nil {
		return approval.Question{}, gitFault(err)
	}
	if err := h.checkLeaving(ctx, diff, args, seal); err != nil {
		return approval.Question{}, err
	}
	verification, err := h.verify(ctx, seal.Sealed)
	if err != nil {
		return approval.Question{}, err
	}
	action := &ask.Action
	action.Base, action.BaseRef = h.base.commit, h.base.branch
	action.Commit, action.Tree, action.TargetRef, action.ExpectedRemote = seal.Sealed.Commit, seal.Sealed.Tree, seal.Ref, seal.Old
	action.Title, action.Body = args.Title, args.Body
	files := filesOf(seal.Sealed.Files, diff)
	prompt := &ask.Prompt
	prompt.Base, prompt.BaseRef, prompt.Commit, prompt.TargetRef = action.Base, action.BaseRef, action.Commit, action.TargetRef
	prompt.Message, prompt.Verified = seal.Sealed.Message, seal.Verified
	prompt.Title, prompt.Body, prompt.Files, prompt.Diff = args.Title, args.Body, files, diff
	prompt.Verification, prompt.Risks = verification, approval.Risks(files)
	ask.HasPullRequest = seal.Old != ""
	if ask.HasPullRequest && ask.HeadSHA != "" {
		ask.HeadSHA = seal.Old
	}
	ask.ExpiresAt = h.Store.Now().Add(h.config.Approval.Expires)
	question, err := approval.NewQuestion(*ask)
	if err != nil {
		return question, err
	}
	return question, h.keepSeal(ctx, question.Approval.ID, seal)
}

// filesOf describes a sealed commit's files to the approval, with the lines
// that its diff adds and removes.
func filesOf(changes []git.Change, diff string) []approval.File {
	lines := splitDiff(diff)
	files := make([]approval.File, len(changes))
	for i, change := range changes {
		files[i] = approval.File{
			Path: change.Path, Status: string(change.Kind), Additions: change.Additions, Deletions: change.Deletions,
			Binary: change.Binary, Mode: change.Mode, OldMode: change.OldMode,
		}
		if found, ok := lines[change.Path]; ok {
			files[i].AddedLines, files[i].RemovedLines = found.added, found.removed
		}
	}
	return files
}

type diffLines struct{ added, removed []string }

// splitDiff collects the added and removed lines of a diff that the git layer
// made, by path. Quoted names are left out; nothing but the risks needs them.
func splitDiff(diff string) map[string]diffLines {
	files := map[string]diffLines{}
	name, inHunk := "", false
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			name, inHunk = "", false
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case !inHunk && (strings.HasPrefix(line, "+++ b/") || strings.HasPrefix(line, "--- a/")):
			name = strings.TrimSuffix(line[len("+++ b/"):], "\t")
		case inHunk && strings.HasPrefix(line, "+"):
			file := files[name]
			file.added = append(file.added, line[1:])
			files[name] = file
		case inHunk && strings.HasPrefix(line, "-"):
			file := files[name]
			file.removed = append(file.removed, line[1:])
			files[name] = file
		}
	}
	return files
}
