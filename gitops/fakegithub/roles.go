package fakegithub

import "slices"

// A Role is what a person may do in one repository. The five built-in ones are GitHub's; a repository may define
// custom ones that build on them (RepositorySpec.CustomRoles).
type Role string

// GitHub's roles, from least to most.
const (
	RoleNone     Role = "none"
	RoleRead     Role = "read"
	RoleTriage   Role = "triage"
	RoleWrite    Role = "write"
	RoleMaintain Role = "maintain"
	RoleAdmin    Role = "admin"
)

var roleOrder = []Role{RoleNone, RoleRead, RoleTriage, RoleWrite, RoleMaintain, RoleAdmin}

func (r Role) atLeast(needed Role) bool {
	return slices.Index(roleOrder, r) >= slices.Index(roleOrder, needed)
}

// legacy is the "permission" that GitHub's older answer gives: it knows no triage and no maintain.
func (r Role) legacy() string {
	switch r {
	case RoleTriage:
		return string(RoleRead)
	case RoleMaintain:
		return string(RoleWrite)
	default:
		return string(r)
	}
}

// roleName is the role as granted, which may be a custom one; in a public repository everybody, also nobody in
// particular (nil), may read.
func (r *repository) roleName(a *account) Role {
	if a != nil && r.owner == a {
		return RoleAdmin
	}
	if a != nil && r.roles[a.id] != "" {
		return r.roles[a.id]
	}
	if r.private {
		return RoleNone
	}
	return RoleRead
}

// role is the built-in role that the account effectively has: a custom one counts as what it builds on.
func (r *repository) role(a *account) Role {
	granted := r.roleName(a)
	if base, ok := r.customRoles[string(granted)]; ok {
		return base
	}
	return granted
}

// association is GitHub's author_association, as far as the fake's accounts tell people apart.
func (r *repository) association(a *account) string {
	switch {
	case a == nil:
		return "NONE"
	case a == r.owner:
		return "OWNER"
	case r.roles[a.id] != "" && r.owner.kind == "Organization":
		return "MEMBER"
	case r.roles[a.id] != "":
		return "COLLABORATOR"
	default:
		return "NONE"
	}
}
