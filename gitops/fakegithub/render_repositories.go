package fakegithub

import "strings"

// repositoryLinks are the addresses that every form of a repository carries, as suffixes of its own.
var repositoryLinks = map[string]string{
	"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
	"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}",
	"comments_url": "/comments{/number}", "commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}",
	"contents_url": "/contents/{+path}", "contributors_url": "/contributors", "deployments_url": "/deployments",
	"downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks",
	"git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}",
	"hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
	"languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}",
	"notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
	"releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
	"trees_url": "/git/trees{/sha}",
}

func (s *Server) repoAPI(r *repository) string { return s.api("/repos/%s", r.fullName()) }

func (s *Server) repoPage(r *repository) string { return s.URL() + "/" + r.fullName() }

// repositoryObject is a repository as it stands in lists, in pull requests and in webhooks.
func (s *Server) repositoryObject(r *repository) object {
	page, host := s.repoPage(r), strings.TrimPrefix(s.URL(), "http://")
	open := 0
	for _, i := range r.issues {
		if !i.closed {
			open++
		}
	}
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	result := object{
		"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(),
		"private": r.private, "owner": s.user(r.owner), "html_url": page, "description": optional(r.description),
		"fork": false, "url": s.repoAPI(r), "created_at": stamp(r.created), "updated_at": stamp(r.updated),
		"pushed_at": stamp(r.pushed), "homepage": nil, "size": r.size, "language": nil,
		"stargazers_count": 0, "watchers_count": 0, "watchers": 0, "forks": 0, "forks_count": 0,
		"open_issues": open, "open_issues_count": open, "default_branch": r.defaultBranch,
		"has_issues": true, "has_projects": false, "has_downloads": false, "has_wiki": false, "has_pages": false,
		"has_discussions": false, "archived": r.archived, "disabled": false, "visibility": visibility,
		"license": nil, "mirror_url": nil, "topics": []string{}, "is_template": false, "allow_forking": true,
		"web_commit_signoff_required": false, "svn_url": page, "clone_url": page + ".git",
		"git_url": "git://" + host + "/" + r.fullName() + ".git", "ssh_url": "git@" + host + ":" + r.fullName() + ".git",
	}
	for name, suffix := range repositoryLinks {
		result[name] = s.repoAPI(r) + suffix
	}
	return result
}

// fullRepository is what GET /repos/{owner}/{repo} answers.
func (s *Server) fullRepository(r *repository, c *caller) object {
	result := s.repositoryObject(r)
	result["network_count"], result["subscribers_count"] = 0, 0
	result["permissions"] = permissionFlags(r, c)
	result["allow_merge_commit"], result["allow_squash_merge"], result["allow_rebase_merge"] = true, true, true
	return result
}

func permissionFlags(r *repository, c *caller) object {
	role := r.role(c.account)
	if c.installation != nil {
		role = RoleNone
		if c.reaches(r) && grants(c.token.permissions, "contents:read") {
			role = RoleRead
		}
		if c.reaches(r) && grants(c.token.permissions, "contents:write") {
			role = RoleWrite
		}
	}
	return object{"admin": role.atLeast(RoleAdmin), "maintain": role.atLeast(RoleMaintain), "push": role.atLeast(RoleWrite),
		"triage": role.atLeast(RoleTriage), "pull": role.atLeast(RoleRead)}
}
