package fakegithub

import (
	"net/http"
)

func getRepository(c *call) (any, error) { return c.server.fullRepository(c.repo, c.caller), nil }

func getUser(c *call) (any, error) { return c.server.privateUser(c.caller.account), nil }

func getUserByName(c *call) (any, error) {
	a := c.server.world.account(c.param("username"))
	if a == nil {
		return nil, errNotFound
	}
	return c.server.publicUser(a), nil
}

func getMeta(c *call) (any, error) {
	return object{"verifiable_password_authentication": false, "hooks": []string{"127.0.0.0/8"}, "web": []string{"127.0.0.0/8"},
		"api": []string{"127.0.0.0/8"}, "git": []string{"127.0.0.0/8"}, "domains": object{}}, nil
}

func getRateLimit(c *call) (any, error) { return c.server.limits.rates(c), nil }

// collaboratorOf finds the account of the path.
func collaboratorOf(c *call) (*account, error) {
	a := c.server.world.account(c.param("username"))
	if a == nil {
		return nil, errNotFound
	}
	return a, nil
}

func checkCollaborator(c *call) (any, error) {
	a, err := collaboratorOf(c)
	if err != nil {
		return nil, err
	}
	if a != c.repo.owner && c.repo.roles[a.id] == "" {
		return nil, errNotFound
	}
	return nil, nil
}

// getPermission answers with both forms: permission, which knows no triage and no maintain, and role_name, which is
// the role as granted.
func getPermission(c *call) (any, error) {
	a, err := collaboratorOf(c)
	if err != nil {
		return nil, err
	}
	role := c.repo.role(a)
	user := c.server.user(a)
	user["role_name"] = string(c.repo.roleName(a))
	user["permissions"] = permissionFlags(c.repo, &caller{account: a})
	return object{"permission": role.legacy(), "role_name": string(c.repo.roleName(a)), "user": user}, nil
}

func createCheckRun(c *call) (any, error) {
	var wanted checkEdit
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	run, err := c.server.createCheckRun(c.repo, c.caller.actor(), wanted)
	if err != nil {
		return nil, err
	}
	return c.server.checkRunObject(c.repo, run), nil
}

func checkRunOf(c *call) (*checkRun, error) {
	id, err := c.number("check_run_id")
	if err != nil {
		return nil, err
	}
	return c.repo.checkRun(id)
}

func getCheckRun(c *call) (any, error) {
	run, err := checkRunOf(c)
	if err != nil {
		return nil, err
	}
	return c.server.checkRunObject(c.repo, run), nil
}

func updateCheckRun(c *call) (any, error) {
	run, err := checkRunOf(c)
	if err != nil {
		return nil, err
	}
	var edit checkEdit
	if err := c.decode(&edit); err != nil {
		return nil, err
	}
	if err := c.server.editCheckRun(c.repo, run, c.caller.actor(), edit); err != nil {
		return nil, err
	}
	return c.server.checkRunObject(c.repo, run), nil
}

func rerequestCheckRun(c *call) (any, error) {
	run, err := checkRunOf(c)
	if err != nil {
		return nil, err
	}
	return object{}, c.server.rerequest(c.repo, run, c.caller.actor())
}

func listAnnotations(c *call) (any, error) {
	run, err := checkRunOf(c)
	if err != nil {
		return nil, err
	}
	return each(paginate(c, run.annotations), func(given map[string]any) object {
		result := object{"blob_href": c.server.repoPage(c.repo) + "/blob/" + run.headSHA + "/", "start_column": nil,
			"end_column": nil, "title": nil, "raw_details": nil}
		for key, value := range given {
			result[key] = value
		}
		if path, ok := given["path"].(string); ok {
			result["blob_href"] = c.server.repoPage(c.repo) + "/blob/" + run.headSHA + "/" + escapePath(path)
		}
		return result
	}), nil
}

func listCheckRuns(c *call) (any, error) {
	commit, err := c.server.resolve(c.repo, c.param("ref"))
	if err != nil {
		return nil, err
	}
	query := c.request().URL.Query()
	var list []*checkRun
	for _, run := range c.repo.checkRuns {
		name, status := query.Get("check_name"), query.Get("status")
		if run.headSHA == commit.Hash.String() && (name == "" || name == run.name) && (status == "" || status == run.status) && wantedApp(c, run.app) {
			list = append(list, run)
		}
	}
	if query.Get("filter") != "all" {
		list = latestByName(list)
	}
	return object{"total_count": len(list), "check_runs": each(paginate(c, list), func(run *checkRun) object {
		return c.server.checkRunObject(c.repo, run)
	})}, nil
}

func wantedApp(c *call, a *app) bool {
	wanted := c.request().URL.Query().Get("app_id")
	return wanted == "" || boundedNumber(wanted, -1, 1<<40) == int(a.id)
}

// latestByName keeps the last of each App's runs of one name, which is what GitHub lists unless asked for all.
func latestByName(runs []*checkRun) []*checkRun {
	type key struct {
		app  *app
		name string
	}
	last := map[key]*checkRun{}
	for _, run := range runs {
		last[key{run.app, run.name}] = run
	}
	var list []*checkRun
	for _, run := range runs {
		if last[key{run.app, run.name}] == run {
			list = append(list, run)
		}
	}
	return list
}

func listCheckSuites(c *call) (any, error) {
	commit, err := c.server.resolve(c.repo, c.param("ref"))
	if err != nil {
		return nil, err
	}
	var suites []int64
	seen := map[int64]bool{}
	for _, run := range c.repo.checkRuns {
		if run.headSHA == commit.Hash.String() && !seen[run.suite] && wantedApp(c, run.app) {
			seen[run.suite] = true
			suites = append(suites, run.suite)
		}
	}
	return object{"total_count": len(suites), "check_suites": each(paginate(c, suites), func(suite int64) object {
		result := c.server.checkSuiteObject(c.repo, suite)
		result["repository"] = c.server.repositoryObject(c.repo)
		return result
	})}, nil
}

func createStatus(c *call) (any, error) {
	sha := c.param("sha")
	if _, err := c.server.commitOf(c.repo, sha); err != nil {
		return nil, errorStatus(http.StatusUnprocessableEntity, "No commit found for SHA: %s", sha)
	}
	var wanted struct {
		State       string  `json:"state"`
		Context     *string `json:"context"`
		Description string  `json:"description"`
		TargetURL   string  `json:"target_url"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	switch wanted.State {
	case "error", "failure", "pending", "success":
	default:
		return nil, invalid("Status", "state", "inclusion")
	}
	if len([]rune(wanted.Description)) > 140 {
		return nil, invalidBecause("Status", "description", "description is too long (maximum is 140 characters)")
	}
	one := &status{id: c.server.world.nextID(), sha: sha, state: wanted.State, context: "default", description: wanted.Description,
		targetURL: wanted.TargetURL, creator: c.caller.account, created: c.server.Now()}
	set(&one.context, wanted.Context)
	c.repo.statuses = append(c.repo.statuses, one)
	result := c.server.statusObject(c.repo, one)
	result["creator"] = c.server.simpleUser(one.creator)
	return result, nil
}

func (s *Server) statusObject(r *repository, one *status) object {
	return object{"id": one.id, "node_id": nodeID("StatusContext", one.id), "url": s.repoAPI(r) + "/statuses/" + one.sha,
		"state": one.state, "context": one.context, "description": optional(one.description), "target_url": optional(one.targetURL),
		"avatar_url": s.user(one.creator)["avatar_url"], "created_at": stamp(one.created), "updated_at": stamp(one.created)}
}

// getStatus combines the last status of each context; none at all is pending.
func getStatus(c *call) (any, error) {
	commit, err := c.server.resolve(c.repo, c.param("ref"))
	if err != nil {
		return nil, err
	}
	sha := commit.Hash.String()
	state, list := combineStatuses(c.repo.statuses, sha)
	return object{"state": state, "sha": sha, "total_count": len(list), "repository": c.server.repositoryObject(c.repo),
		"statuses":   each(paginate(c, list), func(one *status) object { return c.server.statusObject(c.repo, one) }),
		"commit_url": c.server.repoAPI(c.repo) + "/commits/" + sha, "url": c.server.repoAPI(c.repo) + "/commits/" + sha + "/status"}, nil
}

func combineStatuses(all []*status, sha string) (string, []*status) {
	var list []*status
	seen := map[string]bool{}
	state := "success"
	for at := len(all) - 1; at >= 0; at-- {
		one := all[at]
		if one.sha != sha || seen[one.context] {
			continue
		}
		seen[one.context] = true
		list = append(list, one)
		switch {
		case one.state == "failure" || one.state == "error":
			state = "failure"
		case one.state == "pending" && state == "success":
			state = "pending"
		}
	}
	if len(list) == 0 {
		state = "pending"
	}
	return state, list
}
