package fakegithub

import (
	"net/http"
	"strings"
)

// level orders the levels of an App's permission.
func level(name string) int {
	switch name {
	case "read":
		return 1
	case "write":
		return 2
	case "admin":
		return 3
	default:
		return 0
	}
}

// grants says whether the permissions include one of the needed ones. needed is a comma-separated list of
// name:level, of which any one suffices, as GitHub's documentation lists them.
func grants(permissions map[string]string, needed string) bool {
	for one := range strings.SplitSeq(needed, ",") {
		name, want, _ := strings.Cut(one, ":")
		if level(permissions[name]) >= level(want) {
			return true
		}
	}
	return false
}

// writes says whether an operation with this need changes anything.
func writes(needed string) bool {
	return strings.Contains(needed, ":write") || strings.Contains(needed, ":admin")
}

// reaches says whether the caller's token covers the repository.
func (c *caller) reaches(r *repository) bool {
	if c.installation == nil || !c.installation.covers(r) {
		return false
	}
	return c.token.repositories == nil || c.token.repositories[r.id]
}

// sees says whether the caller may know that the repository exists.
func (c *caller) sees(r *repository) bool {
	switch {
	case !r.private:
		return true
	case c.installation != nil:
		return c.reaches(r)
	default:
		return r.role(c.account).atLeast(RoleRead)
	}
}

// may decides whether the caller may do, in this repository, what needs the App permission or, for a person, the
// role. The refusals are those of GitHub: 404 for what one may not see, 403 for what one may see but not do.
func (c *caller) may(r *repository, needed string, role Role) error {
	switch {
	case !c.sees(r):
		return errNotFound
	case c.isApp():
		return errIntegration
	case writes(needed) && c.anonymous():
		return errRequiresAuth
	case writes(needed) && r.archived:
		return errArchived
	case c.installation != nil:
		return c.installationMay(r, needed)
	case !r.role(c.account).atLeast(role):
		return errorStatus(http.StatusForbidden, "Must have %s access to Repository.", role)
	default:
		return nil
	}
}

func (c *caller) installationMay(r *repository, needed string) error {
	if !c.reaches(r) {
		if writes(needed) {
			return errIntegration
		}
		return nil // public, and only read
	}
	if !grants(c.token.permissions, needed) {
		return errIntegration
	}
	return nil
}
