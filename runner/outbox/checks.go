package outbox

import (
	"context"

	"handoff/gitops/github"
	"handoff/runner/store"
)

func (o *Outbox) createCheckRun(ctx context.Context, repository Repository, payload CheckRunCreate, reconcile bool, end *store.EffectEnd) (any, error) {
	note := func(run github.CheckRun) (any, error) {
		end.Prompt = &store.ApprovalPrompt{ID: payload.ExternalID, CheckRunID: run.ID}
		return CheckRunResult{CheckRunID: run.ID, URL: run.HTMLURL}, nil
	}
	if reconcile {
		runs, err := repository.ListCheckRunsForRef(ctx, payload.HeadSHA)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			if run.ExternalID == payload.ExternalID && run.Name == payload.Name {
				return note(run)
			}
		}
	}
	run, err := repository.CreateCheckRun(ctx, github.CheckRunRequest{
		HeadSHA: payload.HeadSHA, Name: payload.Name, ExternalID: payload.ExternalID, DetailsURL: payload.DetailsURL,
		Status: payload.Status, Conclusion: payload.Conclusion,
		Title: payload.Title, Summary: payload.Summary, Text: payload.Text, Actions: actions(payload.Actions),
	})
	if err != nil {
		return nil, err
	}
	return note(run)
}

func (o *Outbox) updateCheckRun(ctx context.Context, repository Repository, payload CheckRunUpdate) (any, error) {
	id := payload.CheckRunID
	if payload.EffectKey != "" {
		_, result, err := made[CheckRunResult](ctx, o, payload.EffectKey)
		if err != nil {
			return nil, err
		}
		id = result.CheckRunID
	}
	run, err := repository.UpdateCheckRun(ctx, id, github.CheckRunRequest{
		Name: payload.Name, Status: payload.Status, Conclusion: payload.Conclusion,
		Title: payload.Title, Summary: payload.Summary, Text: payload.Text, Actions: actions(payload.Actions),
	})
	return CheckRunResult{CheckRunID: run.ID, URL: run.HTMLURL}, err
}

func actions(wanted []CheckRunAction) []github.CheckRunAction {
	made := make([]github.CheckRunAction, len(wanted))
	for i, action := range wanted {
		made[i] = github.CheckRunAction(action)
	}
	return made
}
