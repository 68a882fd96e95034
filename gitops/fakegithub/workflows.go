package fakegithub

import (
	"cmp"
	"fmt"
)

// WorkflowRun is a finished run of a workflow as a test wants it to have been; the fake itself runs nothing.
type WorkflowRun struct {
	ID         int64
	Name       string
	Path       string // of the workflow file
	Event      string // empty means push
	Branch     string
	HeadSHA    string // empty means the branch's tip
	Conclusion string
	Jobs       []WorkflowJob
}

// WorkflowJob is one job of a run, with its log.
type WorkflowJob struct {
	ID         int64
	Name       string
	Conclusion string
	Log        string
}

// AddWorkflowRun adds a completed run, tells the Apps, and returns it with its ids.
func (s *Server) AddWorkflowRun(repository string, run WorkflowRun) (WorkflowRun, error) {
	err := s.onRepository(repository, func(r *repo) error {
		run.HeadSHA = cmp.Or(run.HeadSHA, s.branchSHA(r, run.Branch))
		if _, err := s.commitOf(r, run.HeadSHA); err != nil {
			return fmt.Errorf("fakegithub: %s has no commit %q for a workflow run", repository, run.HeadSHA)
		}
		kept := &workflowRun{id: s.world.nextID(), number: len(r.workflowRuns) + 1, name: run.Name, path: run.Path,
			event: cmp.Or(run.Event, "push"), branch: run.Branch, headSHA: run.HeadSHA, status: "completed", conclusion: run.Conclusion}
		run.ID = kept.id
		for at := range run.Jobs {
			job := &run.Jobs[at]
			job.ID = s.world.nextID()
			kept.jobs = append(kept.jobs, workflowJob{id: job.ID, name: job.Name, conclusion: job.Conclusion, log: job.Log})
		}
		r.workflowRuns = append(r.workflowRuns, kept)
		s.emit(event{name: "workflow_run", action: "completed", repo: r, sender: r.owner, payload: object{
			"workflow_run": s.workflowRunObject(r, kept), "workflow": s.workflowObject(r, kept)}})
		return nil
	})
	return run, err
}

func (s *Server) workflowObject(r *repository, run *workflowRun) object {
	id := r.id + 1
	return object{"id": id, "node_id": nodeID("Workflow", id), "name": run.name, "path": run.path, "state": "active",
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "badge_url": s.repoPage(r) + "/workflows/badge.svg",
		"html_url": s.repoPage(r) + "/blob/" + r.defaultBranch + "/" + run.path,
		"url":      fmt.Sprintf("%s/actions/workflows/%d", s.repoAPI(r), id)}
}

// workflowRun is a WorkflowRun as it is kept.
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
