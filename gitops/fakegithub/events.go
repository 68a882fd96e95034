package fakegithub

import (
	"maps"
	"slices"
)

// eventPermissions says which permission an App needs to be sent an event; any one of a list suffices.
// Source: https://docs.github.com/webhooks/webhook-events-and-payloads
var eventPermissions = map[string]string{
	"check_run":                   "checks:read",
	"check_suite":                 "checks:read",
	"issue_comment":               "issues:read,pull_requests:read",
	"issues":                      "issues:read",
	"pull_request":                "pull_requests:read",
	"pull_request_review":         "pull_requests:read",
	"pull_request_review_comment": "pull_requests:read",
	"push":                        "contents:read",
	"repository":                  "metadata:read",
	"workflow_run":                "actions:read",
}

// eventsAllowedBy lists the events that an App with these permissions can subscribe to.
func eventsAllowedBy(permissions map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(eventPermissions)) {
		if grants(permissions, eventPermissions[name]) {
			list = append(list, name)
		}
	}
	return list
}

// event is something that happened in a repository and that Apps are told of.
type event struct {
	name    string
	action  string // empty for events that have none, like push
	repo    *repository
	sender  *account
	payload object // what is special to it; the common fields are added
	only    *app   // the one App that is told, for a button of its own check run
}

// emit queues the event for every App that is installed here, subscribed and permitted. Server.mu must be held.
func (s *Server) emit(e event) {
	for _, i := range sorted(s.world.installations) {
		if i.suspended.IsZero() && i.covers(e.repo) && (e.only == nil || e.only == i.app) &&
			slices.Contains(i.app.events, e.name) && grants(i.permissions, eventPermissions[e.name]) {
			s.queueHook(i, e)
		}
	}
}

func (s *Server) queueHook(i *installation, e event) {
	payload := maps.Clone(e.payload)
	if payload == nil {
		payload = object{}
	}
	if e.action != "" {
		payload["action"] = e.action
	}
	payload["installation"] = object{"id": i.id, "node_id": nodeID("Integration", i.id)}
	payload["sender"] = s.user(e.sender)
	if e.repo != nil {
		payload["repository"] = s.repositoryInHook(e)
		if e.repo.owner.kind == "Organization" {
			payload["organization"] = s.organization(e.repo.owner)
		}
	}
	d := &delivery{id: s.world.nextID(), guid: newGUID(), app: i.app, event: e.name, action: e.action, installation: i.id,
		payload: encode(payload)}
	if e.repo != nil {
		d.repository = e.repo.id
	}
	s.hooks.enqueue(d)
}

// repositoryInHook is the repository as webhooks show it: a push dates it in seconds and names the main branch.
func (s *Server) repositoryInHook(e event) object {
	result := s.repositoryObject(e.repo)
	result["custom_properties"] = object{}
	if e.name != "push" {
		return result
	}
	result["created_at"], result["pushed_at"] = e.repo.created.Unix(), e.repo.pushed.Unix()
	result["stargazers"], result["master_branch"] = 0, e.repo.defaultBranch
	owner := s.user(e.repo.owner)
	owner["name"], owner["email"] = e.repo.owner.login, nil
	result["owner"] = owner
	return result
}

func (s *Server) organization(a *account) object {
	base := s.api("/orgs/%s", a.login)
	return object{"login": a.login, "id": a.id, "node_id": nodeID("Organization", a.id), "url": base,
		"repos_url": base + "/repos", "events_url": base + "/events", "hooks_url": base + "/hooks",
		"issues_url": base + "/issues", "members_url": base + "/members{/member}",
		"public_members_url": base + "/public_members{/member}", "avatar_url": s.URL() + "/static/avatar/" + a.login,
		"description": nil}
}

// emitInstallation tells an App about its own installation; no subscription is needed for that.
func (s *Server) emitInstallation(i *installation, action string, sender *account) {
	var repositories []object
	for _, r := range sorted(s.world.repositories) {
		if i.covers(r) {
			repositories = append(repositories, shortRepository(r))
		}
	}
	payload := object{"action": action, "installation": s.installationObject(i), "sender": s.user(sender)}
	if action == "created" || action == "deleted" {
		payload["repositories"] = append([]object{}, repositories...)
		payload["requester"] = nil
	}
	s.queueOwn(i, "installation", action, payload)
}

// emitInstallationRepositories tells an App which repositories it gained or lost.
func (s *Server) emitInstallationRepositories(i *installation, action string, changed []*repository, sender *account) {
	short := each(changed, shortRepository)
	payload := object{"action": action, "installation": s.installationObject(i), "sender": s.user(sender),
		"repository_selection": "selected", "repositories_added": []object{}, "repositories_removed": []object{},
		"requester": nil}
	payload["repositories_"+action] = short
	s.queueOwn(i, "installation_repositories", action, payload)
}

func (s *Server) queueOwn(i *installation, name, action string, payload object) {
	s.hooks.enqueue(&delivery{id: s.world.nextID(), guid: newGUID(), app: i.app, event: name, action: action,
		installation: i.id, payload: encode(payload)})
}

func shortRepository(r *repository) object {
	return object{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private}
}
