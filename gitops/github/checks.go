package github

import (
	"context"
	"fmt"
	"net/http"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A CheckRunAction is a button of a check run.
type CheckRunAction struct {
	Label       string
	Description string
	Identifier  string
}

// A CheckRunRequest is a check run to be made or changed. Lengths are checked
// against GitHub's limits; see [Cut].
type CheckRunRequest struct {
	// Name is always needed, also for a change.
	Name string
	// HeadSHA, ExternalID and DetailsURL are used when it is made.
	HeadSHA    string
	ExternalID string
	DetailsURL string
	// Status is queued, in_progress or completed; completed needs a Conclusion.
	Status     string
	Conclusion string
	Title      string
	Summary    string
	Text       string
	// Actions are the buttons, three at most, shown once it is completed.
	Actions []CheckRunAction
}

// A CheckRun is a check run as GitHub has it.
type CheckRun struct {
	ID         int64
	AppID      int64
	Name       string
	HeadSHA    string
	ExternalID string
	Status     string
	Conclusion string
	HTMLURL    string
}

// CreateCheckRun makes a check run.
func (c *Client) CreateCheckRun(ctx context.Context, request CheckRunRequest) (CheckRun, error) {
	var made CheckRun
	if err := request.check(); err != nil {
		return made, err
	}
	err := c.call(ctx, kindCreate, "create a check run", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		run, _, err := api.Checks.CreateCheckRun(ctx, at.owner, at.name, gh.CreateCheckRunOptions{
			Name: request.Name, HeadSHA: request.HeadSHA,
			DetailsURL: optional(request.DetailsURL), ExternalID: optional(request.ExternalID),
			Status: optional(request.Status), Conclusion: optional(request.Conclusion),
			CompletedAt: c.completedAt(request), Output: request.output(), Actions: request.actions(),
		})
		made = checkRunOf(run)
		return err
	})
	return made, err
}

// UpdateCheckRun changes a check run of the App's own.
func (c *Client) UpdateCheckRun(ctx context.Context, id int64, request CheckRunRequest) (CheckRun, error) {
	var changed CheckRun
	if err := request.check(); err != nil {
		return changed, err
	}
	err := c.call(ctx, kindEdit, "change a check run", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		update := checkRunUpdate{Actions: request.actions(), UpdateCheckRunOptions: gh.UpdateCheckRunOptions{
			Name: request.Name, DetailsURL: optional(request.DetailsURL), ExternalID: optional(request.ExternalID),
			Status: optional(request.Status), Conclusion: optional(request.Conclusion),
			CompletedAt: c.completedAt(request), Output: request.output(),
		}}
		message, err := api.NewRequest(http.MethodPatch, fmt.Sprintf("repos/%s/%s/check-runs/%d", at.owner, at.name, id), update)
		if err != nil {
			return err
		}
		run := new(gh.CheckRun)
		_, err = api.Do(ctx, message, run)
		changed = checkRunOf(run)
		return err
	})
	return changed, err
}

// A checkRunUpdate always says which buttons there are: an update without the
// field keeps the old ones, and go-github leaves an empty list out.
type checkRunUpdate struct {
	gh.UpdateCheckRunOptions
	Actions []*gh.CheckRunAction `json:"actions"`
}

// GetCheckRun reads a check run.
func (c *Client) GetCheckRun(ctx context.Context, id int64) (CheckRun, error) {
	var found CheckRun
	err := c.call(ctx, kindRead, "read a check run", func(ctx context.Context, at repositoryName, api *gh.Client) error {
		run, _, err := api.Checks.GetCheckRun(ctx, at.owner, at.name, id)
		found = checkRunOf(run)
		return err
	})
	return found, err
}

// ListCheckRunsForRef returns the App's own check runs on a commit or branch,
// hidden earlier ones included, up to 5,000.
func (c *Client) ListCheckRunsForRef(ctx context.Context, ref string) ([]CheckRun, error) {
	var all []CheckRun
	err := c.call(ctx, kindRead, "read the check runs of "+ref, func(ctx context.Context, at repositoryName, api *gh.Client) error {
		options := &gh.ListCheckRunsOptions{
			AppID: &c.installation.app.id, Filter: new("all"), ListOptions: gh.ListOptions{PerPage: pageSize},
		}
		for range pagesRead {
			page, response, err := api.Checks.ListCheckRunsForRef(ctx, at.owner, at.name, ref, options)
			if err != nil {
				return err
			}
			for _, run := range page.CheckRuns {
				if one := checkRunOf(run); one.AppID == c.installation.app.id {
					all = append(all, one)
				}
			}
			if response.NextPage == 0 {
				return nil
			}
			options.Page = response.NextPage
		}
		return nil
	})
	return all, err
}

func (c *Client) completedAt(request CheckRunRequest) *gh.Timestamp {
	if request.Status != "completed" {
		return nil
	}
	return &gh.Timestamp{Time: c.installation.app.clock.github().UTC().Truncate(time.Second)}
}

func (r CheckRunRequest) output() *gh.CheckRunOutput {
	if r.Title == "" && r.Summary == "" && r.Text == "" {
		return nil
	}
	return &gh.CheckRunOutput{Title: &r.Title, Summary: &r.Summary, Text: optional(r.Text)}
}

func (r CheckRunRequest) actions() []*gh.CheckRunAction {
	actions := []*gh.CheckRunAction{}
	for _, a := range r.Actions {
		actions = append(actions, &gh.CheckRunAction{Label: a.Label, Description: a.Description, Identifier: a.Identifier})
	}
	return actions
}

func checkRunOf(r *gh.CheckRun) CheckRun {
	return CheckRun{
		ID: r.GetID(), AppID: r.GetApp().GetID(), Name: r.GetName(), HeadSHA: r.GetHeadSHA(), ExternalID: r.GetExternalID(),
		Status: r.GetStatus(), Conclusion: r.GetConclusion(), HTMLURL: r.GetHTMLURL(),
	}
}

// optional returns nil for "", which go-github leaves out of the request.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
