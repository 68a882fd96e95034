package github

import (
	"encoding/json"
	"slices"

	gh "github.com/google/go-github/v62/github"
)

// The functions here turn go-github's types, all pointers, into ours. A field
// that GitHub left out becomes the zero value.

func userOf(u *gh.User) User {
	return User{ID: u.GetID(), Login: u.GetLogin(), Type: u.GetType()}
}

func repositoryOf(r *gh.Repository) Repository {
	return Repository{
		ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(),
		OwnerID: r.GetOwner().GetID(), OwnerType: r.GetOwner().GetType(),
		DefaultBranch: r.GetDefaultBranch(), SizeKilobytes: int64(r.GetSize()),
		Private: r.GetPrivate(), Archived: r.GetArchived(), Disabled: r.GetDisabled(), Fork: r.GetFork(),
		HTMLURL: r.GetHTMLURL(),
	}
}

func installationInfoOf(i *gh.Installation) InstallationInfo {
	return InstallationInfo{
		ID: i.GetID(), Account: userOf(i.Account), Suspended: i.SuspendedAt != nil,
		Permissions: permissionsOf(i.Permissions), Events: slices.Clone(i.Events),
		AllRepositories: i.GetRepositorySelection() == "all",
	}
}

// permissionsOf returns the permissions by their names in GitHub's JSON, which
// go-github's struct knows as tags.
func permissionsOf(p *gh.InstallationPermissions) map[string]string {
	named := map[string]string{}
	if text, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(text, &named)
	}
	return named
}
