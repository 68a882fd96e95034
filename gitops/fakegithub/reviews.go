package fakegithub

import (
	"fmt"
	"net/http"
	"strings"
)

// createReview adds a person's review of a pull request.
func (s *Server) createReview(r *repository, i *issue, by actor, state, body string) (*review, error) {
	switch state {
	case "APPROVED", "CHANGES_REQUESTED", "COMMENTED":
	default:
		return nil, invalid("PullRequestReview", "event", "invalid")
	}
	if state != "COMMENTED" && i.author == by.account {
		return nil, errorStatus(http.StatusUnprocessableEntity, "Can not approve or request changes on your own pull request.")
	}
	v := &review{id: s.world.nextID(), number: i.number, author: by.account, state: state, body: body,
		commit: s.headSHA(r, i), submitted: s.Now()}
	r.reviews = append(r.reviews, v)
	shown := s.reviewObject(r, v)
	shown["state"] = strings.ToLower(state)
	s.emit(event{name: "pull_request_review", action: "submitted", repo: r, sender: by.account,
		payload: object{"review": shown, "pull_request": s.simplePull(r, i)}})
	return v, nil
}

// createReviewComment comments on a line of a pull request's diff, as a review of its own.
func (s *Server) createReviewComment(r *repository, i *issue, by actor, path string, line int, body string) (*comment, error) {
	if err := checkReviewComment(body); err != nil {
		return nil, err
	}
	hunk := s.hunkOf(r, i, path)
	if hunk == "" {
		return nil, invalid("PullRequestReviewComment", "path", "invalid")
	}
	v, err := s.createReview(r, i, by, "COMMENTED", "")
	if err != nil {
		return nil, err
	}
	return s.addReviewComment(r, i, by, body, lineComment{review: v.id, path: path, line: line, position: 1, hunk: hunk, commit: s.headSHA(r, i)}), nil
}

func (s *Server) createReply(r *repository, to *comment, by actor, body string) (*comment, error) {
	if err := checkReviewComment(body); err != nil {
		return nil, err
	}
	line := *to.line
	line.replyTo = to.id
	return s.addReviewComment(r, r.issues[to.number], by, body, line), nil
}

func checkReviewComment(body string) error {
	if strings.TrimSpace(body) == "" {
		return invalid("PullRequestReviewComment", "body", "missing_field")
	}
	return checkBody("PullRequestReviewComment", body)
}

// hunkOf is the first hunk of a file in the pull request's diff; empty if the file is not in it.
func (s *Server) hunkOf(r *repository, i *issue, path string) string {
	for _, file := range s.pullChange(r, i).files {
		if file.name == path {
			hunk, _, _ := strings.Cut(file.patch, "\n@@ ")
			return hunk
		}
	}
	return ""
}

func (s *Server) addReviewComment(r *repository, i *issue, by actor, body string, line lineComment) *comment {
	m := &comment{id: s.world.nextID(), number: i.number, body: body, author: by.account, via: by.via,
		created: s.Now(), updated: s.Now(), line: &line}
	r.comments[m.id] = m
	i.updated = s.Now()
	s.emit(event{name: "pull_request_review_comment", action: "created", repo: r, sender: by.account,
		payload: object{"comment": s.reviewCommentObject(r, m), "pull_request": s.simplePull(r, i)}})
	return m
}

// workflowRun is a run of a workflow, as tests describe it; the fake runs none.
type workflowRun struct {
	id         int64
	number     int
	name       string
	path       string
	event      string
	branch     string
	headSHA    string
	status     string
	conclusion string
	jobs       []workflowJob
}

type workflowJob struct {
	id         int64
	name       string
	conclusion string
	log        string
}

func (s *Server) workflowRunObject(r *repository, run *workflowRun) object {
	address := fmt.Sprintf("%s/actions/runs/%d", s.repoAPI(r), run.id)
	now := stamp(s.Now())
	result := object{
		"id": run.id, "node_id": nodeID("WorkflowRun", run.id), "name": run.name, "path": run.path,
		"display_title": run.name, "run_number": run.number, "run_attempt": 1, "event": run.event, "status": run.status,
		"conclusion": optional(run.conclusion), "workflow_id": r.id + 1, "head_branch": optional(run.branch),
		"head_sha": run.headSHA, "created_at": now, "updated_at": now, "run_started_at": now,
		"check_suite_id": run.id, "check_suite_node_id": nodeID("CheckSuite", run.id),
		"actor": s.user(r.owner), "triggering_actor": s.user(r.owner), "pull_requests": s.pullsAt(r, run.headSHA),
		"repository": s.repositoryObject(r), "head_repository": s.repositoryObject(r), "head_commit": nil,
		"referenced_workflows": []object{}, "previous_attempt_url": nil,
		"url":      address,
		"html_url": s.commitPage(r, run.headSHA), "jobs_url": address + "/jobs", "logs_url": address + "/logs",
		"check_suite_url": fmt.Sprintf("%s/check-suites/%d", s.repoAPI(r), run.id), "artifacts_url": address + "/artifacts",
		"cancel_url": address + "/cancel", "rerun_url": address + "/rerun",
		"workflow_url": fmt.Sprintf("%s/actions/workflows/%d", s.repoAPI(r), r.id+1),
	}
	if commit, err := s.commitOf(r, run.headSHA); err == nil {
		result["head_commit"] = simpleCommit(commit)
	}
	return result
}

func (s *Server) workflowJobObject(r *repository, run *workflowRun, job workflowJob) object {
	address := fmt.Sprintf("%s/actions/jobs/%d", s.repoAPI(r), job.id)
	now := stamp(s.Now())
	return object{
		"id": job.id, "node_id": nodeID("CheckRun", job.id), "run_id": run.id, "run_attempt": 1, "workflow_name": run.name,
		"run_url":  fmt.Sprintf("%s/actions/runs/%d", s.repoAPI(r), run.id),
		"head_sha": run.headSHA, "head_branch": optional(run.branch), "url": address, "html_url": s.commitPage(r, run.headSHA),
		"status": "completed", "conclusion": job.conclusion, "created_at": now, "started_at": now, "completed_at": now,
		"name": job.name, "steps": []object{}, "check_run_url": fmt.Sprintf("%s/check-runs/%d", s.repoAPI(r), job.id),
		"labels": []string{"ubuntu-latest"}, "runner_id": nil, "runner_name": nil, "runner_group_id": nil, "runner_group_name": nil,
	}
}
