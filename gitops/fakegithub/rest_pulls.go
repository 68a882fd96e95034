package fakegithub

import (
	"net/http"
	"slices"
	"strings"

	gitobject "github.com/go-git/go-git/v5/plumbing/object"
)

// pullOf finds the pull request of the path.
func pullOf(c *call) (*issue, error) {
	number, err := c.number("pull_number")
	if err != nil {
		return nil, err
	}
	i, err := c.repo.find(number)
	if err != nil || i.pull == nil {
		return nil, errNotFound
	}
	return i, nil
}

func listPulls(c *call) (any, error) {
	query := c.request().URL.Query()
	list := slices.DeleteFunc(sorted(c.repo.issues), func(i *issue) bool {
		return i.pull == nil || !wantedState(query.Get("state"), i) ||
			(query.Get("base") != "" && query.Get("base") != i.pull.baseBranch) || !wantedHead(c.repo, query.Get("head"), i)
	})
	if query.Get("direction") != "asc" {
		slices.Reverse(list)
	}
	return each(paginate(c, list), func(i *issue) object { return c.server.simplePull(c.repo, i) }), nil
}

// wantedHead: the filter is owner:branch; GitHub ignores one without owner.
func wantedHead(r *repository, wanted string, i *issue) bool {
	owner, branch, qualified := strings.Cut(wanted, ":")
	return !qualified || (strings.EqualFold(owner, r.owner.login) && branch == i.pull.headBranch)
}

func createPull(c *call) (any, error) {
	var wanted pullRequest
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	i, err := c.server.createPull(c.repo, c.caller.actor(), wanted)
	if err != nil {
		return nil, err
	}
	c.header("Location", c.server.pullAPI(c.repo, i.number))
	return c.server.pullObject(c.repo, i), nil
}

// accepts says whether the client asked for one of GitHub's other media types, for example diff.
func (c *call) accepts(format string) bool {
	accept := c.request().Header.Get("Accept")
	return strings.Contains(accept, "application/vnd.github") && strings.Contains(accept, format)
}

func getPull(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	if c.accepts("diff") {
		return raw{contentType: "application/vnd.github.diff; charset=utf-8", data: []byte(c.server.pullChange(c.repo, i).diff)}, nil
	}
	return c.server.pullObject(c.repo, i), nil
}

func updatePull(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	var edit pullRequest
	if err := c.decode(&edit); err != nil {
		return nil, err
	}
	if err := c.server.editPull(c.repo, i, c.caller.actor(), edit); err != nil {
		return nil, err
	}
	return c.server.pullObject(c.repo, i), nil
}

func listPullFiles(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	return each(paginate(c, c.server.pullChange(c.repo, i).files), c.server.fileObject(c.repo, c.server.headSHA(c.repo, i))), nil
}

func listPullCommits(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	return each(paginate(c, c.server.pullChange(c.repo, i).commits), commitIn(c)), nil
}

func commitIn(c *call) func(*gitobject.Commit) object {
	return func(commit *gitobject.Commit) object { return c.server.commitObject(c.repo, commit) }
}

func mergePull(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	var wanted struct {
		Title   string  `json:"commit_title"`
		Message string  `json:"commit_message"`
		SHA     string  `json:"sha"`
		Method  *string `json:"merge_method"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	method := "merge"
	set(&method, wanted.Method)
	sha, err := c.server.mergePull(c.repo, i, c.caller.actor(), method, wanted.Title, wanted.Message, wanted.SHA)
	if err != nil {
		return nil, err
	}
	return object{"sha": sha, "merged": true, "message": "Pull Request successfully merged"}, nil
}

func listReviews(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(c.repo.reviews), func(v *review) bool { return v.number != i.number })
	return each(paginate(c, list), func(v *review) object { return c.server.reviewObject(c.repo, v) }), nil
}

func requestReviewers(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	var wanted struct {
		Reviewers []string `json:"reviewers"`
	}
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	for _, login := range wanted.Reviewers {
		a := c.server.world.account(login)
		if a == nil || !c.repo.role(a).atLeast(RoleRead) || (a != c.repo.owner && c.repo.roles[a.id] == "") {
			return nil, errorStatus(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the %s repository.", c.repo.fullName())
		}
		if a == i.author {
			return nil, errorStatus(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		}
		if !slices.Contains(i.pull.reviewers, a) {
			i.pull.reviewers = append(i.pull.reviewers, a)
		}
	}
	return c.server.simplePull(c.repo, i), nil
}

func listReviewComments(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	return each(paginate(c, reviewComments(c.repo, i.number)), func(m *comment) object {
		return c.server.reviewCommentObject(c.repo, m)
	}), nil
}

func replyToReviewComment(c *call) (any, error) {
	i, err := pullOf(c)
	if err != nil {
		return nil, err
	}
	to, err := commentOf(c, true)
	if err != nil || to.number != i.number {
		return nil, errNotFound
	}
	var wanted bodyOnly
	if err := c.decode(&wanted); err != nil {
		return nil, err
	}
	m, err := c.server.createReply(c.repo, to, c.caller.actor(), wanted.Body)
	if err != nil {
		return nil, err
	}
	return c.server.reviewCommentObject(c.repo, m), nil
}

func getReviewComment(c *call) (any, error) {
	m, err := commentOf(c, true)
	if err != nil {
		return nil, err
	}
	return c.server.reviewCommentObject(c.repo, m), nil
}
