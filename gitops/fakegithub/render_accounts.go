package fakegithub

import (
	"fmt"
	"net/url"
)

// api is the absolute address of something in the REST API.
func (s *Server) api(format string, arguments ...any) string {
	return s.URL() + "/api/v3" + fmt.Sprintf(format, arguments...)
}

// simpleUser is an account inside another answer; null for none.
func (s *Server) simpleUser(a *account) any {
	if a == nil {
		return nil
	}
	return s.user(a)
}

func (s *Server) user(a *account) object {
	base := s.api("/users/%s", url.PathEscape(a.login))
	return object{
		"login": a.login, "id": a.id, "node_id": nodeID("User", a.id), "type": a.kind, "site_admin": false,
		"avatar_url": s.URL() + "/static/avatar/" + url.PathEscape(a.login), "gravatar_id": "",
		"url": base, "html_url": s.accountPage(a),
		"followers_url": base + "/followers", "following_url": base + "/following{/other_user}",
		"gists_url": base + "/gists{/gist_id}", "starred_url": base + "/starred{/owner}{/repo}",
		"subscriptions_url": base + "/subscriptions", "organizations_url": base + "/orgs", "repos_url": base + "/repos",
		"events_url": base + "/events{/privacy}", "received_events_url": base + "/received_events",
	}
}

func (s *Server) accountPage(a *account) string {
	if a.kind == "Bot" {
		return s.URL() + "/apps/" + a.login[:len(a.login)-len("[bot]")]
	}
	return s.URL() + "/" + a.login
}

// publicUser is an account's own page in the API.
func (s *Server) publicUser(a *account) object {
	result := s.user(a)
	result["name"], result["user_view_type"] = optional(a.name), "public"
	for _, field := range []string{"company", "location", "email", "hireable", "bio", "twitter_username"} {
		result[field] = nil
	}
	result["blog"] = ""
	for _, field := range []string{"public_repos", "public_gists", "followers", "following"} {
		result[field] = 0
	}
	result["created_at"], result["updated_at"] = stamp(a.created), stamp(a.created)
	return result
}

func (s *Server) privateUser(a *account) object {
	result := s.publicUser(a)
	result["user_view_type"] = "private"
	for _, field := range []string{"private_gists", "total_private_repos", "owned_private_repos", "disk_usage", "collaborators"} {
		result[field] = 0
	}
	result["two_factor_authentication"] = true
	return result
}

func (s *Server) integration(a *app) object {
	return object{
		"id": a.id, "slug": a.slug, "node_id": nodeID("Integration", a.id), "client_id": a.clientID,
		"owner": s.user(a.owner), "name": a.name, "description": a.description, "external_url": a.externalURL,
		"html_url": s.URL() + "/apps/" + a.slug, "created_at": stamp(a.created), "updated_at": stamp(a.updated),
		"permissions": copyStrings(a.permissions), "events": append([]string{}, a.events...),
	}
}

func (s *Server) installationObject(i *installation) object {
	selection := "selected"
	if i.all {
		selection = "all"
	}
	return object{
		"id": i.id, "account": s.user(i.account), "repository_selection": selection,
		"access_tokens_url": s.api("/app/installations/%d/access_tokens", i.id),
		"repositories_url":  s.api("/installation/repositories"),
		"html_url":          fmt.Sprintf("%s/settings/installations/%d", s.URL(), i.id),
		"app_id":            i.app.id, "app_slug": i.app.slug, "client_id": i.app.clientID,
		"target_id": i.account.id, "target_type": i.account.kind, "permissions": copyStrings(i.permissions),
		"events": append([]string{}, i.app.events...), "created_at": stamp(i.created), "updated_at": stamp(i.updated),
		"single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_by": s.simpleUser(i.suspendedBy), "suspended_at": optionalStamp(i.suspended),
	}
}

func copyStrings(values map[string]string) map[string]string {
	result := make(map[string]string, len(values))
	for key, value := range values {
		result[key] = value
	}
	return result
}
