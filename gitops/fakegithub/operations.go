package fakegithub

import "net/http"

const (
	get    = http.MethodGet
	post   = http.MethodPost
	patch  = http.MethodPatch
	put    = http.MethodPut
	remove = http.MethodDelete
)

// operations is the API: every operation that the fake answers, with the permission that GitHub documents for it.
// Source: https://docs.github.com/rest/authentication/permissions-required-for-github-apps
var operations = []operation{
	{method: get, path: "/app", audience: forApp, handle: getApp},
	{method: get, path: "/app/installations", audience: forApp, handle: listInstallations},
	{method: get, path: "/app/installations/{installation_id}", audience: forApp, handle: getInstallation},
	{method: post, path: "/app/installations/{installation_id}/access_tokens", audience: forApp, status: 201, handle: createInstallationToken},
	{method: get, path: "/app/hook/config", audience: forApp, handle: getHookConfig},
	{method: patch, path: "/app/hook/config", audience: forApp, handle: updateHookConfig},
	{method: get, path: "/app/hook/deliveries", audience: forApp, handle: listDeliveries},
	{method: get, path: "/app/hook/deliveries/{delivery_id}", audience: forApp, handle: getDelivery},
	{method: post, path: "/app/hook/deliveries/{delivery_id}/attempts", audience: forApp, status: 202, handle: redeliverDelivery},
	{method: post, path: "/app-manifests/{code}/conversions", audience: forAnyone, status: 201, handle: convertManifest},
	{method: get, path: "/installation/repositories", audience: forInstallation, handle: listInstallationRepositories},
	{method: remove, path: "/installation/token", audience: forInstallation, status: 204, handle: revokeInstallationToken},

	{method: get, path: "/rate_limit", audience: forAnyone, handle: getRateLimit},
	{method: get, path: "/meta", audience: forAnyone, handle: getMeta},
	{method: get, path: "/user", audience: forPerson, handle: getUser},
	{method: get, path: "/users/{username}", audience: forAnyone, handle: getUserByName},

	{method: get, path: "/repos/{owner}/{repo}", permission: "metadata:read", role: RoleRead, handle: getRepository},
	{method: get, path: "/repos/{owner}/{repo}/installation", handle: getRepositoryInstallation},
	{method: get, path: "/repos/{owner}/{repo}/collaborators/{username}", permission: "metadata:read", role: RoleWrite, status: 204, handle: checkCollaborator},
	{method: get, path: "/repos/{owner}/{repo}/collaborators/{username}/permission", permission: "metadata:read", role: RoleWrite, handle: getPermission},

	{method: get, path: "/repos/{owner}/{repo}/issues", permission: "issues:read", role: RoleRead, handle: listIssues},
	{method: post, path: "/repos/{owner}/{repo}/issues", permission: "issues:write", role: RoleRead, status: 201, creates: true, handle: createIssue},
	{method: get, path: "/repos/{owner}/{repo}/issues/{issue_number}", permission: "issues:read,pull_requests:read", role: RoleRead, handle: getIssue},
	{method: patch, path: "/repos/{owner}/{repo}/issues/{issue_number}", permission: "issues:write,pull_requests:write", role: RoleRead, handle: updateIssue},
	{method: get, path: "/repos/{owner}/{repo}/issues/{issue_number}/comments", permission: "issues:read,pull_requests:read", role: RoleRead, handle: listComments},
	{method: post, path: "/repos/{owner}/{repo}/issues/{issue_number}/comments", permission: "issues:write,pull_requests:write", role: RoleRead, status: 201, creates: true, handle: createComment},
	{method: get, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}", permission: "issues:read,pull_requests:read", role: RoleRead, handle: getComment},
	{method: patch, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}", permission: "issues:write,pull_requests:write", role: RoleRead, handle: updateComment},
	{method: remove, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}", permission: "issues:write,pull_requests:write", role: RoleRead, status: 204, handle: deleteComment},
	{method: get, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", permission: "issues:read,pull_requests:read", role: RoleRead, handle: listReactions},
	{method: post, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", permission: "issues:write,pull_requests:write", role: RoleRead, handle: createReaction},
	{method: remove, path: "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}", permission: "issues:write,pull_requests:write", role: RoleRead, status: 204, handle: deleteReaction},
	{method: get, path: "/repos/{owner}/{repo}/issues/{issue_number}/reactions", permission: "issues:read,pull_requests:read", role: RoleRead, handle: listReactions},
	{method: post, path: "/repos/{owner}/{repo}/issues/{issue_number}/reactions", permission: "issues:write,pull_requests:write", role: RoleRead, handle: createReaction},
	{method: get, path: "/repos/{owner}/{repo}/issues/{issue_number}/labels", permission: "issues:read,pull_requests:read", role: RoleRead, handle: listIssueLabels},
	{method: post, path: "/repos/{owner}/{repo}/issues/{issue_number}/labels", permission: "issues:write,pull_requests:write", role: RoleTriage, handle: addIssueLabels},
	{method: get, path: "/repos/{owner}/{repo}/labels", permission: "issues:read,pull_requests:read", role: RoleRead, handle: listLabels},
	{method: post, path: "/repos/{owner}/{repo}/labels", permission: "issues:write,pull_requests:write", role: RoleWrite, status: 201, handle: createLabel},

	{method: get, path: "/repos/{owner}/{repo}/branches", permission: "contents:read", role: RoleRead, handle: listBranches},
	{method: get, path: "/repos/{owner}/{repo}/branches/{branch...}", permission: "contents:read", role: RoleRead, handle: getBranch},
	{method: get, path: "/repos/{owner}/{repo}/commits", permission: "contents:read", role: RoleRead, handle: listCommits},
	{method: get, path: "/repos/{owner}/{repo}/commits/{ref...}", permission: "contents:read", role: RoleRead, handle: getCommit},
	{method: get, path: "/repos/{owner}/{repo}/commits/{ref...}/check-runs", permission: "checks:read", role: RoleRead, handle: listCheckRuns},
	{method: get, path: "/repos/{owner}/{repo}/commits/{ref...}/check-suites", permission: "checks:read", role: RoleRead, handle: listCheckSuites},
	{method: get, path: "/repos/{owner}/{repo}/commits/{ref...}/status", permission: "statuses:read", role: RoleRead, handle: getStatus},
	{method: post, path: "/repos/{owner}/{repo}/statuses/{sha}", permission: "statuses:write", role: RoleWrite, status: 201, handle: createStatus},
	{method: get, path: "/repos/{owner}/{repo}/contents", permission: "contents:read", role: RoleRead, handle: getContents},
	{method: get, path: "/repos/{owner}/{repo}/contents/{path...}", permission: "contents:read", role: RoleRead, handle: getContents},
	{method: get, path: "/repos/{owner}/{repo}/compare/{basehead...}", permission: "contents:read", role: RoleRead, handle: compareCommits},
	{method: get, path: "/repos/{owner}/{repo}/git/ref/{ref...}", permission: "contents:read", role: RoleRead, handle: getRef},
	{method: get, path: "/repos/{owner}/{repo}/git/matching-refs/{ref...}", permission: "contents:read", role: RoleRead, handle: matchingRefs},
	{method: post, path: "/repos/{owner}/{repo}/git/blobs", permission: "contents:write", role: RoleWrite, status: 201, handle: createBlob},
	{method: post, path: "/repos/{owner}/{repo}/git/trees", permission: "contents:write", role: RoleWrite, status: 201, handle: createTree},
	{method: post, path: "/repos/{owner}/{repo}/git/commits", permission: "contents:write", role: RoleWrite, status: 201, handle: createCommit},
	{method: post, path: "/repos/{owner}/{repo}/git/refs", permission: "contents:write", role: RoleWrite, status: 201, movesRefs: true, handle: createRef},
	{method: patch, path: "/repos/{owner}/{repo}/git/refs/{ref...}", permission: "contents:write", role: RoleWrite, movesRefs: true, handle: updateRef},
	{method: remove, path: "/repos/{owner}/{repo}/git/refs/{ref...}", permission: "contents:write", role: RoleWrite, status: 204, movesRefs: true, handle: deleteRef},
	{method: get, path: "/repos/{owner}/{repo}/git/commits/{commit_sha}", permission: "contents:read", role: RoleRead, handle: getGitCommit},
	{method: get, path: "/repos/{owner}/{repo}/git/trees/{tree_sha}", permission: "contents:read", role: RoleRead, handle: getGitTree},

	{method: get, path: "/repos/{owner}/{repo}/pulls", permission: "pull_requests:read", role: RoleRead, handle: listPulls},
	{method: post, path: "/repos/{owner}/{repo}/pulls", permission: "pull_requests:write", role: RoleRead, status: 201, creates: true, movesRefs: true, handle: createPull},
	{method: get, path: "/repos/{owner}/{repo}/pulls/{pull_number}", permission: "pull_requests:read", role: RoleRead, handle: getPull},
	{method: patch, path: "/repos/{owner}/{repo}/pulls/{pull_number}", permission: "pull_requests:write", role: RoleRead, handle: updatePull},
	{method: get, path: "/repos/{owner}/{repo}/pulls/{pull_number}/files", permission: "pull_requests:read", role: RoleRead, handle: listPullFiles},
	{method: get, path: "/repos/{owner}/{repo}/pulls/{pull_number}/commits", permission: "pull_requests:read", role: RoleRead, handle: listPullCommits},
	{method: put, path: "/repos/{owner}/{repo}/pulls/{pull_number}/merge", permission: "contents:write", role: RoleWrite, movesRefs: true, handle: mergePull},
	{method: get, path: "/repos/{owner}/{repo}/pulls/{pull_number}/reviews", permission: "pull_requests:read", role: RoleRead, handle: listReviews},
	{method: post, path: "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", permission: "pull_requests:write", role: RoleWrite, status: 201, handle: requestReviewers},
	{method: get, path: "/repos/{owner}/{repo}/pulls/{pull_number}/comments", permission: "pull_requests:read", role: RoleRead, handle: listReviewComments},
	{method: post, path: "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies", permission: "pull_requests:write", role: RoleRead, status: 201, creates: true, handle: replyToReviewComment},
	{method: get, path: "/repos/{owner}/{repo}/pulls/comments/{comment_id}", permission: "pull_requests:read", role: RoleRead, handle: getReviewComment},
	{method: post, path: "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions", permission: "pull_requests:write", role: RoleRead, handle: createReaction},

	{method: post, path: "/repos/{owner}/{repo}/check-runs", permission: "checks:write", role: RoleWrite, status: 201, handle: createCheckRun},
	{method: get, path: "/repos/{owner}/{repo}/check-runs/{check_run_id}", permission: "checks:read", role: RoleRead, handle: getCheckRun},
	{method: patch, path: "/repos/{owner}/{repo}/check-runs/{check_run_id}", permission: "checks:write", role: RoleWrite, handle: updateCheckRun},
	{method: post, path: "/repos/{owner}/{repo}/check-runs/{check_run_id}/rerequest", permission: "checks:write", role: RoleWrite, status: 201, handle: rerequestCheckRun},
	{method: get, path: "/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations", permission: "checks:read", role: RoleRead, handle: listAnnotations},

	{method: get, path: "/repos/{owner}/{repo}/actions/runs/{run_id}", permission: "actions:read", role: RoleRead, handle: getWorkflowRun},
	{method: get, path: "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs", permission: "actions:read", role: RoleRead, handle: listWorkflowJobs},
	{method: get, path: "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs", permission: "actions:read", role: RoleRead, status: 302, handle: getJobLog},
}
