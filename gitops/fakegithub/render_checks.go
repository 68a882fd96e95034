package fakegithub

import "fmt"

func (s *Server) checkRunObject(r *repository, run *checkRun) object {
	address := fmt.Sprintf("%s/check-runs/%d", s.repoAPI(r), run.id)
	page := fmt.Sprintf("%s/runs/%d", s.repoPage(r), run.id)
	details := run.detailsURL
	if details == "" {
		details = page
	}
	return object{
		"id": run.id, "node_id": nodeID("CheckRun", run.id), "head_sha": run.headSHA, "external_id": run.externalID,
		"url": address, "html_url": page, "details_url": details, "status": run.status,
		"conclusion": optional(run.conclusion), "started_at": optionalStamp(run.started),
		"completed_at": optionalStamp(run.completed), "name": run.name,
		"output": object{"title": optional(run.title), "summary": optional(run.summary), "text": optional(run.text),
			"annotations_count": len(run.annotations), "annotations_url": address + "/annotations"},
		"check_suite": object{"id": run.suite}, "app": s.integration(run.app),
		"pull_requests": s.pullsAt(r, run.headSHA),
	}
}

// pullsAt lists the open pull requests whose head the commit is, in the short form of checks.
func (s *Server) pullsAt(r *repository, sha string) []object {
	list := []object{}
	for _, i := range sorted(r.issues) {
		if i.pull == nil || i.closed || s.headSHA(r, i) != sha {
			continue
		}
		short := object{"id": r.id, "url": s.repoAPI(r), "name": r.name}
		list = append(list, object{
			"id": i.pull.id, "number": i.number, "url": s.pullAPI(r, i.number),
			"head": object{"ref": i.pull.headBranch, "sha": sha, "repo": short},
			"base": object{"ref": i.pull.baseBranch, "sha": s.baseSHA(r, i), "repo": short},
		})
	}
	return list
}

// checkSuiteObject sums up one App's check runs on one commit.
func (s *Server) checkSuiteObject(r *repository, suite int64) object {
	runs := runsOfSuite(r, suite)
	first := runs[0]
	status, conclusion := suiteOutcome(runs)
	address := fmt.Sprintf("%s/check-suites/%d", s.repoAPI(r), suite)
	result := object{
		"id": suite, "node_id": nodeID("CheckSuite", suite), "head_branch": optional(s.branchAt(r, first.headSHA)),
		"head_sha": first.headSHA, "status": status, "conclusion": optional(conclusion), "url": address,
		"before": nil, "after": first.headSHA, "pull_requests": s.pullsAt(r, first.headSHA),
		"app": s.integration(first.app), "created_at": stamp(first.started), "updated_at": stamp(first.started),
		"latest_check_runs_count": len(runs), "check_runs_url": address + "/check-runs", "rerequestable": true,
		"runs_rerequestable": true,
	}
	if commit, err := s.commitOf(r, first.headSHA); err == nil {
		result["head_commit"] = simpleCommit(commit)
	}
	return result
}

func runsOfSuite(r *repository, suite int64) []*checkRun {
	var runs []*checkRun
	for _, run := range r.checkRuns {
		if run.suite == suite {
			runs = append(runs, run)
		}
	}
	return runs
}

// suiteOutcome: done when every run is done; then the worst conclusion counts.
func suiteOutcome(runs []*checkRun) (status, conclusion string) {
	worst := []string{"action_required", "failure", "timed_out", "cancelled", "success", "neutral", "skipped"}
	for _, run := range runs {
		if run.status != "completed" {
			return "in_progress", ""
		}
	}
	for _, candidate := range worst {
		for _, run := range runs {
			if run.conclusion == candidate {
				return "completed", candidate
			}
		}
	}
	return "completed", "neutral"
}
