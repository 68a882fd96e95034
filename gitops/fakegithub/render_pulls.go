package fakegithub

import "fmt"

func (s *Server) pullAPI(r *repository, number int) string {
	return fmt.Sprintf("%s/pulls/%d", s.repoAPI(r), number)
}

// simplePull is a pull request as it stands in lists.
func (s *Server) simplePull(r *repository, i *issue) object {
	address, page := s.pullAPI(r, i.number), s.conversationPage(r, i)
	head, base := s.headSHA(r, i), s.baseSHA(r, i)
	statuses := s.repoAPI(r) + "/statuses/" + head
	link := func(to string) object { return object{"href": to} }
	return object{
		"id": i.pull.id, "node_id": nodeID("PullRequest", i.pull.id), "number": i.number, "state": i.state(),
		"locked": i.locked, "active_lock_reason": nil, "title": i.title, "body": optional(i.body),
		"user": s.simpleUser(i.author), "author_association": r.association(i.author),
		"labels":   each(i.labels, func(l *label) object { return s.labelObject(r, l) }),
		"assignee": nil, "assignees": each(i.assignees, s.user), "milestone": nil, "draft": i.pull.draft,
		"requested_reviewers": each(i.pull.reviewers, s.user), "requested_teams": []object{}, "auto_merge": nil,
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": optionalStamp(i.closedAt),
		"merged_at": optionalStamp(i.pull.mergedAt), "merge_commit_sha": optional(i.pull.mergeCommit),
		"head": s.pullEnd(r, i.pull.headBranch, head), "base": s.pullEnd(r, i.pull.baseBranch, base),
		"url": address, "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"issue_url": s.issueAPI(r, i.number), "commits_url": address + "/commits",
		"review_comments_url": address + "/comments", "review_comment_url": s.repoAPI(r) + "/pulls/comments{/number}",
		"comments_url": s.issueAPI(r, i.number) + "/comments", "statuses_url": statuses,
		"_links": object{"self": link(address), "html": link(page), "issue": link(s.issueAPI(r, i.number)),
			"comments":        link(s.issueAPI(r, i.number) + "/comments"),
			"review_comments": link(address + "/comments"),
			"review_comment":  link(s.repoAPI(r) + "/pulls/comments{/number}"),
			"commits":         link(address + "/commits"), "statuses": link(statuses)},
	}
}

func (s *Server) pullEnd(r *repository, branch, sha string) object {
	return object{"label": r.owner.login + ":" + branch, "ref": branch, "sha": sha, "user": s.user(r.owner),
		"repo": s.repositoryObject(r)}
}

// pullObject is a pull request by itself, with what git says about it.
func (s *Server) pullObject(r *repository, i *issue) object {
	result := s.simplePull(r, i)
	change := s.pullChange(r, i)
	result["additions"], result["deletions"] = change.additions(), change.deletions()
	result["changed_files"], result["commits"] = len(change.files), len(change.commits)
	result["comments"] = len(conversation(r, i.number))
	result["review_comments"] = len(reviewComments(r, i.number))
	result["maintainer_can_modify"], result["rebaseable"] = i.pull.canModify, nil
	result["merged"], result["merged_by"] = i.pull.merged, s.simpleUser(i.pull.mergedBy)
	result["mergeable"], result["mergeable_state"] = s.mergeable(r, i)
	return result
}

func (s *Server) reviewCommentObject(r *repository, m *comment) object {
	i := r.issues[m.number]
	address := fmt.Sprintf("%s/pulls/comments/%d", s.repoAPI(r), m.id)
	page := fmt.Sprintf("%s#discussion_r%d", s.conversationPage(r, i), m.id)
	result := object{
		"id": m.id, "node_id": nodeID("ReviewComment", m.id), "url": address, "html_url": page,
		"pull_request_review_id": m.line.review, "diff_hunk": m.line.hunk, "path": m.line.path,
		"position": m.line.position, "original_position": m.line.position, "commit_id": m.line.commit,
		"original_commit_id": m.line.commit, "user": s.simpleUser(m.author), "body": m.body,
		"created_at": stamp(m.created), "updated_at": stamp(m.updated), "pull_request_url": s.pullAPI(r, m.number),
		"author_association": r.association(m.author), "reactions": reactionSummary(address, m.reactions),
		"line": m.line.line, "original_line": m.line.line, "side": "RIGHT", "start_line": nil,
		"original_start_line": nil, "start_side": nil, "subject_type": "line",
		"_links": object{"self": object{"href": address}, "html": object{"href": page},
			"pull_request": object{"href": s.pullAPI(r, m.number)}},
	}
	if m.line.replyTo != 0 {
		result["in_reply_to_id"] = m.line.replyTo
	}
	return result
}

func (s *Server) reviewObject(r *repository, v *review) object {
	page := fmt.Sprintf("%s#pullrequestreview-%d", s.conversationPage(r, r.issues[v.number]), v.id)
	return object{
		"id": v.id, "node_id": nodeID("PullRequestReview", v.id), "user": s.simpleUser(v.author), "body": v.body,
		"state": v.state, "html_url": page, "pull_request_url": s.pullAPI(r, v.number), "commit_id": v.commit,
		"submitted_at": stamp(v.submitted), "author_association": r.association(v.author),
		"_links": object{"html": object{"href": page}, "pull_request": object{"href": s.pullAPI(r, v.number)}},
	}
}
