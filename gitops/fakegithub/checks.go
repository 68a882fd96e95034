package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// CheckAction is a button of a check run.
type CheckAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// Limits of check runs. Source: https://docs.github.com/rest/checks/runs
const (
	mostActions        = 3
	longestLabel       = 20
	longestDescription = 40
	longestIdentifier  = 20
	longestOutput      = 65535
	mostAnnotations    = 50
)

var (
	checkStatuses    = []string{"queued", "in_progress", "completed", "waiting", "requested", "pending"}
	checkConclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out", "stale"}
)

// checkEdit is what creating or changing a check run may say; nil leaves a field as it is.
type checkEdit struct {
	Name        *string        `json:"name"`
	HeadSHA     *string        `json:"head_sha"`
	ExternalID  *string        `json:"external_id"`
	DetailsURL  *string        `json:"details_url"`
	Status      *string        `json:"status"`
	Conclusion  *string        `json:"conclusion"`
	StartedAt   *time.Time     `json:"started_at"`
	CompletedAt *time.Time     `json:"completed_at"`
	Actions     *[]CheckAction `json:"actions"`
	Output      *checkOutput   `json:"output"`
}

type checkOutput struct {
	Title       *string          `json:"title"`
	Summary     *string          `json:"summary"`
	Text        *string          `json:"text"`
	Annotations []map[string]any `json:"annotations"`
}

func (e checkEdit) validate() error {
	switch {
	case e.Status != nil && !slices.Contains(checkStatuses, *e.Status):
		return invalid("CheckRun", "status", "invalid")
	case e.Conclusion != nil && !slices.Contains(checkConclusions, *e.Conclusion):
		return invalid("CheckRun", "conclusion", "invalid")
	case e.Status != nil && *e.Status == "completed" && e.Conclusion == nil:
		return invalidBecause("CheckRun", "conclusion", "conclusion is required when status is completed")
	}
	if err := e.validateActions(); err != nil {
		return err
	}
	return e.validateOutput()
}

func (e checkEdit) validateActions() error {
	if e.Actions == nil {
		return nil
	}
	if len(*e.Actions) > mostActions {
		return invalidBecause("CheckRun", "actions", fmt.Sprintf("no more than %d actions are allowed", mostActions))
	}
	for _, action := range *e.Actions {
		for _, field := range []struct {
			name, value string
			longest     int
		}{{"label", action.Label, longestLabel}, {"description", action.Description, longestDescription}, {"identifier", action.Identifier, longestIdentifier}} {
			if field.value == "" {
				return invalid("CheckRun", "actions."+field.name, "missing_field")
			}
			if utf8.RuneCountInString(field.value) > field.longest {
				return invalidBecause("CheckRun", "actions."+field.name, fmt.Sprintf("%s is too long (maximum is %d characters)", field.name, field.longest))
			}
		}
	}
	return nil
}

func (e checkEdit) validateOutput() error {
	if e.Output == nil {
		return nil
	}
	switch {
	case e.Output.Summary == nil:
		return invalid("CheckRun", "output.summary", "missing_field")
	case len(*e.Output.Summary) > longestOutput:
		return invalidBecause("CheckRun", "output.summary", "summary is too long (maximum is 65535 characters)")
	case e.Output.Text != nil && len(*e.Output.Text) > longestOutput:
		return invalidBecause("CheckRun", "output.text", "text is too long (maximum is 65535 characters)")
	case len(e.Output.Annotations) > mostAnnotations:
		return invalidBecause("CheckRun", "output.annotations", "no more than 50 annotations are allowed per request")
	}
	return nil
}

// createCheckRun adds an App's check run to a commit that git has.
func (s *Server) createCheckRun(r *repository, by actor, edit checkEdit) (*checkRun, error) {
	switch {
	case by.via == nil:
		return nil, errorStatus(http.StatusForbidden, "You must authenticate via a GitHub App.")
	case edit.Name == nil || *edit.Name == "":
		return nil, invalid("CheckRun", "name", "missing_field")
	case edit.HeadSHA == nil:
		return nil, invalid("CheckRun", "head_sha", "missing_field")
	}
	if err := edit.validate(); err != nil {
		return nil, err
	}
	if _, err := s.commitOf(r, *edit.HeadSHA); err != nil {
		return nil, errorStatus(http.StatusUnprocessableEntity, "No commit found for SHA: %s", *edit.HeadSHA)
	}
	run := &checkRun{id: s.world.nextID(), app: by.via, headSHA: *edit.HeadSHA, status: "queued", started: s.Now()}
	run.suite = s.suiteFor(r, run)
	r.checkRuns = append(r.checkRuns, run)
	s.applyCheck(run, edit)
	s.emitCheckRun(r, run, "created", by.account, nil, nil)
	if run.status == "completed" {
		s.checkCompleted(r, run, by.account)
	}
	return run, nil
}

// suiteFor finds or makes the App's suite for the commit.
func (s *Server) suiteFor(r *repository, run *checkRun) int64 {
	for _, other := range r.checkRuns {
		if other.app == run.app && other.headSHA == run.headSHA {
			return other.suite
		}
	}
	return s.world.nextID()
}

// editCheckRun changes a check run of the App's own.
func (s *Server) editCheckRun(r *repository, run *checkRun, by actor, edit checkEdit) error {
	if by.via != run.app {
		return errorStatus(http.StatusForbidden, "Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.", idOf(by.via))
	}
	if err := edit.validate(); err != nil {
		return err
	}
	wasCompleted := run.status == "completed"
	s.applyCheck(run, edit)
	if run.status == "completed" && !wasCompleted {
		s.checkCompleted(r, run, by.account)
	}
	return nil
}

func idOf(a *app) int64 {
	if a == nil {
		return 0
	}
	return a.id
}

func (s *Server) applyCheck(run *checkRun, edit checkEdit) {
	set(&run.name, edit.Name)
	set(&run.externalID, edit.ExternalID)
	set(&run.detailsURL, edit.DetailsURL)
	set(&run.status, edit.Status)
	set(&run.started, edit.StartedAt)
	set(&run.actions, edit.Actions)
	if edit.Conclusion != nil {
		run.status, run.conclusion, run.completed = "completed", *edit.Conclusion, s.Now()
	} else if edit.Status != nil && *edit.Status != "completed" {
		run.conclusion, run.completed = "", zeroTime
	}
	set(&run.completed, edit.CompletedAt)
	if edit.Output != nil {
		set(&run.title, edit.Output.Title)
		set(&run.summary, edit.Output.Summary)
		set(&run.text, edit.Output.Text)
		run.annotations = append(run.annotations, edit.Output.Annotations...)
	}
}

// set stores a value that was given.
func set[T any](target *T, value *T) {
	if value != nil {
		*target = *value
	}
}

func (s *Server) checkCompleted(r *repository, run *checkRun, sender *account) {
	s.emitCheckRun(r, run, "completed", sender, nil, nil)
	if status, _ := suiteOutcome(runsOfSuite(r, run.suite)); status == "completed" {
		s.emit(event{name: "check_suite", action: "completed", repo: r, sender: sender, only: run.app,
			payload: object{"check_suite": s.checkSuiteObject(r, run.suite)}})
	}
}

func (s *Server) emitCheckRun(r *repository, run *checkRun, action string, sender *account, extra object, only *app) {
	shown := s.checkRunObject(r, run)
	shown["check_suite"] = s.checkSuiteObject(r, run.suite)
	payload := object{"check_run": shown}
	for key, value := range extra {
		payload[key] = value
	}
	s.emit(event{name: "check_run", action: action, repo: r, sender: sender, payload: payload, only: only})
}

// clickAction is a person's click on a check run's button. Buttons are there once the run is completed, for who can
// write.
func (s *Server) clickAction(r *repository, run *checkRun, by *account, identifier string) error {
	if !r.role(by).atLeast(RoleWrite) {
		return errorStatus(http.StatusForbidden, "Must have write access to Repository.")
	}
	offered := slices.ContainsFunc(run.actions, func(a CheckAction) bool { return a.Identifier == identifier })
	if run.status != "completed" || !offered {
		return errorStatus(http.StatusUnprocessableEntity, "The check run offers no action %q.", identifier)
	}
	s.emitCheckRun(r, run, "requested_action", by, object{"requested_action": object{"identifier": identifier}}, run.app)
	return nil
}

// rerequest asks the App to run its check again.
func (s *Server) rerequest(r *repository, run *checkRun, by actor) error {
	if by.via != nil && by.via != run.app {
		return errorStatus(http.StatusForbidden, "This check run is not owned by this app")
	}
	if by.via == nil && !r.role(by.account).atLeast(RoleWrite) {
		return errorStatus(http.StatusForbidden, "Must have write access to Repository.")
	}
	s.emitCheckRun(r, run, "rerequested", by.account, nil, run.app)
	return nil
}

func (r *repository) checkRun(id int64) (*checkRun, error) {
	for _, run := range r.checkRuns {
		if run.id == id {
			return run, nil
		}
	}
	return nil, errNotFound
}
