package fakegithub

func workflowRunOf(c *call) (*workflowRun, error) {
	id, err := c.number("run_id")
	if err != nil {
		return nil, err
	}
	for _, run := range c.repo.workflowRuns {
		if run.id == id {
			return run, nil
		}
	}
	return nil, errNotFound
}

func getWorkflowRun(c *call) (any, error) {
	run, err := workflowRunOf(c)
	if err != nil {
		return nil, err
	}
	return c.server.workflowRunObject(c.repo, run), nil
}

func listWorkflowJobs(c *call) (any, error) {
	run, err := workflowRunOf(c)
	if err != nil {
		return nil, err
	}
	return object{"total_count": len(run.jobs), "jobs": each(paginate(c, run.jobs), func(job workflowJob) object {
		return c.server.workflowJobObject(c.repo, run, job)
	})}, nil
}

// getJobLog redirects to the log, as GitHub redirects to where it keeps logs for a minute.
func getJobLog(c *call) (any, error) {
	id, err := c.number("job_id")
	if err != nil {
		return nil, err
	}
	for _, run := range c.repo.workflowRuns {
		for _, job := range run.jobs {
			if job.id == id {
				return raw{location: c.server.URL() + "/" + c.repo.fullName() + "/logs/" + c.param("job_id")}, nil
			}
		}
	}
	return nil, errNotFound
}
