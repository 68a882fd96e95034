package fakegithub

import "fmt"

func (s *Server) issueAPI(r *repository, number int) string {
	return fmt.Sprintf("%s/issues/%d", s.repoAPI(r), number)
}

// conversationPage is where people see the issue or pull request.
func (s *Server) conversationPage(r *repository, i *issue) string {
	kind := "issues"
	if i.pull != nil {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%d", s.repoPage(r), kind, i.number)
}

func (i *issue) state() string {
	if i.closed {
		return "closed"
	}
	return "open"
}

func (s *Server) issueObject(r *repository, i *issue) object {
	address := s.issueAPI(r, i.number)
	result := object{
		"id": i.id, "node_id": nodeID("Issue", i.id), "number": i.number, "title": i.title, "body": optional(i.body),
		"state": i.state(), "state_reason": optional(i.stateReason), "locked": i.locked, "active_lock_reason": nil,
		"user": s.simpleUser(i.author), "author_association": r.association(i.author),
		"labels":   each(i.labels, func(l *label) object { return s.labelObject(r, l) }),
		"assignee": nil, "assignees": each(i.assignees, s.user), "milestone": nil,
		"comments": len(conversation(r, i.number)), "created_at": stamp(i.created), "updated_at": stamp(i.updated),
		"closed_at": optionalStamp(i.closedAt), "closed_by": s.simpleUser(i.closedBy),
		"url": address, "repository_url": s.repoAPI(r), "html_url": s.conversationPage(r, i),
		"labels_url": address + "/labels{/name}", "comments_url": address + "/comments", "events_url": address + "/events",
		"timeline_url": address + "/timeline", "reactions": reactionSummary(address, i.reactions),
		"performed_via_github_app": s.simpleApp(i.via),
		"sub_issues_summary":       object{"total": 0, "completed": 0, "percent_completed": 0},
		"issue_dependencies_summary": object{"blocked_by": 0, "total_blocked_by": 0, "blocking": 0,
			"total_blocking": 0},
	}
	if len(i.assignees) > 0 {
		result["assignee"] = s.user(i.assignees[0])
	}
	if i.pull != nil {
		page := s.conversationPage(r, i)
		result["draft"] = i.pull.draft
		result["pull_request"] = object{"url": s.pullAPI(r, i.number), "html_url": page, "diff_url": page + ".diff",
			"patch_url": page + ".patch", "merged_at": optionalStamp(i.pull.mergedAt)}
	}
	return result
}

func (s *Server) simpleApp(a *app) any {
	if a == nil {
		return nil
	}
	return s.integration(a)
}

func (s *Server) labelObject(r *repository, l *label) object {
	return object{
		"id": l.id, "node_id": nodeID("Label", l.id), "url": s.repoAPI(r) + "/labels/" + escapePath(l.name),
		"name": l.name, "color": l.color, "default": false, "description": optional(l.description),
	}
}

func (s *Server) commentPage(r *repository, m *comment) string {
	return fmt.Sprintf("%s#issuecomment-%d", s.conversationPage(r, r.issues[m.number]), m.id)
}

func (s *Server) commentObject(r *repository, m *comment) object {
	address := fmt.Sprintf("%s/issues/comments/%d", s.repoAPI(r), m.id)
	return object{
		"id": m.id, "node_id": nodeID("IssueComment", m.id), "url": address, "html_url": s.commentPage(r, m),
		"issue_url": s.issueAPI(r, m.number), "body": m.body, "user": s.simpleUser(m.author),
		"author_association": r.association(m.author), "created_at": stamp(m.created), "updated_at": stamp(m.updated),
		"reactions": reactionSummary(address, m.reactions), "performed_via_github_app": s.simpleApp(m.via),
	}
}

// reactionContents are GitHub's eight, in the order of its picker.
var reactionContents = []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}

func reactionSummary(address string, reactions []*reaction) object {
	result := object{"url": address + "/reactions", "total_count": len(reactions)}
	for _, content := range reactionContents {
		result[content] = 0
	}
	for _, one := range reactions {
		result[one.content] = result[one.content].(int) + 1
	}
	return result
}

func (s *Server) reactionObject(one *reaction) object {
	return object{"id": one.id, "node_id": nodeID("Reaction", one.id), "user": s.simpleUser(one.user),
		"content": one.content, "created_at": stamp(one.created)}
}
